# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The plugin of pytest, as far as it needs no link: marks, and machines without a kernel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from airpath.testing.marks import KEYS, MarkError, read

Marks = list[tuple[tuple[Any, ...], Mapping[str, Any]]]

ROOT = Path(__file__).resolve().parent.parent


def run_tests(
    folder: Path, text: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest on a file of tests, in a folder of its own."""
    (folder / "test_it.py").write_text(f"import pytest\n{text}")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:cacheprovider\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )


def test_the_plugin_is_declared() -> None:
    found = [one.value for one in entry_points(group="pytest11") if one.name == "airpath"]
    assert found == ["airpath.pytest_plugin"], "run `make setup`"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"profile": "lte-cel"}, "there is no profile `lte-cel`\n     valid: lte-cell-edge"),
    ({"profil": "lte-good"}, "has no key `profil`; did you mean `profile`?"),
    ({"profile": "lte-good", "loss": "3x"}, "`3x` is not a probability"),
    ({"profile": "lte-good", "users": 3}, "3 users need a medium that they share"),
    ({"profile": "lte-good", "users": "3"}, "users='3' is not a whole number"),
    ({"scenario": "nowhere.toml"}, "cannot read the scenario"),
    ({"parameters": {"radio.link.rat": 1}}, "did you mean `"),
    ({"rate": "1 Mbit/s", "clock": "wrap"}, "clock='wrap': there is none; did you mean `warp`?"),
    ({"rate": "1 Mbit/s", "time_limit": "5"}, "time_limit: `5`"),
    ({"rate": "1 Mbit/s", "time_limit": "0 s"}, "leaves no time"),
    ({"rate": "1 Mbit/s", "strict": "yes"}, "strict='yes' is not True or False"),
]


@pytest.mark.parametrize(("keys", "said"), WRONG, ids=[said[:30] for _, said in WRONG])
def test_wrong_keys_are_told_with_what_is_right(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(MarkError) as raised:
        read([((), keys)], ROOT)
    assert said in str(raised.value)


def test_keys_of_nearer_marks_go_before_and_links_take_each_others_place(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[[hops]]\nname = "radio"\n')
    marks: Marks = [
        ((), {"profile": "lte-good", "loss": "1%", "clock": "warp"}),
        ((), {"scenario": "own.toml", "loss": "2%", "seed": 7}),
    ]
    settings = read(marks, tmp_path)
    assert settings.get("clock") == "warp"
    assert settings.link_words() == [
        *("--loss", "2%", "--scenario", str((tmp_path / "own.toml").resolve()), "--seed", "7")
    ]
    assert read(marks[:1], tmp_path).link_words() == [
        *("--profile", "lte-good", "--loss", "1%", "--seed", "1")
    ]


def test_wrong_marks_fail_before_any_test_runs(tmp_path: Path) -> None:
    done = run_tests(
        tmp_path,
        """
def test_good(): print("ran")
@pytest.mark.airpath(profile="wifi-god")
def test_profile(airpath_link): pass
@pytest.mark.airpath("wifi-good")
def test_bare(airpath_link): pass
""",
        "-s",
    )
    assert done.returncode == pytest.ExitCode.INTERRUPTED, done.stdout
    assert "ERROR collecting test_it.py" in done.stdout
    assert "test_it.py::test_profile: @pytest.mark.airpath: --profile: there is no" in done.stdout
    assert "test_it.py::test_bare: " in done.stdout
    assert "write profile='wifi-good'" in done.stdout
    assert "ran" not in done.stdout.split("ERRORS")[0]


def test_without_a_kernel_tests_fail_and_are_skipped_where_that_was_asked(tmp_path: Path) -> None:
    text = """
@pytest.mark.airpath(profile="wifi-good", clock="warp")
def test_usual(airpath_link): pass
@pytest.mark.airpath(profile="wifi-good", clock="warp", unavailable="skip")
def test_asked(airpath_link): pass
def test_without_a_mark(airpath_link): pass
"""
    nowhere = str(tmp_path / "nowhere")
    done = run_tests(tmp_path, text, AIRPATH_WARP_KERNEL=nowhere)
    assert re.search(r"= 1 skipped, 2 errors in", done.stdout), done.stdout
    reason = f"airpath: no kernel at {nowhere}; `airpath warp setup` builds one"
    assert done.stdout.count(reason) >= 2
    assert re.search(rf"^SKIPPED \[1\] test_it.py:\d+: {re.escape(reason)}$", done.stdout, re.M)
    assert "airpath_link needs a link: mark the test" in done.stdout
    skipping = run_tests(
        tmp_path, text, "--airpath-unavailable=skip", "-k", "usual", AIRPATH_WARP_KERNEL=nowhere
    )
    assert (skipping.returncode, "1 skipped" in skipping.stdout) == (0, True), skipping.stdout


def test_the_page_has_every_key_and_option() -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    table = page.partition("### The mark")[2].partition("###")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE))
    assert rows == {key.name: key.meaning for key in KEYS.values()}
    shown = run_help()
    options = set(re.findall(r"--airpath-[a-z]+", shown))
    assert len(options) == 5
    assert options == set(re.findall(r"--airpath-[a-z]+", page))


def run_help() -> str:
    """Return what ``pytest --help`` prints."""
    words = [sys.executable, "-m", "pytest", "--help", "-c", os.devnull]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_without_marks_nothing_else_of_the_package_is_imported(tmp_path: Path) -> None:
    done = run_tests(
        tmp_path,
        """
import sys
def test_modules():
    found = {name for name in sys.modules if name.startswith("airpath")}
    assert found == {"airpath", "airpath.pytest_plugin"}
""",
    )
    assert done.returncode == 0, done.stdout
