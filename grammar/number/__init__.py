"""Numbers, and the automata of their texts."""
