# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The base of templates: what one has to say, and words that several use."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airpath.experiment.keys import Common, Program, Ready
from airpath.experiment.quantities import length_bytes

if TYPE_CHECKING:
    from airpath.experiment.templates.output import Output

ENDS = Path(__file__).parent / "ends"
"""Folder of the programs that belong to templates."""


class Template(Common, ABC):
    """A template: its keys are fields, the first of which is ``template: Literal["NAME"]``."""

    needs: ClassVar[Mapping[str, str]] = {}
    """Programs that must be installed, and the Debian package of each. Programs that those of the
    template start in their turn are named too: nothing else tells them."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Refuse a template that leaves out what each must have.

        Raises:
            TypeError: it has no key ``template``, or makes no programs.

        """
        if "template" not in cls.model_fields:
            message = f'{cls.__name__} has no key `template: Literal["NAME"]`'
            raise TypeError(message)
        if cls.__abstractmethods__:
            message = f"{cls.__name__} does not define {', '.join(sorted(cls.__abstractmethods__))}"
            raise TypeError(message)

    @classmethod
    def tag(cls) -> str:
        """Return the template's name in experiment files."""
        return str(get_args(cls.model_fields["template"].annotation)[0])

    @abstractmethod
    def programs(self, name: str) -> list[Program]:
        """Return the programs of both ends.

        Args:
            name: what the program with the figures is called; names of others begin with it.

        """

    def unfit(self, clock: str) -> list[str]:
        """Return what cannot run by a clock, each with what can."""
        return []

    @classmethod
    def recognises(cls, output: Output) -> bool:
        """Say whether a program of this template may have printed this."""
        return False

    @classmethod
    def read(cls, output: Output) -> dict[str, float]:
        """Return the figures of an output that is recognised, by the names of their metrics.

        Raises:
            ValueError, TypeError, KeyError: it is none of this template after all.

        """
        return {}

    def common(self) -> dict[str, Any]:
        """Return the keys that every program has, without its name."""
        return self.model_dump(include={"start", "time_limit", "environment", "user"})

    def server_and_client(
        self, name: str, server: list[str], client: list[str], port: int
    ) -> list[Program]:
        """Return a server that listens before t = 0, and a client that starts by the keys.

        In a cell of several users the server serves the clients of all of them.
        """
        common = self.common()
        return [
            Program(
                name=f"{name}-server",
                end="server",
                command=server,
                ready=Ready(port=port),
                **{**common, "start": "0 s", "user": None},
            ),
            Program(name=name, end="client", command=client, **common),
        ]


def python(script: str) -> list[str]:
    """Return the command of a program in ``ENDS``.

    With the standard library alone, so that it starts quickly.
    """
    return [sys.executable, "-I", "-S", str(ENDS / script)]


def in_bytes(amount: int | str) -> int:
    """Return a length that is given in bytes or with a unit."""
    return amount if isinstance(amount, int) else length_bytes(amount)
