# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reading the logs of an active run as they grow: lines of JSON for whoever follows the run."""

from __future__ import annotations

import asyncio
import copy
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from airpath.facts import FILES
from airpath.ui import live
from airpath.ui.feed import Feed, tcp_curves
from airpath.ui.tail import NoTailError, Tail

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOOK_EVERY_S = 0.1
"""Time between two looks at a log."""
VERDICT_EVERY = 10
"""Number of looks from one question for the verdict to the next."""
LOOKS_AFTER_END = 60
"""Number of looks at the log of a run that answers no more until it counts as killed: a run that
ends answers no more before its log has its end mark."""
WAIT_FOR_LOG_S = 20.0
"""Maximum time until a run has begun its log."""


class Place(NamedTuple):
    """Bytes of the logs that were read."""

    events: int
    tcp: int


@dataclass
class Follower:
    """Reader of a run's logs, and the curves of what it has read."""

    folder: Path
    number: int | None
    """The run's number, for its verdict; None for a run that cannot be asked."""
    extra: Callable[[], dict[str, Any]]
    """Further things to tell, where they change."""
    events: Tail
    tcp: Tail | None = None
    feed: Feed = field(default_factory=Feed)
    told: dict[str, Any] = field(default_factory=dict)
    """Further things as they were told last."""
    ended: bool = False
    """True once there is nothing more to come."""
    _alive: bool = True
    _looks: int = 0
    _silent: int = 0

    @classmethod
    async def open(
        cls, folder: Path, number: int | None, extra: Callable[[], dict[str, Any]]
    ) -> Self | None:
        """Return a reader at the begin of the logs; None for a run without events."""
        events = await _opened(folder / FILES["events"], WAIT_FOR_LOG_S)
        if events is None:
            return None
        return cls(folder, number, extra, events, _alive=number is not None)

    @property
    def place(self) -> Place:
        """Return the place up to which the logs were read."""
        return Place(self.events.position, self.tcp.position if self.tcp else 0)

    @property
    def behind(self) -> bool:
        """Return whether more was there than the last look read."""
        return self.events.behind

    def fork(self) -> Self:
        """Return a reader of its own that goes on from here."""
        tcp = self.tcp.fork() if self.tcp else None
        feed = copy.deepcopy(self.feed)
        return replace(self, events=self.events.fork(), tcp=tcp, feed=feed)

    def close(self) -> None:
        """Close the logs."""
        self.events.close()
        if self.tcp is not None:
            self.tcp.close()

    async def look(self, until: Place | None = None) -> list[bytes]:
        """Return what is new, a line of JSON for each part.

        Args:
            until: a place beyond which nothing is read.

        """
        ask = self._looks % VERDICT_EVERY == 0
        self._looks += 1
        if ask and self.number is not None:
            self._alive = await asyncio.to_thread(live.alive, self.number)
        try:
            update, last = await self._update(ask, until)
        except NoTailError as error:
            self.ended = True
            return [line({"error": str(error)})]
        if ask and self._alive and self.number is not None:
            update["live"] = await asyncio.to_thread(live.state, self.number)
        update.update(self._news())
        lines = [line(update)] if update else []
        if last:
            self.ended = True
            # A killed run never marks the end of its log.
            lines.append(line({"ended": True, "killed": not self.events.ended}))
        return lines

    async def _update(self, ask: bool, until: Place | None) -> tuple[dict[str, Any], bool]:
        rows = await asyncio.to_thread(self.events.new_rows, until.events if until else None)
        self._silent = 0 if self._alive or rows.height else self._silent + 1
        last = self.events.ended or self._silent > LOOKS_AFTER_END
        update: dict[str, Any] = {}
        if rows.height or last or ask:
            update = dict(await asyncio.to_thread(self.feed.add, rows, last=last))
        if self.tcp is None and ask:
            self.tcp = await _opened(self.folder / FILES["tcp_state"], 0)
        if self.tcp is not None and not self.tcp.ended:
            rows = await asyncio.to_thread(self.tcp.new_rows, until.tcp if until else None)
            update.setdefault("curves", {}).update(tcp_curves(rows))
        return update, last

    def _news(self) -> dict[str, Any]:
        """Return the further things if they are others than were told."""
        now = self.extra()
        if now == self.told:
            return {}
        self.told = now
        return now


async def _opened(path: Path, patience_s: float) -> Tail | None:
    waited = 0.0
    while True:
        try:
            tail = Tail.open(path)
        except NoTailError:
            return None
        except OSError:
            if waited >= patience_s:
                return None
        else:
            return tail
        await asyncio.sleep(LOOK_EVERY_S)
        waited += LOOK_EVERY_S


def line(update: dict[str, Any]) -> bytes:
    """Return a line of JSON."""
    return json.dumps(update, separators=(",", ":"), allow_nan=False).encode() + b"\n"
