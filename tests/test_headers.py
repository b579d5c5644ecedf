# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``scripts/headers``: SPDX lines at the top of source files, checked and written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HASH = "# SPDX-FileCopyrightText: The Airpath authors\n# SPDX-License-Identifier: Apache-2.0\n"
SLASHES = HASH.replace("#", "//")


def headers(mode: str, file: Path) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts" / "headers"), mode, str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("lib.rs", "//! A crate.\n", f"{SLASHES}\n//! A crate.\n"),
        ("mod.py", '"""A module."""\n', f'{HASH}\n"""A module."""\n'),
        ("__init__.py", "", HASH),
        ("step.c", "int main;\n", f"{SLASHES}\nint main;\n"),
        ("tool", "#!/bin/sh\n# Usage: tool\n", f"#!/bin/sh\n{HASH}# Usage: tool\n"),
    ],
)
def test_a_header_is_written_once(name: str, before: str, after: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(before)
    missing = headers("--check", file)
    assert missing.returncode == 1
    assert f"{name}: has no SPDX lines" in missing.stdout
    assert file.read_text() == before
    for _ in range(2):
        assert headers("--write", file).returncode == 0
        assert file.read_text() == after
    assert headers("--check", file).returncode == 0


def test_another_licence_is_told_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "other.py"
    file.write_text("# SPDX-License-Identifier: MIT\n")
    for mode in ("--check", "--write"):
        result = headers(mode, file)
        assert result.returncode == 1
        assert "other SPDX lines" in result.stdout
    assert file.read_text() == "# SPDX-License-Identifier: MIT\n"
