"""What `airpath report` does: reads, writes the page whole or not at all, says what went wrong."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.report import write_report
from airpath.report.material import load_material
from airpath.run import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "report.html"


def write(
    directories: Sequence[Path], *, out: Path | None, title: str | None, pictures: int
) -> int:
    """Write the page and print its path; return the exit status."""
    if pictures < 0:
        print(f"airpath report: --pictures {pictures} must not be negative", file=sys.stderr)
        return 2
    target = out or (directories[0] / NAME if len(directories) == 1 else Path(NAME))
    if target.is_dir():
        print(f"airpath report: --out {target} is a folder; name a file", file=sys.stderr)
        return 2
    try:
        material = load_material(directories, title, pictures)
        number = len(material.entries)
        runs = f"{number:,} run" + ("" if number == 1 else "s")
        page = write_report(material, lambda section: _progress(f"{runs}: {section}"))
        _progress("")
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(target, page)
    except (RunError, OSError) as error:
        _progress("")
        print(f"airpath report: {error}", file=sys.stderr)
        return 1
    print(target)
    return 0


def _write_whole(target: Path, page: str) -> None:
    """Put a file into place when it is complete, so that none is left torn."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _progress(text: str) -> None:
    """Show on a terminal what is being made; nothing else is told."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
