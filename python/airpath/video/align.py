# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Decoded pictures set beside the frames that were sent: the picture on the screen at each frame.

A frame that did not arrive, or not in time, is concealed by the last picture: the screen keeps it.
Before the first picture the screen is grey.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from airpath.video.about import RTP_HERTZ

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

_NANOSECONDS = 1_000_000_000


class Screen(NamedTuple):
    """The pictures that a viewer saw."""

    shown: list[int | None]
    """By frame of the reference: number of the decoded picture on the screen; None for grey."""
    late: int
    """Number of decoded pictures that came after the time at which they were to be shown."""

    @property
    def frozen(self) -> list[bool]:
        """By frame of the reference: True where the screen did not change."""
        return [
            one is None or (number > 0 and one == self.shown[number - 1])
            for number, one in enumerate(self.shown)
        ]


def by_time(
    times: Sequence[int],
    count: int,
    fps: float,
    arrivals: Mapping[int, int] | None = None,
    playout_ns: int | None = None,
) -> Screen:
    """Return the screen where the RTP time of each picture is known.

    Args:
        times: RTP time of each decoded picture.
        count: number of frames that were sent.
        fps: frames per second.
        arrivals: arrival of the last packet of a frame in nanoseconds, by its RTP time.
        playout_ns: a frame is to be shown so long after the first one arrived, plus its distance
            from the first one. None: a player that waits for everything.

    """
    numbers = [round(time * fps / RTP_HERTZ) for time in times]
    due: list[int] = list(numbers)
    if playout_ns is not None and arrivals:
        first = min(arrivals)
        begin = arrivals[first] - first * _NANOSECONDS // RTP_HERTZ + playout_ns
        for place, time in enumerate(times):
            arrived = arrivals.get(time, 0)
            # The first frame time at which the picture is there.
            at = int(np.ceil(round((arrived - begin) * fps / _NANOSECONDS, 6)))
            due[place] = max(numbers[place], at)
    shown: list[int | None] = []
    best: int | None = None
    waiting = sorted(range(len(times)), key=lambda place: due[place], reverse=True)
    for frame in range(count):
        while waiting and due[waiting[-1]] <= frame:
            place = waiting.pop()
            # One that comes behind a later one is not shown any more.
            if best is None or (numbers[place], place) > (numbers[best], best):
                best = place
        shown.append(best)
    return Screen(shown, sum(at > number for at, number in zip(due, numbers, strict=True)))


def by_content(reference: NDArray[np.float64], received: NDArray[np.float64]) -> Screen:
    """Return the screen where nothing but the order of pictures is known.

    Pictures stand beside frames in the order in which both are, so that the mean square of
    differences is least. Where there are no more pictures than frames, each stands beside one;
    otherwise some pictures are left out.

    Args:
        reference: frames that were sent, small: one row each.
        received: decoded pictures, as small: one row each.

    """
    count, pictures = len(reference), len(received)
    if pictures == 0:
        return Screen([None] * count, 0)
    cost = np.array([((reference - picture) ** 2).mean(axis=1) for picture in received])
    matched = _matched(cost) if pictures <= count else _matched(cost.T)
    if pictures <= count:
        frame_of = dict(enumerate(matched))
    else:
        frame_of = {picture: frame for frame, picture in enumerate(matched)}
    at = {frame: picture for picture, frame in frame_of.items()}
    shown: list[int | None] = []
    last: int | None = None
    for frame in range(count):
        last = at.get(frame, last)
        shown.append(last)
    return Screen(shown, 0)


def _matched(cost: NDArray[np.float64]) -> list[int]:
    """Return for each row a column, increasing, with the least sum of costs."""
    rows, columns = cost.shape
    slack = columns - rows
    # best[s]: least cost of the rows so far, the last of them at column row + s or before.
    best = np.zeros(slack + 1)
    choices = np.zeros((rows, slack + 1), dtype=np.int64)
    for row in range(rows):
        here = best + cost[row, row : row + slack + 1]
        running = np.minimum.accumulate(here)
        places = np.where(here <= running, np.arange(slack + 1), 0)
        choices[row] = np.maximum.accumulate(places)
        best = running
    found, limit = [0] * rows, slack
    for row in range(rows - 1, -1, -1):
        limit = int(choices[row, limit])
        found[row] = row + limit
    return found
