"""What `airpath report` does: reads, writes the page whole or not at all, says what went wrong."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.report import write_report
from airpath.report.files import write_figures, write_tables, write_xplot
from airpath.report.material import load_material
from airpath.run import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "report.html"


def write(
    directories: Sequence[Path],
    *,
    out: Path | None,
    title: str | None,
    pictures: int,
    figures: Path | None = None,
    file_format: str = "png",
    csv: Path | None = None,
    xplot: Path | None = None,
    experiment: Path | None = None,
) -> int:
    """Write the page, and files where folders are named; print all paths; return the status."""
    if pictures < 0:
        print(f"airpath report: --pictures {pictures} must not be negative", file=sys.stderr)
        return 2
    target = out or (directories[0] / NAME if len(directories) == 1 else Path(NAME))
    if target.is_dir():
        print(f"airpath report: --out {target} is a folder; name a file", file=sys.stderr)
        return 2
    try:
        material = load_material(directories, title, pictures, experiment)
        number = len(material.entries)
        runs = f"{number:,} run" + ("" if number == 1 else "s")
        page = write_report(material, lambda section: _progress(f"{runs}: {section}"))
        files: list[Path] = []
        if figures is not None:
            _progress(f"{runs}: figures")
            files += write_figures(material, figures, file_format)
        if csv is not None:
            _progress(f"{runs}: tables")
            files += write_tables(material, csv)
        if xplot is not None:
            _progress(f"{runs}: xplot")
            files += write_xplot(material, xplot)
        _progress("")
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(target, page)
    except (RunError, OSError) as error:
        _progress("")
        print(f"airpath report: {error}", file=sys.stderr)
        return 1
    for path in [*files, target]:
        print(path)
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
