# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figures of replications, and stopping rules over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airpath.analysis import find, frame
from airpath.analysis.intervals import mean_with_half_width
from airpath.experiment.metrics import MetricError, measured, needed, pick
from airpath.experiment.statistics import checkpoints
from experiments import SMALL, airpath, journal, problems, written


def run_with(folder: Path, programs: dict[str, str]) -> Path:
    """Write a run of programs of 1 s each, one after the other, and what they printed."""
    (folder / "programs").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"results": {"verdict": {"grade": "trusted"}}}))
    records: list[dict[str, Any]] = [{"name": "server", "service": True, "elapsed_ns": 10**10}]
    for number, (name, text) in enumerate(programs.items(), 1):
        record = {"name": name, "service": False, "elapsed_ns": 10**9, "end_ns": number * 10**9}
        records.append(record)
        (folder / "programs" / f"{name}.stdout").write_text(text)
    (folder / "workload.json").write_text(json.dumps({"programs": records}))
    return folder


def test_what_programs_print_becomes_metrics(tmp_path: Path) -> None:
    line = '{"time_total": 0.5, "size_download": 1000}\n'
    times = {"min_seconds": 1, "mean_seconds": 2, "p50_seconds": 3, "p99_seconds": 4}
    iperf3 = {
        "sum_sent": {"retransmits": 3},
        "sum_received": {"bits_per_second": 1e6, "lost_percent": 5},
        "streams": [{"response_times": {**times, "max_seconds": 5}}],
    }
    texts = {"page": 2 * line, "once": line, "bulk": json.dumps({"end": iperf3}), "cat": "{mew"}
    assert measured(run_with(tmp_path / "run", texts), needed(["elapsed"])) == {
        "elapsed": 4.0,
        **{f"program_elapsed/{name}": 1.0 for name in texts},
        "program_transfers/page": 2,
        "program_transfers/once": 1,
        "program_transfer_time/page": 0.5,
        "program_transfer_time/once": 0.5,
        "program_bytes/page": 2000,
        "program_bytes/once": 1000,
        "program_goodput/once": 16000,
        "program_goodput/bulk": 1e6,
        "program_loss_ratio/bulk": 0.05,
        "program_retransmissions/bulk": 3,
        "program_response_time_min/bulk": 1,
        "program_response_time_mean/bulk": 2,
        "program_response_time_median/bulk": 3,
        "program_response_time_p99/bulk": 4,
        "program_response_time_max/bulk": 5,
    }


def test_a_name_chooses_one_value_or_says_which_there_are() -> None:
    values = {
        "elapsed": 1.0,
        "goodput/tcp-1/downlink": 2.0,
        "goodput/tcp-1/uplink": 3.0,
        "received_bytes/tcp-1/downlink": 1000.0,
        "received_bytes/tcp-1/uplink": 99.0,
        "queue_packets_max/downlink": 4.0,
        "queue_packets_max/radio/downlink": 5.0,
    }
    assert pick(values, "elapsed") == 1.0
    assert pick(values, "goodput") == 2.0, "the other direction carried requests"
    assert pick(values, "goodput/uplink") == 3.0
    assert pick(values, "goodput/tcp-1/uplink") == 3.0
    assert pick(values, "goodput/tcp-2") is None
    assert pick(values, "queue_packets_max/downlink") == 4.0, "the path, not a hop"
    assert pick(values, "queue_packets_max/radio/downlink") == 5.0
    with pytest.raises(MetricError, match="name one of goodput/tcp-1/downlink, goodput/tcp-2"):
        pick({**values, "goodput/tcp-2/downlink": 5.0}, "goodput")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gudput", "there is no metric `gudput`; did you mean `goodput`"),
        ("packets_lost", "for each direction: write `packets_lost/downlink`"),
        ("elapsed/tcp-1", "write `elapsed`"),
        ("timeouts", 'needs log = "packets", and log is "counters"'),
        ("packets_lost/uplink", 'needs log = "events", and log is "counters"'),
    ],
)
def test_metrics_are_checked_with_the_file(tmp_path: Path, name: str, said: str) -> None:
    rule = f'until = {{ metric = "{name}", half_width = "5 %" }}'
    text = SMALL.replace("repetitions = 3", rule)
    told = problems(tmp_path, text.replace("seed = 5", 'seed = 5\nlog = "counters"'))
    assert [one.startswith("15: set `queues`: until: ") and said in one for one in told] == [True]
    listed = SMALL.replace("seed = 5", f'log = "counters"\nmetrics = ["elapsed", "{name}"]')
    told = problems(tmp_path, listed)
    assert [one.startswith("3: metrics: ") and said in one for one in told] == [True]


