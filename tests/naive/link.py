# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of the link: packets of a direction, and of queues."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from naive.figures import figures
from naive.packets import INFINITE, events

if TYPE_CHECKING:
    from pathlib import Path


def elapsed_time(folder: Path) -> float:
    """Return the time from the first offer of an endpoint's packet to the last exit."""
    log = [row for row in events(folder) if row.get("origin", "user") == "user"]
    begun = [row["time_ns"] for row in log if row["kind"] == "offered"]
    left = [
        row["time_ns"] if row["emitted_ns"] is None else row["emitted_ns"]
        for row in log
        if row["kind"] == "delivered"
    ]
    return float(max(begun[:1] + left) - min(begun)) / 1e9


def bits_of_users(delivered: list[dict[str, Any]], users: list[str]) -> dict[str, list[float]]:
    """Return by direction the bits of endpoints' packets of each user that left the link."""
    found: dict[str, list[float]] = {}
    for row in delivered:
        if row["origin"] == "user":
            of_direction = found.setdefault(str(row["direction"]), [0.0] * len(users))
            of_direction[users.index(str(row["user"]))] += row["bits"]
    return found


def link_metrics(
    folder: Path, duration: int, pdus: set[int] | None = None
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the metrics of each (direction, hop), hop "" for a direction's own.

    Of some packets only, if their ids are given; then without hops.
    """
    log = [row for row in events(folder) if pdus is None or row["pdu"] in pdus]
    results: dict[tuple[str, str], dict[str, float]] = {}
    for direction in ("uplink", "downlink"):
        rows = [row for row in log if row["direction"] == direction]
        offered = [
            row for row in rows if row["kind"] == "offered" and row.get("origin", "user") == "user"
        ]
        if not offered:
            continue
        number = {row["pdu"]: place for place, row in enumerate(offered)}
        start = {row["pdu"]: row["time_ns"] for row in offered}
        size = {row["pdu"]: row["bits"] for row in offered}
        left = sorted(
            (
                (row["time_ns"] if row["emitted_ns"] is None else row["emitted_ns"], row["pdu"])
                for row in rows
                if row["kind"] == "delivered" and row.get("origin", "user") == "user"
            ),
            key=lambda item: item[0],
        )
        first: dict[int, int] = {}
        copies: dict[int, int] = defaultdict(int)
        for time, pdu in left:
            first[pdu] = min(first.get(pdu, INFINITE), time)
            copies[pdu] += 1
        drops = [
            row for row in rows if row["kind"] == "dropped" and row.get("origin", "user") == "user"
        ]
        dropped = {row["pdu"] for row in drops}
        lost = [row["pdu"] in dropped and row["pdu"] not in first for row in offered]
        runs: list[float] = []
        length = 0
        for gone in [*lost, False]:
            if gone:
                length += 1
            elif length:
                runs.append(length)
                length = 0
        jitter = 0.0
        course = []
        before = None
        for time, pdu in left:
            transit = time - start[pdu]
            if before is not None:
                jitter += (abs(transit - before) - jitter) / 16
                course.append(jitter / 1e9)
            before = transit
        delays = [
            (first[row["pdu"]] - row["time_ns"]) / 1e9 for row in offered if row["pdu"] in first
        ]
        steps = [
            abs((first[b["pdu"]] - b["time_ns"]) - (first[a["pdu"]] - a["time_ns"])) / 1e9
            for a, b in itertools.pairwise(offered)
            if a["pdu"] in first and b["pdu"] in first
        ]
        arrivals = []
        for _, pdu in left:
            if pdu not in arrivals:
                arrivals.append(pdu)
        extents = []
        for place, pdu in enumerate(arrivals):
            overtakers = [
                earlier for earlier in range(place) if number[arrivals[earlier]] > number[pdu]
            ]
            extents.append(place - overtakers[0] if overtakers else 0)
        causes: dict[str, int] = defaultdict(int)
        for row in drops:
            causes[row["cause"]] += 1
        queue_causes = ("queue_packets", "queue_bytes", "queue_age", "queue_management")
        values: dict[str, float] = {
            "packets_offered": len(offered),
            "packets_delivered": len(first),
            "packets_lost": sum(lost),
            "loss_ratio": sum(lost) / len(offered),
            "duplicates": sum(number_of - 1 for number_of in copies.values()),
            "drops": len(drops),
            "drops_congestion": sum(causes[cause] for cause in queue_causes),
            "drops_error": causes["channel_error"] + causes["integrity"],
            "drops_link": causes["link_reset"] + causes["link_down"] + causes["too_late"],
            "drops_blackout": causes["blackout"],
            "drops_receive_buffer": causes["receive_buffer"],
            "drops_outside": causes["outside"],
            "marks": sum(row["kind"] == "marked" for row in rows),
            "reordered": sum(extent > 0 for extent in extents),
        }
        if extents:
            values["reordered_ratio"] = sum(extent > 0 for extent in extents) / len(extents)
            values["reordering_extent_max"] = max(extents)
            rate = sum(size[pdu] for _, pdu in left) * 1e9
            values["throughput"] = rate / (left[-1][0] - min(start[pdu] for pdu in first))
        else:
            del values["reordered"]
        if course:
            values["interarrival_jitter"] = course[-1]
        values |= figures("one_way_delay", delays)
        values |= {
            name: value
            for name, value in figures("interarrival_jitter", course).items()
            if name.endswith(("mean", "max"))
        }
        values |= {
            name: value
            for name, value in figures("delay_variation", steps).items()
            if name.endswith(("mean", "median", "p95", "max"))
        }
        values |= {
            name: value
            for name, value in figures("loss_run", runs).items()
            if name.endswith(("mean", "median", "max"))
        }
        results[direction, ""] = values
        if pdus is not None:
            continue
        for hop in {row["hop"] for row in rows if row["stage"] == "queue"}:
            results[direction, hop] = queue(rows, hop, duration, values, left, start)
    return results


def queue(
    rows: list[dict[str, Any]],
    hop: str,
    duration: int,
    values: dict[str, float],
    left: list[tuple[int, int]],
    start: dict[int, int],
) -> dict[str, float]:
    """Return the figures of one queue and its medium."""
    del values
    found: dict[str, float] = {}
    mine = [row for row in rows if row["hop"] == hop and row["stage"] == "queue"]
    ends = [row["time_ns"] for row in mine[1:]] + [duration]
    for column in ("queue_packets", "queue_bytes"):
        held: dict[int, int] = defaultdict(int)
        for row, end in zip(mine, ends, strict=True):
            if end > row["time_ns"]:
                held[row[column]] += end - row["time_ns"]
        total = sum(held.values())
        found[f"{column}_mean"] = sum(size * time for size, time in held.items()) / total
        found[f"{column}_max"] = max(held)
        for suffix, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
            so_far = 0
            for size in sorted(held):
                so_far += held[size]
                if so_far >= share * total:
                    found[f"{column}_{suffix}"] = size
                    break
    entered: dict[int, int] = {}
    waits: dict[int, float] = {}
    for row in mine:
        if row.get("origin", "user") != "user":
            continue
        if row["kind"] == "enqueued":
            entered.setdefault(row["pdu"], row["time_ns"])
        elif row["kind"] == "dequeued":
            waits[row["pdu"]] = (row["time_ns"] - entered[row["pdu"]]) / 1e9
    # Copies are made behind the queue, so the last hop is that of the packet's last queue.
    for pdu in list(waits):
        reached = [row["hop"] for row in rows if row["pdu"] == pdu and row["kind"] == "enqueued"]
        left_here = {row["hop"] for row in rows if row["pdu"] == pdu and row["kind"] == "passed"}
        delivered = any(row["pdu"] == pdu and row["kind"] == "delivered" for row in rows)
        if hop not in left_here and not (delivered and reached[-1] == hop):
            del waits[pdu]
    found |= {
        name: value
        for name, value in figures("queue_wait", list(waits.values())).items()
        if not name.endswith("_min")
    }
    busy = active = since = 0
    for row in rows:
        if row["hop"] != hop or row["kind"] not in ("frame_started", "frame_sent"):
            continue
        if active > 0:
            busy += row["time_ns"] - since
        active += 1 if row["kind"] == "frame_started" else -1
        since = row["time_ns"]
    span = left[-1][0] - min(start[pdu] for _, pdu in left)
    if any(row["hop"] == hop and row["kind"] == "frame_sent" for row in rows):
        found["idle_time"] = max(0, span - busy) / 1e9
    return found
