# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reports of sets of replications and of experiments, and the files that they write."""

from __future__ import annotations

import json
import math
import re
import shlex
from typing import TYPE_CHECKING

import polars as pl
import pytest

from airpath.analysis import measure
from airpath.app import run as run_app
from airpath.plots import xplot
from airpath.report import gallery
from airpath.report.material import load_material
from airpath.report.sections import configuration, diagrams
from airpath.run import TCP_STATE_COLUMNS, load_run
from airpath.tcp import transfers
from synthetic import write_run

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(1, 6)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an experiment of two cells, one replication of which is suspect."""
    root = tmp_path_factory.mktemp("experiment") / "results"
    for limit, size in ((4, 6400), (8, 7680)):
        for seed in SEEDS:
            folder = root / "runs" / "model" / f"limit={limit}packets" / f"{seed:04}"
            verdict = "suspect" if (limit, seed) == (8, 5) else "trusted"
            write_run(folder, seed=seed, size=size, verdict=verdict)
            about = {
                "set_name": "model",
                "cell": f"limit={limit}packets",
                "replication": seed,
                "network": "gsm",
                "workload": "download",
                "clock": "live",
                "parameters": {"network.radio.link.queue.limit": f"{limit} packets"},
                "status": "succeeded",
                "message": "",
                "command": ["/opt/airpath-engine", "exec"],
                "here": str(root.parent),
            }
            (folder / "replication.json").write_text(json.dumps(about))
            end_ns = (10 * limit + seed) * 10**9
            program = {"name": "download", "service": False, "end_ns": end_ns, "elapsed_ns": 10**9}
            (folder / "workload.json").write_text(json.dumps({"programs": [program]}))
    (root / "experiment.toml").write_text('name = "queues"\n')
    return root


def test_sets_have_medians_verdicts_and_a_comparison(results: Path, tmp_path: Path) -> None:
    csv = tmp_path / "csv"
    page = tmp_path / "page.html"
    arguments = ["report", str(results), "--pictures", "0", "--out", str(page), "--csv", str(csv)]
    assert run_app([*arguments, "--figures", str(tmp_path / "figures"), "--format", "svg"]) == 0
    html = page.read_text()
    row = re.search(r'<tr id="set-2">.*?</tr>', html, re.DOTALL)
    assert row
    text = re.sub(r"<.*?>", " ", row[0])
    assert "model/limit=8packets" in text
    assert "4 trusted" in text
    assert "1 suspect" in text
    assert "82.5" in text, "the median of elapsed without the suspect run"
    assert "model/limit=8packets: 0005 is suspect, and left out" in html
    assert 'id="comparison-1"' in html
    # 41 to 44 s and 81 to 84 s, by hand: exp of the mean of four logarithms of ratios, 3.182 times
    # their standard error away from it.
    words = "1.94 times the elapsed time with 4 packets, 95 % interval 1.90 to 1.99, 4 pairs."
    assert f"<strong>Queue limit 8 packets</strong>: {words}" in html
    assert 'id="model-sweep-network-radio-link-queue-limit"' in html
    for name in ("distribution", "cdf", "goodput-course"):
        assert f'id="sets-model-{name}"' in html
        assert (tmp_path / "figures" / f"sets-model-{name}.svg").stat().st_size > 1000
    values = pl.read_csv(csv / "values.csv", schema_overrides={"run": pl.String})
    run = load_run(results / "runs" / "model" / "limit=4packets" / "0002")
    expected = measure(run).filter(pl.col("metric") == "goodput")["value"].to_list()
    found = values.filter(
        (pl.col("set") == "model/limit=4packets")
        & (pl.col("run") == "0002")
        & (pl.col("metric") == "goodput")
    )["value"].to_list()
    assert found == pytest.approx(expected)
    comparison = pl.read_csv(csv / "comparisons.csv").filter(pl.col("metric") == "elapsed")
    ratios = [81 / 41, 82 / 42, 83 / 43, 84 / 44]
    assert comparison["effect"].to_list() == pytest.approx([math.prod(ratios) ** 0.25])
    assert comparison["supported"].to_list() == [True]


def test_the_experiment_and_a_command_for_each_replication_are_given(results: Path) -> None:
    material = load_material([results], None, 0)
    section = configuration.build(material)
    assert "name = &#34;queues&#34;" in section.body
    words = shlex.split(configuration.repeat(material.entries[0]))
    assert words[:3] == ["airpath", "results", str(results.resolve())]
    assert words[words.index("--where") + 1] == "replication = 1"
    assert words[words.index("&&") + 1 : words.index("&&") + 3] == ["airpath", "run"]
    assert words[-1] == "--resume"
    entry = material.entries[1]
    entry.about |= {"clock": "virtual", "command": ["/x/engine", "sim", "--seed", "2", "--json"]}
    assert configuration.repeat(entry) == "airpath sim --seed 2"


def test_runs_without_a_name_have_that_of_their_network(results: Path, tmp_path: Path) -> None:
    folder = results / "runs" / "model" / "limit=4packets" / "0001"
    run = load_run(folder)
    assert run.name == "Seawind case study"
    run.manifest["scenario"].pop("name", None)
    assert run.name == "gsm", "and not 0001"
    write_run(tmp_path / "0001", size=2560)
    alone = load_run(tmp_path / "0001")
    alone.manifest["scenario"].pop("name", None)
    assert alone.name == "0001"


def test_cwnd_and_rto_of_the_sender_are_in_the_diagram(results: Path) -> None:
    run = load_run(results / "runs" / "model" / "limit=4packets" / "0001")
    (transfer,) = transfers(run)
    address, port = transfer.source.rsplit(":", 1)
    peer, peer_port = transfer.destination.rsplit(":", 1)
    rows = {
        "time_ns": [1_000_000, 2_000_000, 3_000_000],
        "end": ["server"] * 3,
        "local_address": [address] * 3,
        "local_port": [int(port)] * 3,
        "remote_address": [peer] * 3,
        "remote_port": [int(peer_port)] * 3,
        "cwnd": [10, 10, 5],
        "mss": [256] * 3,
        "rto_ns": [200_000_000, 400_000_000, 400_000_000],
        "congestion_state": ["open", "loss", "open"],
    }
    frame = pl.DataFrame(rows).select(
        (pl.col(name) if name in rows else pl.lit(None).alias(name)).cast(dtype)
        for name, dtype in TCP_STATE_COLUMNS.items()
    )
    run.__dict__["tcp_state"] = frame
    entry = load_material([run.directory], None, 0).entries[0]
    entry.run = run
    kernel = diagrams.diagram(entry, transfer, "d", 1000).content["kernel"]
    assert kernel["cwnd"] == {"time": [1000, 2000], "value": [2560, 1280]}
    assert kernel["rto"]["value"] == [200, 400, 400]
    assert kernel["bands"] == [[2000, 3000, "loss"]]


def test_xplot_files_have_every_segment(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = results / "runs" / "model" / "limit=4packets" / "0001"
    assert run_app(["plot", str(folder), "--format", "xplot", "--out", str(folder / "x")]) == 0
    path = folder / "x" / "time-sequence-1-downlink.xpl"
    assert capsys.readouterr().out == f"{path}\n"
    lines = path.read_text().splitlines()
    assert lines[0] == "timeval unsigned"
    assert lines[-1] == "go"
    (transfer,) = transfers(load_run(folder))
    assert sum(line.startswith("uarrow") for line in lines) == transfer.segments.height
    assert lines.count("R") == transfer.segments["retransmission"].sum()
    assert xplot.text(transfer).splitlines() == lines


def test_xplot_files_end_where_they_are_told(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results / "runs" / "model" / "limit=4packets" / "0001"
    times = transfers(load_run(folder))[0].segments["time_ns"]
    middle = f"{times[len(times) // 2] / 1e9:.9f}"
    plot = ["plot", str(folder), "--format", "xplot", "--out", str(tmp_path)]
    assert run_app([*plot, "--only", "time-sequence", "--from", middle]) == 0
    lines = (tmp_path / "time-sequence-1-downlink.xpl").read_text().splitlines()
    assert (
        sum(line.startswith("uarrow") for line in lines) == (times >= times[len(times) // 2]).sum()
    )
    assert (
        min(float(line.split()[1]) for line in lines if line.startswith("line"))
        >= float(middle) - 1e-5
    )
    assert run_app([*plot, "--from", "1e6"]) == 1
    assert run_app([*plot, "--only", "queue"]) == 2
    assert "is for --only time-sequence" in capsys.readouterr().err


def test_distributions_of_many_metrics_are_several_pictures_that_fit_a_page() -> None:
    rows = [
        {"set": f"set-{index}", "run": str(run), "flow": "", "hop": "", "direction": ""}
        | {"metric": f"metric_{metric}", "unit": "s", "value": float(run + metric + index)}
        for index in range(8)
        for metric in range(9)
        for run in range(3)
        # The first set has only the first metrics, and its colour all the same.
        if index or metric < 2
    ]
    table = pl.DataFrame(rows)
    for kind, number in (("distribution", 5), ("cdf", 3)):
        pictures = list(gallery.by_pages(kind, table, []))
        assert [picture.name for picture in pictures] == [
            kind,
            *(f"{kind}-{each}" for each in range(2, number + 1)),
        ]
        for picture in pictures:
            width, height = picture.figure.get_size_inches()
            # 24 of 18.2 cm, as the style sheet and the margins of A4 have it.
            assert height / width < 24 / 18.2
        titles = [axis.get_xlabel() for each in pictures for axis in each.figure.get_axes()]
        assert titles == [f"metric {metric} (s)" for metric in range(9)]
    colours = [
        {line.get_label(): line.get_color() for line in each.figure.get_axes()[-1].get_lines()}
        for each in pictures
    ]
    assert {each["set-3"] for each in colours} == {colours[0]["set-3"]}
