# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Loading of run folders, whole and broken."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from airpath.run import RunError, load_run
from synthetic import START_UNIX_NS, event, write_events, write_run

if TYPE_CHECKING:
    from pathlib import Path


def test_a_whole_run(download: Path) -> None:
    run = load_run(download)
    assert run.name == "Seawind case study"
    assert run.verdict == "trusted"
    assert run.verdict_reasons == []
    assert run.clock == "live"
    assert run.state_changes() == [(40_000_000_000, "poor")]
    assert run.duration_ns > 40_000_000_000
    assert set(run.captures) == {"client", "server"}
    assert run.events["time_ns"].is_sorted()
    assert run.notes == []


def test_every_packet_is_offered_once_and_delivered_or_dropped(download: Path) -> None:
    run = load_run(download)
    offered = run.path_events("offered")
    delivered = run.path_events("delivered")
    assert offered.height == offered["pdu"].n_unique()
    assert offered.height == delivered.height + run.drops().height


def test_a_verdict_comes_with_its_reasons(tmp_path: Path) -> None:
    write_run(tmp_path / "run", verdict="suspect", size=2560)
    run = load_run(tmp_path / "run")
    assert run.verdict == "suspect"
    assert run.verdict_reasons == ["12 packets left more than 1 ms late"]


def test_a_killed_run_is_read_and_its_defects_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_run(folder, stream=True)
    (folder / "run.json").unlink()
    for name in ("events.arrow", "client.pcapng"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) * 2 // 3])
    run = load_run(folder)
    assert run.verdict == "unknown"
    assert run.events.height > 100
    assert run.duration_ns == run.events["time_ns"].max()
    first = run.captures["server"]["time_ns"][0]
    assert 0 <= first < 1_000_000_000, "t = 0 is inferred from packets that are in both logs"
    notes = "\n".join(run.notes)
    for words in ("no run.json", "events.arrow is torn", "client.pcapng is torn or damaged"):
        assert words in notes
    assert "server.pcapng" not in notes


@pytest.mark.parametrize("version", [99, "1", None])
def test_another_format_is_refused(tmp_path: Path, version: object) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format_version": version}))
    with pytest.raises(RunError, match="reads format 1; use the version") as told:
        load_run(tmp_path)
    assert str(tmp_path / "run.json") in str(told.value)


@pytest.mark.parametrize(("field", "clock"), [('"clock": "warp"', "warp"), ('"seed": 1', "live")])
def test_a_run_says_its_clock(tmp_path: Path, field: str, clock: str) -> None:
    (tmp_path / "run.json").write_text(f"{{{field}}}")
    assert load_run(tmp_path).clock == clock


def test_missing_columns_and_values_are_filled(tmp_path: Path) -> None:
    rows = [event(5, "offered", hop=None, state=None), event(3, "offered", direction="uplink")]
    write_events(tmp_path / "events.arrow", rows)
    run = load_run(tmp_path)
    assert run.events["time_ns"].to_list() == [3, 5]
    assert run.events["hop"].to_list() == ["", ""]
    assert run.name == tmp_path.name


@pytest.mark.parametrize("text", ["{", "[]", '"text"', '{"results": 5, "scenario": 7}'])
def test_a_strange_manifest_is_no_obstacle(tmp_path: Path, text: str) -> None:
    write_run(tmp_path, size=2560)
    (tmp_path / "run.json").write_text(text)
    run = load_run(tmp_path)
    assert run.verdict == "unknown"
    assert run.name == tmp_path.name
    assert run.events.height > 0


def test_a_manifest_with_other_keys_is_read(tmp_path: Path) -> None:
    manifest = {"start_unix_ns": START_UNIX_NS, "unheard_of": [1, 2]}
    (tmp_path / "run.json").write_text(json.dumps(manifest))
    run = load_run(tmp_path)
    assert run.start_unix_ns == START_UNIX_NS
    assert run.events.is_empty()
    assert run.notes == [
        "no events.arrow: the run kept no events; run again with --log packets or --log events"
    ]


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such folder"):
        load_run(tmp_path / "nowhere")
    with pytest.raises(RunError, match="not the folder of a run"):
        load_run(tmp_path)


def test_a_log_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events.arrow").write_text("no Arrow")
    with pytest.raises(RunError, match=r"events\.arrow"):
        _ = load_run(tmp_path).events
