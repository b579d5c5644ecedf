# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics from the reports of programs, of workloads of virtual time, and of the engine.

Programs: see ``program_output``. Neither needs a log of packets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from airpath.analysis.metric import Better, metric, of_each_run
from airpath.analysis.program_output import reports_of, waited_for
from airpath.experiment.figures import ECHO_TIMES, RESPONSE_TIMES
from airpath.run import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from airpath.analysis.traffic import Traffic

PROGRAMS = "Programs"
COUNTED = "Counted by the engine"


@metric(
    "elapsed",
    "s",
    "run",
    """Time from the experiment's t = 0 to the end of the last program that is waited for; in
    virtual time from the start of the run to the end of the last workload.""",
    group=PROGRAMS,
    source="Kojo et al. 2001, section 5.2",
    better="lower",
    headline=True,
)
@of_each_run
def _elapsed(traffic: Traffic) -> pl.DataFrame:
    ends = [record.get("end_ns") for record in waited_for(traffic.run.directory)]
    reported = [report.get("end_ns") for report in reports_of(traffic.run.manifest)]
    ends += [end for end in reported if end is not None]
    known = [end for end in ends if isinstance(end, int)]
    whole = known and len(known) == len(ends)
    return pl.DataFrame(
        {"value": [max(known) / 1e9] if whole else []}, schema={"value": pl.Float64}
    )


_NOTHING = pl.DataFrame(schema={"flow": pl.String, "value": pl.Float64})


def _told(name: str, unit: str, text: str, better: Better = "", *, headline: bool = False) -> None:
    """Declare a figure that programs tell."""

    def compute(traffic: Traffic) -> pl.DataFrame:
        told = traffic.told.get(name)
        if not told:
            return _NOTHING
        return pl.DataFrame(
            {"flow": list(told), "value": list(told.values())},
            schema={"flow": pl.String, "value": pl.Float64},
        )

    metric(name, unit, "program", text, group=PROGRAMS, better=better, headline=headline)(
        of_each_run(compute)
    )


_told("program_elapsed", "s", "Time from a program's start to its end.", "lower")
_told(
    "program_goodput",
    "bit/s",
    """Goodput as the program tells it: iperf3 and airpath send what arrived over the time they
    sent, curl the length of a single transfer over its time, a workload of virtual time the payload
    of both directions over its elapsed time.""",
    "higher",
    headline=True,
)
_told(
    "program_retransmissions",
    "packets",
    "Retransmissions as the sender's end tells them (iperf3, airpath send, virtual time).",
    "lower",
)
_told(
    "program_loss_ratio",
    "1",
    """Datagrams lost to datagrams sent, as iperf3, airpath send and workloads of virtual time tell
    it; of ping, echo requests without a reply to requests.""",
    "lower",
)
_told(
    "program_jitter",
    "s",
    "Jitter of datagrams as iperf3 and workloads of virtual time tell it (RFC 3550).",
    "lower",
)
_told(
    "program_delay_mean",
    "s",
    "The mean one-way delay of a workload's datagrams in virtual time.",
    "lower",
)
_told(
    "program_delay_max",
    "s",
    "The greatest one-way delay of a workload's datagrams in virtual time.",
    "lower",
)
_told("program_transfers", "transfers", "Transfers of which curl or Chromium told.")
_told("program_transfer_time", "s", "The mean of the times that curl's transfers took.", "lower")
_told(
    "program_bytes",
    "B",
    """What all transfers of curl brought, or all of Chromium with their headers, or the stream of
    ffmpeg.""",
)
_told("program_pages", "pages", "Pages that curl or Chromium loaded.")
_told(
    "program_page_load_time",
    "s",
    """The mean time that a page took: from before curl starts to the last byte of its last part, or
    in Chromium from the beginning of the navigation to the end of the load event.""",
    "lower",
)
_told("program_page_load_time_max", "s", "The longest that a page took.", "lower")
_told(
    "program_first_byte_time",
    "s",
    """The mean time from the start of a page's own transfer to its first byte; in Chromium from the
    beginning of the navigation, with the connection's set-up.""",
    "lower",
)
_told(
    "program_first_contentful_paint",
    "s",
    """The mean time in Chromium from the beginning of the navigation to the first paint of text or
    a picture (W3C, Paint Timing).""",
    "lower",
)
_told(
    "program_largest_contentful_paint",
    "s",
    """The mean time in Chromium from the beginning of the navigation to the paint of the largest
    text or picture, as of half a second after the load event (W3C, Largest Contentful Paint).""",
    "lower",
)
for _suffix, _words, _ in RESPONSE_TIMES:
    _told(
        f"program_response_time_{_suffix}",
        "s",
        f"The {_words} of the times from a request to its response, as airpath send tells it.",
        "lower",
    )
_told("program_echo_requests", "packets", "Echo requests that ping sent.")
_told("program_echo_replies", "packets", "Echo requests that were answered; copies do not count.")
for _suffix, _words in ECHO_TIMES.items():
    _told(
        f"program_echo_time_{_suffix}",
        "s",
        f"The {_words} of the times from ping's echo requests to their replies.",
        "lower",
    )
