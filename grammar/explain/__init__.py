"""What the compiler makes of a schema, for a person to read."""
