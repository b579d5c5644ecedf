# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Error trace of Figure 12 of Eckhardt and Steenkiste 2002, for figure12.toml.

No losses in 1000 packet slots, then losses that grow from 10 to 90 %, then no losses. They are
spread evenly: a slot is lost where the sum of the loss ratios passes a whole number. Writes the
slots that are lost to standard output.
"""

from __future__ import annotations

CLEAN = 1000
RAMP = 2500
TAIL = 2500
LEAST = 0.1
MOST = 0.9


def lost_slots() -> list[int]:
    """Return the numbers of the slots that are lost."""
    found = []
    due = 0.5
    for slot in range(RAMP):
        due += LEAST + (MOST - LEAST) * slot / (RAMP - 1)
        if due >= 1:
            due -= 1
            found.append(CLEAN + slot)
    return found


def main() -> None:
    """Print the trace."""
    print("# Slots of 12.75 ms that are lost: 10 to 90 % of 2500, spread evenly.")
    for slot in lost_slots():
        print(f"at {slot} hit")
    print(f"at {CLEAN + RAMP + TAIL - 1} ok")


if __name__ == "__main__":
    main()
