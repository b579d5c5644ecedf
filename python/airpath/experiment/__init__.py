"""Experiments: sets of replications, described in a file and run unattended."""
