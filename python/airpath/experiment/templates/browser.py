# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Template ``browser``: pages as Chromium loads and paints them, over HTTP/1.1 or HTTP/2."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from airpath.experiment.keys import Amount, Time
from airpath.experiment.quantities import time_ns
from airpath.experiment.templates.template import Template, in_bytes, python

if TYPE_CHECKING:
    from airpath.experiment.keys import Program
    from airpath.experiment.templates.output import Output

PROTOCOLS = {"1.1": "http/1.1", "2": "h2"}
"""Names of the protocols of HTTP in TLS, by version."""

MEANS = {
    "first_byte_seconds": "program_first_byte_time",
    "first_contentful_paint_seconds": "program_first_contentful_paint",
    "largest_contentful_paint_seconds": "program_largest_contentful_paint",
    "load_seconds": "program_page_load_time",
}
"""Metrics that are means over the loads, by their keys in the output."""


class Browser(Template):
    """Chromium loads a page with its objects over TLS from nginx; live only."""

    template: Literal["browser"]
    http: Literal["1.1", "2"] = Field(default="2", description="Version of HTTP")
    size: Amount = Field(default="30 kB", description="Length of the page itself")
    objects: int = Field(
        default=30, ge=0, le=1000, description="Objects of the page: a style sheet, then pictures"
    )
    object_size: Amount = Field(default="15 kB", description="Length of each object")
    pages: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Loads, one after the other, each with new connections and nothing cached",
    )
    pause: Time = Field(default="0 s", description="From the end of a load to the next")
    port: int = Field(default=8443, ge=1, le=65535, description="The server's port")

    needs: ClassVar[Mapping[str, str]] = {
        "chromium": "chromium",
        "nginx": "nginx",
        "openssl": "openssl",
    }

    def programs(self, name: str) -> list[Program]:
        """Return a web server, and who loads its page with Chromium."""
        server = [*python("site.py"), str(self.port), self.http, str(in_bytes(self.size))]
        server += [str(self.objects), str(in_bytes(self.object_size))]
        client = [*python("browser.py"), "chromium", f"https://server:{self.port}/"]
        client += [PROTOCOLS[self.http], str(self.pages), f"{time_ns(self.pause) / 1e9:g}"]
        return self.server_and_client(name, server, client, self.port)

    def unfit(self, clock: str) -> list[str]:
        """Return what cannot run by a clock, each with what can."""
        if clock != "warp":
            return []
        return [
            "Chromium does not run by the clock warp: it starts there, and its pages never answer; "
            'take the clock live, or `template = "curl"`'
        ]

    @classmethod
    def recognises(cls, output: Output) -> bool:
        """Say whether it is JSON of page loads with a browser's times."""
        return any("protocol" in one and "load_seconds" in one for one in output.documents)

    @classmethod
    def read(cls, output: Output) -> dict[str, float]:
        """Return the figures of the loads: means, and the longest load."""
        loads = output.documents
        found = {
            "program_pages": float(len(loads)),
            "program_page_load_time_max": max(float(one["load_seconds"]) for one in loads),
            "program_transfers": sum(float(one["transfers"]) for one in loads),
            "program_bytes": sum(float(one["bytes"]) for one in loads),
        }
        for key, name in MEANS.items():
            # A page without anything to see has no paint.
            times = [float(one[key]) for one in loads if key in one]
            if times:
                found[name] = statistics.fmean(times)
        return found
