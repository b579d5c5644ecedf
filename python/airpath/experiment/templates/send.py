# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Template ``send``: bulk transfers, or datagrams at a rate, by the engine itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from airpath.engine import find_engine
from airpath.experiment.keys import Amount, End, Rate, Time
from airpath.experiment.templates.reports import figures, is_report
from airpath.experiment.templates.template import Template, in_bytes

if TYPE_CHECKING:
    from airpath.experiment.keys import Program
    from airpath.experiment.templates.output import Output


_AT_ADDRESS = {
    family: ["/bin/sh", "-c", f'at=$(getent {words} server) && exec "$0" send "${{at%% *}}" "$@"']
    for family, words in (("ipv4", "ahostsv4"), ("ipv6", "ahostsv6"))
}
"""Command that sends to the server's address of a family; its arguments are the engine and the rest
of the options."""


class Send(Template):
    """``airpath send`` and ``airpath recv``."""

    template: Literal["send"]
    bytes: Amount | None = Field(default=None, description="How much to send: bytes, or `1 MB`")
    time: Time | None = Field(default=None, description="How long to send")
    sender: End = Field(default="server", description="The end that sends")
    parallel: int = Field(default=1, ge=1, le=128, description="Streams")
    congestion_control: str | None = Field(default=None, description="The sender's")
    udp_rate: Rate | None = Field(default=None, description="Datagrams at this rate instead of TCP")
    length: int | None = Field(default=None, ge=16, description="Payload of a datagram in bytes")
    family: Literal["ipv4", "ipv6"] | None = Field(
        default=None, description="Family of the addresses; without it, IPv6 where there is one"
    )
    port: int = Field(default=5201, ge=1, le=65535, description="The server's port")

    def programs(self, name: str) -> list[Program]:
        """Return a server, and the client of a transfer."""
        engine = find_engine()
        server = [engine, "recv", "--port", str(self.port)]
        client = [engine, "send", "server"]
        if self.family is not None:
            client = [*_AT_ADDRESS[self.family], engine]
        client += ["--port", str(self.port), "--json"]
        client += ["--bytes", str(in_bytes(self.bytes))] if self.bytes is not None else []
        client += ["--time", self.time] if self.time else []
        client += ["--reverse"] if self.sender == "server" else []
        client += ["--parallel", str(self.parallel)] if self.parallel > 1 else []
        client += ["--cc", self.congestion_control] if self.congestion_control else []
        client += ["--udp", "--rate", self.udp_rate] if self.udp_rate else []
        client += ["--length", str(self.length)] if self.length else []
        return self.server_and_client(name, server, client, self.port)

    @classmethod
    def recognises(cls, output: Output) -> bool:
        """Say whether it is a report of a transfer."""
        return is_report(output)

    @classmethod
    def read(cls, output: Output) -> dict[str, float]:
        """Return its figures."""
        return figures(output)
