# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Every metric once more, in plain Python, packet by packet and byte by byte.

Written for clarity alone and sharing nothing with the analysis: another reader of captures and
logs, one pass with explicit state instead of whole columns. Analysis must agree with it.
"""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections import defaultdict
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pcapng import packets as read_packets

if TYPE_CHECKING:
    from pathlib import Path

SLACK = 100_000
LEAST_TIMEOUT = 200_000_000
TRIGGER = 5_000_000
FIN, SYN, RST, ACK = 1, 2, 4, 16
INFINITE = 1 << 62


@dataclass
class Seen:
    """A TCP packet at one point."""

    time: int
    end: str
    sent: bool
    direction: str
    pdu: int
    key: tuple[Any, ...]
    sequence: int
    acknowledgement: int
    flags: int
    window: int
    payload: int
    echo: int | None
    stamp: int | None
    blocks: list[tuple[int, int]]
    isn: int = -1

    @property
    def order(self) -> tuple[int, bool]:
        """Order in which packets count: by time, arrivals first."""
        return (self.time if self.sent else self.time - SLACK, self.sent)


def parse(content: bytes) -> dict[str, Any] | None:
    """Return the fields of a TCP packet, or nothing."""
    if content[0] >> 4 == 4:
        header = (content[0] & 15) * 4
        total = struct.unpack_from(">H", content, 2)[0]
        protocol = content[9]
        ends = content[12:16], content[16:20]
    else:
        header, protocol = 40, content[6]
        total = 40 + struct.unpack_from(">H", content, 4)[0]
        ends = content[8:24], content[24:40]
    if protocol != 6:
        return None
    ports = struct.unpack_from(">HH", content, header)
    sequence, acknowledgement, offset, flags, window = struct.unpack_from(
        ">IIBBH", content, header + 4
    )
    size = (offset >> 4) * 4
    options = content[header + 20 : header + size]
    stamp = echo = None
    blocks: list[tuple[int, int]] = []
    place = 0
    while place < len(options):
        kind = options[place]
        if kind == 0:
            break
        if kind == 1:
            place += 1
            continue
        length = options[place + 1]
        body = options[place + 2 : place + length]
        if kind == 8 and place == 2:
            stamp, echo = struct.unpack(">II", body)
        if kind == 5:
            edges = struct.unpack(f">{len(body) // 4}I", body)
            blocks = list(zip(edges[::2], edges[1::2], strict=True))
        place += length
    return {
        "ends": tuple(str(ip_address(end)) for end in ends),
        "ports": ports,
        "sequence": sequence,
        "acknowledgement": acknowledgement,
        "flags": flags,
        "window": window,
        "payload": total - header - size,
        "stamp": stamp,
        "echo": echo,
        "blocks": blocks,
    }


def events(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of events.arrow."""
    with pa.OSFile(str(folder / "events.arrow")) as file:
        rows = pa.ipc.open_file(file).read_all().to_pylist()
    return sorted(rows, key=lambda row: row["time_ns"])


def seen(folder: Path, start: int, damaged: set[int]) -> list[Seen]:
    """Return every TCP packet of both captures, damaged arrivals left out."""
    found = []
    for end in ("client", "server"):
        here: list[Seen] = []
        for raw in read_packets((folder / f"{end}.pcapng").read_bytes()):
            fields = parse(raw.content)
            if fields is None or raw.interface < 0:
                continue
            sent = raw.interface == 0
            direction = "uplink" if (end == "client") == sent else "downlink"
            client = 0 if direction == "uplink" else 1
            key = (
                fields["ends"][client],
                fields["ports"][client],
                fields["ends"][1 - client],
                fields["ports"][1 - client],
            )
            here.append(
                Seen(
                    raw.unix_ns - start,
                    end,
                    sent,
                    direction,
                    raw.pdu,
                    key,
                    fields["sequence"],
                    fields["acknowledgement"],
                    fields["flags"],
                    fields["window"],
                    fields["payload"],
                    fields["echo"],
                    fields["stamp"],
                    fields["blocks"],
                )
            )
        here.sort(key=lambda packet: packet.order)
        now: dict[tuple[Any, ...], int] = {}
        for packet in here:
            if packet.flags & (SYN | ACK) == SYN:
                now[packet.key] = packet.sequence
            packet.isn = now.get(packet.key, -1)
        later: dict[tuple[Any, ...], int] = {}
        for packet in reversed(here):
            if packet.isn < 0:
                packet.isn = later.get(packet.key, -1)
            later[packet.key] = packet.isn
        found += [one for one in here if one.sent or one.pdu not in damaged]
    return found


