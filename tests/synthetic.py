# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A made-up run: TCP over a slow lossy link, simulated just well enough to look like one.

Written with another Arrow implementation than the reader's and in the exact form of the engine's
logs, so that analysis is tested against the format and not against itself.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pcapng import Packet, capture, sack, stamps, tcp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECOND = 1_000_000_000
START_UNIX_NS = 1_790_000_000 * SECOND
CLIENT = ("10.77.0.1", 40000)
SERVER = ("10.77.0.2", 8000)
CLIENT_ISN = 0xFFFFFF00  # wraps early, as real ones may
SERVER_ISN = 0xFFFF8000
UP, DOWN = "uplink", "downlink"

LONGEST_BURST = 3
"""Segments sent at once at most."""

TEXT = ("hop", "direction", "stage", "kind", "cause", "state")


def event_schema(key: pa.DataType | None) -> pa.Schema:
    """Return the schema of events.arrow, with text as dictionaries of that key type or plain."""
    text = pa.utf8() if key is None else pa.dictionary(key, pa.utf8())
    columns = [
        ("time_ns", pa.uint64()),
        ("hop", text),
        ("direction", text),
        ("stage", text),
        ("kind", text),
        ("cause", text),
        ("pdu", pa.uint64()),
        ("flow", pa.uint32()),
        ("bits", pa.uint64()),
        ("queue_packets", pa.uint32()),
        ("queue_bytes", pa.uint64()),
        ("state", text),
        ("emitted_ns", pa.uint64()),
    ]
    return pa.schema(columns)


def event(time_ns: int, kind: str, **fields: Any) -> dict[str, Any]:
    """Return one row of events.arrow."""
    row: dict[str, Any] = dict.fromkeys(TEXT, "")
    row |= {"pdu": 0, "flow": 0, "bits": 0, "queue_packets": 0, "queue_bytes": 0}
    return row | {"time_ns": time_ns, "kind": kind, "emitted_ns": None} | fields


def write_events(
    path: Path,
    rows: list[dict[str, Any]],
    *,
    stream: bool = False,
    key: pa.DataType | None = None,
    batch: int = 256,
) -> None:
    """Write events.arrow, as a file or a stream of several batches."""
    schema = event_schema(pa.uint8() if key is None else key)
    table = pa.Table.from_pylist(rows, schema=event_schema(None))
    arrays = []
    for field_ in schema:
        column = table.column(field_.name).combine_chunks()
        if pa.types.is_dictionary(field_.type):
            column = column.dictionary_encode().cast(field_.type)
        arrays.append(column)
    table = pa.Table.from_arrays(arrays, schema=schema)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), schema) as writer:
        writer.write_table(table, max_chunksize=batch)


@dataclass
class Segment:
    """A packet on its way."""

    pdu: int
    content: bytes
    sequence: int = 0
    acknowledgement: int = 0
    blocks: list[tuple[int, int]] = field(default_factory=list)
    payload: int = 0
    sent_ms: int = 0


@dataclass
class Hop:
    """One direction of one hop."""

    name: str
    rate: int
    """bit/s"""
    delay: int
    """ns"""
    limit: int
    """packets"""
    loss: float = 0.0
    queue: deque[Segment] = field(default_factory=deque)
    busy: bool = False


