# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""HTTP client that tries again: the example program of docs/testing.md.

Usage: client.py URL [--attempts N] [--timeout SECONDS] [--pause SECONDS] [--factor X]
Prints the number of bytes of the answer, and of the attempts. Exit status 1: it gave up.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import time
import urllib.request


def fetch(url: str, attempts: int, timeout_s: float, pause_s: float, factor: float) -> bytes:
    """Return what is at a URL.

    Args:
        url: the address.
        attempts: how many there are at most.
        timeout_s: longest silence within an attempt.
        pause_s: time between the first attempt and the second.
        factor: by which each further pause is longer than the one before.

    Raises:
        OSError: every attempt failed; the error is that of the last one.

    """
    for attempt in range(1, attempts + 1):
        try:
            with urllib.request.urlopen(url, timeout=timeout_s) as answer:
                content: bytes = answer.read()
        except (OSError, http.client.IncompleteRead) as error:
            print(f"attempt {attempt} failed: {error}", file=sys.stderr)
            if attempt == attempts:
                raise OSError(f"gave up after {attempts} attempts") from error
            time.sleep(pause_s)
            pause_s *= factor
        else:
            print(f"{len(content)} bytes by attempt {attempt}")
            return content
    raise AssertionError("there is at least one attempt")


def main() -> int:
    """Carry the command line out."""
    parser = argparse.ArgumentParser(description="Fetch a URL, trying again after failures")
    parser.add_argument("url")
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--pause", type=float, default=0.2, metavar="SECONDS")
    parser.add_argument("--factor", type=float, default=1.0, metavar="X")
    given = parser.parse_args()
    try:
        fetch(given.url, given.attempts, given.timeout, given.pause, given.factor)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
