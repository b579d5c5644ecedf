"""What programs and notebooks use, by the name ``airpath``: docs/python.md shows it."""
