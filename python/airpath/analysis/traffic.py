# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Traffic of one run: packets, flows and TCP segments as tables.

Every metric takes from here what it needs. Tables are made when first asked for, each once, by
whole columns; nothing walks over packets one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.analysis.program_output import Figures, figures, reports_of
from airpath.analysis.qlog import Endpoint, read_folder
from airpath.analysis.streams import ARRIVAL_SLACK_NS, StreamTables, stream_tables
from airpath.facts import FIRST_PORTS
from airpath.headers import FLAG_ACK, FLAG_SYN, PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_UDP_LITE
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

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


@dataclass
class Traffic:
    """The tables of one run."""

    run: Run
    _made: dict[object, pl.DataFrame] = field(default_factory=dict)

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
        return self.run.events.filter(kinds)["pdu"].unique()

    @cached_property
    def captured(self) -> pl.DataFrame:
        """Every packet at every point where it was seen.

        end ("client" or "server"), sent (at that end: from it into the link, or out of the link to
        it), direction, flow (index into ``flows``), damaged, and the columns of a capture; in order
        of time, and what reaches an end before what that may have caused.
        """
        parts = []
        for end, packets in self.run.captures.items():
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
            ).sort("order_ns", "sent", maintain_order=True)
            parts.append(_with_connection(here))
        if not parts:
            return pl.DataFrame(schema=_CAPTURED_SCHEMA)
        packets = pl.concat(parts)
        identity = [*_ENDS, "isn"]
        # What was seen first comes first; at equal times the sender's view decides.
        order = (
            packets.group_by(identity)
            .agg(first_ns=pl.col("time_ns").min())
            .sort("first_ns", *identity)
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
            packets.group_by("flow", *_ENDS)
            .agg(
                self._user(packets).first(),
                first_ns=pl.col("time_ns").min(),
                last_ns=pl.col("time_ns").max(),
            )
            .sort("flow")
        )
        names = {str(number): name for number, name in PROTOCOL_NAMES.items()}
        name = pl.col("protocol").cast(pl.String)
        name = name.replace_strict(names, default=pl.lit("ip-") + name)
        numbered = pl.col("name") + "-" + pl.int_range(1, pl.len() + 1).over("name").cast(pl.String)
        flows = flows.with_columns(name=name).with_columns(label=numbered)
        # Two flows of one name would be taken for one.
        workloads = self._workload_names(flows)
        taken = workloads.is_duplicated() | workloads.is_in(flows["label"].implode())
        named = pl.when(workloads.is_not_null() & ~taken).then(workloads)
        return flows.with_columns(label=pl.coalesce(named, "label"))

    def _workload_names(self, flows: pl.DataFrame) -> pl.Series:
        """Return the name of the workload of each flow in virtual time; null for others."""
        names = {report["flow"]: report["name"] for report in reports_of(self.run.manifest)}
        client = flows["client_port"].cast(pl.Int64) - FIRST_PORTS["client"]
        server = flows["server_port"].cast(pl.Int64) - FIRST_PORTS["server"]
        numbers = zip(client, server, strict=True)
        found = [names.get(one) if one == other else None for one, other in numbers]
        return pl.Series("label", found, dtype=pl.String)

    def label(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Replace the index of flows by their label; one that bears labels stays as it is."""
        if not frame.schema["flow"].is_integer():
            return frame
        # Looked up by place, which costs a tenth of a join.
        return frame.with_columns(flow=self._labels.gather(frame["flow"]))

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
        events = self.run.events
        if events.is_empty():
            table = self._packets_of_captures()
        else:
            offered = self.run.path_events("offered").filter(pl.col("origin") == "user")
            table = offered.select(
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
                self.run.drops()
                .filter(pl.col("pdu") != 0)
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
            number=pl.int_range(pl.len()).over("direction"),
        )

    def _user(self, rows: pl.DataFrame) -> pl.Expr:
        """Return the column with the user of each packet."""
        several = self.run.users and self.run.user is None and "user" in rows.columns
        name = pl.col("user") if several else pl.lit(None)
        return name.cast(pl.String).alias("user")

    def _packets_of_captures(self) -> pl.DataFrame:
        """Offered packets and their arrivals, joined by id, of a run without events."""
        sent = self.captured.filter(pl.col("sent") & (pl.col("pdu") != 0))
        sent = sent.select(
            "direction", "pdu", self._user(sent), offered_ns="time_ns", bytes="length"
        ).sort("offered_ns", maintain_order=True)
        copies = self.deliveries.group_by("direction", "pdu").agg(
            arrived_ns=pl.col("arrived_ns").min(), copies=pl.len().cast(pl.Int64)
        )
        joined = sent.join(copies, on=["direction", "pdu"], how="left", maintain_order="left")
        return joined.with_columns(lost=pl.col("arrived_ns").is_null())

    @cached_property
    def deliveries(self) -> pl.DataFrame:
        """direction, pdu, arrived_ns of every copy that left the link, in order of arrival."""
        if self.run.events.is_empty():
            arrived = self.captured.filter(~pl.col("sent") & (pl.col("pdu") != 0))
            return arrived.select("direction", "pdu", arrived_ns="time_ns").sort(
                "arrived_ns", maintain_order=True
            )
        left = self.run.path_events("delivered").filter(pl.col("origin") == "user")
        return left.select(
            pl.col("direction").cast(pl.String).cast(pl.Enum(DIRECTIONS)),
            "pdu",
            arrived_ns=pl.coalesce("emitted_ns", "time_ns"),
        ).sort("arrived_ns", maintain_order=True)

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
    def span_ns(self) -> tuple[int, int] | None:
        """Times of the first offer and the last arrival; nothing without packets."""
        first, last = self.packets["offered_ns"].min(), self.deliveries["arrived_ns"].max()
        if not isinstance(first, int):
            return None
        return first, max(first, last) if isinstance(last, int) else first


def _with_connection(packets: pl.DataFrame) -> pl.DataFrame:
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
    isn = pl.col("isn").forward_fill().backward_fill().over(_ENDS).fill_null(_NO_SYN)
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
