# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reports of transfers as iperf3 writes them; ``airpath send`` adds the times of responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.experiment.figures import RESPONSE_TIMES

if TYPE_CHECKING:
    from airpath.experiment.templates.output import Output


def is_report(output: Output) -> bool:
    """Say whether an output is such a report."""
    return isinstance(output.document.get("end"), dict)


def figures(output: Output) -> dict[str, float]:
    """Return the figures of a report."""
    end = output.document["end"]
    found: dict[str, float] = {}
    received = end.get("sum_received") or end.get("sum")
    if isinstance(received, dict):
        if isinstance(received.get("bits_per_second"), int | float):
            found["program_goodput"] = float(received["bits_per_second"])
        if isinstance(received.get("lost_percent"), int | float):
            found["program_loss_ratio"] = float(received["lost_percent"]) / 100
        if isinstance(received.get("jitter_ms"), int | float):
            found["program_jitter"] = float(received["jitter_ms"]) / 1e3
    sent = end.get("sum_sent")
    if isinstance(sent, dict) and isinstance(sent.get("retransmits"), int):
        found["program_retransmissions"] = sent["retransmits"]
    for stream in end.get("streams") or []:
        times = stream.get("response_times") if isinstance(stream, dict) else None
        if isinstance(times, dict):
            for suffix, _, key in RESPONSE_TIMES:
                if isinstance(times.get(key), int | float):
                    found[f"program_response_time_{suffix}"] = float(times[key])
    return found
