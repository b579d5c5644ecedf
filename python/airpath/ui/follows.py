# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Pages that follow active runs: the logs of a run are read once for all pages that follow it.

A page that comes later reads the run from its begin by itself. Once it has read as much as the
others it joins them, and goes on by itself if it cannot keep up with them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airpath.ui.follower import LOOK_EVERY_S, Follower, Place, line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

MOST_WAITING_BYTES = 4_000_000
"""Maximum size of the lines that wait for one page."""


@dataclass(eq=False)
class _Member:
    """A page of a group, and the lines that wait for it."""

    lines: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    size: int = 0
    rest: Follower | None = None
    """Reader for what comes behind the lines, if the page could not keep up."""

    def put(self, lines: list[bytes]) -> None:
        for each in lines:
            self.size += len(each)
            self.lines.put_nowait(each)

    async def get(self) -> bytes | None:
        """Return the next line; None behind the last one."""
        found = await self.lines.get()
        self.size -= len(found or b"")
        return found


class _Group:
    """Pages that have read as much of a run as each other, and their common reader."""

    def __init__(self, reader: Follower, done: Callable[[], None]) -> None:
        self.reader = reader
        self.place = reader.place
        """Place of the reader up to which the members have all lines, with those that wait."""
        self.members: set[_Member] = set()
        self._done = done
        self.task = asyncio.create_task(self._lead())

    def join(self, told: dict[str, Any]) -> _Member:
        """Return a new member, which has read up to the group's place."""
        member = _Member()
        if told != self.reader.told:
            member.put([line(self.reader.told)])
        self.members.add(member)
        return member

    def leave(self, member: _Member) -> None:
        """Take a member out; the last one ends the group."""
        self.members.discard(member)
        if not self.members:
            self._done()
            self.task.cancel()

    async def _lead(self) -> None:
        reader = self.reader
        try:
            while self.members and not reader.ended:
                await asyncio.sleep(0 if reader.behind else LOOK_EVERY_S)
                self._tell(await reader.look())
        finally:
            self._done()
            for member in self.members:
                member.lines.put_nowait(None)
            reader.close()

    def _tell(self, lines: list[bytes]) -> None:
        self.place = self.reader.place
        for member in [*self.members]:
            member.put(lines)
            if member.size > MOST_WAITING_BYTES and not self.reader.ended:
                self.members.discard(member)
                member.rest = self.reader.fork()
                member.lines.put_nowait(None)


class Follows:
    """Groups of pages that follow runs."""

    def __init__(self) -> None:
        self._groups: dict[Path, _Group] = {}

    async def follow(
        self, folder: Path, number: int | None, extra: Callable[[], dict[str, Any]] = dict
    ) -> AsyncIterator[bytes]:
        """Give what is new in a run, a line of JSON at a time, until it ends.

        Args:
            folder: the run's folder.
            number: its number, for its verdict; None for a run that cannot be asked.
            extra: what else to tell at each look, where it changes.

        """
        own = await Follower.open(folder, number, extra)
        if own is None:
            why = "the run has no log of events; start it with --out"
            yield line({"error": f"{folder.name}: {why}"})
            return
        reader: Follower | None = own
        group, member = None, None
        try:
            while reader is not None:
                async for each in self._alone(folder, reader):
                    yield each
                if reader.ended:
                    return
                # Nothing is awaited from the end of `_alone` on: the group stands where it stood.
                group = self._groups.get(folder) or self._begin(folder, reader)
                member = group.join(reader.told)
                if group.reader is not reader:
                    reader.close()
                reader = None
                while (found := await member.get()) is not None:
                    yield found
                reader, member = member.rest, None
                if reader is None:
                    await group.task
        finally:
            if group is not None and member is not None:
                group.leave(member)
                reader = member.rest
            if reader is not None:
                reader.close()

    async def _alone(self, folder: Path, reader: Follower) -> AsyncIterator[bytes]:
        """Give what a page reads by itself, up to the place of the others or the run's end."""
        while True:
            until = self._place(folder)
            for each in await reader.look(until):
                yield each
            if reader.ended:
                return
            if reader.behind:
                continue
            if self._place(folder) in (None, reader.place):
                return
            if until == reader.place or until is None:
                continue
            # The others read on soon.
            await asyncio.sleep(LOOK_EVERY_S / 5)

    def _place(self, folder: Path) -> Place | None:
        group = self._groups.get(folder)
        return group.place if group else None

    def _begin(self, folder: Path, reader: Follower) -> _Group:
        group = _Group(reader, lambda: self._forget(folder, group))
        self._groups[folder] = group
        return group

    def _forget(self, folder: Path, group: _Group) -> None:
        if self._groups.get(folder) is group:
            del self._groups[folder]