class World:
    """Event queue, logs, and the path's two directions."""

    def __init__(self, seed: int, hops: dict[str, list[Hop]]) -> None:
        self.random = random.Random(seed)
        self.now = 0
        self.heap: list[tuple[int, int, Callable[[], None]]] = []
        self.order = itertools.count()
        self.ids = itertools.count(1)
        self.rows: list[dict[str, Any]] = []
        self.packets: dict[str, list[Packet]] = {"client": [], "server": []}
        self.hops = hops
        self.receivers: dict[str, Callable[[Segment], None]] = {}

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Do something later."""
        heapq.heappush(self.heap, (time, next(self.order), action))

    def run(self) -> None:
        """Go on until nothing is left to do."""
        while self.heap:
            self.now, _, action = heapq.heappop(self.heap)
            action()

    def log(self, kind: str, segment: Segment, direction: str, **fields: Any) -> None:
        """Write an event of a packet."""
        bits = 8 * len(segment.content)
        self.rows.append(
            event(self.now, kind, pdu=segment.pdu, bits=bits, direction=direction, **fields)
        )

    def capture(self, end: str, interface: int, segment: Segment) -> None:
        """Write a packet to an end's capture."""
        self.packets[end].append(
            Packet(START_UNIX_NS + self.now, interface, segment.content, segment.pdu)
        )

    def send(self, direction: str, segment: Segment) -> None:
        """Offer a packet to the path."""
        self.capture("client" if direction == UP else "server", 0, segment)
        self.log("offered", segment, direction, hop="path", stage="path")
        self.enter(direction, 0, segment)

    def enter(self, direction: str, index: int, segment: Segment) -> None:
        """Take a packet into a hop, or out of the path behind the last."""
        hops = self.hops[direction]
        if index == len(hops):
            late = self.now + self.random.randrange(2_000, 60_000)
            self.log("delivered", segment, direction, hop="path", stage="path", emitted_ns=late)
            self.capture("server" if direction == UP else "client", 1, segment)
            self.receivers[direction](segment)
            return
        hop = hops[index]
        if len(hop.queue) >= hop.limit:
            self._queue_log("dropped", hop, segment, direction, cause="queue_packets")
            return
        hop.queue.append(segment)
        self._queue_log("enqueued", hop, segment, direction)
        if not hop.busy:
            self._transmit(direction, index)

    def _transmit(self, direction: str, index: int) -> None:
        hop = self.hops[direction][index]
        hop.busy = bool(hop.queue)
        if not hop.queue:
            return
        segment = hop.queue.popleft()
        self._queue_log("dequeued", hop, segment, direction)
        time = 8 * len(segment.content) * SECOND // hop.rate
        self.at(self.now + time, lambda: self._sent(direction, index, segment))

    def _sent(self, direction: str, index: int, segment: Segment) -> None:
        hop = self.hops[direction][index]
        if self.random.random() < hop.loss:
            self.log(
                "dropped", segment, direction, hop=hop.name, stage="channel", cause="channel_error"
            )
        else:
            arrival = self.now + hop.delay
            self.at(arrival, lambda: self.enter(direction, index + 1, segment))
        self._transmit(direction, index)

    def _queue_log(
        self, kind: str, hop: Hop, segment: Segment, direction: str, cause: str = ""
    ) -> None:
        self.log(
            kind,
            segment,
            direction,
            hop=hop.name,
            stage="queue",
            cause=cause,
            queue_packets=len(hop.queue),
            queue_bytes=sum(len(waiting.content) for waiting in hop.queue),
        )


