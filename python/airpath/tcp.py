# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""TCP transfers of a run, reassembled from its captures.

A transfer is one direction of a connection that carries data. It is looked at from the data's
sender, where retransmissions show as such and an acknowledgement counts when it arrives; a packet
that the link dropped is known by its id in the event log.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.headers import FLAG_ACK, FLAG_SYN, PROTOCOL_TCP
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from airpath.run import Run

SENDING_END = {"uplink": "client", "downlink": "server"}
RECEIVING_END = {"uplink": "server", "downlink": "client"}

_DROP_COLUMNS = {"pdu": pl.UInt64(), "cause": pl.String()}
_FLOW = ["source", "source_port", "destination", "destination_port"]


@dataclass(frozen=True)
class Transfer:
    """The data that one end of a TCP connection sent, and what came back for it.

    Sequence numbers are bytes of payload since the connection's first.
    """

    source: str
    destination: str
    direction: str
    """"uplink" or "downlink": the way of the data."""

    vantage: str
    """The end at which the packets were seen: the data's sender, or its receiver if the sender's
    capture is missing."""

    segments: pl.DataFrame
    """time_ns, first and end (sequence numbers), retransmission, cause (of the drop; "" if the
    segment got through), damaged (arrived with flipped bits), pdu."""

    acknowledgements: pl.DataFrame
    """time_ns, number, pdu: each acknowledgement that reached the vantage."""

    selective: pl.DataFrame
    """time_ns, first, end: SACK blocks, without those that repeat what is acknowledged already."""

    lost_acknowledgements: pl.DataFrame
    """time_ns, number, cause: acknowledgements that the link dropped, when they were sent."""

    @property
    def payload_bytes(self) -> int:
        """Length of the stream: the highest sequence number sent."""
        highest = self.segments["end"].max()
        return highest if isinstance(highest, int) else 0

    @property
    def label(self) -> str:
        """The connection's two ends."""
        return f"{self.source} → {self.destination}"


@dataclass(frozen=True)
class _Stream:
    anchor: int
    """32-bit sequence number of the stream's first byte."""
    bytes: int
    since_ns: int


def transfers(run: Run, *, least_share: float = 0.1) -> list[Transfer]:
    """Find the TCP transfers of a run, the largest first.

    Args:
        run: the run; without captures there are no transfers.
        least_share: of the two directions of a connection, the one with less data counts as a
            transfer of its own from this share of the other's upwards, unless it is a handful of
            segments, as a request is.

    """
    found: dict[tuple[str, ...], list[Transfer]] = {}
    for direction in DIRECTIONS:
        for transfer in _transfers_one_way(run, direction):
            ends = tuple(sorted((transfer.source, transfer.destination)))
            found.setdefault(ends, []).append(transfer)
    selected = []
    for both_ways in found.values():
        carried = {
            direction: sum(
                transfer.payload_bytes for transfer in both_ways if transfer.direction == direction
            )
            for direction in DIRECTIONS
        }
        most = max(carried.values())
        selected += [
            transfer
            for transfer in both_ways
            if carried[transfer.direction] == most
            or (transfer.payload_bytes >= least_share * most and transfer.segments.height > 10)
        ]
    return sorted(selected, key=lambda transfer: -transfer.payload_bytes)


def goodput_events(run: Run, direction: str) -> pl.DataFrame:
    """Return time_ns and bytes of each first arrival of TCP payload at its receiver.

    What arrives again is not goodput. Empty if the receiver's capture is missing.
    """
    capture = run.captures.get(RECEIVING_END[direction])
    parts = []
    if capture is not None:
        arrived = capture.filter(pl.col("interface") == "tx")
        arrived = _with_fate(arrived, run.once(_fates, _fates))
        for stream in _streams(arrived.filter(~pl.col("damaged"))):
            sequence = _unwrap(stream["sequence"].to_numpy())
            payload = stream["payload"].to_numpy()
            new = _new_bytes(sequence, sequence + payload)
            parts.append(pl.DataFrame({"time_ns": stream["time_ns"], "bytes": new}))
    if not parts:
        return pl.DataFrame(schema={"time_ns": pl.Int64, "bytes": pl.Int64})
    return pl.concat(parts).filter(pl.col("bytes") > 0).sort("time_ns")


