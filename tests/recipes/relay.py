# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Template ``relay``: a toy, of programs that nobody has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from airpath.experiment.templates.template import Template

if TYPE_CHECKING:
    from airpath.experiment.keys import Program
    from airpath.experiment.templates.output import Output

_ROUNDS = re.compile(r"relay: (\d+) rounds")


class Relay(Template):
    """A toy: one end sends, the other sends back."""

    template: Literal["relay"]
    rounds: int = Field(default=3, ge=1, description="Rounds")
    port: int = Field(default=7007, ge=1, le=65535, description="The server's port")

    needs: ClassVar[Mapping[str, str]] = {"toy-relay": "toy-relays", "toy-clock": "toy-clocks"}

    def programs(self, name: str) -> list[Program]:
        """Return the two ends; the client starts `toy-clock` in its turn."""
        server = ["toy-relay", "serve", str(self.port)]
        client = ["toy-relay", "send", str(self.port), str(self.rounds)]
        return self.server_and_client(name, server, client, self.port)

    def unfit(self, clock: str) -> list[str]:
        """Return what cannot run by a clock, each with what can."""
        return ["relay knows no clock warp; take another"] if clock == "warp" else []

    @classmethod
    def recognises(cls, output: Output) -> bool:
        """Say whether the client printed this."""
        return _ROUNDS.match(output.text) is not None

    @classmethod
    def read(cls, output: Output) -> dict[str, float]:
        """Return the figures."""
        found = _ROUNDS.match(output.text)
        return {"program_transfers": float(found[1])} if found else {}
