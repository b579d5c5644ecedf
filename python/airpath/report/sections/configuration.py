# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Everything that it takes to repeat the runs; what several have in common is said once."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.files import read_text
from airpath.report.page import Section, fill

if TYPE_CHECKING:
    from airpath.report.entry import Entry
    from airpath.report.material import Material

_OTHER_KEYS = (
    "airpath_version",
    "clock",
    "port",
    "log_level",
    "snaplen",
    "frames",
    "duration",
    "host",
    "privileges",
    "warp",
)
"""Of the manifest, beside scenario, settings and what ran."""


@dataclass
class Configuration:
    """Common configuration of some runs."""

    entries: list[Entry]
    scenario: str
    settings: list[tuple[str, str]]
    commands: list[tuple[str, str]]
    """End or kind, and the command or the workload."""

    @property
    def seeds(self) -> str:
        """The seeds of its runs, in their order."""
        return ", ".join(str(entry.run.manifest.get("seed", "unknown")) for entry in self.entries)


def build(material: Material) -> Section:
    """Return the configurations, each with the runs that have it."""
    found: dict[str, Configuration] = {}
    for entry in material.entries:
        configuration = _configuration(entry)
        key = json.dumps([configuration.scenario, configuration.settings, configuration.commands])
        found.setdefault(key, configuration)
        if found[key] is not configuration:
            found[key].entries.append(entry)
    body = fill(
        "configuration",
        configurations=list(found.values()),
        experiments=_experiments(material),
        repeats=[(entry, line) for entry in material.entries if (line := repeat(entry))],
    )
    return Section("configuration", "Configuration", body)


def _file(entry: Entry) -> Path:
    """Return the experiment's file: the one that was run if it is unchanged, else its copy."""
    copy = entry.results_folder / "experiment.toml"
    try:
        text = read_text(copy)
        for path in sorted(Path(entry.about["here"]).glob("*.toml")):
            if read_text(path) == text:
                return path
    except (OSError, KeyError, ValueError, TypeError):
        pass
    return copy


def _experiments(material: Material) -> list[tuple[str, str]]:
    """Return the file of each experiment and the command that runs all of it anew."""
    found: dict[Path, tuple[str, str]] = {}
    for entry in material.entries:
        if not entry.about or entry.results_folder in found:
            continue
        try:
            text = read_text(entry.results_folder / "experiment.toml")
        except (OSError, ValueError):
            continue
        command = shlex.join(["airpath", "run", str(_file(entry)), "--out", "results/again"])
        found[entry.results_folder] = (command, text)
    return list(found.values())


def repeat(entry: Entry) -> str:
    """Return one command line that repeats a replication of an experiment; else nothing."""
    about = entry.about
    if not about:
        return ""
    words = [str(word) for word in about.get("command") or []]
    scenario = words[words.index("--scenario") + 1] if "--scenario" in words[:-1] else ""
    if about.get("clock") == "virtual" and words and (not scenario or Path(scenario).is_file()):
        return shlex.join(["airpath", *(word for word in words[1:] if word != "--json")])
    root = str(entry.results_folder)
    which = ["--set", about["set_name"], "--cell", about["cell"]]
    which += ["--where", f"replication = {about['replication']}"]
    take = shlex.join(["airpath", "results", root, *which, "--remove", "--yes"])
    again = ["airpath", "run", str(_file(entry)), "--only", about["set_name"], "--out", root]
    return f"{take} && {shlex.join([*again, '--resume'])}"


def _configuration(entry: Entry) -> Configuration:
    manifest = entry.run.manifest
    text = manifest.get("scenario_toml")
    if not isinstance(text, str):
        text = json.dumps(manifest.get("scenario", {}), indent=2)
    settings = [(key, _words(value)) for key, value in entry.run.settings.items()]
    settings += [
        (key.replace("_", " "), _words(manifest[key])) for key in _OTHER_KEYS if key in manifest
    ]
    return Configuration([entry], text, settings, _commands(manifest))


def _commands(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for command in _dictionaries(manifest.get("commands")):
        words = command.get("command")
        words = [str(word) for word in words] if isinstance(words, list) else []
        # A server's command is one text for the shell.
        text = words[0] if len(words) == 1 else shlex.join(words)
        found.append((str(command.get("end", "")), text))
    return found + [
        ("workload", str(workload.get("workload", "")))
        for workload in _dictionaries(manifest.get("workloads"))
    ]


def _dictionaries(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _words(value: object) -> str:
    """Return a value of the manifest as a line of text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_words(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(_words(inner) for inner in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None or value == "" else str(value)
