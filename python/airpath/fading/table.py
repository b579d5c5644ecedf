# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Files of signal-to-noise ratios in decibels: a row for each slot, a column for each resource.

Text (as ``airpath fading generate`` writes it and recorded channels read it), Parquet,
MAT-files of level 5, and arrays of NumPy, which are read only; the suffix of a file is its format.
Text alone keeps the theory of the channel.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from airpath.fading.arrays import SUFFIXES, ArrayError, arrays, decibels
from airpath.fading.mat import MatError, matrices
from airpath.files import read_bytes, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

MOST_DECIBELS = 300.0
"""As the engine: beyond, powers are no numbers in single precision."""
VARIABLE = "snr_db"
"""Name of the matrix in MAT-files, and beginning of the names of columns in Parquet files."""
_THEORY = "# theory: "


class TableError(Exception):
    """A file holds no such table; the message says where and why."""


@dataclass(frozen=True)
class Table:
    """Signal-to-noise ratios."""

    decibels: NDArray[np.float64]
    """By slot and resource."""
    theory: dict[str, Any] = field(default_factory=dict)
    """Properties of the channel, as the engine writes them; empty if not known."""


def read(path: Path, variable: str | None = None) -> Table:
    """Return the table in a file.

    Args:
        path: the file.
        variable: name of the matrix in a MAT-file or of the array in a .npz file; needed if there
            are several.

    Raises:
        OSError: it cannot be read.
        TableError: it holds none.

    """
    content = read_bytes(path)
    try:
        if path.suffix == ".parquet":
            return _of_parquet(content)
        if path.suffix == ".mat":
            return _of_mat(content, variable)
        if path.suffix in SUFFIXES:
            return _of_arrays(content, variable)
        return of_text(content)
    except TableError as error:
        message = f"{path}: {error}"
        raise TableError(message) from error


def write(path: Path, table: Table) -> None:
    """Write a table; the suffix is the format.

    Raises:
        OSError: it cannot be written.
        TableError: files of this suffix are not written.

    """
    if path.suffix in SUFFIXES:
        message = f"{path}: arrays of NumPy are read only; write text, .parquet or .mat"
        raise TableError(message)
    content = io.BytesIO()
    if path.suffix == ".parquet":
        import polars as pl

        columns = {f"{VARIABLE}_{number}": values for number, values in enumerate(table.decibels.T)}
        pl.DataFrame(columns).write_parquet(content)
    elif path.suffix == ".mat":
        from scipy.io import savemat

        savemat(content, {VARIABLE: table.decibels}, format="5", do_compression=True)
    else:
        head = f"{_THEORY}{json.dumps(table.theory)}\n" if table.theory else ""
        content.write(f"{head}# decibels, a line for each slot\n".encode())
        np.savetxt(content, table.decibels, fmt="%.3f", delimiter=",")
    write_whole(path, content.getvalue())


def of_text(content: bytes) -> Table:
    """Return the table in a text.

    Raises:
        TableError: it holds none; the message names line and column.

    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        message = f"it is no text (at byte {error.start})"
        raise TableError(message) from error
    rows: list[list[float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        content_of_line = line.partition("#")[0].strip()
        if content_of_line:
            row = _row(content_of_line, f"line {number}")
            if rows and len(row) != len(rows[0]):
                message = (
                    f"line {number}: {len(row)} numbers, but {len(rows[0])} in the lines before"
                )
                raise TableError(message)
            rows.append(row)
    if not rows:
        message = "there is no number in it"
        raise TableError(message)
    return Table(np.array(rows), _theory(text))


def _row(line: str, where: str) -> list[float]:
    row: list[float] = []
    for part in line.replace(";", ",").split(","):
        if not part.strip():
            message = f"{where}, column {len(row) + 1}: there is no number"
            raise TableError(message)
        for word in part.split():
            try:
                value = float(word)
            except ValueError:
                value = np.nan
            if not abs(value) <= MOST_DECIBELS:
                message = (
                    f"{where}, column {len(row) + 1}: `{word}` is no number of decibels "
                    f"from -300 to 300"
                )
                raise TableError(message)
            row.append(value)
    return row


def _theory(text: str) -> dict[str, Any]:
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if line.startswith(_THEORY):
            try:
                theory = json.loads(line.removeprefix(_THEORY))
            except ValueError:
                return {}
            return theory if isinstance(theory, dict) else {}
    return {}


def _of_parquet(content: bytes) -> Table:
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(content))
    # A damaged file raises whatever it leads to.
    except (Exception, pl.exceptions.PanicException) as error:
        message = f"it is no Parquet file: {(str(error).splitlines() or [''])[0]}"
        raise TableError(message) from error
    for name, kind in frame.schema.items():
        if not kind.is_numeric():
            message = f"column `{name}` holds {kind}, not numbers"
            raise TableError(message)
    return _checked(frame.cast(pl.Float64).to_numpy(), frame.columns)


def _of_mat(content: bytes, variable: str | None) -> Table:
    try:
        found = matrices(content)
    except MatError as error:
        raise TableError(str(error)) from error
    return _checked(found[_chosen(found, variable, "matrix", "real matrices")])


def _of_arrays(content: bytes, variable: str | None) -> Table:
    try:
        found = arrays(content)
        return _checked(decibels(found[_chosen(found, variable, "array", "arrays")]))
    except ArrayError as error:
        raise TableError(str(error)) from error


def _chosen(found: Mapping[str, object], variable: str | None, noun: str, all_of_them: str) -> str:
    """Return the name of the matrix that is meant."""
    if variable is None and len(found) > 1 and VARIABLE in found:
        return VARIABLE
    if variable is None and len(found) == 1:
        return next(iter(found))
    if variable is None or variable not in found:
        names = ", ".join(sorted(found)) or "none"
        wanted = f"which {noun} is not said" if variable is None else f"`{variable}` is no {noun}"
        message = f"{wanted}; {all_of_them} are {names} (--variable)"
        raise TableError(message)
    return variable


def _checked(decibels: NDArray[np.float64], names: list[str] | None = None) -> Table:
    if decibels.size == 0:
        message = "there is no number in it"
        raise TableError(message)
    wrong = np.argwhere(~(np.abs(decibels) <= MOST_DECIBELS))
    if len(wrong):
        row, column = (int(place) for place in wrong[0])
        name = f" (`{names[column]}`)" if names else ""
        message = (
            f"row {row + 1}, column {column + 1}{name}: {decibels[row, column]:g} is no number of "
            f"decibels from -300 to 300"
        )
        raise TableError(message)
    return Table(decibels)
