# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Manual mode: the network of a cell stands, and its user gives the commands."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.engine import find_engine
from airpath.experiment import links
from airpath.experiment.folder import FolderError
from airpath.experiment.programs import programs
from airpath.experiment.replicate import GRACE_S

if TYPE_CHECKING:
    from airpath.experiment.plan import Plan


def run_manually(plan: Plan, out: Path | None) -> int:
    """Bring up the network of the plan's first cell until its user has had enough.

    Args:
        plan: the plan; --only chooses the set.
        out: the run's folder, as of airpath exec; nothing is kept without it.

    Raises:
        FolderError: the cell's clock leaves nothing to do by hand.

    """
    cell = plan.cells[0].cell
    if cell.clock != "live":
        message = (
            f"{cell.key} runs by the clock {cell.clock}, and only live ones can be run by hand; "
            f"choose another set with --only"
        )
        raise FolderError(message)
    if len(plan.cells) > 1:
        print(f"{cell.key}, the first of {len(plan.cells)} cells", file=sys.stderr)
    network = plan.loaded.experiment.networks[cell.network]
    here = plan.loaded.file.resolve().parent
    with tempfile.TemporaryDirectory(prefix="airpath-manual-") as name:
        folder = Path(name)
        inline = folder / f"{cell.network}.toml"
        if network.inline:
            inline.write_text(links.inline_toml(network.inline))
        listed = [
            {
                "name": program.name,
                "end": program.end,
                "command": program.command,
                "environment": {"AIRPATH_EXPERIMENT": str(here), **program.environment},
            }
            for program in programs(cell.workload)
        ]
        (folder / "programs.json").write_text(json.dumps(listed))
        console = [sys.executable, "-I", "-S", str(Path(__file__).parent / "console.py")]
        link = links.options(network, cell.network_parameters, cell.mtu, here, inline)
        command = [find_engine(), "exec", *link]
        command += ["--seed", str(cell.seed(1)), "--server-grace", f"{GRACE_S} s"]
        command += ["--cc", cell.congestion_control] if cell.congestion_control else []
        command += ["--out", str(out.absolute())] if out else []
        command += ["--server", shlex.join([*console, "server", name])]
        command += ["--", *console, "client", name]
        return subprocess.run(command, cwd=here, check=False).returncode
