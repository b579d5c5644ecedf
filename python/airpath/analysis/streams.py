# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""TCP streams in tables: what each end sent, what of it was new, what came back.

A stream is the data of one direction of a connection. Its sequence numbers count bytes of payload
from 0; those of the header are unwrapped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from airpath.headers import FLAG_ACK, FLAG_FIN, FLAG_RST, FLAG_SYN

if TYPE_CHECKING:
    from numpy.typing import NDArray

STREAM = ["flow", "direction"]

ARRIVAL_SLACK_NS = 100_000
"""A packet that leaves the link is stamped once it was written, and what its receiver sends in
answer at once may bear an earlier stamp: an acknowledgement counts as arrived for whatever was sent
up to so long before its stamp."""

DUPLICATES_FOR_FAST_RETRANSMIT = 3
"""RFC 5681, section 3.2."""

LEAST_TIMEOUT_NS = 200_000_000
"""The least retransmission timeout of Linux; RFC 6298 asks for a second."""

TRIGGER_NS = 5_000_000
"""Time after an acknowledgement's arrival in which a packet may be triggered by it."""

_STREAM_BITS = 44
"""Streams are laid side by side on one axis, each with room for 16 TiB."""


@dataclass(frozen=True)
class StreamTables:
    """The tables of all streams of a run."""

    sent: pl.DataFrame
    """Data segments as they left their sender, in order: flow, direction, time_ns, pdu, first, end
    (bytes of the stream), new (bytes never sent before), arrived (whole, at the receiver; null if
    its capture is missing), spurious (every byte was in an earlier segment that arrived), late (and
    one of these arrived only after this was sent), kind ("", "fast", "timeout", "other")."""

    received: pl.DataFrame
    """Data segments as they reached their receiver undamaged, in order: flow, direction, time_ns,
    first, end, new (bytes that had not arrived before), late (new bytes below the highest that had
    arrived)."""

    acknowledgements: pl.DataFrame
    """Acknowledgements of the stream as they reached its sender, in order: flow, direction (of the
    data), time_ns, number, advance, duplicate, dsack, rtt_ns (a sample by Karn's rule, or null),
    rtt_timestamp_ns (a sample by time stamps, or null)."""

    openings: pl.DataFrame
    """flow, initiator_ns (first packet of the connection, at its initiator), setup_ns (until the
    answer to its SYN arrived there), syn_retransmissions (both ends)."""


def stream_tables(packets: pl.DataFrame) -> StreamTables:
    """Take the streams out of captured TCP packets (``Traffic.captured``)."""
    packets = packets.with_columns(syn=pl.col("flags") & FLAG_SYN > 0)
    anchors = _anchors(packets)
    placed = packets.join(anchors, on=STREAM, how="inner", maintain_order="left")
    sent = _unwrapped(placed.filter(pl.col("sent")))
    received = _unwrapped(placed.filter(~pl.col("sent") & ~pl.col("damaged")))
    sent, received = _data(sent), _data(received)
    both_ends = packets.group_by("flow", "direction").agg(seen=(~pl.col("sent")).any())
    sent = _with_history(sent, received, both_ends)
    received = _with_new(received)
    heard = _acknowledgements(packets, anchors, sent)
    sent, heard = _judged(sent, heard)
    return StreamTables(
        sent=sent,
        received=received,
        acknowledgements=heard,
        openings=_openings(packets),
    )


def _anchors(packets: pl.DataFrame) -> pl.DataFrame:
    """Return flow, direction, anchor (header's number of byte 0) of each stream with data.

    A SYN takes a number of its own before the first byte. Without it the first number seen serves.
    """
    whole = packets.filter(~pl.col("damaged"))
    number = pl.col("sequence").cast(pl.Int64)
    table = whole.group_by(STREAM, maintain_order=True).agg(
        opened=(number.filter("syn").first() + 1) % (1 << 32),
        lowest=_shorter_way(number - number.first()).min() + number.first(),
        bytes=pl.col("payload").sum(),
        since_ns=pl.col("time_ns").min(),
    )
    return table.filter(pl.col("bytes") > 0).select(
        *STREAM, anchor=pl.coalesce("opened", pl.col("lowest") % (1 << 32)), since_ns="since_ns"
    )