class Download:
    """A TCP transfer from server to client, with SACK and a plain loss recovery."""

    def __init__(self, world: World, size: int, mss: int, *, stamped: bool) -> None:
        self.world = world
        self.stamped = stamped
        self.echo = 0
        self.mss = mss
        self.segments = size // mss
        self.next = 0
        self.acknowledged = 0
        self.sacked: set[int] = set()
        self.repaired: set[int] = set()
        self.window = 2.0
        self.threshold = 1000.0
        self.recovering_until = -1
        self.timeout = 3 * SECOND
        self.timer = 0
        self.received: set[int] = set()
        self.expected = 0
        world.receivers = {UP: self.on_acknowledgement, DOWN: self.on_data}
        self.acknowledge(syn=True)
        world.at(world.now + SECOND // 2, self.fill)

    def transmit(self, number: int) -> None:
        """Send one segment."""
        sequence = SERVER_ISN + 1 + number * self.mss
        content = tcp(
            SERVER,
            CLIENT,
            sequence=sequence,
            flags=0x18,
            payload=self.mss,
            options=self.stamps(0),
        )
        segment = Segment(next(self.world.ids), content, sequence=number, payload=self.mss)
        segment.sent_ms = self.world.now // 1_000_000
        self.world.send(DOWN, segment)
        if number == self.acknowledged or number == 0:
            self.arm()

    def stamps(self, echo: int) -> bytes:
        """Return the option with time stamps in milliseconds; nothing for a run without."""
        return stamps(self.world.now // 1_000_000, echo) if self.stamped else b""

    def arm(self) -> None:
        """Set the retransmission timer."""
        self.timer += 1
        mine = self.timer
        self.world.at(self.world.now + self.timeout, lambda: self.on_timeout(mine))

    def fill(self) -> None:
        """Send as much as the window allows: repairs first, then new segments."""
        highest = max(self.sacked, default=-1)
        lost = [
            number
            for number in range(self.acknowledged, highest)
            if number not in self.sacked and highest - number >= 3
        ]
        flying = self.next - self.acknowledged - len(self.sacked)
        flying -= len([number for number in lost if number not in self.repaired])
        for number in lost:
            if flying >= self.window:
                return
            if number not in self.repaired:
                self.repaired.add(number)
                self.transmit(number)
                flying += 1
        burst = self.next + LONGEST_BURST
        while flying < self.window and self.next < min(self.segments, burst):
            self.transmit(self.next)
            self.next += 1
            flying += 1

    def on_acknowledgement(self, segment: Segment) -> None:
        """Take in what the client says."""
        number = segment.acknowledgement
        if number > self.acknowledged:
            self.acknowledged = number
            self.next = max(self.next, number)
            self.timeout = 3 * SECOND
            self.arm()
            if number > self.recovering_until:
                self.window += 1 if self.window < self.threshold else 1 / self.window
        self.sacked = {n for n in self.sacked if n >= number}
        self.repaired = {n for n in self.repaired if n >= number}
        for first, end in segment.blocks:
            self.sacked |= set(range(max(first, number), end))
        if len(self.sacked) >= 3 and number > self.recovering_until:
            self.recovering_until = self.next
            self.threshold = self.window = max(self.window / 2, 2)
        self.fill()

    def on_timeout(self, timer: int) -> None:
        """Begin anew from the first unacknowledged segment."""
        if timer != self.timer or self.acknowledged >= self.segments:
            return
        self.threshold = max(self.window / 2, 2)
        self.window = 1
        self.sacked.clear()
        self.repaired.clear()
        self.recovering_until = -1
        self.timeout = min(2 * self.timeout, 60 * SECOND)
        self.next = self.acknowledged + 1
        self.transmit(self.acknowledged)

    def on_data(self, segment: Segment) -> None:
        """Take in a segment at the client, and answer."""
        if segment.sequence <= self.expected:  # RFC 7323, section 4.3
            self.echo = segment.sent_ms
        self.received.add(segment.sequence)
        while self.expected in self.received:
            self.expected += 1
        self.acknowledge(newest=segment.sequence)

    def acknowledge(self, *, syn: bool = False, newest: int = -1) -> None:
        """Send an acknowledgement, the block of the newest segment first."""
        beyond = sorted(number for number in self.received if number > self.expected)
        blocks: list[tuple[int, int]] = []
        for number in beyond:
            if blocks and blocks[-1][1] == number:
                blocks[-1] = (blocks[-1][0], number + 1)
            else:
                blocks.append((number, number + 1))
        blocks.sort(key=lambda block: not block[0] <= newest < block[1])
        blocks = blocks[:3]
        base = SERVER_ISN + 1
        wire = [(base + first * self.mss, base + end * self.mss) for first, end in blocks]
        content = tcp(
            CLIENT,
            SERVER,
            sequence=CLIENT_ISN if syn else CLIENT_ISN + 1,
            acknowledgement=0 if syn else base + self.expected * self.mss,
            flags=0x02 if syn else 0x10,
            options=self.stamps(self.echo) + (sack(wire) if wire else b""),
        )
        segment = Segment(
            next(self.world.ids), content, acknowledgement=self.expected, blocks=blocks
        )
        self.world.send(UP, segment)


def write_run(
    directory: Path,
    *,
    size: int = 102_400,
    mss: int = 256,
    seed: int = 3,
    rate: int = 9600,
    two_hops: bool = False,
    stream: bool = False,
    captures: bool = True,
    stamped: bool = False,
    verdict: str = "trusted",
    name: str = "Seawind case study",
) -> World:
    """Simulate a download over a link whose errors grow at 40 s, and write the run's folder."""
    hops = {}
    for direction in (UP, DOWN):
        hops[direction] = [Hop("radio", rate, SECOND // 5, limit=7, loss=0.01)]
        if two_hops:
            hops[direction].append(Hop("backhaul", rate * 2, SECOND // 50, limit=20))
    hops[DOWN].reverse()
    world = World(seed, hops)
    radios = [hop for way in hops.values() for hop in way if hop.name == "radio"]

    def worsen() -> None:
        world.rows.append(event(world.now, "state_changed", state="poor", hop="path", stage="path"))
        for hop in radios:
            hop.loss = 0.1

    world.at(40 * SECOND, worsen)
    Download(world, size, mss, stamped=stamped)
    world.run()
    directory.mkdir(parents=True, exist_ok=True)
    write_events(directory / "events.arrow", world.rows, stream=stream)
    if captures:
        for end, packets in world.packets.items():
            (directory / f"{end}.pcapng").write_bytes(capture(packets))
    last = max(row["time_ns"] for row in world.rows if row["kind"] == "delivered")
    reason = {
        "grade": verdict,
        "code": "late_emissions",
        "what": "12 packets left more than 1 ms late",
        "mend": "run on a quieter machine",
    }
    manifest = {
        "format_version": 1,
        "status": "finished",
        "scenario": {"name": name},
        "seed": seed,
        "clock": "live",
        "start_unix_ns": START_UNIX_NS,
        "settings": {"congestion_control": "reno"},
        "log_level": "packets" if captures else "events",
        "results": {
            "duration_ns": last,
            "verdict": {"grade": verdict, "reasons": [] if verdict == "trusted" else [reason]},
        },
    }
    (directory / "run.json").write_text(json.dumps(manifest))
    return world
