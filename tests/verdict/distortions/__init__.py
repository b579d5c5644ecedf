# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""All distortions, each one entry: what is done to a run, and what the truth at its ends is then.

A case returns what was seen: the truth and the verdict. A distortion that did not get through (the
truth is within the bound) allows either verdict, and counts as not reached; one that never gets
through says nothing and fails the bench.
"""

import importlib

from verdict.distortion import ALL

__all__ = ["ALL"]

PARTS = ("engine", "processors", "ends", "interfaces", "clocks", "surroundings")
"""Modules that register distortions, in the order of the table."""

for part in PARTS:
    importlib.import_module(f"{__name__}.{part}")
