# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Ends with status 0 once a line of standard input matches a regular expression; run as a script.

Started beside a program whose ``ready.output`` names the line by which it is ready, with the
standard library alone.

usage: matcher.py EXPRESSION
"""

from __future__ import annotations

import re
import sys


def main() -> int:
    """Look at each line."""
    expression = re.compile(sys.argv[1])
    for line in sys.stdin.buffer:
        if expression.search(line.removesuffix(b"\n").decode(errors="replace")):
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