def _shorter_way(difference: pl.Expr) -> pl.Expr:
    """Take the difference of two 32-bit numbers as the shorter way round."""
    return (difference + (1 << 31)) % (1 << 32) - (1 << 31)


def _number(column: str) -> pl.Expr:
    """Unwrap 32-bit numbers of each stream in order of time, counted from its anchor."""
    wire = pl.col(column).cast(pl.Int64)
    step = _shorter_way(wire.diff().over(STREAM)).fill_null(0)
    begin = _shorter_way(wire.first().over(STREAM) - pl.col("anchor"))
    return begin + step.cum_sum().over(STREAM)


def _unwrapped(packets: pl.DataFrame) -> pl.DataFrame:
    packets = packets.sort(*STREAM, "time_ns", maintain_order=True)
    # A SYN's own number stands before the first byte.
    return packets.with_columns(first=_number("sequence") + pl.col("syn").cast(pl.Int64))


def _data(packets: pl.DataFrame) -> pl.DataFrame:
    data = packets.filter((pl.col("payload") > 0) & (pl.col("first") >= 0))
    return data.select(
        *STREAM,
        "time_ns",
        "pdu",
        "first",
        "timestamp",
        end=pl.col("first") + pl.col("payload"),
    ).with_row_index("row")


@dataclass(frozen=True)
class _Pieces:
    """Segments cut at every border of any of them: one entry a segment and piece."""

    row: NDArray[np.int64]
    piece: NDArray[np.int64]
    length: NDArray[np.int64]
    before: NDArray[np.int64]
    """The row before this one, in order, with the same piece; -1 for the first."""

    def per_row(self, values: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
        """Add up values of pieces for each row."""
        total: NDArray[np.int64] = np.bincount(self.row, weights=values, minlength=rows).astype(
            np.int64
        )
        return total


def _pieces(segments: pl.DataFrame) -> _Pieces:
    """Cut segments; entries are in order of piece and, within it, of row."""
    offset = segments.select(pl.struct(STREAM).rank("dense").cast(pl.Int64)).to_series().to_numpy()
    offset = offset << _STREAM_BITS
    first = segments["first"].to_numpy() + offset
    end = segments["end"].to_numpy() + offset
    borders = np.unique(np.concatenate([first, end]))
    low, high = np.searchsorted(borders, first), np.searchsorted(borders, end)
    count = high - low
    row = np.repeat(np.arange(len(first)), count)
    within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    piece = np.repeat(low, count) + within
    order = np.argsort(piece, kind="stable")
    row, piece = row[order], piece[order]
    before = np.full(len(row), -1, dtype=np.int64)
    again = np.flatnonzero(piece[1:] == piece[:-1]) + 1
    before[again] = row[again - 1]
    length = (borders[np.minimum(piece + 1, len(borders) - 1)] - borders[piece]).astype(np.int64)
    return _Pieces(row, piece, length, before)


def _with_new(segments: pl.DataFrame) -> pl.DataFrame:
    """Add new and late: bytes that no earlier segment had, and whether these fill a gap."""
    pieces = _pieces(segments)
    new = pieces.per_row(np.where(pieces.before < 0, pieces.length, 0), segments.height)
    highest = pl.col("end").cum_max().shift(1).over(STREAM)
    return segments.with_columns(new=pl.Series(new)).with_columns(
        late=((pl.col("new") > 0) & (pl.col("first") < highest)).fill_null(value=False)
    )


def _with_history(
    sent: pl.DataFrame, received: pl.DataFrame, both_ends: pl.DataFrame
) -> pl.DataFrame:
    """Add new, arrived, spurious and late, and before_ns: when its first byte was sent before."""
    arrivals = (
        received.filter(pl.col("pdu") != 0)
        .group_by(*STREAM, "pdu")
        .agg(arrived_ns=pl.col("time_ns").min())
    )
    sent = sent.join(arrivals, on=[*STREAM, "pdu"], how="left", maintain_order="left")
    sent = sent.join(both_ends, on=STREAM, how="left", maintain_order="left")
    rows = sent.height
    pieces = _pieces(sent)
    new = pieces.per_row(np.where(pieces.before < 0, pieces.length, 0), rows)
    arrived = sent["arrived_ns"].is_not_null().to_numpy()
    time = sent["time_ns"].to_numpy()
    arrived_ns = sent["arrived_ns"].fill_null(np.iinfo(np.int64).max).to_numpy()
    # Of each piece: had an earlier segment with it arrived, and when did the earliest of these?
    history = pl.DataFrame({"piece": pieces.piece, "arrived_ns": arrived_ns[pieces.row]}).select(
        earliest=pl.col("arrived_ns").cum_min().shift(1).over("piece")
    )
    earliest = history["earliest"].fill_null(np.iinfo(np.int64).max).to_numpy()
    unserved = pieces.per_row((earliest == np.iinfo(np.int64).max).astype(np.int64), rows)
    waiting = pieces.per_row((earliest > time[pieces.row]).astype(np.int64), rows)
    repeated = new < (sent["end"] - sent["first"]).to_numpy()
    spurious = repeated & (unserved == 0)
    begins = np.flatnonzero(_first_piece(pieces, rows))
    before = np.full(rows, -1, dtype=np.int64)
    before[pieces.row[begins]] = pieces.before[begins]
    before_ns = np.where(before >= 0, time[np.maximum(before, 0)], -1) if rows else before
    known = pl.col("seen")
    return sent.with_columns(
        new=pl.Series(new),
        retransmission=pl.Series(repeated),
        arrived=pl.when(known).then(pl.Series(arrived)),
        spurious=pl.when(known).then(pl.Series(spurious)),
        late=pl.when(known).then(pl.Series(spurious & (waiting > 0))),
        before_ns=pl.when(pl.Series(before_ns) >= 0).then(pl.Series(before_ns)),
    ).drop("seen")


def _first_piece(pieces: _Pieces, rows: int) -> NDArray[np.bool_]:
    """Mark of each row the entry with its first piece."""
    lowest = np.full(rows, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(lowest, pieces.row, pieces.piece)
    marked: NDArray[np.bool_] = pieces.piece == lowest[pieces.row]
    return marked


def _acknowledgements(
    packets: pl.DataFrame, anchors: pl.DataFrame, sent: pl.DataFrame
) -> pl.DataFrame:
    """Return what reached each stream's sender, with the number it acknowledges."""
    answers = packets.filter(
        ~pl.col("sent")
        & ~pl.col("damaged")
        & (pl.col("flags") & FLAG_ACK > 0)
        & (pl.col("flags") & FLAG_RST == 0)
    )
    # The stream that a packet acknowledges goes the other way.
    other = (
        pl.when(pl.col("direction") == "uplink")
        .then(pl.lit("downlink"))
        .otherwise(pl.lit("uplink"))
        .cast(answers.schema["direction"])
    )
    answers = answers.with_columns(direction=other)
    extent = sent.group_by(STREAM).agg(bytes=pl.col("end").max())
    answers = answers.join(anchors, on=STREAM, maintain_order="left").join(
        extent, on=STREAM, maintain_order="left"
    )
    answers = answers.sort(*STREAM, "time_ns", maintain_order=True)
    answers = answers.with_columns(number=_number("acknowledgement"))
    # Past the last byte by the FIN's own number at most; a damaged header can say anything.
    return answers.filter(pl.col("number").is_between(0, pl.col("bytes") + 1)).select(
        *STREAM,
        "time_ns",
        "number",
        "window",
        "sack",
        "anchor",
        "timestamp_echo",
        bare=(pl.col("payload") == 0) & (pl.col("flags") & (FLAG_SYN | FLAG_FIN) == 0),
    )


def _judged(sent: pl.DataFrame, heard: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lay what was sent and what was heard side by side; tell what each caused."""
    acks = heard.with_row_index("ack").select(
        *STREAM,
        "ack",
        "time_ns",
        "number",
        "window",
        "bare",
        has_sack=pl.col("sack").list.len().fill_null(0) > 0,
        order_ns=pl.col("time_ns") - ARRIVAL_SLACK_NS,
        is_ack=pl.lit(value=True),
    )
    data = sent.select(
        *STREAM,
        "row",
        "time_ns",
        "first",
        "end",
        "before_ns",
        "retransmission",
        order_ns=pl.col("time_ns"),
        is_ack=pl.lit(value=False),
    )
    # As one query: each step by itself would cost more than what it does.
    lazy = pl.concat([acks, data], how="diagonal").lazy()
    lazy = lazy.sort(*STREAM, "order_ns", pl.col("is_ack").not_(), maintain_order=True)
    lazy = lazy.with_columns(
        acknowledged=pl.col("number").cum_max().forward_fill().over(STREAM).fill_null(0),
        reached=pl.col("end").cum_max().forward_fill().over(STREAM).fill_null(0),
        repairs=pl.col("retransmission").fill_null(value=False).cum_sum().over(STREAM),
        last_window=pl.when("is_ack").then("window").forward_fill().shift(1).over(STREAM),
        heard_ns=pl.when("is_ack").then("time_ns").forward_fill().over(STREAM),
    )
    known = pl.col("acknowledged").shift(1).over(STREAM).fill_null(0)
    lazy = lazy.with_columns(
        advance=pl.col("is_ack") & (pl.col("number") > known),
        duplicate=pl.col("is_ack")
        & pl.col("bare")
        & (pl.col("number") == known)
        & (pl.col("reached") > pl.col("number"))
        & ((pl.col("window") == pl.col("last_window")) | pl.col("has_sack")),
    ).with_columns(
        epoch=pl.col("advance").cum_sum().over(STREAM),
        advanced_ns=pl.when("advance").then("time_ns").forward_fill().over(STREAM),
    )
    at_edge = (
        pl.col("retransmission").fill_null(value=False)
        & (pl.col("first") <= pl.col("acknowledged"))
        & (pl.col("acknowledged") < pl.col("end"))
    )
    lazy = lazy.with_columns(at_edge=at_edge).with_columns(
        duplicates=pl.col("duplicate").cum_sum().over(*STREAM, "epoch"),
        repeats=pl.col("at_edge").cum_sum().over(*STREAM, "epoch"),
    )
    now = pl.col("time_ns")
    after_silence = (
        pl.col("at_edge")
        & (now - pl.col("before_ns") >= LEAST_TIMEOUT_NS)
        & (now - pl.col("advanced_ns").fill_null(-LEAST_TIMEOUT_NS) >= LEAST_TIMEOUT_NS)
        & (now - pl.col("heard_ns").fill_null(-LEAST_TIMEOUT_NS) >= TRIGGER_NS)
    )
    enough = pl.when(after_silence).then(DUPLICATES_FOR_FAST_RETRANSMIT).otherwise(1)
    fast = pl.col("at_edge") & (pl.col("repeats") == 1) & (pl.col("duplicates") >= enough)
    timeout = after_silence & ~fast
    table = lazy.with_columns(
        kind=pl.when(~pl.col("retransmission"))
        .then(pl.lit(""))
        .when(fast)
        .then(pl.lit("fast"))
        .when(timeout)
        .then(pl.lit("timeout"))
        .otherwise(pl.lit("other"))
    ).collect()
    kinds = table.filter(~pl.col("is_ack")).select("row", "kind", "acknowledged", "repairs")
    sent = sent.join(kinds, on="row", how="left", maintain_order="left").with_columns(
        flight=pl.col("end").cum_max().over(STREAM) - pl.col("acknowledged")
    )
    states = table.filter("is_ack").select("ack", "advance", "duplicate", "repairs", "acknowledged")
    heard = heard.with_row_index("ack").join(states, on="ack", how="left", maintain_order="left")
    heard = _with_round_trips(heard, sent)
    return sent, _with_duplicate_reports(heard)


def _with_round_trips(heard: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Add samples of the round trip time.

    By Karn's rule: the number is new and the end of a segment sent once, and nothing was
    retransmitted between that segment and the acknowledgement. By time stamps: the number is new,
    and the first segment with the time stamp that is echoed is known (RFC 7323).
    """
    once = (
        sent.group_by(*STREAM, "end")
        .agg(
            pl.len().alias("times"),
            pl.col("time_ns").first().alias("sent_ns"),
            pl.col("repairs").first().alias("repairs_before"),
            pl.col("retransmission").any(),
        )
        .filter((pl.col("times") == 1) & ~pl.col("retransmission"))
    )
    heard = heard.join(
        once.select(*STREAM, "sent_ns", "repairs_before", number="end"),
        on=[*STREAM, "number"],
        how="left",
        maintain_order="left",
    )
    stamped = (
        sent.drop_nulls("timestamp")
        .group_by(*STREAM, "timestamp")
        .agg(stamped_ns=pl.col("time_ns").min())
    )
    heard = heard.join(
        stamped.rename({"timestamp": "timestamp_echo"}),
        on=[*STREAM, "timestamp_echo"],
        how="left",
        maintain_order="left",
    )
    clean = pl.col("advance") & (pl.col("repairs") == pl.col("repairs_before"))
    return heard.with_columns(
        rtt_ns=pl.when(clean).then(pl.col("time_ns") - pl.col("sent_ns")),
        rtt_timestamp_ns=pl.when("advance").then(pl.col("time_ns") - pl.col("stamped_ns")),
    ).drop("sent_ns", "repairs_before", "stamped_ns")


def _with_duplicate_reports(heard: pl.DataFrame) -> pl.DataFrame:
    """Add dsack: its first SACK block repeats what is acknowledged, or lies in the second."""
    blocks = heard.filter(pl.col("sack").list.len() >= 2).select(
        "ack",
        "number",
        *(
            _shorter_way(
                pl.col("sack").list.get(index, null_on_oob=True).cast(pl.Int64)
                - pl.col("anchor")
                - pl.col("number")
            ).alias(name)
            for index, name in enumerate(("first", "end", "outer_first", "outer_end"))
        ),
    )
    below = pl.col("first") < 0
    inside = (pl.col("outer_first") <= pl.col("first")) & (pl.col("end") <= pl.col("outer_end"))
    reports = blocks.select("ack", dsack=(below | inside).fill_null(value=False))
    heard = heard.join(reports, on="ack", how="left", maintain_order="left")
    return heard.with_columns(pl.col("dsack").fill_null(value=False))


def _openings(packets: pl.DataFrame) -> pl.DataFrame:
    """Return when each connection began and how long its handshake took."""
    syn = packets.filter("syn")
    opening = syn.filter(pl.col("sent") & (pl.col("flags") & FLAG_ACK == 0))
    answer = syn.filter(~pl.col("sent") & ~pl.col("damaged") & (pl.col("flags") & FLAG_ACK > 0))
    begun = opening.group_by("flow").agg(initiator_ns=pl.col("time_ns").min())
    answered = answer.group_by("flow").agg(answered_ns=pl.col("time_ns").min())
    repeats = (
        syn.filter("sent")
        .group_by("flow", "direction")
        .agg(repeats=pl.len().cast(pl.Int64) - 1)
        .group_by("flow")
        .agg(syn_retransmissions=pl.col("repeats").sum())
    )
    table = begun.join(answered, on="flow", how="left").join(repeats, on="flow", how="left")
    return table.select(
        "flow",
        "initiator_ns",
        "syn_retransmissions",
        setup_ns=pl.col("answered_ns") - pl.col("initiator_ns"),
    )
