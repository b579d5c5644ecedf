# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Runs in virtual time from Python: the engine's sim, with its runs as a collection."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airpath.analysis.folders import find
from airpath.api.collection import Runs, warn
from airpath.engine import find_engine
from airpath.experiment.links import inline_toml, overrides

if TYPE_CHECKING:
    from collections.abc import Sequence

STATUS_WORKLOAD_FAILED = 1

_KEPT: list[tempfile.TemporaryDirectory[str]] = []
"""Folders of runs for which nobody named one; removed when the interpreter ends."""


class SimulationError(Exception):
    """The engine refused a simulation or could not carry it out; the message is the engine's."""


def simulate(
    link: str | Path | Mapping[str, Any] | None = None,
    workloads: str | Sequence[str] = (),
    *,
    name: str | None = None,
    seed: int | None = None,
    replications: int = 1,
    jobs: int | None = None,
    duration: str | None = None,
    rate: str | None = None,
    delay: str | None = None,
    jitter: str | None = None,
    loss: str | None = None,
    reorder: str | None = None,
    duplicate: str | None = None,
    queue: str | None = None,
    blackout: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    mtu: int | None = None,
    log: Literal["counters", "events", "packets"] = "packets",
    out: str | Path | None = None,
) -> Runs:
    """Run workloads over a link in virtual time, as ``airpath sim`` does.

    Args:
        link: name of a profile, path of a scenario (it ends with .toml), or a scenario as a
            mapping (which names files by full paths); None for a link of the options alone.
        workloads: one or several as text, such as ``"tcp bytes=102400 from=server cc=reno"``
            (docs/workloads.md).
        name: name of the set of replications; by default that of the link, or of ``out``.
        seed: of the first replication, each further one has the next; chosen if not given.
        replications: how many.
        jobs: how many at a time; as many as there are processors by default.
        duration: with unit, such as ``"60 s"``; by default until all workloads are done.
        rate: ``"1 Mbit/s"``, or ``"UPLINK,DOWNLINK"``, as the further options of the link.
        delay: one way, such as ``"50 ms"``.
        jitter: standard deviation of the delay.
        loss: probability that a packet is lost, such as ``"2%"``.
        reorder: probability that a packet is held back, and until when.
        duplicate: probability that a packet is delivered twice.
        queue: limit of the queue, such as ``"20 packets"``.
        blackout: when it begins, how long it lasts, drop or store.
        parameters: of the scenario, by name, such as ``{"radio.link.rate": "64 kbit/s"}``.
        mtu: of both ends, in bytes.
        log: what is recorded.
        out: the folder; by default a temporary one that lasts as long as the interpreter.

    Returns:
        The runs, by number. Those of which a workload did not do what it was to are among them,
        with a warning.

    Raises:
        SimulationError: the engine refuses link, workload or folder.
        EngineError: there is no engine.

    """
    words = ["--workload", workloads] if isinstance(workloads, str) else []
    if not isinstance(workloads, str):
        words = [word for text in workloads for word in ("--workload", text)]
    options = {
        "duration": duration,
        "rate": rate,
        "delay": delay,
        "jitter": jitter,
        "loss": loss,
        "reorder": reorder,
        "duplicate": duplicate,
        "queue": queue,
        "blackout": blackout,
        "mtu": mtu,
        "seed": seed,
        "replications": replications,
        "jobs": len(os.sched_getaffinity(0)) if jobs is None else jobs,
        "log": log,
    }
    for option, value in options.items():
        if value is not None:
            words += [f"--{option}", str(value)]
    words += overrides(parameters or {})
    folder = Path(out) if out is not None else _temporary(name or _name(link))
    with tempfile.TemporaryDirectory(prefix="airpath-") as scratch:
        arguments = [*_link(link, Path(scratch)), *words, "--out", str(folder), "--json"]
        done = subprocess.run(
            [find_engine(), "sim", *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    if done.returncode not in (0, STATUS_WORKLOAD_FAILED):
        said = done.stderr.strip().removeprefix("airpath: ")
        raise SimulationError(said or f"the engine ended with status {done.returncode}")
    if done.returncode == STATUS_WORKLOAD_FAILED:
        warn(_failures(done.stdout))
    return Runs(find([folder])) if name is None else _named(folder, name)


def _link(link: str | Path | Mapping[str, Any] | None, scratch: Path) -> list[str]:
    if link is None:
        return []
    if isinstance(link, Mapping):
        file = scratch / "scenario.toml"
        try:
            file.write_text(inline_toml(link))
        except TypeError as error:
            message = f"the scenario holds a value that TOML has not: {error}"
            raise SimulationError(message) from error
        return ["--scenario", str(file)]
    is_file = isinstance(link, Path) or link.endswith(".toml")
    return ["--scenario" if is_file else "--profile", str(link)]


def _name(link: str | Path | Mapping[str, Any] | None) -> str:
    if isinstance(link, Mapping):
        return str(link.get("name", "simulation"))
    return "simulation" if link is None else Path(link).name.removesuffix(".toml")


def _temporary(name: str) -> Path:
    holder = tempfile.TemporaryDirectory(prefix="airpath-")
    _KEPT.append(holder)
    return Path(holder.name) / (re.sub(r"[^A-Za-z0-9._+-]+", "-", name) or "simulation")


def _named(folder: Path, name: str) -> Runs:
    from dataclasses import replace

    return Runs(replace(one, set_name=name) for one in find([folder]))


def _failures(summary: str) -> list[str]:
    """Return which workloads did not do what they were to."""
    try:
        document = json.loads(summary)
        failed = []
        for run in document.get("replications", [document]):
            failed += [
                f"replication {run.get('replication', 1)}: {workload['name']}: "
                f"{workload['outcome']}"
                for workload in run["workloads"]
                if workload["outcome"] != "complete"
            ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ["a workload did not do what it was to"]
    return failed or ["a workload did not do what it was to"]
