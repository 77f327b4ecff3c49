"""Structural tags: free text with constrained parts, for tools and reasoning."""
