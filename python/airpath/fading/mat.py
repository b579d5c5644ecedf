# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Real matrices of MAT-files of level 5.

Source: The MathWorks, MAT-File Format (level 5). SciPy's reader is not used, because some damaged
files end the process that reads them.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_HEADER_BYTES = 128
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
"""Types of numbers."""
_NUMERIC = range(6, 16)
"""Classes of arrays of numbers."""
_COMPLEX = 0x800
_MOST_BYTES = 1 << 30
"""Of a compressed matrix: a damaged one may claim any length."""


class MatError(Exception):
    """A file is no such MAT-file; the message says why."""


def matrices(content: bytes) -> dict[str, NDArray[np.float64]]:
    """Return the real matrices of two dimensions in a file, by name.

    Raises:
        MatError: it is no MAT-file of level 5, or damaged.

    """
    if len(content) < _HEADER_BYTES or content[126:128] not in (b"IM", b"MI"):
        if content.startswith((b"\x89HDF", b"MATLAB 7.3")):
            message = "it is a MAT-file of version 7.3; save it with -v7"
        else:
            message = "it is no MAT-file of level 5"
        raise MatError(message)
    order = "<" if content[126:128] == b"IM" else ">"
    if struct.unpack(f"{order}H", content[124:126])[0] != 0x0100:
        message = "it is a MAT-file of another version than level 5; save it with -v7"
        raise MatError(message)
    found = {}
    for kind, whole in _elements(content[_HEADER_BYTES:], order):
        data = whole
        if kind == _COMPRESSED:
            kind, data = _inflated(whole, order)
        if kind == _MATRIX and (matrix := _matrix(data, order)):
            found[matrix[0]] = matrix[1]
    return found


def _inflated(data: bytes, order: str) -> tuple[int, bytes]:
    inflater = zlib.decompressobj()
    try:
        inside = inflater.decompress(data, _MOST_BYTES)
    except zlib.error as error:
        message = f"a matrix cannot be decompressed: {error}"
        raise MatError(message) from error
    if inflater.unconsumed_tail:
        message = "a matrix is longer than 1 GiB"
        raise MatError(message)
    return next(_elements(inside, order), (0, b""))


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield type and data of each element."""
    at = 0
    while at + 8 <= len(data):
        kind, length = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:
            # A small element has its data within the tag.
            length, kind, begin, following = kind >> 16, kind & 0xFFFF, at + 4, at + 8
        else:
            begin = at + 8
            # Compressed elements alone are not filled up to eight bytes.
            following = begin + (length if kind == _COMPRESSED else -(-length // 8) * 8)
        if begin + length > len(data) or (begin == at + 4 and length > 4):
            message = "it ends within a matrix"
            raise MatError(message)
        yield kind, data[begin : begin + length]
        at = following


def _matrix(data: bytes, order: str) -> tuple[str, NDArray[np.float64]] | None:
    """Return name and values of a matrix; nothing if it is no real matrix of two dimensions."""
    parts = list(_elements(data, order))
    if len(parts) < 4 or len(parts[0][1]) < 8 or len(parts[1][1]) % 4:
        return None
    (flags,) = struct.unpack(f"{order}I", parts[0][1][:4])
    shape = np.frombuffer(parts[1][1], f"{order}i4")
    kind, values = parts[3]
    if flags & 0xFF not in _NUMERIC or flags & _COMPLEX or len(shape) != 2 or kind not in _NUMBERS:
        return None
    numbers = np.dtype(f"{order}{_NUMBERS[kind]}")
    rows, columns = (int(number) for number in shape)
    if rows < 0 or columns < 0 or rows * columns * numbers.itemsize != len(values):
        message = f"a matrix of {rows} by {columns} has {len(values)} bytes"
        raise MatError(message)
    # Column by column, as MATLAB stores matrices.
    matrix = np.frombuffer(values, numbers).astype(np.float64).reshape(columns, rows).T
    return parts[2][1].decode(errors="replace"), matrix