def test_metrics_are_measured_with_each_replication_or_when_asked_for(
    small: Path, tmp_path: Path
) -> None:
    root = tmp_path / "out"
    small.write_text(SMALL.replace("seed = 5", 'seed = 5\nmetrics = ["timeouts"]'))
    done = airpath("run", small, "--only", "sizes", "--out", root)
    assert done.returncode == 0, done.stderr
    metrics = journal(root)[0]["metrics"]
    assert "timeouts/tcp-1/downlink" in metrics
    assert not any(key.startswith("rtt_") for key in metrics)
    some = ("results", root, "--json", "--where", "rtt_median < 60", "--metric", "segments")
    asked = airpath(*some)
    rows = [json.loads(line)["metrics"] for line in asked.stdout.splitlines()]
    assert len(rows) == 4, asked.stderr
    assert all(row["segments"] == row["segments/tcp-1/downlink"] for row in rows)
    run = next(root.glob("runs/sizes/*/0001"))
    expected = frame(find([run]), ["rtt_median"]).filter(direction="downlink")["value"].to_list()
    of_run = next(
        row for row in map(json.loads, asked.stdout.splitlines()) if run.match(row["path"])
    )
    assert [of_run["metrics"]["rtt_median/tcp-1/downlink"]] == pytest.approx(expected)
    # Kept: the runs' captures are not needed another time.
    for capture in root.glob("runs/*/*/*/client.pcapng"):
        capture.write_bytes(b"gone")
    assert airpath(*some).stdout == asked.stdout
    damaged = airpath(*some[:-1], "timeouts", "--where", "acknowledgements > 0")
    assert damaged.returncode == 0
    assert "not measured: " in damaged.stderr


def test_an_interval_is_the_textbooks() -> None:
    found = mean_with_half_width([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.mean, found.count) == (3.0, 5)
    assert found.half_width == pytest.approx(2.7764 * (2.5 / 5) ** 0.5, abs=1e-4)
    assert mean_with_half_width([1.0]).half_width == float("inf")
    assert checkpoints(4, 10) == [4, 5, 7, 9, 10]


def test_a_stopping_rule_ends_at_the_same_count_however_many_run_beside(tmp_path: Path) -> None:
    rule = 'until = { metric = "elapsed", half_width = "20 %", least = 3, most = 40 }'
    text = SMALL.replace("repetitions = 3", rule)
    counts = []
    for jobs in ("1", "3"):
        root = tmp_path / jobs
        done = airpath(
            "run", written(tmp_path, text), "--only", "queues", "--out", root, "--jobs", jobs
        )
        assert done.returncode == 0, done.stderr
        by_cell: dict[str, list[float]] = {}
        for entry in sorted(journal(root), key=lambda e: e["replication"]):
            by_cell.setdefault(entry["cell"], []).append(entry["metrics"]["elapsed"])
        for values in by_cell.values():
            assert len(values) in checkpoints(3, 40)
            assert mean_with_half_width(values).relative <= 0.2
            earlier = [n for n in checkpoints(3, 40) if n < len(values)]
            assert all(mean_with_half_width(values[:n]).relative > 0.2 for n in earlier)
        counts.append({cell: len(values) for cell, values in by_cell.items()})
    assert counts[0] == counts[1]
