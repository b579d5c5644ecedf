# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Traffic of one run, or of several together: packets, flows and TCP segments as tables.

Every metric takes from here what it needs. Tables are made when first asked for, each once, by
whole columns; nothing walks over packets one by one.

A query over a small table takes as long as one over a hundred small tables. So several runs may
share their tables: these have a column ``run`` then, in which the rows of a run stand together and
in the order that they have in a table of it alone. Ids of packets and indices of flows are those of
one run only.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.analysis.program_output import Figures, figures, reports_of
from airpath.analysis.qlog import Endpoint, read_folder
from airpath.analysis.streams import ARRIVAL_SLACK_NS, StreamTables, stream_tables
from airpath.facts import CAPTURES, FIRST_PORTS
from airpath.headers import FLAG_ACK, FLAG_SYN, PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_UDP_LITE
from airpath.run import DIRECTIONS, drops, has_bearers, path_events, queue_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airpath.run import Run

PROTOCOL_NAMES = {
    PROTOCOL_TCP: "tcp",
    PROTOCOL_UDP: "udp",
    PROTOCOL_UDP_LITE: "udp-lite",
    1: "icmp",
    58: "icmp6",
}

_ENDS = ["protocol", "client", "client_port", "server", "server_port"]
_NO_SYN = -1
"""Instead of a connection's initial sequence number, where its SYN was not seen."""

RUN = "run"
"""Column with the place of a row's run, in tables of several."""

_ENDS_IN_ORDER = [Path(name).stem for name in CAPTURES]

_MOST_IDS = 1 << 40
"""Ids of packets of a run that has tables together with others."""


class UnlikeError(Exception):
    """Runs that have no tables together: one has what another lacks, or too many packets."""


