# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Template ``interactive``: keystrokes and their echoes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from airpath.experiment.keys import Time
from airpath.experiment.quantities import time_ns
from airpath.experiment.templates.reports import figures, is_report
from airpath.experiment.templates.template import Template, python

if TYPE_CHECKING:
    from airpath.experiment.keys import Program
    from airpath.experiment.templates.output import Output


class Interactive(Template):
    """Small requests and responses in turn over one connection, as a remote shell has them."""

    template: Literal["interactive"]
    count: int = Field(default=50, ge=1, description="Requests")
    request: int = Field(default=48, ge=1, description="Bytes of a request")
    response: int = Field(default=96, ge=1, description="Bytes of a response")
    think: Time = Field(
        default="0 s", description="From a response to the next request; with exponential the mean"
    )
    think_times: Literal["fixed", "exponential"] = Field(
        default="fixed", description="exponential: drawn anew each time, by the replication's seed"
    )
    port: int = Field(default=5201, ge=1, le=65535, description="The server's port")

    def programs(self, name: str) -> list[Program]:
        """Return the end that answers, and the end that types."""
        keys = python("interactive.py")
        lengths = [str(self.port), str(self.request), str(self.response)]
        client = [*keys, "type", *lengths, str(self.count)]
        client += [f"{time_ns(self.think) / 1e9:g}", self.think_times]
        return self.server_and_client(name, [*keys, "serve", *lengths], client, self.port)

    @classmethod
    def recognises(cls, output: Output) -> bool:
        """Say whether it is a report with the keys of airpath send."""
        return is_report(output)

    @classmethod
    def read(cls, output: Output) -> dict[str, float]:
        """Return its figures."""
        return figures(output)
