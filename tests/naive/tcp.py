# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of TCP connections."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from naive.figures import fairness, figures
from naive.packets import ACK, FIN, INFINITE, RST, SLACK, SYN, Seen, events, near, seen

if TYPE_CHECKING:
    from pathlib import Path

LEAST_TIMEOUT = 200_000_000
TRIGGER = 5_000_000


@dataclass
class Stream:
    """Counts of one end of a connection, sent and received, by one pass."""

    segments: int = 0
    sent_bytes: int = 0
    retransmitted: int = 0
    retransmitted_bytes: int = 0
    fast: int = 0
    timeouts: int = 0
    other: int = 0
    spurious: int = 0
    late: int = 0
    spurious_timeouts: int = 0
    flight: int = 0
    acknowledgements: int = 0
    duplicates: int = 0
    dsack: int = 0
    rtt: list[int] = field(default_factory=list)
    rtt_stamps: list[int] = field(default_factory=list)


def stream(data: list[Seen], acks: list[Seen], arrived: dict[int, int], anchor: int) -> Stream:
    """Walk over what the sender sent (data) and heard (acks), in order."""
    result = Stream()
    highest_end = max(near(one.sequence, anchor) + one.payload for one in data)
    line = [(one.time, 1, one) for one in data] + [(one.time - SLACK, 0, one) for one in acks]
    line.sort(key=lambda item: item[:2])
    sent_ns = [-1] * highest_end
    earliest = [INFINITE] * highest_end
    transmissions: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)
    stamps: dict[int, int] = {}
    for one in data:
        if one.stamp is not None:
            stamps[one.stamp] = min(stamps.get(one.stamp, INFINITE), one.time)
    known = reached = repairs = duplicates = at_edge = 0
    advanced = heard = None
    window = None
    # Whether a segment with some end is ever sent again decides over its sample: look ahead.
    times_sent: dict[int, int] = defaultdict(int)
    for one in data:
        times_sent[near(one.sequence, anchor) + one.payload] += 1
    for _, is_data, one in line:
        if is_data:
            first = near(one.sequence, anchor)
            end = first + one.payload
            old = [byte for byte in range(first, end) if sent_ns[byte] >= 0]
            served = [earliest[byte] for byte in range(first, end)]
            result.segments += 1
            result.sent_bytes += one.payload
            result.retransmitted_bytes += len(old)
            kind = ""
            spurious = False
            if old:
                repairs += 1
                result.retransmitted += 1
                kind = "other"
                spurious = max(served) < INFINITE
                if first <= known < end:
                    at_edge += 1
                    silent = (
                        sent_ns[first] >= 0
                        and one.time - sent_ns[first] >= LEAST_TIMEOUT
                        and (advanced is None or one.time - advanced >= LEAST_TIMEOUT)
                        and (heard is None or one.time - heard >= TRIGGER)
                    )
                    if at_edge == 1 and duplicates >= (3 if silent else 1):
                        kind = "fast"
                    elif silent:
                        kind = "timeout"
            result.fast += kind == "fast"
            result.timeouts += kind == "timeout"
            result.other += kind == "other"
            result.spurious += spurious
            result.late += spurious and max(served) > one.time
            result.spurious_timeouts += spurious and kind == "timeout"
            transmissions[end].append((one.time, repairs, bool(old)))
            for byte in range(first, end):
                sent_ns[byte] = one.time
                earliest[byte] = min(earliest[byte], arrived.get(one.pdu, INFINITE))
            reached = max(reached, end)
            result.flight = max(result.flight, reached - known)
            continue
        number = near(one.acknowledgement, anchor)
        if not 0 <= number <= highest_end + 1:
            continue
        result.acknowledgements += 1
        bare = one.payload == 0 and not one.flags & (SYN | FIN)
        if one.blocks:
            relative = [(near(a, anchor) - number, near(b, anchor) - number) for a, b in one.blocks]
            inside = len(relative) > 1 and (
                relative[1][0] <= relative[0][0] and relative[0][1] <= relative[1][1]
            )
            result.dsack += relative[0][0] < 0 or inside
        if number > known:
            before = transmissions.get(number, [])
            if times_sent[number] == 1 and before and not before[0][2] and before[0][1] == repairs:
                result.rtt.append(one.time - before[0][0])
            if one.echo in stamps:
                result.rtt_stamps.append(one.time - stamps[one.echo])
            known, advanced, duplicates, at_edge = number, one.time, 0, 0
        elif bare and number == known and reached > number and (one.window == window or one.blocks):
            duplicates += 1
            result.duplicates += 1
        window = one.window
        heard = one.time
    return result


