# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""CONTRIBUTING's recipes, tried with toys.

A model is one file, its ``mod`` line and one line in a registry: a toy of each role goes into a
scratch copy of the crate of models by nothing else, and the compiler takes it; so does a cause of
drops, an entry in one file. A template of experiments is one file, its import and one line in
``TEMPLATES``: a toy goes into a scratch copy of the Python package, and the commands know it. A toy
that leaves out what its registry needs is refused: nothing is forgotten in silence.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airpath.engine import find_engine
from experiments import START

ROOT = Path(__file__).parent.parent
TOYS = ROOT / "tests/recipes"
CRATES = ("airpath-coding", "airpath-core", "airpath-packet", "airpath-models")


@dataclass(frozen=True)
class Recipe:
    """A toy, and the lines that enrol it."""

    folder: str
    module: str
    line: str
    """In the registry."""
    also: str = ""
    """A line beside ``mod``."""


RECIPES = (
    Recipe("queueing", "every_other", "EveryOther = every_other::{EveryOtherConfig, EveryOther},"),
    Recipe("channel", "odd_steps", "OddSteps = odd_steps::{OddStepsConfig, OddSteps},"),
    Recipe("entity", "padded", "Padded = padded::{PaddedConfig, Padded},"),
    Recipe("medium", "shared", "Shared = shared::{SharedConfig, Shared},"),
    Recipe("load", "one_packet", "OnePacket = one_packet::{OnePacketConfig, OnePacket},"),
    Recipe("medium/rate", "half", "Half = half::{HalfConfig, Piecewise},"),
    Recipe("random", "either", "Either = either,", also="pub use either::Either;"),
)


def scratch_copy(folder: Path) -> Path:
    """Return a workspace of the crates of models alone."""
    manifest = (ROOT / "Cargo.toml").read_text()
    members = ", ".join(f'"crates/{name}"' for name in CRATES)
    manifest = re.sub(r"^members = .*$", f"members = [{members}]", manifest, flags=re.MULTILINE)
    (folder / "Cargo.toml").write_text(manifest)
    for name in ("Cargo.lock", "rust-toolchain.toml"):
        shutil.copy(ROOT / name, folder / name)
    for name in CRATES:
        shutil.copytree(ROOT / "crates" / name, folder / "crates" / name)
    # A dependency of tests alone, which are not compiled.
    models = folder / "crates/airpath-models/Cargo.toml"
    models.write_text(re.sub(r"^airpath-virtual.*\n", "", models.read_text(), flags=re.MULTILINE))
    return folder


def enrol(copy: Path, recipe: Recipe) -> Path:
    """Do what the recipe says; return the toy's file."""
    room = copy / "crates/airpath-models/src" / recipe.folder
    file = shutil.copy(TOYS / f"{recipe.module}.rs", room / f"{recipe.module}.rs")
    text = (room / "mod.rs").read_text()
    module = f"pub mod {recipe.module};\n" + (f"{recipe.also}\n" if recipe.also else "")
    text = re.sub(r"(?<!\]\n)^(?=(?:pub )?mod )", module, text, count=1, flags=re.MULTILINE)
    registry = re.compile(r"^((?:registry|distributions)! \{.*?)^\}", re.MULTILINE | re.DOTALL)
    assert len(registry.findall(text)) == 1
    line = f"    /// A toy.\n    {recipe.line}\n"
    (room / "mod.rs").write_text(registry.sub(lambda found: f"{found[1]}{line}}}", text))
    return Path(file)


def declare_cause(copy: Path) -> None:
    """Add a cause of drops where CONTRIBUTING says: one entry, with class, mark and words."""
    file = copy / "crates/airpath-core/src/event.rs"
    entry = """    Toy = "toy", Error, Circle Black, "toy":
        "A toy.",
"""
    text = file.read_text()
    declared = re.compile(r"^(causes! \{.*?)^\}", re.MULTILINE | re.DOTALL)
    assert len(declared.findall(text)) == 1
    file.write_text(declared.sub(lambda found: f"{found[1]}{entry}}}", text))


