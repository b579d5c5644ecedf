# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Arrays of NumPy: signal-to-noise ratios in decibels, or complex frequency responses.

Sionna and Sionna RT give frequency responses as complex arrays whose last two axes are time steps
and subcarriers (``cir_to_ofdm_channel``, ``paths.cfr``); the axes before tell links and antennas
apart.
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIXES = (".npz", ".npy")
_TABLE_AXES = 2


class ArrayError(Exception):
    """A file holds no such array; the message says why."""


def arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by name; the only one of a .npy file has no name.

    Raises:
        ArrayError: it is no file of arrays, or damaged.

    """
    try:
        found = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(found, np.ndarray):
            return {"": found}
        return {name: found[name] for name in found.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, MemoryError) as error:
        message = f"it is no file of NumPy arrays: {(str(error).splitlines() or [''])[0]}"
        raise ArrayError(message) from error


def decibels(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return ratios in decibels by slot and resource.

    Args:
        array: ratios in decibels, or a complex frequency response, whose mean power becomes 0 dB;
            the last two axes are slots and resources, all others have one place.

    Raises:
        ArrayError: it has another shape, or is no array of numbers.

    """
    if array.dtype.kind not in "iufc":
        message = f"the array holds {array.dtype}, not numbers"
        raise ArrayError(message)
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim < _TABLE_AXES or array.size == 0:
        message = f"the array has the shape {array.shape}; it needs slots and resources"
        raise ArrayError(message)
    if array.size != array.shape[-2] * array.shape[-1]:
        one = "0, " * (array.ndim - _TABLE_AXES)
        message = (
            f"the array has the shape {array.shape}: only the last two axes, slots and "
            f"resources, may be longer than 1; save one link of it, such as h[{one}:, :]"
        )
        raise ArrayError(message)
    array = array.reshape(array.shape[-2:])
    if array.dtype.kind != "c":
        return array.astype(np.float64)
    power = np.abs(array.astype(np.complex128)) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: NDArray[np.float64] = 10 * np.log10(power / power.mean())
    return ratios
