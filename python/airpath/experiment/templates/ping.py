# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Template ``ping``: echo requests and their replies."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from airpath.experiment.figures import ECHO_TIMES
from airpath.experiment.keys import Program, Time
from airpath.experiment.quantities import time_ns
from airpath.experiment.templates.template import Template

if TYPE_CHECKING:
    from airpath.experiment.templates.output import Output


_REPLY = re.compile(r"icmp_seq=(\d+) .*time=([0-9.]+) ms")
_COUNTS = re.compile(r"^(\d+) packets transmitted", re.MULTILINE)


class Ping(Template):
    """Echo requests from the client; that some, or all, are lost is no failure."""

    template: Literal["ping"]
    count: int = Field(default=10, ge=1, description="Requests")
    interval: Time = Field(default="1 s", description="From one to the next")
    size: int = Field(default=56, ge=16, le=65507, description="Payload in bytes")

    needs: ClassVar[Mapping[str, str]] = {"ping": "iputils-ping"}

    def programs(self, name: str) -> list[Program]:
        """Return ping, at the client."""
        interval = f"{time_ns(self.interval) / 1e9:g}"
        words = ["ping", "-n", "-c", str(self.count), "-i", interval, "-s", str(self.size)]
        return [
            Program(
                name=name,
                end="client",
                command=[*words, "server"],
                exit_status=[0, 1],  # 1: some echo did not come back, which is a result.
                **self.common(),
            )
        ]

    @classmethod
    def recognises(cls, output: Output) -> bool:
        """Say whether these are the lines of ping."""
        return output.text.startswith("PING ")

    @classmethod
    def read(cls, output: Output) -> dict[str, float]:
        """Return the share and the times of ping's echoes; copies of a reply count once."""
        counts = _COUNTS.search(output.text)
        if counts is None:
            return {}
        times: dict[str, float] = {}
        for number, milliseconds in _REPLY.findall(output.text):
            times.setdefault(number, float(milliseconds) / 1e3)
        sent = int(counts[1])
        found = {"program_echo_requests": float(sent), "program_echo_replies": float(len(times))}
        if sent:
            found["program_loss_ratio"] = 1 - len(times) / sent
        if times:
            ordered = sorted(times.values())
            at = {
                "min": ordered[0],
                "mean": statistics.fmean(ordered),
                # Times that occurred, as airpath send gives them.
                "median": ordered[math.ceil(len(ordered) * 0.5) - 1],
                "p99": ordered[math.ceil(len(ordered) * 0.99) - 1],
                "max": ordered[-1],
            }
            found |= {f"program_echo_time_{suffix}": at[suffix] for suffix in ECHO_TIMES}
        return found
