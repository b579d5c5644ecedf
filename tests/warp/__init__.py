"""End-to-end tests in virtual time: the real command, and a kernel that travels in time."""