def _transfers_one_way(run: Run, direction: str) -> Iterator[Transfer]:
    sender, receiver = SENDING_END[direction], RECEIVING_END[direction]
    vantage = next((end for end in (sender, receiver) if end in run.captures), None)
    if vantage is None:
        return
    # "rx" came from that end into the link, "tx" reached it.
    sent, came_back = ("rx", "tx") if vantage == sender else ("tx", "rx")
    capture = run.captures[vantage]
    fates = run.once(_fates, _fates)
    answers = capture.filter(pl.col("interface") == came_back)
    far = run.captures.get(receiver)
    for stream in _streams(capture.filter(pl.col("interface") == sent)):
        source, source_port, destination, destination_port = stream.select(_FLOW).row(0)
        reverse = (
            (pl.col("source") == destination)
            & (pl.col("source_port") == destination_port)
            & (pl.col("destination") == source)
            & (pl.col("destination_port") == source_port)
            & (pl.col("protocol") == PROTOCOL_TCP)
            & (pl.col("flags") & FLAG_ACK > 0)
        )
        sequence = _unwrap(stream["sequence"].to_numpy())
        syn = (stream["flags"].to_numpy() & FLAG_SYN) > 0
        # A SYN takes a sequence number of its own, before the first byte.
        origin = int(sequence[syn][0]) + 1 if syn.any() else int(sequence.min())
        payload = stream["payload"].to_numpy()
        data = payload > 0
        first = (sequence - origin)[data]
        end = first + payload[data]
        segments = _with_fate(stream.filter(pl.Series(data)), fates).select(
            "time_ns",
            pl.Series("first", first),
            pl.Series("end", end),
            pl.Series("retransmission", _repeats(first, end)),
            "cause",
            "damaged",
            "pdu",
        )
        extent = _Stream(
            anchor=int(stream["sequence"][0]) + origin,
            bytes=int(end.max()),
            since_ns=int(stream["time_ns"][0]),
        )
        heard = _acknowledgements(answers.filter(reverse), extent)
        lost = pl.DataFrame(schema={"time_ns": pl.Int64, "number": pl.Int64, "cause": pl.String})
        if far is not None and vantage == sender:
            said = far.filter((pl.col("interface") == "rx") & reverse)
            said = _with_fate(said, fates).filter(pl.col("cause") != "")
            lost = _acknowledgements(said, extent).select("time_ns", "number", "cause")
        yield Transfer(
            source=_end(source, source_port),
            destination=_end(destination, destination_port),
            direction=direction,
            vantage=vantage,
            segments=segments,
            acknowledgements=heard.select("time_ns", "number", "pdu"),
            selective=_selective(heard, extent),
            lost_acknowledgements=lost,
        )


