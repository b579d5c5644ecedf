# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The shape that a value of JSON has to have: what does not fit is left out, and told by its place.

A shape is a type, a tuple of types, a range of whole numbers, a list of one shape, an ``Object``,
or ``Each``. Who reads a value of a shape need not ask again of what type it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Object:
    """An object with known keys; other keys are left alone, for a later version may add some."""

    fields: dict[str, Any]
    needed: tuple[str, ...] = ()
    """Keys without which it says nothing."""


@dataclass(frozen=True)
class Each:
    """An object whose values are all of one shape, whatever their keys are."""

    shape: Any


NUMBER = (int, float)
SCALAR = (str, int, float, bool)
TIME = range(2**63)
"""Nanoseconds, or what else a column of signed numbers holds."""


class MisfitError(ValueError):
    """A value does not fit where it stands; the message says what stands there, and where."""


def fitting(value: Any, shape: Any, wrong: list[str], place: str = "") -> Any:
    """Return a value without what does not fit into its shape.

    Args:
        value: of JSON.
        shape: what it shall be.
        wrong: told what was left out.
        place: where it stands.

    Raises:
        MisfitError: it does not fit as a whole.

    """
    if isinstance(shape, Each | Object):
        return _object(value, shape, wrong, place)
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise _misfit(place, value, "a list")
        kept = []
        for number, inner in enumerate(value):
            try:
                kept.append(fitting(inner, shape[0], wrong, f"{place}[{number}]"))
            except MisfitError as error:
                wrong.append(str(error))
        return kept
    if isinstance(shape, range):
        if isinstance(value, bool) or not isinstance(value, int) or value not in shape:
            raise _misfit(place, value, "a whole number of 63 bits")
    elif not isinstance(value, shape) or (isinstance(value, bool) and shape not in (bool, SCALAR)):
        raise _misfit(place, value, _WORDS[shape])
    return value


def _object(value: Any, shape: Each | Object, wrong: list[str], place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _misfit(place, value, "an object")
    found = {}
    for key, inner in value.items():
        its = shape.shape if isinstance(shape, Each) else shape.fields.get(key)
        # What is null was not known.
        if its is not None and inner is None:
            continue
        where = f"{place}.{key}" if place else key
        try:
            found[key] = inner if its is None else fitting(inner, its, wrong, where)
        except MisfitError as error:
            wrong.append(str(error))
    missing = [key for key in shape.needed if key not in found] if isinstance(shape, Object) else ()
    if missing:
        message = f"{place or 'it'} has no {missing[0]} that can be read"
        raise MisfitError(message)
    return found


_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    str: "text",
    dict: "an object",
    NUMBER: "a number",
    SCALAR: "a number or text",
}


def _misfit(place: str, value: Any, wanted: str) -> MisfitError:
    return MisfitError(f"{place or 'the content'} is {value!r:.40}, not {wanted}")
