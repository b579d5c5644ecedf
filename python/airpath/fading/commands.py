# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``airpath fading show`` and ``airpath fading convert``."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.engine import EngineError, find_engine
from airpath.extras import require
from airpath.fading.statistics import SLOTS_PER_SECOND, Figure, measure
from airpath.fading.table import Table, TableError, of_text, read, write
from airpath.files import make_folder
from airpath.status import DONE, fail

if TYPE_CHECKING:
    from collections.abc import Iterable

PICTURES = (".png", ".svg", ".pdf")


class _EngineRefusal(Exception):  # noqa: N818
    """The engine refused a channel; it said why."""


def show(
    channel: str,
    *,
    slots: int,
    seed: int,
    slots_per_second: int | None,
    variable: str | None,
    out: Path | None,
    json_: bool,
) -> int:
    """Carry ``airpath fading show`` out."""
    if out is not None:
        if out.suffix not in PICTURES:
            return fail("fading show", f"--out {out} must end with .png, .svg or .pdf")
        require("plots", "airpath fading show --out")
    try:
        table = _table(channel, slots, seed, variable)
        rate = slots_per_second or table.theory.get("slots_per_second") or SLOTS_PER_SECOND
        figures = measure(table, rate)
        print(json.dumps([asdict(one) for one in figures]) if json_ else text_of(figures))
        if out is not None:
            from airpath.plots import fading

            make_folder(out.parent)
            name = "channel" if channel.lstrip().startswith("{") else Path(channel).name
            picture = fading.draw(table, rate, name)
            print(picture.save(out.parent, out.suffix[1:], name=out.stem), file=sys.stderr)
    except (_EngineRefusal, TableError, EngineError, OSError) as error:
        return fail("fading show", error)
    return DONE


def convert(input_: Path, output: Path, *, variable: str | None) -> int:
    """Carry ``airpath fading convert`` out."""
    try:
        table = read(input_, variable)
        write(output, table)
    except (TableError, OSError) as error:
        return fail("fading convert", error)
    slots, resources = table.decibels.shape
    print(f"airpath: {slots} slots of {resources} resources in {output}", file=sys.stderr)
    return DONE


def text_of(figures: Iterable[Figure]) -> str:
    """Return figures as a table."""

    def told_value(value: float | None) -> str:
        return "-" if value is None else f"{value:.4g}"

    rows = [("", "measured", "theory", "")]
    rows += [
        (one.name, told_value(one.measured), told_value(one.theory), one.unit) for one in figures
    ]
    width = max(len(row[0]) for row in rows)
    lines = [f"{name:<{width}}{a:>12}{b:>12}  {unit}".rstrip() for name, a, b, unit in rows]
    return "\n".join(lines)


def _table(channel: str, slots: int, seed: int, variable: str | None) -> Table:
    if not channel.lstrip().startswith("{") and not channel.endswith(".toml"):
        return read(Path(channel), variable)
    command = [find_engine(), "fading", "generate", channel, "-", "--quiet"]
    result = subprocess.run(
        [*command, "--slots", str(slots), "--seed", str(seed)], capture_output=True, check=False
    )
    if result.returncode != 0:
        raise _EngineRefusal(result.stderr.decode(errors="replace").strip())
    return of_text(result.stdout)
