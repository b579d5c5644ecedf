# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Template ``curl``: files, or pages with their parts, over HTTP/1.1."""

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


class Curl(Template):
    """curl fetches files, or pages with their parts, from a small built-in HTTP/1.1 server."""

    template: Literal["curl"]
    size: Amount = Field(default="100 kB", description="Length of the file or of the page itself")
    pages: int = Field(default=1, ge=1, le=1000, description="Pages, one after the other")
    pause: Time = Field(default="0 s", description="From the end of a page to the next")
    parts: int = Field(default=0, ge=0, le=1000, description="Parts of a page, fetched after it")
    part_size: Amount = Field(default="20 kB", description="Length of each part")
    connections: int = Field(default=6, ge=1, le=100, description="Connections for the parts")
    port: int = Field(default=8000, ge=1, le=65535, description="The server's port")

    needs: ClassVar[Mapping[str, str]] = {"curl": "curl"}

    def programs(self, name: str) -> list[Program]:
        """Return a web server, and who loads its pages with curl."""
        server = [*python("web.py"), str(self.port)]
        server += [str(in_bytes(self.size)), str(in_bytes(self.part_size))]
        client = [*python("pages.py"), f"http://server:{self.port}", str(self.pages)]
        client += [f"{time_ns(self.pause) / 1e9:g}", str(self.parts), str(self.connections)]
        return self.server_and_client(name, server, client, self.port)

    @classmethod
    def recognises(cls, output: Output) -> bool:
        """Say whether it is curl's JSON of transfers."""
        return any("time_total" in one for one in output.documents)

    @classmethod
    def read(cls, output: Output) -> dict[str, float]:
        """Return the figures of transfers, and of pages if there are any."""
        transfers = output.documents
        times = [float(one["time_total"]) for one in transfers if "time_total" in one]
        sizes = [float(one["size_download"]) for one in transfers if "size_download" in one]
        found = {
            "program_transfers": float(len(times)),
            "program_transfer_time": statistics.fmean(times),
            "program_bytes": sum(sizes),
        }
        if len(times) == 1 and times[0] > 0 and sizes:
            found["program_goodput"] = sizes[0] * 8 / times[0]
        pages = [one for one in transfers if "load_seconds" in one]
        if pages:
            loads = [float(one["load_seconds"]) for one in pages]
            found["program_pages"] = float(len(pages))
            found["program_page_load_time"] = statistics.fmean(loads)
            found["program_page_load_time_max"] = max(loads)
            found["program_first_byte_time"] = statistics.fmean(
                float(one["first_byte_seconds"]) for one in pages
            )
        return found