Arrivals = dict[tuple[tuple[Any, ...], str], list[tuple[int, int]]]
"""By connection and direction the time and the bytes of each arrival of new data."""


def tcp_metrics(
    folder: Path, start: int, arrivals: Arrivals | None = None
) -> dict[tuple[tuple[Any, ...], str], dict[str, float]]:
    """Return the TCP metrics of each (connection, direction) with data; add their arrivals."""
    log = events(folder)
    damaged = {row["pdu"] for row in log if row["kind"] in ("damaged", "truncated")}
    everything = seen(folder, start, damaged)
    connections: dict[tuple[Any, ...], list[Seen]] = defaultdict(list)
    for packet in everything:
        connections[(*packet.key, packet.isn)].append(packet)
    results = {}
    for key, all_packets in connections.items():
        begun = min(packet.time for packet in all_packets)
        ended = max(packet.time for packet in all_packets)
        syn = [p for p in all_packets if p.flags & SYN and p.sent and not p.flags & ACK]
        answer = [p for p in all_packets if p.flags & SYN and not p.sent and p.flags & ACK]
        for direction, sender in (("uplink", "client"), ("downlink", "server")):
            way = [p for p in all_packets if p.direction == direction]
            data = [p for p in way if p.payload and p.sent]
            if not data:
                continue
            anchor = next((p.sequence + 1 for p in way if p.flags & SYN), None)
            if anchor is None:
                anchor = min((near(p.sequence, way[0].sequence), p.sequence) for p in way)[1]
            back = [
                p
                for p in all_packets
                if p.direction != direction
                and p.end == sender
                and not p.sent
                and p.flags & ACK
                and not p.flags & RST
            ]
            reached = sorted(
                (p for p in way if p.payload and not p.sent), key=lambda packet: packet.order
            )
            arrived: dict[int, int] = {}
            for p in reached:
                arrived[p.pdu] = min(arrived.get(p.pdu, INFINITE), p.time)
            walk = stream(data, back, arrived, anchor)
            got = bytearray(max(near(p.sequence, anchor) + p.payload for p in data))
            new_bytes = late = repeats = highest = 0
            fresh = []
            for p in reached:
                first = near(p.sequence, anchor)
                new = [byte for byte in range(first, first + p.payload) if not got[byte]]
                late += bool(new) and first < highest
                repeats += not new
                highest = max(highest, first + p.payload)
                for byte in new:
                    got[byte] = 1
                new_bytes += len(new)
                if new:
                    fresh.append(p.time)
                    if arrivals is not None:
                        arrivals.setdefault((key, direction), []).append((p.time, len(new)))
            size = len(got)
            done = [p.time for p in back if size <= near(p.acknowledgement, anchor) <= size + 1]
            values: dict[str, float] = {
                "flow_elapsed_time": (ended - begun) / 1e9,
                "segments": walk.segments,
                "sent_bytes": walk.sent_bytes,
                "unique_bytes": walk.sent_bytes - walk.retransmitted_bytes,
                "received_bytes": new_bytes,
                "retransmitted_segments": walk.retransmitted,
                "retransmitted_bytes": walk.retransmitted_bytes,
                "fast_retransmissions": walk.fast,
                "timeouts": walk.timeouts,
                "other_retransmissions": walk.other,
                "spurious_retransmissions": walk.spurious,
                "spurious_retransmissions_late": walk.late,
                "spurious_timeouts": walk.spurious_timeouts,
                "flight_bytes_max": walk.flight,
                "out_of_order_segments": late,
                "duplicate_segments": repeats,
                "acknowledgements": walk.acknowledgements,
                "duplicate_acknowledgements": walk.duplicates,
                "dsack_reports": walk.dsack,
                "rtt_samples": len(walk.rtt),
            }
            values |= figures("rtt", [sample / 1e9 for sample in walk.rtt])
            values |= figures("rtt_timestamps", [sample / 1e9 for sample in walk.rtt_stamps])
            if done:
                values["transfer_time"] = (min(done) - begun) / 1e9
            if reached:
                values["time_to_first_byte"] = (min(p.time for p in reached) - begun) / 1e9
            if len(fresh) > 1:
                gaps = [after - before for before, after in itertools.pairwise(fresh)]
                values["longest_stall"] = max(gaps) / 1e9
            if fresh and max(fresh) > begun:
                values["goodput"] = new_bytes * 8e9 / (max(fresh) - begun)
            if syn and answer:
                setup = min(p.time for p in answer) - min(p.time for p in syn)
                values["connection_setup_time"] = setup / 1e9
            if syn:
                values["syn_retransmissions"] = sum(
                    max(
                        0,
                        sum(p.flags & SYN > 0 and p.sent for p in all_packets if p.end == end) - 1,
                    )
                    for end in ("client", "server")
                )
            results[key, direction] = values
    return results


