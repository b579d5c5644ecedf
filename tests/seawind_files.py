"""Files of the case study of Seawind, and a shorter form of its experiment."""

from __future__ import annotations

import re
from pathlib import Path

STUDY = Path(__file__).resolve().parent.parent / "studies/seawind-case"
EXPERIMENT = STUDY / "experiment.toml"
RECORDED = STUDY / "results.csv"


def reduced(
    folder: Path, *, repetitions: int, networks: str | None = None, workloads: str | None = None
) -> Path:
    """Write the experiment with fewer replications, and only these networks and workloads of sets.

    The file goes into ``folder``, with links to the files beside the experiment.
    """
    # The runs that its page shows may not be among them.
    text, cut, _ = EXPERIMENT.read_text().partition("[[report.runs]]")
    assert cut
    changes = {"repetitions": repetitions, "network": networks, "workload": workloads}
    for key, value in changes.items():
        if value is not None:
            new = str(value) if isinstance(value, int) else f'"{value}"'
            text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {new}", text)
            assert count == 4, f"{key} of {count} sets"
    for beside in STUDY.iterdir():
        if beside.name != EXPERIMENT.name:
            (folder / beside.name).symlink_to(beside)
    file = folder / EXPERIMENT.name
    file.write_text(text)
    return file
