# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Templates: what stands in an experiment's file in place of the programs of both ends.

A template is one module here. Its class has the keys, makes the programs, and says what they need
and what they cannot do; it also reads their output. ``TEMPLATES`` enrols it: in experiment files
and their JSON Schema, in the checks before a run, and in the metrics that programs tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airpath.experiment.templates.browser import Browser
from airpath.experiment.templates.curl import Curl
from airpath.experiment.templates.ffmpeg import Ffmpeg
from airpath.experiment.templates.interactive import Interactive
from airpath.experiment.templates.iperf3 import Iperf3
from airpath.experiment.templates.output import Output
from airpath.experiment.templates.ping import Ping
from airpath.experiment.templates.send import Send

if TYPE_CHECKING:
    from airpath.experiment.templates.template import Template

TEMPLATES: tuple[type[Template], ...] = (
    Iperf3,
    Send,
    Interactive,
    Curl,
    Browser,
    Ping,
    Ffmpeg,
)
"""All templates, in the order of the schema."""


def figures_of(text: str) -> dict[str, float]:
    """Return the figures in what a program printed, by the names of their metrics.

    Results do not say which template made a program, and any command may print the same: the first
    template that recognises the text reads it.

    Raises:
        ValueError, TypeError, KeyError: the text only looks like the output of a template.

    """
    output = Output(text)
    for template in TEMPLATES:
        if template.recognises(output):
            return template.read(output)
    return {}
