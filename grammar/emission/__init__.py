"""From normal form to the tables of the machine."""
