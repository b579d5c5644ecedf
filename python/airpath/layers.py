# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The layers of a run, from the sockets down to the frames of a link, for one time axis.

As the multi-layer traces of Singh (2000), section 3: each layer is a table with ``time_ns``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.headers import PROTOCOL_UDP, PROTOCOL_UDP_LITE
from airpath.run import DIRECTIONS
from airpath.tcp import RECEIVING_END, SENDING_END, transfers

if TYPE_CHECKING:
    from airpath.run import Run

_RLP = (62, 496)
"""Sequence numbers of RLP before version 2, and of version 2."""
_RLC = (128, 2048)
"""Sequence numbers of the blocks of GPRS, and of EGPRS."""
_RLC_FRAME = "data"
_NR = (4096, 262_144)
"""Sequence numbers of acknowledged RLC of NR, short and long."""
_NR_FRAME = "STATUS"

_DATAGRAMS = {PROTOCOL_UDP: "UDP", PROTOCOL_UDP_LITE: "UDP-Lite"}

SOCKET_COLUMNS: dict[str, pl.DataType] = {
    "time_ns": pl.Int64(),
    "end": pl.String(),
    "event": pl.String(),
    "flow": pl.String(),
    "first": pl.Int64(),
    "last": pl.Int64(),
    "pdu": pl.UInt64(),
}
"""Columns of ``Layers.sockets``."""


def layers_of(run: Run) -> list[Layers]:
    """Return the layers of each hop and direction in which a link entity with a log has sent.

    Of several users there are none together: each has frames and queues of its own.
    """
    found: list[Layers] = []
    if run.users and run.user is None:
        return found
    link = run.link.with_columns(run.queue_name())
    for hop in link["hop"].unique(maintain_order=True).to_list():
        rows = link.filter(pl.col("hop") == hop)
        for direction in DIRECTIONS:
            layers = Layers(run, hop, direction, Frames.of(rows, SENDING_END[direction]))
            if layers.frames.sent["number"].null_count() < layers.frames.sent.height:
                found.append(layers)
    return found


@dataclass(frozen=True)
class Frames:
    """Records of one hop, as they concern one direction, numbered without beginning anew."""

    sent: pl.DataFrame
    """Of the sending end, with ``number`` (of the frame) and ``acknowledged`` (V(A))."""
    arrived: pl.DataFrame
    """Of the receiving end, with ``number`` and ``delivered`` (V(R))."""
    numbered: bool
    """True if frames bear numbers; false if they are counted, as those of a transparent bearer."""

    @staticmethod
    def of(rows: pl.DataFrame, sender: str) -> Frames:
        """Return the frames of one hop that ``sender`` sent, and what came of them."""
        is_sender = pl.col("end") == sender
        sent, arrived = rows.filter(is_sender), rows.filter(~is_sender)
        sends, arrives = ["sent", "repeated"], ["received", "damaged"]
        frames = rows["frame"].cast(pl.String)
        is_rlc = (frames == _RLC_FRAME).any()
        numbered = rows["n_s"].null_count() + rows["v_s"].null_count() < 2 * rows.height
        if is_rlc and rows["v_a"].null_count() == rows.height:
            # Unacknowledged RLC of NR: only packets in segments have numbers.
            numbered = False
        if not numbered:
            return Frames(
                _counted(sent, sends, "acknowledged"),
                _counted(arrived, arrives, "delivered"),
                numbered=False,
            )
        most = rows.select(pl.max_horizontal(pl.col("n_s", "n_r", "v_s").max())).item()
        small, large = _RLC if is_rlc else _RLP
        if (frames == _NR_FRAME).any():
            small, large = _NR
        modulus = large if most is not None and most >= small else small
        return Frames(
            _numbered(sent, sends, "v_a", "acknowledged", modulus, restarts=is_rlc),
            _numbered(arrived, arrives, "v_r", "delivered", modulus, restarts=is_rlc),
            numbered=True,
        )


