# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Loads pages with curl, one after the other, and times each; run as a script.

A page is a document and then its parts, side by side, over connections of their own. Prints curl's
JSON of each transfer, a line each, and after those of a page a line with its times.

usage: pages.py URL PAGES PAUSE_SECONDS PARTS CONNECTIONS
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

CURL = ["curl", "-sS", "--fail", "-o", "/dev/null", "-w", "%{json}\\n"]


def fetch(words: list[str]) -> str:
    """Run curl; return a line of JSON for each transfer.

    Raises:
        subprocess.CalledProcessError: a transfer failed.

    """
    done = subprocess.run([*CURL, *words], stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    done.check_returncode()
    return done.stdout


def main() -> int:
    """Load the pages."""
    url, pages, pause_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    parts, connections = int(sys.argv[4]), sys.argv[5]
    together = ["--parallel", "--parallel-immediate", "--parallel-max", connections]
    for number in range(1, pages + 1):
        if number > 1:
            time.sleep(pause_s)
        begun = time.monotonic()
        try:
            document = json.loads(fetch([f"{url}/page"]))
            if parts:
                fetch([*together, f"{url}/part-[1-{parts}]"])
        except subprocess.CalledProcessError as error:
            return int(error.returncode)
        page = {
            "page": number,
            "load_seconds": time.monotonic() - begun,
            "first_byte_seconds": document["time_starttransfer"],
        }
        print(json.dumps(page), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
