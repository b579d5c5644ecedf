# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A buffer that puts RTP packets back into order, and waits for missing ones for a given time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

Item = TypeVar("Item")

_NUMBERS = 1 << 16


class Released(NamedTuple, Generic[Item]):
    """A packet in its turn."""

    number: int
    """Sequence number, extended beyond 16 bits."""
    item: Item
    after_loss: bool
    """True if a packet in front of it is missing."""


class ReorderBuffer(Generic[Item]):
    """Packets in order of their sequence numbers.

    A packet waits while one in front of it is missing, at most for the delay of the buffer. The
    missing one is given up then; where it still comes, it is late. The first packet that arrives
    begins the stream.
    """

    def __init__(self, delay_ns: int) -> None:
        self.delay_ns = delay_ns
        self.late = 0
        """Number of packets that came when they had been given up."""
        self.duplicates = 0
        self.highest: int | None = None
        """Highest extended sequence number so far."""
        self.first: int | None = None
        self._next = 0
        self._waiting: dict[int, tuple[int, Item]] = {}
        self._given_up: set[int] = set()
        self._lost_before = False

    def extend(self, sequence: int) -> int:
        """Return the extended number nearest to the highest one so far (RFC 3550, A.1)."""
        if self.highest is None:
            return sequence
        offset = (sequence - self.highest + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2
        return self.highest + offset

    def push(self, sequence: int, item: Item, now_ns: int) -> Iterator[Released[Item]]:
        """Take a packet; yield those whose turn it is.

        Args:
            sequence: its sequence number of 16 bits.
            item: the packet.
            now_ns: its arrival.

        """
        number = self.extend(sequence)
        if self.highest is None:
            self.first = self._next = number
        if number < self._next:
            if number in self._given_up:
                self._given_up.discard(number)
                self.late += 1
            elif self.first is not None and number < self.first:
                self.late += 1
            else:
                self.duplicates += 1
            return
        if number in self._waiting:
            self.duplicates += 1
            return
        self.highest = number if self.highest is None else max(self.highest, number)
        self._waiting[number] = (now_ns, item)
        yield from self._in_turn()

    def expire(self, now_ns: int) -> Iterator[Released[Item]]:
        """Yield the packets that have waited for the delay, and those behind them."""
        while self._waiting:
            if min(arrived for arrived, _ in self._waiting.values()) + self.delay_ns > now_ns:
                return
            yield from self._give_up()

    def flush(self) -> Iterator[Released[Item]]:
        """Yield all packets that wait."""
        while self._waiting:
            yield from self._give_up()

    def _give_up(self) -> Iterator[Released[Item]]:
        found = min(self._waiting)
        self._given_up.update(range(self._next, found))
        self._lost_before = self._lost_before or found > self._next
        self._next = found
        yield from self._in_turn()

    def _in_turn(self) -> Iterator[Released[Item]]:
        while self._next in self._waiting:
            _, item = self._waiting.pop(self._next)
            after_loss, self._lost_before = self._lost_before, False
            yield Released(self._next, item, after_loss)
            self._next += 1
