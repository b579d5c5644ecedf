# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Times at which a stopping rule is looked at."""

from __future__ import annotations

import math


def checkpoints(least: int, most: int) -> list[int]:
    """Return after how many replications a stopping rule is looked at.

    A quarter more each time, whatever runs side by side: so the decision depends on the results
    alone, and the interval is not looked at so often that it is narrow once by chance.
    """
    found = [least]
    while found[-1] < most:
        found.append(min(most, math.ceil(found[-1] * 1.25)))
    return found
