# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The engine's options for a network, and the engine's word on whether they are right."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath import interrupt
from airpath.engine import find_engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airpath.experiment.model import Network


class LinkError(Exception):
    """The engine refuses a link or a workload; the message is the engine's."""


def options(
    network: Network, parameters: Mapping[str, Any], mtu: int | None, here: Path, inline: Path
) -> list[str]:
    """Return the options of exec and sim that make a cell's link.

    Args:
        network: the network of the cell.
        parameters: parameters of the link that are set.
        mtu: MTU in bytes.
        here: the folder of the experiment's file.
        inline: where a scenario that stands in the experiment has been written.

    """
    words: list[str] = []
    if network.profile:
        words += ["--profile", network.profile]
    elif network.scenario:
        words += ["--scenario", str((here / network.scenario).resolve())]
    elif network.inline:
        words += ["--scenario", str(inline)]
    for key, value in network.link.model_dump(exclude_none=True).items():
        words += [f"--{key}", value]
    words += ["--users", str(network.users)] if network.users is not None else []
    words += overrides(parameters)
    if mtu is not None:
        words += ["--mtu", str(mtu)]
    return words


def overrides(parameters: Mapping[str, Any]) -> list[str]:
    """Return the options that set parameters of a link."""
    return [
        word for key, value in parameters.items() for word in ("--set", f"{key}={_value(value)}")
    ]


def inline_toml(table: Mapping[str, Any]) -> str:
    """Write a scenario that stands in an experiment as TOML of its own."""
    return "".join(f"{_key(key)} = {_inline(value)}\n" for key, value in table.items())


def resolve(words: list[str], here: Path) -> str:
    """Return the scenario that options mean, as the engine writes it.

    Raises:
        LinkError: the engine refuses them.

    """
    return _ask([find_engine(), "sim", *words, "--print-scenario"], here)


def check_virtual(words: list[str], scenario: str, here: Path) -> None:
    """Have the engine look at workloads of virtual time.

    They run for a moment: the engine refuses wrong ones before it begins.

    Args:
        words: the options of the workloads.
        scenario: the link, in TOML; "" for any.
        here: the folder of the experiment's file.

    Raises:
        LinkError: it refuses one.

    """
    with interrupt.temporary_folder("airpath-") as folder:
        link = ["--rate", "1 Gbit/s"]
        if scenario:
            file = folder / "scenario.toml"
            file.write_text(scenario)
            link = ["--scenario", str(file)]
        command = [find_engine(), "sim", *link, *words, "--log", "none", "--quiet"]
        with suppress(subprocess.TimeoutExpired):
            _ask(command, here, allowed=(0, 1), patience_s=1)


def resolve_network(
    name: str, network: Network, parameters: Mapping[str, Any], mtu: int | None, here: Path
) -> str:
    """Return the scenario of a network's link; a scenario in the file needs no folder for it.

    Args:
        name: the network's name.
        network: the network.
        parameters: parameters of the link that are set.
        mtu: MTU in bytes.
        here: the folder of the experiment's file.

    Raises:
        LinkError: the engine refuses it.

    """
    with interrupt.temporary_folder("airpath-") as folder:
        inline = folder / f"{name}.toml"
        if network.inline:
            inline.write_text(inline_toml(network.inline))
        return resolve(options(network, parameters, mtu, here, inline), here)


def _ask(
    command: list[str], here: Path, allowed: tuple[int, ...] = (0,), patience_s: float = 60
) -> str:
    done = subprocess.run(
        command, cwd=here, capture_output=True, text=True, check=False, timeout=patience_s
    )
    if done.returncode not in allowed:
        raise LinkError(done.stderr.strip().removeprefix("airpath: "))
    return done.stdout


def _value(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else _inline(key)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_inline(one)}" for key, one in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, str):
        # A JSON string is a basic string of TOML.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float | date | time):  # also nan, inf and a date with its time
        return str(value)
    return json.dumps(value)