class Traffic:
    """The tables of one run, or of several."""

    def __init__(self, *runs: Run) -> None:
        """Take runs; several of them are all of several users, or none is (``Run.tells_users``)."""
        self.runs = runs
        self.by = [RUN] if len(runs) > 1 else []
        """Columns that tell runs apart: none for one."""
        self._made: dict[object, pl.DataFrame] = {}

    @property
    def run(self) -> Run:
        """The run, for what is told of each by itself (``apart``)."""
        (run,) = self.runs
        return run

    @cached_property
    def apart(self) -> list[Traffic]:
        """The same runs, each by itself."""
        return [Traffic(run) for run in self.runs] if self.by else [self]

    @cached_property
    def events(self) -> pl.DataFrame:
        """All events (``Run.events``).

        Raises:
            UnlikeError: some of the runs have events, others none.

        """
        return self._together([run.events for run in self.runs])

    def path_events(self, kind: str) -> pl.DataFrame:
        """Return the rows of ``Run.path_events``."""
        if not self.by:
            return self.run.path_events(kind)
        return self.once(("path", kind), lambda traffic: path_events(traffic.events, kind))

    @cached_property
    def drops(self) -> pl.DataFrame:
        """The rows of ``Run.drops``."""
        return drops(self.events) if self.by else self.run.drops()

    def queue_name(self) -> pl.Expr:
        """Return the name of the queue of an event (``Run.queue_name``)."""
        if not self.by:
            return self.run.queue_name()
        return queue_name(of_users=self.tells_users, has_bearers=has_bearers(self.events))

    @property
    def tells_users(self) -> bool:
        """True if the runs are of several users together."""
        return self.runs[0].tells_users

    def _together(self, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """Return the tables of all runs as one."""
        if not self.by:
            return tables[0]
        heights = [table.height for table in tables]
        if not all(heights) and any(heights):
            message = "one run has rows, and another has none"
            raise UnlikeError(message)
        run = pl.Series(RUN, np.repeat(np.arange(len(tables), dtype=np.uint32), heights))
        table = pl.concat(tables).with_columns(run)
        highest = table["pdu"].max()
        if isinstance(highest, int) and highest >= _MOST_IDS:
            message = f"a packet has the id {highest}"
            raise UnlikeError(message)
        pdu = pl.col("pdu")
        own = pdu + pl.col(RUN).cast(pl.UInt64) * _MOST_IDS
        return table.with_columns(pl.when(pdu == 0).then(pdu).otherwise(own).alias("pdu"))

    def once(self, key: object, make: Callable[[Traffic], pl.DataFrame]) -> pl.DataFrame:
        """Return a table that is made when it is first asked for by its key."""
        if key not in self._made:
            self._made[key] = make(self)
        return self._made[key]

    @cached_property
    def told(self) -> Figures:
        """Figures that programs and workloads tell of themselves."""
        return figures(self.run.directory, self.run.manifest)

    @cached_property
    def damaged(self) -> pl.Series:
        """Ids of packets that arrived with flipped bits or cut short, which receivers discard."""
        kinds = pl.col("kind").cast(pl.String).is_in(["damaged", "truncated"])
        return self.events.filter(kinds)["pdu"].unique()

    @cached_property
    def captured(self) -> pl.DataFrame:
        """Every packet at every point where it was seen.

        end ("client" or "server"), sent (at that end: from it into the link, or out of the link to
        it), direction, flow (index into ``flows``), damaged, and the columns of a capture; in order
        of time, and what reaches an end before what that may have caused.
        """
        parts = []
        captures = [run.captures for run in self.runs]
        for end in _ENDS_IN_ORDER:
            if not all(end in of_run for of_run in captures):
                if any(end in of_run for of_run in captures):
                    message = f"some runs have no capture of the {end}"
                    raise UnlikeError(message)
                continue
            packets = self._together([of_run[end] for of_run in captures])
            sent = pl.col("interface") == "rx"
            uplink = sent if end == "client" else ~sent
            # What never entered the link is no part of the run; drops have a place in time only.
            here = packets.filter(
                pl.col("interface").cast(pl.String).is_in(["rx", "tx"])
                & ~pl.col("comment").str.starts_with("discarded")
            )
            text = [pl.col(name).cast(pl.String) for name in ("source", "destination")]
            here = here.with_columns(
                *text,
                end=pl.lit(end),
                sent=sent,
                direction=pl.when(uplink)
                .then(pl.lit("uplink"))
                .otherwise(pl.lit("downlink"))
                .cast(pl.Enum(DIRECTIONS)),
                order_ns=pl.col("time_ns") - pl.when(sent).then(0).otherwise(ARRIVAL_SLACK_NS),
            ).sort(*self.by, "order_ns", "sent", maintain_order=True)
            parts.append(_with_connection(here, [*self.by, *_ENDS]))
        if not parts:
            of_runs = [pl.Series(name, dtype=pl.UInt32) for name in self.by]
            return pl.DataFrame(schema=_CAPTURED_SCHEMA).with_columns(of_runs)
        packets = pl.concat(parts)
        identity = [*self.by, *_ENDS, "isn"]
        # What was seen first comes first; at equal times the sender's view decides.
        order = (
            packets.group_by(identity)
            .agg(first_ns=pl.col("time_ns").min())
            .sort(*self.by, "first_ns", *identity)
        )
        order = order.with_row_index("flow").drop("first_ns")
        return packets.join(order, on=identity, how="left", maintain_order="left").with_columns(
            damaged=pl.col("pdu").is_in(self.damaged.implode())
        )

    @cached_property
    def flows(self) -> pl.DataFrame:
        """The connections and datagram flows, in order of their first packet.

        flow (index), label (the name of its workload in virtual time, or "tcp-1", by protocol),
        protocol, client, client_port, server, server_port, first_ns, last_ns (both directions, at
        either end), user (null unless several are measured together).
        """
        packets = self.captured.filter(pl.col("protocol") != 0)
        flows = (
            packets.group_by("flow", *self.by, *_ENDS)
            .agg(
                self._user(packets).first(),
                first_ns=pl.col("time_ns").min(),
                last_ns=pl.col("time_ns").max(),
            )
            .sort("flow")
        )
        protocols = flows["protocol"].to_list()
        names = [PROTOCOL_NAMES.get(protocol, f"ip-{protocol}") for protocol in protocols]
        places = flows[RUN].to_list() if self.by else [0] * flows.height
        ports = zip(flows["client_port"].to_list(), flows["server_port"].to_list(), strict=True)
        of_runs: list[list[tuple[str, int, int]]] = [[] for _ in self.runs]
        for place, name, (client, server) in zip(places, names, ports, strict=True):
            of_runs[place].append((name, client, server))
        labels = [
            label
            for run, of_run in zip(self.runs, of_runs, strict=True)
            for label in _labels(run, of_run)
        ]
        return flows.with_columns(
            pl.Series("name", names, dtype=pl.String), pl.Series("label", labels, dtype=pl.String)
        )

    def label(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Replace the index of flows by their label; one that bears labels stays as it is."""
        if not frame.schema["flow"].is_integer():
            return frame
        # Looked up by place, which costs a tenth of a join.
        return self.with_run(frame).with_columns(flow=self._labels.gather(frame["flow"]))

    def with_run(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add the run of each row from its index of a flow, where there are several runs."""
        if not self.by or RUN in frame.columns:
            return frame
        return frame.with_columns(self._runs_of_flows.gather(frame["flow"]))

    @cached_property
    def _runs_of_flows(self) -> pl.Series:
        return self.captured.select("flow", RUN).unique().sort("flow")[RUN]

    @cached_property
    def _labels(self) -> pl.Series:
        """The label of each index of a flow; null for what is no flow."""
        of_flows = dict(self.flows.select("flow", "label").iter_rows())
        highest = self.captured["flow"].max()
        count = highest + 1 if isinstance(highest, int) else 0
        return pl.Series("flow", map(of_flows.get, range(count)), dtype=pl.String)

    @cached_property
    def packets(self) -> pl.DataFrame:
        """Every packet that an endpoint offered to the link, in the order of offering.

        direction, pdu, user (null unless several are measured together), flow (null if no capture
        tells), number (within its direction), offered_ns, arrived_ns (of the first copy; null if it
        was lost or is still under way), copies, bytes (of the IP packet), payload, lost (a drop
        event says so, or, without events, no copy arrived).
        Times are the event log's where there is one and else the captures'.
        """
        if self.events.is_empty():
            table = self._packets_of_captures()
        else:
            offered = self.path_events("offered").filter(pl.col("origin") == "user")
            table = offered.select(
                *self.by,
                "direction",
                "pdu",
                self._user(offered),
                offered_ns="time_ns",
                bytes=pl.col("bits") // 8,
            ).with_columns(pl.col("direction").cast(pl.String).cast(pl.Enum(DIRECTIONS)))
            copies = self.deliveries.group_by("direction", "pdu").agg(
                arrived_ns=pl.col("arrived_ns").min(), copies=pl.len().cast(pl.Int64)
            )
            dropped = (
                self.drops.filter(pl.col("pdu") != 0)
                .select("pdu", dropped=pl.lit(value=True))
                .unique("pdu")
            )
            table = table.join(
                copies, on=["direction", "pdu"], how="left", maintain_order="left"
            ).join(dropped, on="pdu", how="left", maintain_order="left")
            table = table.with_columns(
                lost=pl.col("arrived_ns").is_null() & pl.col("dropped").fill_null(value=False)
            ).drop("dropped")
        told = self.captured.sort("sent", descending=True, maintain_order=True)
        told = told.filter(pl.col("pdu") != 0).unique("pdu", keep="first", maintain_order=True)
        told = told.select("pdu", "flow", "payload", "protocol")
        table = table.join(told, on="pdu", how="left", maintain_order="left")
        return table.with_columns(
            pl.col("copies").fill_null(0),
            pl.col("payload").fill_null(0),
            number=pl.int_range(pl.len()).over(*self.by, "direction"),
        )

    def _user(self, rows: pl.DataFrame) -> pl.Expr:
        """Return the column with the user of each packet."""
        several = self.tells_users and "user" in rows.columns
        name = pl.col("user") if several else pl.lit(None)
        return name.cast(pl.String).alias("user")

    def _packets_of_captures(self) -> pl.DataFrame:
        """Offered packets and their arrivals, joined by id, of a run without events."""
        sent = self.captured.filter(pl.col("sent") & (pl.col("pdu") != 0))
        sent = sent.select(
            *self.by, "direction", "pdu", self._user(sent), offered_ns="time_ns", bytes="length"
        ).sort(*self.by, "offered_ns", maintain_order=True)
        copies = self.deliveries.group_by("direction", "pdu").agg(
            arrived_ns=pl.col("arrived_ns").min(), copies=pl.len().cast(pl.Int64)
        )
        joined = sent.join(copies, on=["direction", "pdu"], how="left", maintain_order="left")
        return joined.with_columns(lost=pl.col("arrived_ns").is_null())

    @cached_property
    def deliveries(self) -> pl.DataFrame:
        """direction, pdu, arrived_ns of every copy that left the link, in order of arrival."""
        if self.events.is_empty():
            arrived = self.captured.filter(~pl.col("sent") & (pl.col("pdu") != 0))
            return arrived.select(*self.by, "direction", "pdu", arrived_ns="time_ns").sort(
                *self.by, "arrived_ns", maintain_order=True
            )
        left = self.path_events("delivered").filter(pl.col("origin") == "user")
        return left.select(
            *self.by,
            pl.col("direction").cast(pl.String).cast(pl.Enum(DIRECTIONS)),
            "pdu",
            arrived_ns=pl.coalesce("emitted_ns", "time_ns"),
        ).sort(*self.by, "arrived_ns", maintain_order=True)

    @cached_property
    def arrivals(self) -> pl.DataFrame:
        """The table of ``deliveries``, with user, flow, number, offered_ns, payload and bytes."""
        about = self.packets.select(
            "direction", "pdu", "user", "flow", "number", "offered_ns", "payload", "bytes"
        )
        return self.deliveries.join(about, on=["direction", "pdu"], maintain_order="left")

    @cached_property
    def tcp(self) -> StreamTables:
        """TCP segments and acknowledgements by flow and direction of the data."""
        return stream_tables(self.captured.filter(pl.col("protocol") == PROTOCOL_TCP))

    @cached_property
    def qlog(self) -> list[Endpoint]:
        """Logs of QUIC endpoints, if they left files in the run's folder."""
        return read_folder(self.run.directory, self.run.notes, self.run.damage)

    @cached_property
    def spans_ns(self) -> dict[int, tuple[int, int]]:
        """Times of the first offer and the last arrival of each run with packets, by its place."""
        firsts = self._of_runs(self.packets, pl.col("offered_ns").min())
        lasts = self._of_runs(self.deliveries, pl.col("arrived_ns").max())
        return {
            place: (first, max(first, lasts.get(place, first))) for place, first in firsts.items()
        }

    def _of_runs(self, table: pl.DataFrame, figure: pl.Expr) -> dict[int, int]:
        """Return a figure of the rows of each run that has one."""
        if self.by:
            found = dict(table.group_by(RUN).agg(figure).iter_rows())
        else:
            found = {0: table.select(figure).item()}
        return {place: value for place, value in found.items() if value is not None}


def _labels(run: Run, flows: Sequence[tuple[str, int, int]]) -> list[str]:
    """Return what tells flows of a run apart.

    Args:
        run: the run.
        flows: name of the protocol, port of the client and of the server, in order.

    """
    workloads = {report["flow"]: report["name"] for report in reports_of(run.manifest)}
    counted: Counter[str] = Counter()
    numbered, named = [], []
    for protocol, client, server in flows:
        counted[protocol] += 1
        numbered.append(f"{protocol}-{counted[protocol]}")
        number = client - FIRST_PORTS["client"]
        named.append(workloads.get(number) if number == server - FIRST_PORTS["server"] else None)
    # Two flows of one name would be taken for one.
    taken = {*numbered, *(name for name, times in Counter(named).items() if times > 1)}
    return [
        usual if name is None or name in taken else name
        for usual, name in zip(numbered, named, strict=True)
    ]


def _with_connection(packets: pl.DataFrame, ends: Sequence[str]) -> pl.DataFrame:
    """Add both ends and, since ports serve several connections in turn, the initial number.

    A connection's packets bear the initial sequence number of the latest SYN without ACK between
    the same ports, whichever end sent it.
    """
    uplink = pl.col("direction") == "uplink"

    def of(when_uplink: str, otherwise: str) -> pl.Expr:
        return pl.when(uplink).then(when_uplink).otherwise(otherwise)

    opens = (pl.col("protocol") == PROTOCOL_TCP) & (
        pl.col("flags") & (FLAG_SYN | FLAG_ACK) == FLAG_SYN
    )
    packets = packets.with_columns(
        client=of("source", "destination"),
        server=of("destination", "source"),
        client_port=of("source_port", "destination_port"),
        server_port=of("destination_port", "source_port"),
        isn=pl.when(opens).then(pl.col("sequence").cast(pl.Int64)),
    )
    # A SYN may bear a later stamp than the answer to it (see ARRIVAL_SLACK_NS).
    isn = pl.col("isn").forward_fill().backward_fill().over(ends).fill_null(_NO_SYN)
    return packets.with_columns(isn).drop(
        "source", "destination", "source_port", "destination_port", "interface", "comment"
    )


_CAPTURED_SCHEMA: dict[str, pl.DataType] = {
    "time_ns": pl.Int64(),
    "pdu": pl.UInt64(),
    "length": pl.Int64(),
    "protocol": pl.UInt8(),
    "payload": pl.Int64(),
    "sequence": pl.UInt32(),
    "acknowledgement": pl.UInt32(),
    "flags": pl.UInt8(),
    "window": pl.UInt16(),
    "timestamp": pl.UInt32(),
    "timestamp_echo": pl.UInt32(),
    "sack": pl.List(pl.UInt32()),
    "order_ns": pl.Int64(),
    "end": pl.String(),
    "sent": pl.Boolean(),
    "direction": pl.Enum(DIRECTIONS),
    "client": pl.String(),
    "server": pl.String(),
    "client_port": pl.UInt16(),
    "server_port": pl.UInt16(),
    "isn": pl.Int64(),
    "flow": pl.UInt32(),
    "damaged": pl.Boolean(),
}


def reordering_extent(numbers: np.ndarray) -> np.ndarray:
    """Return of each packet, in order of arrival, by how many places it came too late; else 0.

    RFC 4737, section 4.2: the distance, in arrivals, to the first that was sent later.
    """
    if len(numbers) == 0:
        return np.zeros(0, dtype=np.int64)
    highest = np.maximum.accumulate(numbers)
    place = np.arange(len(numbers))
    overtaker = np.searchsorted(highest, numbers, side="right")
    extent: np.ndarray = np.where(highest > numbers, place - overtaker, 0)
    return extent
