"""Interface for programs and notebooks, by the name ``airpath``: docs/python.md shows it."""
