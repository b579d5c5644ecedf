# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs of experiments as test cases: expectations, JUnit's XML, the summary in Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from airpath.experiment.case import Case
from airpath.experiment.catalogue import Catalogue, Filter
from airpath.experiment.digest import markdown
from airpath.experiment.folder import open_results
from airpath.experiment.judgement import Judging, judge, judge_results
from airpath.experiment.junit import document
from experiments import SMALL, airpath, written

ONE_SET = SMALL[: SMALL.rindex("[[sets]]")]


def row(number: int, **changes: Any) -> dict[str, Any]:
    """Return what a catalogue has of a run."""
    usual = {
        "set": "wifi",
        "cell": "near|far",
        "replication": number,
        "seed": 10 + number,
        "status": "succeeded",
        "verdict": "trusted",
        "clock": "live",
        "wall_s": 1.5,
        "path": f"runs/wifi/near/{number:04}",
        "metrics": {"elapsed": float(number)},
    }
    return usual | changes


CASES = [
    Case(row(1), "passed"),
    Case(row(2), "failed", "expected elapsed < 2, but elapsed is 2"),
    Case(row(3, status="broken"), "broken", "the engine ended by \x1b[1m<SIGKILL>"),
    Case(row(4, verdict="suspect"), "untrusted", "the verdict is suspect: late"),
    Case(row(1, set="lte"), "passed"),
]


def counts(element: ET.Element) -> dict[str, int]:
    return {key: int(element.attrib[key]) for key in ("tests", "failures", "errors", "skipped")}


def test_a_run_that_is_not_trusted_fails_where_verdicts_are_strict(tmp_path: Path) -> None:
    suspect = row(1, verdict="suspect")
    for strict, outcome in ((False, "untrusted"), (True, "failed")):
        with Catalogue(tmp_path, in_memory=True) as catalogue:
            (case,) = judge(catalogue, [suspect], Filter(), Judging(strict=strict))
        assert (case.outcome, case.message) == (outcome, "the verdict is suspect")


def test_each_outcome_has_its_element_and_is_counted() -> None:
    root = ET.fromstring(document("queues", CASES, ""))
    assert counts(root) == {"tests": 5, "failures": 1, "errors": 1, "skipped": 1}
    assert root.attrib["time"] == "7.500"
    wifi, lte = root
    assert wifi.attrib["name"] == "wifi/near|far"
    assert counts(wifi) == {"tests": 4, "failures": 1, "errors": 1, "skipped": 1}
    assert counts(lte) == {"tests": 1, "failures": 0, "errors": 0, "skipped": 0}
    passed, failed, broken, untrusted = wifi
    assert passed.attrib["name"] == "replication 1, seed 11"
    assert [one.tag for one in passed] == ["system-out"]
    failure = failed.find("failure")
    assert failure is not None
    assert failure.attrib["message"] == failure.text == CASES[1].message
    error = broken.find("error")
    assert error is not None
    assert error.attrib["message"] == "the engine ended by \ufffd[1m<SIGKILL>"
    skipped = untrusted.find("skipped")
    assert skipped is not None
    assert skipped.attrib == {"type": "suspect", "message": "the verdict is suspect: late"}


def test_what_was_not_done_is_an_error_of_its_own() -> None:
    root = ET.fromstring(document("queues", CASES[:1], "the disk is full"))
    assert counts(root) == {"tests": 2, "failures": 0, "errors": 1, "skipped": 0}
    error = root.find("testsuite[@name='experiment']/testcase/error")
    assert error is not None
    assert error.attrib["message"] == "the disk is full"
    assert "**Not everything was done:** the disk is full" in markdown(
        "q", CASES, "the disk is full"
    )


def test_the_summary_has_a_row_for_each_cell_and_escapes_what_is_markdown() -> None:
    lines = markdown("queues_1", CASES, "").splitlines()
    assert lines[0] == "### queues\\_1: 2 of 5 runs passed"
    assert lines[2].startswith("| cell | runs | passed | failed | not trusted | elapsed (s) ± 95 ")
    assert lines[3] == "| --- | --: | --: | --: | --: | --: |"
    assert lines[5].startswith(r"| wifi/near\|far | 4 | 1 | 2 | 1 | ")
    assert lines[4].startswith(r"| lte/near\|far | 1 | 1 | 0 | 0 | 1 |")
    assert [line.partition(", replication ")[2] for line in lines[7:-1]] == [
        "2, seed 12: failed: expected elapsed \\< 2, but elapsed is 2",
        "3, seed 13: broken: the engine ended by \x1b\\[1m\\<SIGKILL\\>",
        "4, seed 14: untrusted: the verdict is suspect: late",
    ]


def test_runs_that_miss_an_expectation_fail_the_command(tmp_path: Path) -> None:
    file, root = written(tmp_path, ONE_SET), tmp_path / "out"
    page, xml = tmp_path / "page.md", tmp_path / "junit.xml"
    page.write_text("before\n")
    # Whether a run has lost packets follows from its seed alone, so that some have and some not.
    written_to = ("--junit", xml, "--summary", page)
    done = airpath("run", file, "--out", root, "--expect", "elapsed < 6.6", *written_to)
    listed = airpath("results", root, "--json").stdout.splitlines()
    rows = {f"{one['cell']} {one['seed']}": one for one in map(json.loads, listed)}
    slow = {name for name, one in rows.items() if not one["metrics"]["elapsed"] < 6.6}
    assert 0 < len(slow) < len(rows) == 6
    assert done.returncode == 1
    assert done.stderr.count(": failed: expected elapsed < 6.6, but elapsed is ") == len(slow)
    tree = ET.parse(xml).getroot()
    failed = {
        f"{suite.attrib['name'].removeprefix('queues/')} {case.attrib['name'].split()[-1]}"
        for suite in tree
        for case in suite
        if case.find("failure") is not None
    }
    assert failed == slow
    text = page.read_text()
    assert text.startswith(f"before\n### out: {6 - len(slow)} of 6 runs passed\n")
    # The same of some of them, later, and of none.
    judging = Judging(expect=["elapsed < 6.6"], strict=True)
    said: list[str] = []
    for where, is_well in (("elapsed < 6.6", True), ("elapsed < 0", False)):
        which = Filter(where=(where,))
        assert judge_results(open_results(root), which, judging, said.append, "") == is_well
    assert said == ["no run to judge"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("elapsd < 2", "--expect 'elapsd < 2': there is no metric `elapsd`; did you mean"),
        ("elapsed", "--expect 'elapsed': not NAME OPERATOR VALUE"),
        ("elapsed < soon", "--expect 'elapsed < soon': soon is no number"),
        ("goodput/sideways > 1", "--expect 'goodput/sideways > 1': `sideways` is no direction"),
        ("goodput/donwlink > 1", "did you mean `downlink`?"),
    ],
)
def test_an_expectation_that_is_wrong_ends_a_run_before_it_begins(
    text: str, said: str, tmp_path: Path
) -> None:
    file, root = written(tmp_path, ONE_SET), tmp_path / "out"
    done = airpath("run", file, "--out", root, "--expect", text)
    assert done.returncode == 2
    assert said in done.stderr
    assert not root.exists()
