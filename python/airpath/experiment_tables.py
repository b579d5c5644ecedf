# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of keys in docs/experiments.md and docs/experiments/, made from the experiment's schema.

``python -m airpath.key_tables`` writes them.
"""

from __future__ import annotations

import json
from pathlib import Path

from airpath.schema_tables import SchemaTables, Words

_LENGTH = 'bytes, or a length: `"1 MB"`'
_LATENESS_BOUND = 'share, share and time, or time: `"5%"`, `"5%,100 us"`, `"1 ms"`'

WORDS = Words(
    definitions={
        "Figures": "table",
        "Link": "table",
        "Ready": "table",
        "Reference": "tables",
        "ReportPage": "table",
        "Set": "tables",
        "ShownRun": "tables",
        "Sweep": "table",
        "Until": "table",
    },
    keys={
        ".seed": "whole number",
        "Program.command": "text or list of texts",
        "Ready.command": "text",
        "Set.repetitions": "1 or more",
        "Sweep.grid": "table of lists",
        "Sweep.rows": "list of tables",
        "Sweep.zip": "table of lists",
        "buffer": "time",
        "bytes": _LENGTH,
        "duration": "time",
        "environment": "table of texts",
        "exit_status": "list of whole numbers",
        "half_width": "percentage",
        "inline": "table",
        "interval": "time",
        "keep": "list of patterns",
        "keep_free": "length",
        "key_frame_interval": "time",
        "lateness_bound": _LATENESS_BOUND,
        "like": "name of a workload",
        "metric": "metric",
        "metrics": "list of metrics",
        "Reference.metrics": "table of numbers or tables",
        "name": "name",
        "network": "name or list of names",
        "networks": "tables",
        "notes": "file name",
        "output": "regular expression",
        "output_limit": "length",
        "parameters": "table of values",
        "part_size": _LENGTH,
        "pause": "time",
        "picture": '`"WIDTHxHEIGHT"`',
        "profile": "name",
        "programs": "tables",
        "scenario": "file name",
        "set": "table of parameters",
        "sets": "list of patterns",
        ".sets": "tables",
        "size": _LENGTH,
        "Ping.size": "16 … 65507",
        "start": "time",
        "tags": "list of names",
        "think": "time",
        "time": "time",
        "time_limit": "time",
        "udp_rate": "rate",
        "virtual": "list of workloads",
        "within": "time",
        "workload": "name or list of names",
        "workloads": "tables",
    },
    absent={
        ".economy": '`"off"`',
        ".lateness_bound": '`"5%,100 us"`',
        "Iperf3.congestion_control": "the workload's",
        "Iperf3.time": '`"10 s"` without `bytes`',
        "Network.mtu": "that of the scenario",
        "Program.name": "`program-1` and so on",
        "Program.service": "`true` with `ready`",
        "ReportPage.metrics": "the usual ones",
        "ReportPage.runs": "all have diagrams, the first ones pictures",
        "ReportPage.title": "the `description`",
        "Send.congestion_control": "the workload's",
        "Send.time": '`"10 s"` without `bytes`',
        "Set.clock": "the experiment's",
        "Set.economy": "the experiment's",
        "Set.lateness_bound": "the experiment's",
        "Set.repetitions": "this or `until`",
        "Set.seed": "the experiment's",
        "Set.until": "this or `repetitions`",
        "Workload.congestion_control": "the kernel's",
    },
)


def pages(root: Path) -> list[Path]:
    """Return the pages about experiments of a source tree."""
    return [root / "docs/experiments.md", *sorted((root / "docs/experiments").glob("*.md"))]


def of_tree(root: Path) -> SchemaTables:
    """Return the tables of a source tree's experiment schema."""
    return SchemaTables(json.loads((root / "schema/experiment.schema.json").read_text()), WORDS)