def check(copy: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Have the compiler look at the copy."""
    return subprocess.run(
        [*("cargo", "check", "--quiet", "--offline", "--package", "airpath-models")],
        cwd=copy, env={**os.environ, "CARGO_TARGET_DIR": str(target)},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_a_toy_of_each_role_is_one_file_and_its_lines(tmp_path: Path) -> None:
    copy = scratch_copy(tmp_path)
    files = {recipe.module: enrol(copy, recipe) for recipe in RECIPES}
    declare_cause(copy)
    told = check(copy, ROOT / "target/recipes")
    assert told.returncode == 0, told.stderr

    # A queue that does not say how its parameters change is refused; it would begin anew otherwise.
    toy = files["every_other"]
    toy.write_text(re.sub(r"impl Reconfigured.*?^}\n", "", toy.read_text(), flags=re.M | re.S))
    told = check(copy, ROOT / "target/recipes")
    assert told.returncode != 0
    assert "`EveryOtherConfig: Reconfigured` is not satisfied" in told.stderr


EXPERIMENT = """\
name = "toy"
[networks.link]
link = { rate = "2 Mbit/s", delay = "20 ms" }
[[workloads.work.programs]]
template = "relay"
rounds = 7
[[sets]]
name = "set"
network = "link"
workload = "work"
repetitions = 2
"""


@dataclass(frozen=True)
class Scratch:
    """A scratch copy of the Python package, and a folder for programs."""

    packages: Path
    programs: Path

    @property
    def templates(self) -> Path:
        """The folder of templates."""
        return self.packages / "airpath/experiment/templates"

    def airpath(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command of the copy where only the copy's folder of programs is in PATH."""
        places = {"PYTHONPATH": str(self.packages), "PATH": str(self.programs)}
        return subprocess.run(
            [sys.executable, "-c", START, *map(str, words)],
            env={**os.environ, **places, "AIRPATH_ENGINE": str(find_engine())},
            cwd=self.programs, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def install(self, *names: str) -> None:
        """Put programs where the copy finds them."""
        for name in names:
            (self.programs / name).write_text("#!/bin/sh\n")
            (self.programs / name).chmod(0o755)


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """Return a copy with the toy template, enrolled by what the recipe says."""
    copy = Scratch(tmp_path / "packages", tmp_path / "programs")
    copy.programs.mkdir()
    shutil.copytree(
        ROOT / "python/airpath",
        copy.packages / "airpath",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(TOYS / "relay.py", copy.templates / "relay.py")
    registry = copy.templates / "__init__.py"
    text = registry.read_text()
    first = text.index("from airpath.experiment.templates.")
    line = "from airpath.experiment.templates.relay import Relay\n"
    text = text[:first] + line + text[first:]
    entries = re.compile(r"^(TEMPLATES\b.*?)^\)", re.MULTILINE | re.DOTALL)
    assert len(entries.findall(text)) == 1
    registry.write_text(entries.sub(lambda found: f"{found[1]}    Relay,\n)", text))
    return copy


def written_to(folder: Path, text: str) -> Path:
    file = folder / "toy.toml"
    file.write_text(text)
    return file


def test_a_toy_template_is_in_the_schema(scratch: Scratch) -> None:
    told = scratch.airpath("schema", "--experiment")
    assert told.returncode == 0, told.stderr
    schema: dict[str, Any] = json.loads(told.stdout)
    toy = schema["$defs"].pop("Relay")
    assert toy["description"] == "A toy: one end sends, the other sends back."
    assert toy["properties"]["rounds"]["default"] == 3
    assert {"template", "port", "start", "time_limit"} <= set(toy["properties"])
    union = schema["$defs"]["Workload"]["properties"]["programs"]["items"]["oneOf"]
    assert union.pop() == {"$ref": "#/$defs/Relay"}
    assert schema == json.loads((ROOT / "schema/experiment.schema.json").read_text())


def test_a_toy_template_is_checked_and_planned(scratch: Scratch, tmp_path: Path) -> None:
    file = written_to(tmp_path, EXPERIMENT)
    scratch.install("toy-relay", "toy-clock")
    told = scratch.airpath("check", file)
    assert (told.returncode, told.stderr) == (0, "")
    told = scratch.airpath("plan", file, "--json")
    assert (told.returncode, told.stderr) == (0, "")
    plan = json.loads(told.stdout)
    assert plan["missing"] == []
    assert [cell["set"] for cell in plan["cells"]] == ["set"]

    wrong = EXPERIMENT.replace("rounds = 7", "rounds = 0\nturns = 1")
    told = scratch.airpath("check", written_to(tmp_path, wrong))
    assert told.returncode == 1
    assert "toy.toml:6: workloads.work.programs.0.rounds: must be 1 or more" in told.stderr
    assert "toy.toml:7: workloads.work.programs.0.turns: unknown key" in told.stderr
    told = scratch.airpath("check", written_to(tmp_path, EXPERIMENT.replace('"relay"', '"rely"')))
    assert "there is no template `rely`; did you mean `relay`?" in told.stderr
    warp = EXPERIMENT.replace('name = "toy"', 'name = "toy"\nclock = "warp"')
    told = scratch.airpath("check", written_to(tmp_path, warp))
    assert told.returncode == 1
    assert "workload `work`: relay knows no clock warp; take another" in told.stderr


def test_missing_programs_of_a_toy_template_are_named(scratch: Scratch, tmp_path: Path) -> None:
    told = scratch.airpath("plan", written_to(tmp_path, EXPERIMENT), "--json")
    assert json.loads(told.stdout)["missing"] == [
        f"{who}, which is not there: install it (Debian: apt-get install {package})"
        for who, package in (
            ("program `relay-1-server` needs `toy-relay`", "toy-relays"),
            ("program `relay-1` needs `toy-relay`", "toy-relays"),
            ("template `relay` needs `toy-clock`", "toy-clocks"),
        )
    ]


def test_the_output_of_a_toy_template_is_read(scratch: Scratch, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "programs").mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"results": {"verdict": {"grade": "trusted"}}}))
    record = {"name": "relay-1", "service": False, "elapsed_ns": 2 * 10**9}
    (run / "workload.json").write_text(json.dumps({"programs": [record]}))
    (run / "programs/relay-1.stdout").write_text("relay: 7 rounds\n")
    told = scratch.airpath("analyse", run, "--metrics", "program_*", "--csv")
    assert told.returncode == 0, told.stderr
    rows = csv.DictReader(told.stdout.splitlines())
    assert {(row["metric"], row["flow"]): float(row["value"]) for row in rows} == {
        ("program_elapsed", "relay-1"): 2.0,
        ("program_transfers", "relay-1"): 7.0,
    }


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        (r"    def programs.*?\n\n", "TypeError: Relay does not define programs"),
        (r"    template: .*?\n", "TypeError: Relay has no key `template"),
    ],
)
def test_a_toy_template_that_leaves_something_out_is_refused(
    scratch: Scratch, left_out: str, said: str
) -> None:
    toy = scratch.templates / "relay.py"
    text, count = re.subn(left_out, "", toy.read_text(), count=1, flags=re.DOTALL)
    assert count == 1
    toy.write_text(text)
    told = scratch.airpath("schema", "--experiment")
    assert told.returncode != 0
    assert said in told.stderr