def _numbered(
    rows: pl.DataFrame, events: list[str], variable: str, name: str, modulus: int, *, restarts: bool
) -> pl.DataFrame:
    """Add ``variable`` without modulus as ``name``, and the ``number`` of each frame likewise.

    Frames are those of ``events``: others at this end belong to the other direction. A connection
    that begins anew goes on where the one before has ended. With ``restarts`` the receiving end
    has no record of it: its variable falls to 0 with the first frame. No window moves by more than
    half of all numbers there.
    """
    value = rows[variable].cast(pl.Int64).fill_null(0).to_numpy()
    anew = rows["event"].cast(pl.String).is_in(["connected", "reset", "disconnected"]).to_numpy()
    steps = np.diff(value, prepend=0) % modulus
    steps[anew] = 0
    restarted = restarts & (steps > modulus // 2)
    steps[restarted] = value[restarted]
    total = np.cumsum(steps)
    number = rows["n_s"].cast(pl.Int64).to_numpy().astype(np.float64)
    # The row of a frame has the variable behind it, and the row above has the one that it met. RLP
    # sends no frame again that is acknowledged, and none arrives that was delivered before. RLC
    # does so while it waits, with frames of the last half of all numbers.
    behind = modulus // 2 if restarts else 0
    met = np.where(anew, value, np.where(restarted, 0, np.concatenate([[0], value[:-1]])))
    met_total = np.where(anew, total, np.concatenate([[0], total[:-1]]))
    frame = pl.Series(
        "number", met_total + (number - met + behind) % modulus - behind, nan_to_null=True
    )
    of_frame = pl.col("event").cast(pl.String).is_in(events)
    return rows.with_columns(pl.Series(name, total), frame).with_columns(
        number=pl.when(of_frame).then(pl.col("number"))
    )


def _counted(rows: pl.DataFrame, events: list[str], name: str) -> pl.DataFrame:
    """Count frames that bear no numbers, as ``number``, and add ``name`` without values.

    Every block of such a bearer has a record at both ends.
    """
    of_frame = pl.col("event").cast(pl.String).is_in(events)
    number = pl.when(of_frame).then(of_frame.cum_sum() - 1).cast(pl.Float64)
    return rows.with_columns(number=number).with_columns(pl.lit(None, pl.Int64).alias(name))


@dataclass(frozen=True)
class Layers:
    """The layers of one direction over one hop, each a table in order of time."""

    run: Run
    hop: str
    """Its name, with those of user and bearer where there are several."""
    direction: str
    frames: Frames

    @property
    def sender(self) -> str:
        """The end that sends in this direction."""
        return SENDING_END[self.direction]

    @cached_property
    def sockets(self) -> pl.DataFrame:
        """Bytes that sockets of the two ends sent and received, with the numbers of their bytes."""
        return sockets(self.run, self.direction)

    @cached_property
    def tcp(self) -> pl.DataFrame:
        """State of the sending TCP socket of which most is known; empty if none was recorded."""
        known = (pl.col("end") == self.sender) & pl.col("cwnd").is_not_null()
        rows = self.run.tcp_state.filter(known)
        if rows.is_empty():
            return rows
        socket = rows.group_by("socket").len().sort("len", "socket")["socket"][-1]
        return rows.filter(pl.col("socket") == socket)

    @cached_property
    def _own(self) -> pl.DataFrame:
        own = (pl.col("direction") == self.direction) & (pl.col("origin") == "user")
        return self.run.events.filter(own)

    @cached_property
    def delays(self) -> pl.DataFrame:
        """``time_ns`` and ``delay_ns`` of each packet that left the link."""
        offered = self._own.filter(pl.col("kind") == "offered")
        offered = offered.unique("pdu", keep="first").select("pdu", offered_ns="time_ns")
        left = self._own.filter(pl.col("kind") == "delivered")
        return left.join(offered, on="pdu", maintain_order="left").select(
            "time_ns", delay_ns=pl.col("time_ns") - pl.col("offered_ns")
        )

    @cached_property
    def drops(self) -> pl.DataFrame:
        """``time_ns`` and ``cause`` of each packet that the link dropped."""
        drops = self._own.filter(pl.col("kind") == "dropped")
        return drops.select("time_ns", pl.col("cause").cast(pl.String))

    @cached_property
    def queue(self) -> pl.DataFrame:
        """``time_ns`` and ``queue_packets`` of the hop's queue."""
        here = (self.run.queue_name() == self.hop) & (pl.col("direction") == self.direction)
        rows = self.run.events.filter((pl.col("stage") == "queue") & here)
        return rows.select("time_ns", "queue_packets")


def sockets(run: Run, direction: str) -> pl.DataFrame:
    """Return what sockets sent and received in one direction, with the columns of SOCKET_COLUMNS.

    ``first`` and ``last`` number the bytes of payload of a flow from 0, ``last`` being the number
    behind the last byte: of TCP by its sequence numbers, of datagrams in the order of sending. Seen
    from the captures of the two ends; without them there are no rows.
    """
    sender, receiver = SENDING_END[direction], RECEIVING_END[direction]
    sent = pl.concat([*_segments(run, direction, sender), _datagrams(run, sender)])
    arrived = pl.DataFrame(schema=SOCKET_COLUMNS)
    if receiver in run.captures:
        rows = run.captures[receiver].filter(pl.col("interface") == "tx").select("time_ns", "pdu")
        known = sent.unique("pdu", keep="first").drop("time_ns", "end", "event")
        arrived = rows.join(known, on="pdu", maintain_order="left").with_columns(
            end=pl.lit(receiver), event=pl.lit("received")
        )
    both = pl.concat([sent, arrived.select(list(SOCKET_COLUMNS))])
    return both.sort("time_ns", maintain_order=True)


def _segments(run: Run, direction: str, sender: str) -> list[pl.DataFrame]:
    return [
        transfer.segments.filter(pl.col("pdu") != 0).select(
            "time_ns",
            end=pl.lit(sender),
            event=pl.lit("sent"),
            flow=pl.lit(f"TCP {transfer.label}"),
            first=pl.col("first"),
            last=pl.col("end"),
            pdu=pl.col("pdu"),
        )
        for transfer in transfers(run)
        if transfer.direction == direction and transfer.vantage == sender
    ]


def _datagrams(run: Run, sender: str) -> pl.DataFrame:
    if sender not in run.captures:
        return pl.DataFrame(schema=SOCKET_COLUMNS)
    rows = run.captures[sender].filter(
        (pl.col("interface") == "rx")
        & pl.col("protocol").is_in(list(_DATAGRAMS))
        & (pl.col("pdu") != 0)
        # Further fragments of a datagram have no ports.
        & (pl.col("source_port") != 0)
        & ~pl.col("comment").str.starts_with("discarded")
    )
    names = {str(number): name for number, name in _DATAGRAMS.items()}
    ends = [
        _end(pl.col(side).cast(pl.String), pl.col(f"{side}_port"))
        for side in ("source", "destination")
    ]
    kind = pl.col("protocol").cast(pl.String).replace_strict(names, return_dtype=pl.String)
    flow = pl.concat_str([kind, pl.lit(" "), ends[0], pl.lit(" → "), ends[1]])
    rows = rows.with_columns(flow=flow)
    last = pl.col("payload").cum_sum().over("flow")
    return rows.select(
        "time_ns",
        end=pl.lit(sender),
        event=pl.lit("sent"),
        flow=pl.col("flow"),
        first=last - pl.col("payload"),
        last=last,
        pdu=pl.col("pdu"),
    )


def _end(address: pl.Expr, port: pl.Expr) -> pl.Expr:
    bracketed = pl.when(address.str.contains(":", literal=True)).then(
        pl.concat_str([pl.lit("["), address, pl.lit("]")])
    )
    return pl.concat_str([bracketed.otherwise(address), pl.lit(":"), port])


def largest_flows(rows: pl.DataFrame, most: int) -> list[str]:
    """Return the names of the flows with most bytes, the largest first."""
    bytes_of = rows.group_by("flow").agg(pl.col("last").max())
    return bytes_of.sort(["last", "flow"], descending=[True, False])["flow"].head(most).to_list()
