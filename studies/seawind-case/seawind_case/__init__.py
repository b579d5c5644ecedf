"""The case study of Kojo et al. 2001, repeated live."""
