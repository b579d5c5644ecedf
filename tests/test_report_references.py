# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""References, notes, chosen metrics and runs: what an experiment's file says of its page."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import polars as pl
import pytest

from airpath.app import run as run_app
from airpath.experiment.load import load
from airpath.experiment.loaded import ExperimentError
from airpath.experiment.plan import make_plan
from airpath.report.material import load_material
from airpath.report.sections import networks, notes, references
from synthetic import write_run

if TYPE_CHECKING:
    from pathlib import Path

EXPERIMENT = """\
clock = "virtual"
[networks.gsm]
profile = "gsm-data-9.6k"
[workloads.download]
virtual = ["tcp bytes=6400 from=server"]
[[sets]]
name = "model"
network = "gsm"
workload = "download"
repetitions = 5
sweep.grid."network.radio.link.queue.limit" = ["4 packets", "8 packets"]
[[references]]
name = "Them"
source = "Somebody 2001"
sets = ["model/limit=4*"]
[references.metrics]
"transfer_time/downlink" = { median = 10, p10 = 8, p90 = 12.5 }
"drops/downlink" = 2
elapsed = 20
[report]
title = "A title"
notes = "notes.md"
metrics = ["drops/downlink", "elapsed"]
spread = "percentiles"
[[report.runs]]
run = "model/limit=8*:3"
caption = "Look at the end."
[[report.runs]]
run = "model/*:1"
"""