def competitors(
    found: dict[tuple[tuple[Any, ...], str], dict[str, float]],
) -> dict[str, list[float]]:
    """Return by direction the goodputs of TCP connections whose data competed in it."""
    rates: dict[str, list[float]] = defaultdict(list)
    for (key, direction), values in found.items():
        other = found.get((key, "downlink" if direction == "uplink" else "uplink"), {})
        if "goodput" in values and (
            10 * values["received_bytes"] >= (other.get("received_bytes", 0))
        ):
            rates[direction].append(values["goodput"])
    return rates


def overlap_metrics(
    arrivals: Arrivals,
) -> dict[tuple[tuple[Any, ...] | None, str], dict[str, float]]:
    """Return what competing connections got while all of them sent, and of each direction."""
    found: dict[tuple[tuple[Any, ...] | None, str], dict[str, float]] = defaultdict(dict)
    carried = {place: sum(size for _, size in came) for place, came in arrivals.items()}
    for direction, other in (("uplink", "downlink"), ("downlink", "uplink")):
        rivals = [
            key
            for key, way in arrivals
            if way == direction and 10 * carried[key, way] >= carried.get((key, other), 0)
        ]
        if len(rivals) < 2:
            continue
        begin = max(arrivals[key, direction][0][0] for key in rivals)
        end = min(arrivals[key, direction][-1][0] for key in rivals)
        if end <= begin:
            continue
        rates = []
        seconds = [[0.0] * len(rivals) for _ in range((end - begin) // 10**9)]
        for column, key in enumerate(rivals):
            total = 0
            for time, size in arrivals[key, direction]:
                if begin < time <= end:
                    total += size
                    row = (time - begin - 1) // 10**9
                    if row < len(seconds):
                        seconds[row][column] += size
            rates.append(total * 8e9 / (end - begin))
            found[key, direction]["goodput_overlap"] = rates[-1]
        if sum(rates):
            found[None, direction]["jain_fairness_overlap"] = fairness(rates)
        shares = [fairness(row) for row in seconds if sum(row)]
        if shares:
            found[None, direction]["jain_fairness_overlap_1s"] = sum(shares) / len(shares)
    return found
