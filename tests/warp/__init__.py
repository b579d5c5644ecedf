"""End-to-end tests in virtual time: the real command, real programs, a kernel whose time travels."""
