"""A schema document, whatever draft it is written in, as parts and keys."""
