"""Schemas as unions of shapes, closed under conjunction, union and negation."""
