# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""An experiment that was read, and the error with all problems of one that cannot be."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from airpath.experiment.model import Workload
from airpath.experiment.positions import line_of
from airpath.experiment.problem import Problem
from airpath.experiment.validation import problems_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airpath.experiment.model import Experiment, Set
    from airpath.experiment.positions import Path as KeyPath

PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z0-9_.-]*)\s*\}\}")


class ExperimentError(Exception):
    """A file that cannot be run, with every problem found in it."""

    def __init__(self, problems: list[Problem], sound: Loaded | None = None) -> None:
        """Keep the problems, and what of the file can be checked further in spite of them."""
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
        self.sound = sound


@dataclass(frozen=True)
class Loaded:
    """An experiment that was read and found right as far as it tells by itself."""

    file: Path
    text: str
    experiment: Experiment
    raw: dict[str, Any]
    """The file's content, workloads complete, before parameters took the place of placeholders."""

    lines: dict[KeyPath, int] = field(repr=False)
    numbers: tuple[int, ...]
    """Numbers of the experiment's sets in the file, of which some may be left out."""

    def sets(self) -> Iterator[tuple[KeyPath, Set]]:
        """Yield the sets, each with its path in the file."""
        for number, one in zip(self.numbers, self.experiment.sets, strict=True):
            yield ("sets", number), one

    def problem(self, path: KeyPath, what: str) -> Problem:
        """Return a problem with the key at ``path``."""
        return Problem(str(self.file), line_of(self.lines, path), what, path)

    def workload(self, name: str, parameters: dict[str, Any]) -> Workload:
        """Return a workload with other values of its parameters.

        Raises:
            ExperimentError: the values do not fit where they stand.

        """
        raw = dict(self.raw["workloads"][name])
        raw["parameters"] = {**raw.get("parameters", {}), **parameters}
        try:
            return Workload.model_validate(with_values(raw, raw["parameters"], []))
        except ValidationError as error:
            base: KeyPath = ("workloads", name)
            problems = problems_of(error, str(self.file), self.lines, base, Workload)
            said = ", ".join(f"{key} = {value}" for key, value in parameters.items())
            raise ExperimentError(
                [Problem(p.file, p.line, f"{p.what} (with {said})") for p in problems]
            ) from error


def with_values(value: Any, parameters: Any, unknown: list[tuple[str, list[str]]]) -> Any:
    """Put parameters in the place of {{NAME}}; a string that is nothing else takes their type."""
    if isinstance(value, dict):
        return {
            key: inner if key == "parameters" else with_values(inner, parameters, unknown)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [with_values(inner, parameters, unknown) for inner in value]
    if not isinstance(value, str) or not isinstance(parameters, dict):
        return value

    def of(match: re.Match[str]) -> Any:
        if match[1] not in parameters:
            unknown.append((match[1], list(parameters)))
            return match[0]
        return parameters[match[1]]

    whole = PLACEHOLDER.fullmatch(value)
    return of(whole) if whole else PLACEHOLDER.sub(lambda match: str(of(match)), value)
