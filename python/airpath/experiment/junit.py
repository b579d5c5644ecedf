# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Judged runs as JUnit's XML, which continuous integration shows: a suite a cell, a case a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.experiment.case import Case

_ELEMENTS = {"failed": "failure", "broken": "error", "untrusted": "skipped"}
"""By outcome the element that tells of it."""

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'

_COUNTS = {"failures": "failed", "errors": "broken", "skipped": "untrusted"}
"""By attribute the outcome that is counted."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(name: str, cases: Sequence[Case], stopped: str) -> str:
    """Return the XML.

    Args:
        name: of the experiment.
        cases: the runs.
        stopped: why not everything was done, if so; it becomes a case of its own, an error.

    """
    root = ET.Element("testsuites", {"name": _text(name), **_counts(cases, 1 if stopped else 0)})
    cells: dict[str, list[Case]] = {}
    for case in cases:
        cells.setdefault(case.cell, []).append(case)
    for cell, members in cells.items():
        suite = ET.SubElement(root, "testsuite", {"name": _text(cell), **_counts(members)})
        for case in members:
            found = _case(suite, f"{name}.{cell}", case.name, case.row["wall_s"])
            if case.outcome in _ELEMENTS:
                kind = case.row["verdict"] if case.outcome == "untrusted" else case.outcome
                _say(found, _ELEMENTS[case.outcome], kind, case.message)
            ET.SubElement(found, "system-out").text = _text(
                f"status {case.row['status']}, verdict {case.row['verdict']}, "
                f"clock {case.row['clock']}; files in {case.row['path']}"
            )
    if stopped:
        suite = ET.SubElement(root, "testsuite", {"name": "experiment", **_counts((), 1)})
        _say(_case(suite, name, "everything was done", 0.0), "error", "stopped", stopped)
    ET.indent(root)
    return f"{_HEAD}{ET.tostring(root, encoding='unicode')}\n"


def _counts(cases: Sequence[Case], stopped: int = 0) -> dict[str, str]:
    found = {
        attribute: sum(case.outcome == outcome for case in cases)
        for attribute, outcome in _COUNTS.items()
    }
    found["errors"] += stopped
    seconds = sum(case.row["wall_s"] for case in cases)
    return {
        "tests": str(len(cases) + stopped),
        **{attribute: str(count) for attribute, count in found.items()},
        "time": f"{seconds:.3f}",
    }


def _case(suite: ET.Element, class_name: str, name: str, seconds: float) -> ET.Element:
    return ET.SubElement(
        suite, "testcase", classname=_text(class_name), name=_text(name), time=f"{seconds:.3f}"
    )


def _say(case: ET.Element, element: str, kind: str, message: str) -> None:
    said = ET.SubElement(case, element, type=kind, message=_text(message))
    if element != "skipped":
        said.text = _text(message)


def _text(words: str) -> str:
    """Return a text without the characters that XML does not have."""
    return _NOT_IN_XML.sub("\ufffd", words)