def experiment(folder: Path, text: str = EXPERIMENT) -> Path:
    (folder / "notes.md").write_text("# What we saw\n\nIt is **slow** <b>here</b>.\n")
    file = folder / "experiment.toml"
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results of the experiment with made-up runs."""
    root = tmp_path_factory.mktemp("experiment") / "results"
    for limit, size in ((4, 6400), (8, 7680)):
        for seed in range(1, 6):
            folder = root / "runs" / "model" / f"limit={limit}packets" / f"{seed:04}"
            write_run(folder, seed=seed, size=size)
            about = {
                "set_name": "model",
                "cell": f"limit={limit}packets",
                "replication": seed,
                "network": "gsm",
                "workload": "download",
                "parameters": {"network.radio.link.queue.limit": f"{limit} packets"},
                "status": "succeeded",
                "here": str(root.parent),
            }
            (folder / "replication.json").write_text(json.dumps(about))
            end_ns = (10 * limit + seed) * 10**9
            program = {"name": "download", "service": False, "end_ns": end_ns, "elapsed_ns": 10**9}
            (folder / "workload.json").write_text(json.dumps({"programs": [program]}))
    (root / "experiment.toml").write_text(EXPERIMENT)
    (root / "report-notes.md").write_text("Notes of the folder.\n")
    return root


def text_of(markup: str) -> str:
    return " ".join(re.sub(r"<.*?>", " ", markup).split())


def test_references_have_rows_marks_and_relative_errors(results: Path, tmp_path: Path) -> None:
    page, csv, figures = tmp_path / "page.html", tmp_path / "csv", tmp_path / "figures"
    words = ["report", str(results), "--out", str(page), "--csv", str(csv), "--pictures", "0"]
    assert run_app([*words, "--figures", str(figures), "--format", "svg"]) == 0
    html = page.read_text()
    assert "<title>A title</title>" in html
    assert "<p>Notes of the folder.</p>" in html
    row = re.search(r'<tr class="reference" id="set-reference-1">.*?</tr>', html, re.DOTALL)
    assert row
    # The columns are those of the report, then what only the reference has.
    assert text_of(row[0]) == "Them reference 2 20 10 8 to 12.5"
    section = re.search(r'<section id="references">.*?</section>', html, re.DOTALL)
    assert section
    assert "limit=4packets" in section[0]
    assert "limit=8packets" not in section[0], "the reference does not stand beside it"
    table = pl.read_csv(csv / "references.csv")
    elapsed = table.filter(pl.col("metric") == "elapsed").row(0, named=True)
    assert (elapsed["median"], elapsed["reference_median"], elapsed["n"]) == (43, 20, 5)
    assert elapsed["relative_error"] == pytest.approx(1.15)
    assert "+115 %" in section[0]
    assert set(table["metric"]) == {"transfer_time", "drops", "elapsed"}
    assert ">Them<" in re.sub(
        r"<!-- (.*?) -->", r">\1<", (figures / "sets-model-cdf.svg").read_text()
    )


def test_relative_errors_have_a_sign_unless_they_are_nothing() -> None:
    shown = [references.percent(share) for share in (0.254, -0.254, -0.004, 0.0, None)]
    assert shown == ["+25 %", "\N{MINUS SIGN}25 %", "0 %", "0 %", "\N{EN DASH}"]


def test_the_runs_named_have_diagrams_with_their_captions(results: Path) -> None:
    material = load_material([results], None, 4)
    named = [entry.label for entry in material.with_diagrams]
    cells = "runs/model/limit=4packets", "runs/model/limit=8packets"
    assert named == [f"{cells[1]}/0003", f"{cells[0]}/0001", f"{cells[1]}/0001"]
    assert [entry.label for entry in material.with_pictures] == named
    assert list(material.presentation.captions.values()) == ["Look at the end.", "", ""]


def test_an_experiment_that_was_broken_off_says_what_is_missing(
    results: Path, tmp_path: Path
) -> None:
    root = tmp_path / "results"
    shutil.copytree(results, root)
    cells = [
        {"set": "model", "cell": f"limit={limit}packets", "replications": [7, 9]}
        for limit in (4, 8)
    ]
    (root / "plan.json").write_text(json.dumps({"cells": cells}))
    notes = load_material([root], None, 0).notes
    assert any(note.startswith("results: 4 of 14 replications of the plan") for note in notes)
    # A part that was asked for is no broken-off whole.
    part = load_material([root / "runs" / "model" / "limit=4packets"], None, 0)
    assert not any("of the plan" in note for note in part.notes)


def test_columns_are_the_metrics_that_are_named(results: Path) -> None:
    measured = load_material([results], None, 0).measured
    assert list(dict.fromkeys(measured.main["metric"])) == ["drops", "elapsed", "transfer_time"]
    assert set(measured.main.filter(pl.col("metric") == "drops")["direction"]) == {"downlink"}


def test_without_metrics_named_references_come_after_the_usual_ones(
    results: Path, tmp_path: Path
) -> None:
    text = EXPERIMENT.replace('metrics = ["drops/downlink", "elapsed"]\n', "")
    measured = load_material([results], None, 0, experiment=experiment(tmp_path, text)).measured
    metrics = set(measured.main["metric"])
    assert {"elapsed", "goodput", "packets_lost", "drops"} <= metrics
    places = [measured.place({"metric": name, "direction": "downlink"}) for name in metrics]
    assert max(places) == measured.place({"metric": "drops", "direction": "downlink"})


def test_another_file_counts_instead_of_the_copy(results: Path, tmp_path: Path) -> None:
    file = experiment(tmp_path, EXPERIMENT.replace("A title", "Another"))
    material = load_material([results], None, 0, experiment=file)
    assert material.title == "Another"
    described = 'description = "What it is about\\nand more"\n' + EXPERIMENT.replace(
        'title = "A title"\n', ""
    )
    file = experiment(tmp_path, described)
    assert load_material([results], None, 0, experiment=file).title == "What it is about"
    section = notes.build(material)
    assert section
    assert "<h3>What we saw</h3>" in section.body
    assert "<strong>slow</strong> &lt;b&gt;here&lt;/b&gt;" in section.body


def test_a_wrong_file_is_told_and_no_page_is_written(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = experiment(tmp_path, EXPERIMENT.replace("elapsed = 20", 'elapsed = "long"'))
    page = tmp_path / "page.html"
    assert run_app(["report", str(results), "--experiment", str(file), "--out", str(page)]) == 2
    assert "experiment.toml:19: references.0.metrics.elapsed" in capsys.readouterr().err
    assert not page.exists()


def test_a_damaged_copy_costs_notes_and_references_only(tmp_path: Path) -> None:
    cell = tmp_path / "results" / "runs" / "model" / "limit=4packets"
    for seed in (1, 2):
        write_run(cell / f"{seed:04}", seed=seed, size=2560)
        about = {"set_name": "model", "cell": "limit=4packets", "replication": seed}
        (cell / f"{seed:04}" / "replication.json").write_text(json.dumps(about))
    copy = tmp_path / "results" / "experiment.toml"
    copy.write_text(EXPERIMENT.replace("spread", "spred"))
    material = load_material([tmp_path / "results"], None, 0)
    assert "did you mean `spread`?; notes and references are left out" in material.notes[0]
    assert references.build(material) is None
    copy.write_text(EXPERIMENT)
    material = load_material([tmp_path / "results"], None, 0)
    assert re.search("notes are left out: .*report-notes.md cannot be read", material.notes[0])
    assert references.build(material) is not None


def test_networks_have_their_parameters_by_state() -> None:
    scenario = {
        "name": "x",
        "mtu": 296,
        "hops": [{"name": "radio", "link": {"rate": "1 Mbit/s", "queue": {"limit": "7 packets"}}}],
        "states": [
            {"name": "poor", "at": "40 s", "set": {"radio.link.errors.probability": 0.1}},
            {"name": "gone", "duration": {"type": "uniform", "low": "1 s"}},
        ],
    }
    assert networks.parameters(scenario) == {
        "mtu": 296,
        "radio.link.rate": "1 Mbit/s",
        "radio.link.queue.limit": "7 packets",
    }
    assert networks.state_changes(scenario) == [
        ("poor from 40 s", {"radio.link.errors.probability": 0.1}),
        ("gone for uniform", {}),
    ]


def test_a_network_that_was_swept_has_all_values(results: Path) -> None:
    material = load_material([results], None, 0)
    for entry in material.entries:
        limit = entry.about["parameters"]["network.radio.link.queue.limit"]
        text = f'[[hops]]\nname = "radio"\nlink.queue.limit = "{limit}"\nlink.rate = "1 Mbit/s"\n'
        entry.run.manifest["scenario_toml"] = text
    section = networks.build(material)
    assert section
    assert "radio.link.queue.limit 4 packets; 8 packets" in text_of(section.body)
    assert "radio.link.rate 1 Mbit/s" in text_of(section.body)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (
            'drops/downlink" =',
            'drop/downlink" =',
            "18: reference `Them`: there is no metric `drop`; did",
        ),
        ("elapsed = 20", "elapsd = 20", "19: reference `Them`: there is no metric `elapsd`; did"),
        ('["drops/downlink', '["elapsed_time/uplink', "23: .*`elapsed_time` has no direction"),
        ('limit=4*"]', 'limit=5*"]', "15: reference `Them`: no set has a cell `model/limit=5"),
        ("notes.md", "note.md", "22: report.notes: .*note.md cannot be read: No such file"),
        ("8*:3", "8*:6", "25: report.runs.0: there is no replication 6 .*which has 5"),
        ("8*:3", "8*", "25: report.runs.0: .*names no replication"),
        ("8*:3", "8*:first", "25: report.runs.0: `first` is no replication"),
        ("spread", "spred", "24: report.spred: unknown key; did you mean `spread`"),
        (
            "{ median = 10, p10",
            "{ p10",
            "17: references.0.metrics.transfer_time/downlink.median: must",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    assert right in EXPERIMENT
    file = experiment(tmp_path, EXPERIMENT.replace(right, wrong, 1))
    with pytest.raises(ExperimentError) as caught:
        make_plan(load(file), [])
    found = [f"{one.line}: {one.what}" for one in caught.value.problems]
    assert any(re.match(said, one) for one in found), found


def test_notes_are_kept_with_the_results(tmp_path: Path) -> None:
    file = experiment(tmp_path, EXPERIMENT.replace("repetitions = 5", "repetitions = 3"))
    out = tmp_path / "results"
    assert run_app(["run", str(file), "--out", str(out), "--jobs", "2"]) == 0
    assert (out / "report-notes.md").read_text() == (tmp_path / "notes.md").read_text()
