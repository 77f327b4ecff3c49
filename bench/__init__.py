"""Measurements. Each module is a command, and prints what it measured and on which machine."""
