# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Figures that templates read out of their programs' output, and the page about templates."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from airpath.analysis import REGISTRY
from airpath.experiment.templates import TEMPLATES, figures_of
from airpath.experiment.templates.output import Output
from airpath.experiment.templates.template import Template

PAGE = Path(__file__).resolve().parent.parent / "docs/experiments/templates.md"

TIMES = {"min_seconds": 1, "mean_seconds": 2, "p50_seconds": 3, "p99_seconds": 4, "max_seconds": 5}
RESPONSE_TIMES = {
    f"program_response_time_{name}": float(value)
    for name, value in zip(("min", "mean", "median", "p99", "max"), range(1, 6), strict=True)
}

PING = """\
PING server (10.0.0.2) 56(84) bytes of data.
64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=40.0 ms
64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=44.0 ms
64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=90.0 ms (DUP!)

--- server ping statistics ---
4 packets transmitted, 2 received, +1 duplicates, 50% packet loss, time 30ms
"""

PAGES = """\
{"time_total": 0.5, "size_download": 1000}
{"time_total": 1.5, "size_download": 3000}
{"page": 1, "load_seconds": 2.5, "first_byte_seconds": 0.25}
"""

LOADS = """\
{"page": 1, "protocol": "h2", "transfers": 31, "bytes": 484265, "first_byte_seconds": 0.5, \
"first_contentful_paint_seconds": 1.0, "largest_contentful_paint_seconds": 2.0, "load_seconds": 3.0}
{"page": 2, "protocol": "h2", "transfers": 31, "bytes": 484265, "first_byte_seconds": 0.25, \
"first_contentful_paint_seconds": 2.0, "load_seconds": 4.0}
"""

SAMPLES: dict[str, tuple[str, dict[str, float]]] = {
    "iperf3": (
        json.dumps(
            {
                "start": {"version": "iperf 3.12"},
                "end": {
                    "sum_sent": {"retransmits": 3},
                    "sum_received": {"bits_per_second": 1e6, "jitter_ms": 2, "lost_percent": 5},
                },
            }
        ),
        {
            "program_goodput": 1e6,
            "program_retransmissions": 3,
            "program_jitter": 0.002,
            "program_loss_ratio": 0.05,
        },
    ),
    "send": (
        json.dumps(
            {"end": {"sum": {"bits_per_second": 2e6}, "streams": [{"response_times": TIMES}]}}
        ),
        {"program_goodput": 2e6, **RESPONSE_TIMES},
    ),
    "interactive": (
        json.dumps({"end": {"streams": [{"response_times": TIMES}]}}),
        RESPONSE_TIMES,
    ),
    "curl": (
        PAGES,
        {
            "program_transfers": 2,
            "program_transfer_time": 1.0,
            "program_bytes": 4000,
            "program_pages": 1,
            "program_page_load_time": 2.5,
            "program_page_load_time_max": 2.5,
            "program_first_byte_time": 0.25,
        },
    ),
    "browser": (
        LOADS,
        {
            "program_pages": 2,
            "program_transfers": 62,
            "program_bytes": 968530,
            "program_first_byte_time": 0.375,
            "program_first_contentful_paint": 1.5,
            "program_largest_contentful_paint": 2.0,
            "program_page_load_time": 3.5,
            "program_page_load_time_max": 4.0,
        },
    ),
    "ping": (
        PING,
        {
            "program_echo_requests": 4,
            "program_echo_replies": 2,
            "program_loss_ratio": 0.5,
            "program_echo_time_min": 0.040,
            "program_echo_time_mean": 0.042,
            "program_echo_time_median": 0.040,
            "program_echo_time_p99": 0.044,
            "program_echo_time_max": 0.044,
        },
    ),
    "ffmpeg": (
        json.dumps(
            {
                "video": {
                    "transport": "rtp",
                    "frames_sent": 30,
                    "frames_lost": 3,
                    "seconds": 2.0,
                    "datagrams_lost": 4,
                    "frozen_seconds": 0.2,
                }
            },
            indent=1,
        ),
        {
            "program_frames_sent": 30,
            "program_frames_lost": 3,
            "program_datagrams_lost": 4,
            "program_frozen_time": 0.2,
        },
    ),
}
"""By template: what its program with the figures prints, and what is read."""


def of_template(template: type[Template]) -> str:
    return template.tag()


def test_every_template_has_a_name_of_its_own() -> None:
    names = [template.tag() for template in TEMPLATES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("template", TEMPLATES, ids=of_template)
def test_a_template_reads_the_output_of_its_programs(template: type[Template]) -> None:
    text, expected = SAMPLES[template.tag()]
    assert template.recognises(Output(text))
    assert template.read(Output(text)) == pytest.approx(expected)
    # Another template may recognise the same form; then it reads the same.
    assert figures_of(text) == template.read(Output(text))


@pytest.mark.parametrize("template", TEMPLATES, ids=of_template)
def test_every_figure_that_a_template_reads_is_a_metric(template: type[Template]) -> None:
    read = template.read(Output(SAMPLES[template.tag()][0]))
    assert read
    assert {REGISTRY[name].scope for name in read} == {"program"}


@pytest.mark.parametrize("text", ["", "{}", "[1]", "{mew", '{"end": 1}', "PING ", '{"a": 1}\n{'])
def test_other_output_has_no_figures(text: str) -> None:
    assert figures_of(text) == {}


@pytest.mark.parametrize("template", TEMPLATES, ids=of_template)
def test_a_template_its_keys_and_its_figures_are_documented(template: type[Template]) -> None:
    page = PAGE.read_text()
    assert re.search(rf"^## {template.tag()}$", page, re.MULTILINE)
    assert f"<!-- keys: {template.__name__} " in page
    metrics = page.partition("\n## Metrics\n")[2]
    assert re.search(rf"^\| [^|]*`{template.tag()}`[^|]*\|.*`program_", metrics, re.MULTILINE)
