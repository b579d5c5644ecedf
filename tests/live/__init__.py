"""End-to-end tests: the real command, real programs, the real kernel."""
