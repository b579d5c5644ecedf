# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Curves from events: against hand-computed values, and the same however the events come."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from airpath.arrow import read_arrow_log
from airpath.run import load_run
from airpath.ui import feed as feed_module
from airpath.ui import tail as tail_module
from airpath.ui.feed import Feed
from airpath.ui.past import curves, packet, packets
from airpath.ui.tail import NoTailError, Tail
from synthetic import event, write_events, write_run

if TYPE_CHECKING:
    from pathlib import Path


def merged(updates: list[Any]) -> dict[str, list[tuple[float, float]]]:
    """Return all points of all curves."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for update in updates:
        for name, (times, values) in update["curves"].items():
            curves.setdefault(name, []).extend(zip(times, values, strict=True))
    return curves


def rows(*events: tuple[int, str, str, str, int]) -> pl.DataFrame:
    """Return events (time in ms, kind, stage, direction, pdu), each of 1000 bits."""
    return pl.DataFrame(
        {
            "time_ns": [e[0] * 1_000_000 for e in events],
            "hop": ["path" if e[2] == "path" else "radio" for e in events],
            "direction": [e[3] for e in events],
            "stage": [e[2] for e in events],
            "kind": [e[1] for e in events],
            "cause": ["channel" if e[1] == "dropped" else "" for e in events],
            "pdu": [e[4] for e in events],
            "bits": [1000] * len(events),
            "queue_packets": [e[4] for e in events],
            "state": ["initial"] * len(events),
            "emitted_ns": [None] * len(events),
        },
        schema_overrides={"pdu": pl.UInt64, "time_ns": pl.UInt64, "emitted_ns": pl.UInt64},
    )


def test_curves_of_three_packets_are_those_computed_by_hand() -> None:
    events = rows(
        (10, "offered", "path", "uplink", 1),
        (10, "enqueued", "queue", "uplink", 1),
        (20, "offered", "path", "uplink", 2),
        (35, "delivered", "path", "uplink", 1),
        (40, "dropped", "channel", "uplink", 2),
        (250, "offered", "path", "uplink", 3),
        (310, "delivered", "path", "uplink", 3),
    )
    update = Feed().add(events, last=True)
    curves = update["curves"]
    assert curves["delay/uplink"] == ([0.035, 0.31], [25.0, 60.0])
    assert curves["queue/radio/uplink"] == ([0.01], [1.0])
    # 1000 bits in 100 ms are 10 kbit/s; the stretches between have nothing.
    times, values = curves["throughput/uplink"]
    assert times == pytest.approx([0.05, 0.15, 0.25, 0.35])
    assert values == pytest.approx([0.01, 0, 0, 0.01])
    assert curves["offered/uplink"][1] == pytest.approx([0.02, 0, 0.01, 0])
    assert update["drops"] == {"channel": 1}
    assert update["counts"] == {"offered/uplink": 3, "delivered/uplink": 2, "dropped/uplink": 1}
    assert [(mark["t"], mark["text"]) for mark in update["marks"]] == [(0.04, "channel")]
    feed = Feed()
    parts = [feed.add(events.slice(at, 1), last=at == events.height - 1) for at in range(7)]
    assert merged(parts) == merged([update])


def test_each_user_of_a_cell_has_curves_of_its_own() -> None:
    events = rows(
        (10, "offered", "path", "uplink", 1),
        (10, "enqueued", "queue", "uplink", 1),
        (20, "offered", "path", "uplink", 2),
        (35, "delivered", "path", "uplink", 1),
        (60, "delivered", "path", "uplink", 2),
    ).with_columns(user=pl.Series(["alice", "alice", "bob", "alice", "bob"]))
    curves = Feed().add(events, last=True)["curves"]
    assert curves["delay/uplink@alice"] == ([0.035], [25.0])
    assert curves["delay/uplink@bob"] == ([0.06], [40.0])
    assert "delay/uplink" not in curves
    assert list(curves["queue/radio/uplink@alice"]) == [[0.01], [1.0]]
    assert curves["throughput/uplink@alice"][1] == pytest.approx([0.01])
    assert curves["throughput/uplink"][1] == pytest.approx([0.02])


def test_curves_do_not_depend_on_how_the_events_come(download: Path) -> None:
    events = read_arrow_log(download / "events.arrow").frame
    whole = Feed().add(events, last=True)
    draw = random.Random(5)
    for _ in range(3):
        feed, at, updates = Feed(), 0, []
        while at < events.height:
            size = draw.randint(1, 400)
            updates.append(feed.add(events.slice(at, size), last=at + size >= events.height))
            at += size
        found = merged(updates)
        assert updates[-1]["drops"] == whole["drops"]
        assert updates[-1]["counts"] == whole["counts"]
        for name, points in merged([whole]).items():
            for place in (0, 1):
                got = [point[place] for point in found[name]]
                assert got == pytest.approx([point[place] for point in points]), name


def test_delays_are_those_of_the_packets(download: Path) -> None:
    run = load_run(download)
    listed = packets(run, 0, 1e9, "downlink", "", 0)["packets"]
    delivered = [one for one in listed if one["fate"] == "delivered"]
    curves = Feed().add(run.events, last=True)["curves"]
    got = dict(zip(*curves["delay/downlink"], strict=True))
    for one in delivered[:200]:
        delay_ms = (one["left_ns"] - one["time_ns"]) / 1e6
        assert got[round(one["left_ns"] / 1e9, 6)] == pytest.approx(delay_ms, abs=1e-4)
    way = packet(run, delivered[0]["pdu"])["way"]
    assert way[0]["kind"] == "offered"
    assert way[-1]["kind"] == "delivered"


def test_a_growing_log_is_read_once_wherever_it_is_cut(download: Path, tmp_path: Path) -> None:
    frame = read_arrow_log(download / "events.arrow").frame
    whole = tmp_path / "whole.arrow"
    frame.write_ipc_stream(whole)
    content = whole.read_bytes()
    draw = random.Random(7)
    grown = tmp_path / "grown.arrow"
    grown.write_bytes(b"")
    tail, at, parts = Tail.open(grown), 0, []
    try:
        while not tail.ended:
            size = draw.choice([1, 7, 100, 5_000, 100_000])
            with grown.open("ab") as file:
                file.write(content[at : at + size])
            at += size
            new = tail.new_rows()
            if new.height:
                parts.append(new)
            assert at < len(content) + 200_000
    finally:
        tail.close()
    assert sum(part.height for part in parts) == frame.height
    assert pl.concat(parts, how="vertical_relaxed")["time_ns"].equals(frame["time_ns"])


def test_a_long_log_is_read_in_small_parts_and_a_long_message_as_a_whole(
    download: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_module, "MOST_BYTES_AT_ONCE", 5_000)
    frame = read_arrow_log(download / "events.arrow").frame
    log = tmp_path / "log.arrow"
    frame.write_ipc_stream(log)
    assert log.stat().st_size > 50_000
    with log.open("ab") as file:  # a run that goes on
        file.truncate(log.stat().st_size - 8)
    tail, rows_read, looks = Tail.open(log), 0, 0
    try:
        while looks == 0 or tail.behind:
            rows_read += tail.new_rows().height
            looks += 1
        assert rows_read == frame.height
        assert looks > 1
    finally:
        tail.close()


def test_a_finished_log_is_read_at_once(download: Path) -> None:
    tail = Tail.open(download / "events.arrow")
    try:
        assert tail.new_rows().height == load_run(download).events.height
        assert tail.ended
    finally:
        tail.close()


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "events.arrow"
    file.write_bytes(b"nonsense" * 100)
    tail = Tail.open(file)
    try:
        with pytest.raises(NoTailError):
            tail.new_rows()
    finally:
        tail.close()
    with pytest.raises(OSError, match="No such file"):
        Tail.open(tmp_path / "nothing")


def test_changes_of_a_part_are_there_whatever_comes_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "MOST_MARKS", 50)
    write_run(tmp_path / "run")
    run = load_run(tmp_path / "run")
    changes = [
        event(second * 1_000_000_000, "state_changed", state=f"state-{second}", hop="path")
        for second in range(1, 101)
    ]
    write_events(tmp_path / "run/events.arrow", [*run.events.to_dicts(), *changes])
    shown = curves(load_run(tmp_path / "run"), 2.5, 5)["marks"]
    assert [(mark["t"], mark["text"]) for mark in shown] == [
        (3.0, "state-3"),
        (4.0, "state-4"),
        (5.0, "state-5"),
    ]
