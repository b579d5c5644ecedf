"""CONTRIBUTING's recipes, tried. A model: one file, its ``mod`` line, one line in a registry.

A toy of each role goes into a scratch copy of the crate of models by nothing else, and the
compiler takes it; so does a cause of drops, an entry in one file. A toy that leaves out what its
registry needs is refused: nothing is forgotten in silence.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOYS = ROOT / "tests/recipes"
CRATES = ("airpath-core", "airpath-models")


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