def near(value: int, anchor: int) -> int:
    """Return value - anchor as the shorter way round."""
    return (value - anchor + (1 << 31)) % (1 << 32) - (1 << 31)


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


def quantile(samples: list[float], share: float) -> float:
    """Return a quantile with linear interpolation."""
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def figures(name: str, samples: list[float]) -> dict[str, float]:
    """Return the statistics of samples, as the analysis calls them."""
    if not samples:
        return {}
    return {
        f"{name}_min": min(samples),
        f"{name}_mean": sum(samples) / len(samples),
        f"{name}_median": quantile(samples, 0.5),
        f"{name}_p95": quantile(samples, 0.95),
        f"{name}_p99": quantile(samples, 0.99),
        f"{name}_max": max(samples),
    }


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


def fairness(goodputs: list[float]) -> float:
    """Return Jain's index as one over (1 + the square of the coefficient of variation)."""
    mean = sum(goodputs) / len(goodputs)
    variance = sum((one - mean) ** 2 for one in goodputs) / len(goodputs)
    return 1 / (1 + variance / mean**2)


def bits_of_users(delivered: list[dict[str, Any]], users: list[str]) -> dict[str, list[float]]:
    """Return by direction the bits of endpoints' packets of each user that left the link."""
    found: dict[str, list[float]] = {}
    for row in delivered:
        if row["origin"] == "user":
            of_direction = found.setdefault(str(row["direction"]), [0.0] * len(users))
            of_direction[users.index(str(row["user"]))] += row["bits"]
    return found


def pdus_of_users(folder: Path) -> dict[str, set[int]]:
    """Return the ids of the packets of each user of a cell."""
    ids: dict[str, set[int]] = defaultdict(set)
    for row in events(folder):
        if row["kind"] == "offered" and row["user"]:
            ids[row["user"]].add(row["pdu"])
    return ids


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


def pdus_of_connections(folder: Path, start: int) -> dict[tuple[Any, ...], set[int]]:
    """Return the ids of the packets of each TCP connection."""
    ids: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    for packet in seen(folder, start, set()):
        ids[(*packet.key, packet.isn)].add(packet.pdu)
    return ids


def quic_metrics(path: Path) -> tuple[str, dict[str, float]]:
    """Return the way in which the end of a qlog of one trace sends, and its metrics."""
    text = path.read_text()
    if text[0] == "\x1e":
        records = [json.loads(line) for line in text.replace("\x1e", "").splitlines() if line]
        head, rows = records[0]["trace"], records[1:]
    else:
        (head,) = json.loads(text)["traces"]
        rows = head["events"]
    told: list[tuple[float, dict[str, float]]] = []
    values: dict[str, float] = {"quic_packets_sent": 0, "quic_packets_lost": 0}
    for row in rows:
        kind = row["name"].split(":")[-1]
        if kind in ("packet_sent", "packet_lost"):
            values["quic_packets_sent" if kind == "packet_sent" else "quic_packets_lost"] += 1
        if kind.endswith("metrics_updated"):
            told.append((row["time"], row["data"]))
    windows = [
        (time, float(data["congestion_window"] if "congestion_window" in data else data["cwnd"]))
        for time, data in told
        if "congestion_window" in data or "cwnd" in data
    ]
    values |= {
        name: part
        for name, part in figures("quic_cwnd", [window for _, window in windows]).items()
        if name.endswith(("min", "median", "max"))
    }
    area = 0.0
    for place, (time, window) in enumerate(windows):
        until = windows[place + 1][0] if place + 1 < len(windows) else rows[-1]["time"]
        area += window * (until - time)
    if windows and rows[-1]["time"] > windows[0][0]:
        values["quic_cwnd_time_mean"] = area / (rows[-1]["time"] - windows[0][0])
    flying = [float(data["bytes_in_flight"]) for _, data in told if "bytes_in_flight" in data]
    if flying:
        values["quic_bytes_in_flight_max"] = max(flying)
    trips = [float(data["latest_rtt"]) / 1e3 for _, data in told if "latest_rtt" in data]
    values |= {
        name: part for name, part in figures("quic_rtt", trips).items() if name[-3:] != "p99"
    }
    return {"client": "uplink", "server": "downlink"}[head["vantage_point"]["type"]], values


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


