"""Regexes, and automata over characters."""
