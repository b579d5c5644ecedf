"""Airpath: a wireless link of your choice between real programs."""