def _connection(folder: Path, start: int, number: int) -> list[Seen]:
    """Return the packets of the connection that began as the given one, from 0."""
    by_key: dict[tuple[Any, ...], list[Seen]] = defaultdict(list)
    for packet in seen(folder, start, set()):
        by_key[(*packet.key, packet.isn)].append(packet)
    return sorted(by_key.values(), key=lambda packets: min(p.time for p in packets))[number]


def tcptrace(folder: Path, start: int, number: int, end: str, way: str) -> dict[str, float]:
    """Count as tcptrace does, from the capture of the data's sender alone.

    Actual data packets and bytes, retransmitted ones, unique bytes, and samples of the round trip
    time: an acknowledgement gives one if its number is the end of a segment sent once, and nothing
    was retransmitted since. tcptrace keeps intervals of the sequence space; so does this.
    """
    mine = [p for p in _connection(folder, start, number) if p.end == end]
    mine.sort(key=lambda p: p.order)
    anchor = next(p.sequence + 1 for p in mine if p.sent and p.flags & SYN)
    covered: list[tuple[int, int]] = []
    outstanding: dict[int, tuple[int, int, bool]] = {}
    counts: dict[str, float] = dict.fromkeys(
        ("segments", "sent_bytes", "retransmitted_segments", "retransmitted_bytes"), 0
    )
    counts["unique_bytes"] = 0
    samples = []
    repairs = acknowledged = 0
    for packet in mine:
        if packet.sent and packet.payload and packet.direction == way:
            first = near(packet.sequence, anchor)
            last = first + packet.payload
            again = sum(max(0, min(b, last) - max(a, first)) for a, b in covered)
            counts["segments"] += 1
            counts["sent_bytes"] += packet.payload
            counts["retransmitted_bytes"] += again
            counts["unique_bytes"] += packet.payload - again
            counts["retransmitted_segments"] += again > 0
            repairs += again > 0
            outstanding[last] = packet.time, repairs, last in outstanding or again > 0
            touching = [one for one in covered if one[0] <= last and first <= one[1]]
            covered = [one for one in covered if one not in touching]
            covered.append(
                (min([first, *(a for a, _ in touching)]), max([last, *(b for _, b in touching)]))
            )
        elif not packet.sent and packet.flags & ACK:
            acked = near(packet.acknowledgement, anchor)
            if acked > acknowledged:
                acknowledged = acked
                sent_ns, repairs_then, ambiguous = outstanding.get(acked, (0, -1, True))
                if not ambiguous and repairs_then == repairs:
                    samples.append((packet.time - sent_ns) / 1e9)
    counts["rtt_samples"] = len(samples)
    return counts | {
        name: value
        for name, value in figures("rtt", samples).items()
        if name in ("rtt_min", "rtt_max")
    }


def arrived_in_vain(folder: Path, start: int, number: int, way: str) -> set[int]:
    """Return the ids of segments that brought their receiver nothing new, by its capture alone."""
    mine = [p for p in _connection(folder, start, number) if p.direction == way and not p.sent]
    had: set[int] = set()
    vain = set()
    for packet in sorted(mine, key=lambda p: p.time):
        content = {(packet.sequence + byte) % (1 << 32) for byte in range(packet.payload)}
        if content and content <= had:
            vain.add(packet.pdu)
        had |= content
    return vain
