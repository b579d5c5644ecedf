# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of a QUIC endpoint, from its qlog file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from naive.figures import figures

if TYPE_CHECKING:
    from pathlib import Path


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