def _streams(packets: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Split packets of one way into the TCP streams that carry data.

    A pair of ports may serve several connections in turn: each new SYN begins a stream.
    """
    # What never entered the link is not part of the run.
    entered = ~pl.col("comment").str.starts_with("discarded")
    tcp = packets.filter((pl.col("protocol") == PROTOCOL_TCP) & entered)
    for flow in tcp.partition_by(_FLOW, maintain_order=True):
        syn = (flow["flags"].to_numpy() & FLAG_SYN) > 0
        numbers = flow["sequence"].to_numpy()
        starts: list[int] = []
        for row in np.flatnonzero(syn):
            if not starts or numbers[row] != numbers[starts[-1]]:  # a repeated SYN is no new one
                starts.append(int(row))
        borders = [0, *starts[1:], flow.height]
        for begin, end in itertools.pairwise(borders):
            stream = flow[begin:end]
            if (stream["payload"] > 0).any():
                yield stream


def _signed(difference: NDArray[np.int64]) -> NDArray[np.int64]:
    """Take the difference of two 32-bit sequence numbers as the shorter way round."""
    return (difference + (1 << 31)) % (1 << 32) - (1 << 31)


def _unwrap(numbers: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Turn 32-bit sequence numbers in order of capture into numbers that count from the first."""
    unwrapped = np.zeros(len(numbers), dtype=np.int64)
    np.cumsum(_signed(numbers[1:].astype(np.int64) - numbers[:-1]), out=unwrapped[1:])
    return unwrapped


def _new_bytes(first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each segment how many of its bytes no earlier one carried."""
    new = np.zeros(len(first), dtype=np.int64)
    highest = int(first[0]) if len(first) else 0
    holes: list[tuple[int, int]] = []  # gaps below `highest`, in order
    for row, (begin, stop) in enumerate(zip(first.tolist(), end.tolist(), strict=True)):
        if stop <= begin:
            continue
        if begin > highest:
            holes.append((highest, begin))
        if stop > highest:
            new[row] = stop - max(begin, highest)
            highest_before, highest = highest, stop
        else:
            highest_before = highest
        if begin < highest_before and holes:
            left = []
            for hole_begin, hole_end in holes:
                low, high = max(begin, hole_begin), min(stop, hole_end)
                if low >= high:
                    left.append((hole_begin, hole_end))
                    continue
                new[row] += high - low
                if hole_begin < low:
                    left.append((hole_begin, low))
                if high < hole_end:
                    left.append((high, hole_end))
            holes = left
    return new


def _repeats(first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say of each segment whether bytes of it were sent before."""
    return _new_bytes(first, end) < end - first


def _acknowledgements(packets: pl.DataFrame, stream: _Stream) -> pl.DataFrame:
    """Add the column number: what a packet acknowledges, as bytes of the stream."""
    packets = packets.filter(pl.col("time_ns") >= stream.since_ns)
    wire = packets["acknowledgement"].to_numpy()
    numbers = _unwrap(wire) + _signed(wire[:1].astype(np.int64) - stream.anchor).sum()
    # Past the last byte by the FIN's own number at most; a damaged header can say anything.
    fits = pl.col("number").is_between(0, stream.bytes + 1)
    return packets.with_columns(number=pl.Series(numbers)).filter(fits)


def _selective(heard: pl.DataFrame, stream: _Stream) -> pl.DataFrame:
    times, firsts, ends = [], [], []
    with_blocks = heard.filter(pl.col("sack").list.len() > 0)
    for time, number, edges in with_blocks.select("time_ns", "number", "sack").iter_rows():
        distance = _signed(np.asarray(edges, dtype=np.int64) - stream.anchor - number)
        places = (number + distance).tolist()
        for first, end in zip(places[::2], places[1::2], strict=False):
            # A block below what is acknowledged reports a duplicate (D-SACK).
            if number <= first < end <= stream.bytes + 1:
                times.append(time)
                firsts.append(first)
                ends.append(end)
    return pl.DataFrame(
        {"time_ns": times, "first": firsts, "end": ends},
        schema={"time_ns": pl.Int64, "first": pl.Int64, "end": pl.Int64},
    )


def _fates(run: Run) -> pl.DataFrame:
    """Return pdu, cause and damaged of each packet that met a misfortune.

    Known from the events; where there are none, from the comments in the captures.
    """
    if run.events.is_empty():
        told = [
            capture.select("pdu", cause=pl.col("comment").str.extract(r"^dropped: (\w+)", 1))
            for capture in run.captures.values()
        ]
        drops = pl.concat(told).drop_nulls() if told else pl.DataFrame(schema=_DROP_COLUMNS)
    else:
        drops = run.drops().select("pdu", pl.col("cause").cast(pl.String))
    damaged = run.events.filter(pl.col("kind") == "damaged").select(
        pl.col("pdu").unique(), damaged=pl.lit(value=True)
    )
    fates = drops.unique(subset="pdu", keep="last").join(
        damaged, on="pdu", how="full", coalesce=True
    )
    return fates.filter(pl.col("pdu") != 0)


def _with_fate(packets: pl.DataFrame, fates: pl.DataFrame) -> pl.DataFrame:
    """Add cause ("" for a packet that got through) and damaged."""
    joined = packets.join(fates, on="pdu", how="left", maintain_order="left")
    return joined.with_columns(
        pl.col("cause").fill_null(""), pl.col("damaged").fill_null(value=False)
    )


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
