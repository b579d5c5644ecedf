# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Recipes of continuous integration: their commands exist, with the options that they use."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from airpath.commandline import parse
from airpath.declarations import DECLARATIONS
from experiments import SMALL

ROOT = Path(__file__).resolve().parent.parent
WORKFLOW = ROOT / "examples" / "ci" / "airpath.yml"
RECIPE = ROOT / "examples" / "ci" / "Containerfile"


def scripts() -> list[str]:
    """Return the commands of the workflow's steps."""
    text = WORKFLOW.read_text()
    blocks = re.findall(r"^ +run: \|\n((?: {10}.*\n)+)", text, re.MULTILINE)
    return blocks + re.findall(r"^ +run: (\w.*)$", text, re.MULTILINE)


def test_the_commands_of_the_workflow_are_understood() -> None:
    found = 0
    for script in scripts():
        subprocess.run(["sh", "-n"], input=script, text=True, check=True)
        script = script.replace("\\\n", " ")
        words = shlex.split(
            script.replace('${EXPECT:+--expect "$EXPECT"}', "--expect 'elapsed < 2'")
        )
        if words[0] == "airpath":
            parse(DECLARATIONS[words[1]], words[2:])
            found += 1
        else:
            words = [word for word in words[1:] if word.startswith("--")]
            help_words = [sys.executable, "-m", "pytest", "--help", "-c", os.devnull]
            shown = subprocess.run(help_words, capture_output=True, text=True, check=True).stdout
            assert words
            # pytest shows --junit-xml, and also takes the older spelling.
            named = [word.partition("=")[0].replace("junitxml", "junit-xml") for word in words]
            assert all(word in shown for word in named), named
    assert found == 2


@pytest.mark.parametrize(("expect", "status"), [("", 0), ("elapsed < 0.1", 1)])
def test_the_step_of_the_experiment_runs(expect: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL[SMALL.index("name") : SMALL.index("[[sets]]")] + SET)
    (step,) = [script for script in scripts() if "airpath run" in script]
    start = f"exec {shlex.quote(sys.executable)} -c 'import sys; from airpath.cli import main; "
    (tmp_path / "airpath").write_text(f'#!/bin/sh\n{start}sys.exit(main())\' "$@"\n')
    (tmp_path / "airpath").chmod(0o755)
    given = {
        "EXPERIMENT": "small.toml",
        "EXPECT": expect,
        "GITHUB_STEP_SUMMARY": "page.md",
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    (tmp_path / "airpath-results").mkdir()
    done = subprocess.run(
        ["sh", "-e", "-c", step], cwd=tmp_path, env={**os.environ, **given}, check=False
    )
    assert done.returncode == status
    page = (tmp_path / "page.md").read_text()
    assert page.startswith(f"### experiment: {1 - status} of 1 run passed")
    assert (tmp_path / "airpath-results" / "experiment.xml").is_file()


SET = """\
[[sets]]
name = "one"
network = "gprs"
workload = "bulk"
repetitions = 1
"""


def test_the_recipe_of_the_image_names_what_is_there() -> None:
    text = RECIPE.read_text().replace("\\\n", " ")
    commands = re.findall(r"^RUN (.*)$", text, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        subprocess.run(["sh", "-n"], input=command, text=True, check=True)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"\bmake (\w+)", " ".join(commands))) <= set(targets)
    instructions = {line.split()[0] for line in text.splitlines() if line and line[0] not in "# "}
    assert instructions == {"FROM", "RUN", "COPY", "WORKDIR", "ENV", "CMD"}


def test_an_image_runs_the_tests_of_the_sample() -> None:
    """Its base comes from a registry, and its build takes long: whoever has an image names it."""
    run = shlex.split(os.environ.get("AIRPATH_IMAGE_RUN", ""))
    if not run:
        pytest.skip(
            "no image is named: podman build --file examples/ci/Containerfile --tag airpath . "
            "and AIRPATH_IMAGE_RUN='podman run --rm --security-opt seccomp=unconfined "
            "--device /dev/net/tun airpath'"
        )
    sample = ["--volume", f"{ROOT / 'examples' / 'retrying-client'}:/sample:ro"]
    tests = ["pytest", "-q", "-p", "no:cacheprovider", "--airpath-clock=warp", "/sample"]
    words = [*run[:-1], *sample, run[-1], *tests]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
