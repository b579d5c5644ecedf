# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Files of the case study of Seawind, and shorter forms of its experiment."""

from __future__ import annotations

import re
from pathlib import Path

STUDY = Path(__file__).resolve().parent.parent / "studies/seawind-case"
EXPERIMENT = STUDY / "experiment.toml"
RECORDED = STUDY / "results.csv"

SET = re.compile(r'(?m)^\[\[sets\]\]\nname = "(.*)"\n(?:[^\[\n].*\n|\n)*')


def reduced(folder: Path, *, repetitions: int) -> Path:
    """Write the experiment with fewer replications.

    The file goes into ``folder``, with links to the files beside the experiment. The runs that its
    page shows are left out, because there may be no such replication.
    """
    text, cut, _ = EXPERIMENT.read_text().partition("[[report.runs]]")
    assert cut
    return _written(folder, _with(text, "repetitions", repetitions))


def one_cell(folder: Path, name: str, network: str, workload: str, *, repetitions: int) -> Path:
    """Write the experiment with one cell of one set alone, as ``reduced`` does."""
    text, cut, _ = EXPERIMENT.read_text().partition("[[references]]")
    assert cut
    (found,) = (match for match in SET.finditer(text) if match[1] == name)
    block = found[0]
    for key, value in (("network", network), ("workload", workload), ("repetitions", repetitions)):
        block = _with(block, key, value)
    return _written(folder, SET.sub("", text) + block)


def _with(text: str, key: str, value: str | int) -> str:
    """Return sets with another value of a key, which each of them has."""
    new = f'"{value}"' if isinstance(value, str) else str(value)
    text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {new}", text)
    assert count == text.count("[[sets]]"), f"{key} of {count} sets"
    return text


def _written(folder: Path, text: str) -> Path:
    for beside in STUDY.iterdir():
        if beside.name != EXPERIMENT.name:
            (folder / beside.name).symlink_to(beside)
    file = folder / EXPERIMENT.name
    file.write_text(text)
    return file
