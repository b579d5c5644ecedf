# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The report page: complete, escaped, without references to elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from airpath.app import run as run_app
from airpath.report import SECTIONS, choice, command
from airpath.report.entry import Entry
from airpath.report.material import find_runs, load_material
from airpath.report.reduce import Task, reduce_runs
from airpath.report.sections import diagrams, distributions
from airpath.run import RunError, load_run
from airpath.status import UNWRITABLE
from airpath.tcp import transfers
from synthetic import write_run

if TYPE_CHECKING:
    from pathlib import Path

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr"}


class Page(HTMLParser):
    """Checks that elements are closed in order, and gathers ids, references and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.ids: list[str] = []
        self.references: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.attributes: dict[str, str | None] = {}
        self.feed(text)
        self.close()
        assert not self.stack, f"never closed: {self.stack}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        self.note(tag, attrs)
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element that is empty."""
        self.note(tag, attrs)

    def note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Gather what its attributes say."""
        self.attributes = dict(attrs)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "action", "data", "poster", "srcset") or (
                "url(" in (value or "")
            ):
                self.references.append((tag, name, value or ""))

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element."""
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        """Gather text."""
        if self.stack and self.stack[-1] == "script":
            self.scripts.append((self.attributes, data))
        elif self.stack and self.stack[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        """Return all text with single spaces."""
        return " ".join("".join(self.texts).split())


@pytest.fixture(scope="module")
def replications(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of three replications, the last of them suspect."""
    folder = tmp_path_factory.mktemp("report") / "set"
    for number, verdict in enumerate(("trusted", "trusted", "suspect"), 1):
        write_run(folder / f"replication-{number:04}", seed=number, size=12_800, verdict=verdict)
    return folder


@pytest.fixture(scope="module")
def html(replications: Path) -> str:
    assert run_app(["report", str(replications), "--pictures", "2"]) == 0
    return (replications / "report.html").read_text()


def test_the_page_has_its_sections_with_stable_ids(html: str) -> None:
    page = Page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids)), "ids are unique"
    expected = {*SECTIONS, "table-runs", "run-1", "run-3", "diagram-1-1", "diagram-3-1"}
    expected |= {"picture-1-delay", "picture-2-queue-packets", "configuration-1", "colours"}
    expected |= {"sets-distribution", "sets-cdf", "distribution-delays", "set-1"}
    expected -= {"comparisons", "sweeps"}  # of one set there is nothing to compare
    expected -= {"notes", "networks", "references"}  # it is no experiment
    expected -= {"hosts"}  # its hops are all here
    expected -= {"layers"}  # its link has no protocol of its own
    assert expected <= set(page.ids)
    assert "picture-3-delay" not in page.ids
    assert "1 more runs have no pictures here" in page.text
    assert "12 packets left more than 1 ms late" in page.text


def test_a_host_from_which_nothing_came_has_no_delay(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(run)
    manifest = json.loads((run / "run.json").read_text())
    delays = {"to_host": {"count": 3, "p50_ns": 90_000}, "from_host": {"count": 0, "p50_ns": 0}}
    manifest["hosts"] = [{"name": "lab2", "hops": ["core"], "network_delay": delays}]
    (run / "run.json").write_text(json.dumps(manifest))
    page = tmp_path / "page.html"
    assert run_app(["report", str(run), "--out", str(page)]) == 0
    row = page.read_text().partition(">lab2<")[2].partition("</tr>")[0]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", row)[-3:-1] == ["0.090", "-"], row


def test_the_page_of_one_run_opens_with_its_throughput_and_why_packets_were_dropped(
    replications: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    run = replications / "replication-0001"
    assert run_app(["report", str(run), "--out", str(page)]) == 0
    answer = page.read_text().partition('id="answer"')[2].partition("</section>")[0]
    assert re.search(r"\d+ packets? dropped: \w", answer)
    assert 'id="answer-course"' in answer
    assert answer.count("<svg") == 1


def test_nothing_is_asked_of_the_net(html: str) -> None:
    page = Page(html)
    for tag, name, value in page.references:
        inside = value.startswith(("#", "data:")) or re.match(r"url\(#[\w-]+\)", value)
        assert inside or "url(#" in value, f"<{tag} {name}={value[:80]}>"
    for target in re.findall(r'(?:href="#|url\(#)([\w-]+)', html):
        assert target in page.ids, f"#{target} leads nowhere"
    assert "http://" not in html
    assert "https://" not in html
    assert not re.search(r"@import|fetch\(|XMLHttpRequest|import\(", html)


def test_the_table_has_the_figures_of_each_run(html: str, replications: Path) -> None:
    row = re.search(r'<tr id="run-2">.*?</tr>', html, re.DOTALL)
    assert row
    cells = [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row[0])]
    run = load_run(replications / "replication-0002")
    assert cells[:5] == ["replication-0002", "Seawind case study", "2", "live", "trusted"]
    assert cells[5] == f"{run.duration_ns / 1e9:.3g} s"
    drops = run.drops().group_by("cause").len()
    by_cause = {str(cause): number for cause, number in drops.iter_rows()}
    facts = Entry(1, "x", run).facts
    assert facts.drops == by_cause
    assert facts.ways["uplink"].goodput_bps is None
    goodput = facts.ways["downlink"].goodput_bps
    assert goodput is not None
    assert 4000 < goodput < 9600


def test_what_runs_have_in_common_is_said_once(html: str) -> None:
    assert html.count('class="configuration"') == 1
    assert "3 runs:" in Page(html).text
    assert "1, 2, 3" in Page(html).text


def summed(values: list[int]) -> list[int]:
    return [int(value) for value in np.cumsum(values)]


def test_a_diagram_holds_every_segment_and_its_fate(replications: Path) -> None:
    run = load_run(replications / "replication-0001")
    (transfer,) = transfers(run)
    shown = diagrams.diagram(Entry(1, "x", run), transfer, "diagram-1-1", 10_000)
    assert shown.notes == []
    content = json.loads(json.dumps(shown.content))
    segments = content["segments"]
    assert summed(segments["time"]) == (transfer.segments["time_ns"] // 1000).to_list()
    assert summed(segments["first"]) == transfer.segments["first"].to_list()
    assert segments["length"] == (transfer.segments["end"] - transfer.segments["first"]).to_list()
    again = [bool(mark & diagrams.RETRANSMISSION) for mark in segments["mark"]]
    assert again == transfer.segments["retransmission"].to_list()
    names = ["", *(cause["name"] for cause in content["causes"])]
    causes = [names[mark // diagrams.CAUSE] for mark in segments["mark"]]
    assert causes == transfer.segments["cause"].to_list()
    assert summed(content["acknowledgements"]["number"]) == (
        transfer.acknowledgements["number"].cum_max().to_list()
    )
    assert len(content["selective"]["first"]) == transfer.selective.height


def test_a_large_transfer_is_joined_and_says_so(replications: Path) -> None:
    run = load_run(replications / "replication-0001")
    (transfer,) = transfers(run)
    most = 20
    shown = diagrams.diagram(Entry(1, "x", run), transfer, "d", most)
    segments = shown.content["segments"]
    usual = [
        joined
        for joined, mark in zip(segments["joined"], segments["mark"], strict=True)
        if not mark
    ]
    assert len(usual) <= most
    quiet = transfer.segments.filter(~pl.col("retransmission") & (pl.col("cause") == ""))
    assert sum(usual) == quiet.filter(~pl.col("damaged")).height
    assert len(shown.content["acknowledgements"]["time"]) <= most
    assert any("joined to bars" in note for note in shown.notes)
    assert any("acknowledgements are drawn" in note for note in shown.notes)


def test_joined_segments_cover_what_they_stand_for() -> None:
    frame = pl.DataFrame(
        {
            "row": [0, 1, 2, 3],
            "time_ns": [0, 1, 50, 99],
            "first": [0, 10, 20, 30],
            "end": [10, 20, 30, 40],
            "mark": [0] * 4,
            "joined": [1] * 4,
        }
    )
    bars, width = diagrams.join(frame, 2)
    assert width == 50
    assert bars.select("time_ns", "first", "end", "joined").rows() == [
        (0, 0, 20, 2),
        (50, 20, 40, 2),
    ]


def test_a_distribution_rises_to_one() -> None:
    at, share = distributions.steps([3.0, 1.0, 2.0, 2.0])
    assert at.tolist() == [1, 2, 2, 3]
    assert share.tolist() == [0.25, 0.5, 0.75, 1]


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><b>&\"'"
    write_run(tmp_path / "run", size=2560, name=evil)
    path = tmp_path / "run" / "run.json"
    manifest: dict[str, Any] = json.loads(path.read_text())
    manifest["commands"] = [{"end": "client", "command": ["echo", evil]}]
    manifest["scenario_toml"] = f"# {evil}"
    path.write_text(json.dumps(manifest))
    assert run_app(["report", str(tmp_path / "run"), "--title", evil]) == 0
    html = (tmp_path / "run" / "report.html").read_text()
    assert "<script>alert" not in html
    assert "<b>" not in html
    page = Page(html)
    assert evil in page.text
    assert [name for name, _ in page.scripts].count({}) == 1, "one script of the page's own"


def test_runs_are_found_at_any_level_and_told_apart(replications: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "other" / "cell" / "replication-0001", size=2560)
    found = find_runs([replications, tmp_path / "other", replications / "replication-0002"])
    assert len(found) == 4, "a run named twice is one run"
    material = load_material([replications, tmp_path / "other"], None, 0)
    assert [entry.label for entry in material.entries] == [
        "set/replication-0001",
        "set/replication-0002",
        "set/replication-0003",
        "other/cell/replication-0001",
    ]
    with pytest.raises(RunError, match="no such folder"):
        find_runs([tmp_path / "nowhere"])


def test_runs_named_one_by_one_are_a_set_if_they_are_alike(
    replications: Path, tmp_path: Path
) -> None:
    write_run(tmp_path / "other", size=2560)
    manifest = json.loads((tmp_path / "other" / "run.json").read_text())
    manifest["settings"]["congestion_control"] = "cubic"
    (tmp_path / "other" / "run.json").write_text(json.dumps(manifest))
    alike = [replications / f"replication-000{number}" for number in (1, 2)]
    material = load_material([*alike, tmp_path / "other"], None, 0)
    of_sets = {name: [one.label for one in runs] for name, runs in material.sets.items()}
    assert of_sets == {
        "replication-0001": ["replication-0001", "replication-0002"],
        "other": ["other"],
    }


def test_a_killed_run_is_on_the_page_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_run(folder, size=5120, stream=True)
    (folder / "run.json").unlink()
    content = (folder / "events.arrow").read_bytes()
    (folder / "events.arrow").write_bytes(content[: len(content) * 2 // 3])
    assert run_app(["report", str(folder), "--pictures", "0"]) == 0
    page = Page((folder / "report.html").read_text())
    assert "the run left no results" in page.text
    assert "no run.json: the run was killed before its end" in page.text
    assert "events.arrow is torn" in page.text
    assert "pictures" not in page.ids


def test_damaged_captures_are_told_and_the_page_is_written(tmp_path: Path) -> None:
    write_run(tmp_path / "run", size=2560)
    (tmp_path / "run" / "client.pcapng").write_bytes(b"this is no capture at all" * 10)
    assert run_app(["report", str(tmp_path / "run")]) == 0
    page = Page((tmp_path / "run" / "report.html").read_text())
    assert "client.pcapng" in page.text


def test_mistakes_are_told_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, status, words in (
        (["nowhere"], 2, "no such folder"),
        ([str(tmp_path)], 2, "neither the folder of a run nor one with runs in it"),
        ([str(tmp_path), "--pictures", "-1"], 2, "must not be negative"),
        ([str(tmp_path), "--out", str(tmp_path)], 2, "is a folder"),
    ):
        assert run_app(["report", *arguments]) == status
        assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told(
    replications: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "report.html"
    assert (
        run_app(["report", str(replications), "--pictures", "0", "--out", str(out)]) == UNWRITABLE
    )
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_a_run_is_reduced_to_what_the_page_shows(replications: Path) -> None:
    folder = replications / "replication-0001"
    (reduced,) = reduce_runs(
        [Task(folder, "set", delays=True, course_ns=load_run(folder).duration_ns)]
    )
    entry = Entry(1, "x", load_run(folder), "set")
    assert reduced.facts == entry.facts
    assert reduced.values.equals(entry.values)
    assert reduced.delays["downlink"].tolist() == entry.delays["downlink"].tolist()
    assert reduced.courses is not None
    assert ("queue", "downlink") in reduced.courses.values
    assert reduced.notes == []


def test_of_many_runs_some_of_each_set_have_diagrams(replications: Path) -> None:
    run = load_run(replications / "replication-0001")
    entries = [
        Entry(2 * number + turn, "x", run, f"set-{number}")
        for number in range(diagrams.MOST_RUNS - 20)
        for turn in (1, 2)
    ]
    chosen = choice.first_of_sets(entries, diagrams.MOST_RUNS)
    assert len(chosen) == diagrams.MOST_RUNS
    assert len({entry.set_name for entry in chosen}) == diagrams.MOST_RUNS - 20
    seconds = [entry.number for entry in chosen if entry.number % 2 == 0]
    assert (seconds[0], seconds[-1]) == (2, 2 * (diagrams.MOST_RUNS - 20)), "evenly"
    assert [entry.number for entry in chosen] == sorted(entry.number for entry in chosen)


def test_progress_says_how_much_time_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    progress = command.Progress()
    for done, at in ((1, 101.0), (2, 111.0), (3, 112.0), (20, 201.0)):
        now[0] = at
        progress.tell("reading runs", done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "airpath report: reading runs 2 of 100, about 8 min left",
        "airpath report: reading runs 20 of 100, about 7 min left",
    ]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_is_valid(html: str, tmp_path: Path) -> None:
    (script,) = [text for attributes, text in Page(html).scripts if not attributes]
    (tmp_path / "diagram.js").write_text(script)
    subprocess.run(["node", "--check", str(tmp_path / "diagram.js")], check=True, timeout=60)
