# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Facts that the package reads from the engine's declarations, and that it has no other."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest

from airpath import facts
from airpath.engine import find_engine
from airpath.experiment.quantities import (
    QuantityError,
    length_bytes,
    rate_bps,
    share,
    time_ns,
)
from airpath.plots.style import drop_styles
from airpath.run import EVENT_COLUMNS

ROOT = Path(__file__).parent.parent


def _text(path: str) -> str:
    return (ROOT / path).read_text()


def test_the_stored_facts_are_the_engines() -> None:
    said = subprocess.run([find_engine(), "facts"], capture_output=True, check=True, timeout=60)
    stored = (Path(facts.__file__).parent / "facts.json").read_bytes()
    assert json.loads(said.stdout) == json.loads(stored)


@pytest.mark.parametrize(
    ("text", "bits_per_second"),
    [
        ("10 Mbps", 10_000_000),
        ("1 MB/s", 8_000_000),
        ("5 mbit", 5_000_000),
        ("9_600bps", 9_600),
        (".5 kbit/s", 500),
        ("1.5 Mbit/s", 1_500_000),
    ],
)
def test_rates_of_scenarios_are_rates_of_experiments(text: str, bits_per_second: int) -> None:
    assert rate_bps(text) == bits_per_second


def test_lengths_and_times_of_scenarios_are_those_of_experiments() -> None:
    assert length_bytes("100 octets") == length_bytes("800 bit") == 100
    assert length_bytes("10 GB") == 10_000_000_000
    assert time_ns("100 μs") == time_ns("100 µs") == time_ns("100 us") == 100_000
    assert share("5 %") == 0.05


@pytest.mark.parametrize("name", [name for unit in facts.UNITS.values() for name in unit])
def test_every_unit_of_the_engine_is_understood(name: str) -> None:
    quantity = next(each for each, units in facts.UNITS.items() if name in units)
    parse = {"time": time_ns, "length": length_bytes, "rate": rate_bps, "share": share}[quantity]
    assert parse(f"8 {name}") > 0


def test_what_is_no_quantity_names_the_units() -> None:
    with pytest.raises(QuantityError, match=r"units: Gbit/s, Mbit/s, kbit/s, bit/s, MB/s"):
        rate_bps("10 Mb/s")
    for wrong in ("4 bit", "10", "ten bytes", ". bytes", "1 5 bytes"):
        with pytest.raises(QuantityError):
            length_bytes(wrong)


def test_every_cause_is_in_one_class_and_has_a_mark_of_its_own() -> None:
    groups = [facts.causes_of(group) for group in facts.CAUSE_CLASSES]
    assert sorted(cause for group in groups for cause in group) == sorted(facts.CAUSES)
    assert all(groups)
    styles = drop_styles(facts.CAUSES)
    assert len({style.marker for style in styles.values()}) == len(facts.CAUSES)
    assert {cause: style.text for cause, style in styles.items()} == {
        cause: fact.text for cause, fact in facts.CAUSES.items()
    }


def test_the_diagram_draws_every_shape_that_pictures_have() -> None:
    drawn = set(
        re.findall(
            r"^    (\w+): (?:\[|regular)",
            _text("python/airpath/report/static/drawing.js"),
            re.MULTILINE,
        )
    )
    shapes = {style.shape for style in drop_styles({*facts.CAUSES, "new", "newer"}).values()}
    assert shapes <= drawn


def test_every_metric_of_drops_counts_a_class() -> None:
    from airpath.analysis.link_metrics import DROPS

    counted = [cause for _, causes in DROPS.values() for cause in causes]
    never_inside = facts.causes_of(facts.NEVER_INSIDE)
    assert sorted([*counted, *never_inside]) == sorted(facts.CAUSES)


def test_events_have_every_column_of_the_file() -> None:
    assert list(EVENT_COLUMNS) == [column.name for column in facts.TABLES["events.arrow"]]
    assert EVENT_COLUMNS["flipped_bits"] == pl.List(pl.UInt32)
    assert EVENT_COLUMNS["kept_bytes"] == EVENT_COLUMNS["time_ns"] == pl.Int64
    assert EVENT_COLUMNS["pdu"] == pl.UInt64


def test_the_reasons_are_those_that_the_documentation_explains() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", _text("docs/verdict.md"), re.MULTILINE)
    assert set(facts.REASONS) | set(facts.VERDICTS) <= set(rows)


def test_the_documentation_names_the_columns_of_events() -> None:
    row = re.search(
        r"^\| `events.arrow` \|.*: `([a-z_, ]+)` \|$", _text("docs/running.md"), re.MULTILINE
    )
    assert row is not None
    assert row[1].split(", ") == list(EVENT_COLUMNS)
