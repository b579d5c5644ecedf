# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The check that no modules import one another in a circle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def check(folder: Path, **modules: str) -> subprocess.CompletedProcess[str]:
    """Check a package with modules of the text given; two underscores stand for a folder."""
    package = folder / "toy"
    for name, text in {"__init__": "", **modules}.items():
        file = package / (name if name == "__init__" else name.replace("__", "/"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".py").write_text(text)
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "check-circles", package],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


BACK = {
    "plain": "from toy.a import thing\n",
    "of the package": "from toy import a\n",
    "relative": "from . import a\n",
    "relative to a name": "from .a import thing\n",
    "whole": "import toy.a\n",
    "in a function": "def f():\n    from toy.a import thing\n",
    "for type checkers": "if TYPE_CHECKING:\n    from toy.a import thing\n",
}


@pytest.mark.parametrize("back", BACK.values(), ids=BACK)
def test_a_circle_is_found_however_it_is_hidden(back: str, tmp_path: Path) -> None:
    found = check(tmp_path, a="from toy import b\n", b="import toy.c\n", c=back)
    assert found.returncode == 1
    assert "3 modules import one another: toy.a, toy.b, toy.c" in found.stdout
    assert "toy.a -> toy.b -> toy.c -> toy.a" in found.stdout


def test_a_package_within_is_a_module_too(tmp_path: Path) -> None:
    modules = {"a": "from toy.inner.b import x\n", "inner__b": "from ..a import y\n"}
    assert "toy.a, toy.inner.b" in check(tmp_path, **modules).stdout
    modules["inner__b"] = "from ...toy_else.a import y\n"
    assert check(tmp_path, **modules).returncode == 0


def test_what_has_an_order_passes(tmp_path: Path) -> None:
    found = check(
        tmp_path,
        a="from toy import b, c\nimport os\n",
        b="from toy.c import x\n",
        c="from __future__ import annotations\n",
    )
    assert found.returncode == 0, found.stdout
    assert found.stdout == "4 modules, 0 circles, 0 modules in them\n"


def test_two_circles_are_told_apart(tmp_path: Path) -> None:
    found = check(
        tmp_path,
        a="import toy.b\n",
        b="import toy.a\nimport toy.c\n",
        c="import toy.d\n",
        d="import toy.c\n",
    )
    assert "2 modules import one another: toy.a, toy.b\n" in found.stdout
    assert "2 modules import one another: toy.c, toy.d\n" in found.stdout


def test_a_folder_without_modules_is_refused(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    script = ROOT / "scripts" / "check-circles"
    assert subprocess.run([sys.executable, script, tmp_path / "toy"], check=False).returncode == 2
