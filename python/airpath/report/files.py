# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Content of a page as files: pictures, tables, and diagrams for xplot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from airpath.files import make_folder, write_whole
from airpath.plots import KINDS, draw, xplot
from airpath.plots.style import Span
from airpath.report import beside, comparison, gallery
from airpath.run import RunError

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.report.material import Material


def write_figures(material: Material, folder: Path, file_format: str) -> list[Path]:
    """Write all pictures: those of sets and sweeps, and those of the first runs."""
    make_folder(folder)
    written = [
        picture.save(folder, file_format, name=name)
        for name, picture in [*gallery.of_sweeps(material, []), *gallery.of_sets(material, [])]
    ]
    for entry in material.with_pictures:
        try:
            pictures = draw(entry.open(), KINDS, Span())
        except RunError as error:
            entry.run.notes.append(str(error))
            continue
        prefix = gallery.identity(entry.label)
        written += [
            picture.save(folder, file_format, name=f"{prefix}-{picture.name}")
            for picture in pictures
        ]
    return written


def write_tables(material: Material, folder: Path) -> list[Path]:
    """Write values of all runs, figures of sets, and comparisons, as CSV."""
    make_folder(folder)
    measured = material.measured
    tables = {
        "values": measured.values,
        "sets": measured.summary.with_columns(pl.col("outliers").list.join(" ")),
    }
    if material.presentation.beside:
        tables["references"] = beside.table(material)
    if measured.comparisons:
        tables["comparisons"] = comparison.table(measured.comparisons)
    written = []
    for name, table in tables.items():
        path = folder / f"{name}.csv"
        write_whole(path, table.write_csv())
        written.append(path)
    return written


def write_xplot(material: Material, folder: Path) -> list[Path]:
    """Write a file for each TCP transfer of each run."""
    make_folder(folder)
    written = []
    for entry in material.entries:
        try:
            written += xplot.save(entry.open(), folder, f"{gallery.identity(entry.label)}-")
        except RunError as error:
            entry.run.notes.append(str(error))
    return written
