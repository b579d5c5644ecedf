# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Template ``iperf3``: bulk transfers, or datagrams at a rate, by iperf3."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from airpath.experiment.keys import Amount, End, Rate, Time
from airpath.experiment.quantities import rate_bps, time_ns
from airpath.experiment.templates.reports import figures, is_report
from airpath.experiment.templates.template import Template, in_bytes

if TYPE_CHECKING:
    from airpath.experiment.keys import Program
    from airpath.experiment.templates.output import Output


class Iperf3(Template):
    """iperf3 at both ends; its JSON is kept."""

    template: Literal["iperf3"]
    bytes: Amount | None = Field(default=None, description="How much to send: bytes, or `1 MB`")
    time: Time | None = Field(default=None, description="How long to send")
    sender: End = Field(default="server", description="The end that sends")
    parallel: int = Field(default=1, ge=1, le=128, description="Streams")
    congestion_control: str | None = Field(default=None, description="The sender's")
    udp_rate: Rate | None = Field(
        default=None, description="Datagrams at this rate of payload instead of TCP; live only"
    )
    length: int | None = Field(
        default=None, ge=16, le=65507, description="Payload of a datagram in bytes"
    )
    port: int = Field(default=5201, ge=1, le=65535, description="The server's port")

    needs: ClassVar[Mapping[str, str]] = {"iperf3": "iperf3"}

    def programs(self, name: str) -> list[Program]:
        """Return a server of one test, and its client."""
        client = ["iperf3", "-c", "server", "-p", str(self.port), "-J", "-P", str(self.parallel)]
        client += ["-n", str(in_bytes(self.bytes))] if self.bytes is not None else []
        client += ["-t", f"{time_ns(self.time or '10 s') / 1e9:g}"] if self.bytes is None else []
        client += ["-R"] if self.sender == "server" else []
        client += ["-C", self.congestion_control] if self.congestion_control else []
        client += ["-u", "-b", str(rate_bps(self.udp_rate))] if self.udp_rate else []
        client += ["-l", str(self.length)] if self.length else []
        # With JSON it ends with 0 even if it could not connect.
        script = (
            f"report=$({shlex.join(client)}); status=$?; printf '%s\\n' \"$report\"; "
            """case $report in *'"error":'*) printf '%s\\n' "$report" | """
            """grep '"error":' >&2; exit 1;; esac; exit $status"""
        )
        server = ["iperf3", "-s", "-1", "-p", str(self.port)]
        return self.server_and_client(name, server, ["/bin/sh", "-c", script], self.port)

    def unfit(self, clock: str) -> list[str]:
        """Return what cannot run by a clock, each with what can."""
        if clock != "warp" or not self.udp_rate:
            return []
        return [
            "iperf3 with `udp_rate` does not end by the clock warp, as it waits by looking at the "
            'clock; take `template = "send"` with `udp_rate`'
        ]

    @classmethod
    def recognises(cls, output: Output) -> bool:
        """Say whether it is a report of a transfer."""
        return is_report(output)

    @classmethod
    def read(cls, output: Output) -> dict[str, float]:
        """Return its figures."""
        return figures(output)