_FRAMES: tuple[tuple[str, str, Better], ...] = (
    ("frames_sent", "Pictures of the stream.", ""),
    ("frames_lost", "Pictures that did not come, or not whole (virtual time).", "lower"),
    ("frames_damaged", "Pictures that came and decode to something else.", "lower"),
)
for _name, _text, _better in _FRAMES:
    _told(
        f"program_{_name}",
        "frames",
        f"{_text} Of a stream of ffmpeg, or of media in virtual time, as the receiver tells.",
        _better,
    )
_MEDIA_FRAMES: tuple[tuple[str, str, Better], ...] = (
    ("frames_on_time", "Pictures that were whole in time to be played.", "higher"),
    ("frames_late", "Pictures that were whole after their time.", "lower"),
    ("frames_decodable", "Pictures in time, like all before them in their group.", "higher"),
)
for _name, _text, _better in _MEDIA_FRAMES:
    _told(f"program_{_name}", "frames", f"{_text} Of media in virtual time.", _better)
_told(
    "program_frames_on_time_ratio",
    "1",
    "Pictures that were whole in time to pictures sent. Of media in virtual time.",
    "higher",
    headline=True,
)
for _name, _unit, _text in (
    ("frames_received", "frames", "Pictures that came, however damaged."),
    ("frames_intact", "frames", "Pictures that decode as they do from the stream without a link."),
    ("datagrams_lost", "packets", "Datagrams of RTP that did not come."),
    ("frozen_time", "s", "The time that the lost pictures would have taken."),
    ("longest_freeze_time", "s", "The longest time for which a player showed one picture."),
    ("rebufferings", "times", "How often a player had to wait for late pictures."),
    ("rebuffering_time", "s", "For how long it did, altogether."),
):
    _told(
        f"program_{_name}",
        _unit,
        f"{_text} Of a stream of ffmpeg, as its receiver tells.",
        "higher" if _name in ("frames_received", "frames_intact") else "lower",
    )


# ---- What the engine counted --------------------------------------------------------------------


@metric("duration", "s", "run", "Time from the run's start to its end.", group=COUNTED)
@of_each_run
def _duration(traffic: Traffic) -> pl.DataFrame:
    found = traffic.run.results.get("duration_ns")
    values = [found / 1e9] if isinstance(found, int) else []
    return pl.DataFrame({"value": values}, schema={"value": pl.Float64})


def _counted(name: str, unit: str, text: str, value: Callable[[dict[str, Any], str], Any]) -> None:
    """Declare a figure of each direction from the results of ``run.json``."""

    def compute(traffic: Traffic) -> pl.DataFrame:
        results = traffic.run.results
        found = [(way, value(results, way)) for way in DIRECTIONS if results.get("counters")]
        there = [(way, float(figure)) for way, figure in found if figure is not None]
        return pl.DataFrame(
            there, schema={"direction": pl.String, "value": pl.Float64}, orient="row"
        )

    metric(name, unit, "direction", text, group=COUNTED)(of_each_run(compute))


def _of_kind(kind: str, what: str) -> Callable[[dict[str, Any], str], float]:
    """Return what adds up the counters of a kind of events of a direction."""

    def value(results: dict[str, Any], direction: str) -> float:
        return sum(
            float(one["kinds"].get(kind, {}).get(what, 0))
            for one in results["counters"]
            if one["direction"] == direction
            and one.get("origin", "user") == "user"
            and (one["hop"] == "path" or kind != "delivered")
        )

    return value


def _delay(key: str) -> Callable[[dict[str, Any], str], float | None]:
    def value(results: dict[str, Any], direction: str) -> float | None:
        found = (results.get("timings") or {}).get(f"{direction}_delay") or {}
        return found[key] / 1e9 if found.get("count") else None

    return value


_counted(
    "counted_packets_delivered",
    "packets",
    """Packets that left the link, every copy counted. This and the other counts need no log, and
    are there for runs with --log counters; packets_delivered and its like are exact.""",
    _of_kind("delivered", "count"),
)
_counted(
    "counted_bytes_delivered",
    "B",
    "Bytes of the packets that left the link, headers and copies included.",
    lambda results, way: _of_kind("delivered", "bits")(results, way) / 8,
)
_counted(
    "counted_packets_dropped",
    "packets",
    "Packets that the link dropped, for whatever cause.",
    _of_kind("dropped", "count"),
)
for _suffix, _words, _key in (
    ("mean", "mean", "mean_ns"),
    ("median", "median", "p50_ns"),
    ("p99", "99th percentile", "p99_ns"),
    ("max", "greatest", "max_ns"),
):
    _counted(
        f"counted_delay_{_suffix}",
        "s",
        f"The {_words} of the one-way delays, from the engine's histogram.",
        _delay(_key),
    )
