# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Sweeps as small multiples, and which sets stand side by side."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from airpath.analysis.statistics import summarise
from airpath.plots import sweeps
from airpath.report import choice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LIMITS = [f"{number} packets" for number in (2, 4, 6, 8, 12, 16, 24, 32, 48, 64)]
LOSSES = [0.0, 0.01, 0.02, 0.03, 0.05]
CONTROLS = ["reno", "cubic", "bbr"]

LIMIT = "network.radio.link.queue.limit"
LOSS = "network.radio.downlink.errors.probability"


@pytest.fixture(scope="module")
def sweep() -> tuple[pl.DataFrame, Mapping[str, Mapping[str, Any]]]:
    """Return figures of ten queue lengths, five loss rates and three congestion controls."""
    parameters = {}
    rows = []
    for limit, loss, control in product(LIMITS, LOSSES, CONTROLS):
        name = f"s/limit={limit},loss={loss},cc={control}"
        parameters[name] = {
            "set": "s",
            "network": "gprs",
            LIMIT: limit,
            LOSS: loss,
            "congestion_control": control,
        }
        about = {"set": name, "flow": "", "direction": "", "hop": "", "metric": "elapsed_time"}
        rows += [
            about | {"run": f"{run}", "value": LIMITS.index(limit) + loss + run, "unit": "s"}
            for run in range(2)
        ]
    return summarise(pl.DataFrame(rows)), parameters


def test_a_sweep_of_three_things_is_drawn_as_small_multiples(
    sweep: tuple[pl.DataFrame, Mapping[str, Mapping[str, Any]]],
) -> None:
    pictures = {picture.name: (picture.figure, note) for picture, note in sweeps.draw_all(*sweep)}
    assert list(pictures) == [
        "sweep-network-radio-link-queue-limit",
        "sweep-network-radio-downlink-errors-probability",
        "sweep-congestion_control",
    ], "one network is no axis"
    figure, note = pictures["sweep-network-radio-link-queue-limit"]
    assert note == "", "nothing is left out"
    axes = figure.get_axes()
    assert [axis.get_title() for axis in axes] == [
        f"congestion_control {control}" for control in CONTROLS
    ]
    assert all(len(axis.get_lines()) == len(LOSSES) for axis in axes)
    line = axes[0].get_lines()[-1]
    assert np.asarray(line.get_xdata()).tolist() == [float(limit.split()[0]) for limit in LIMITS]
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx(
        [place + 0.55 for place in range(len(LIMITS))]
    )
    assert axes[0].get_xlabel() == "queue limit (packets)"
    figure, note = pictures["sweep-network-radio-downlink-errors-probability"]
    assert len(figure.get_axes()) == sweeps.MOST_FACETS
    assert note == "over errors probability, 4 of 10 values of queue limit are drawn"


def test_values_read_as_words() -> None:
    queue = '{ type = "tail_drop", limit = "300 ms" }'
    assert sweeps.value_text("radio.link.queue", queue) == "tail_drop, 300 ms"
    assert sweeps.value_text("radio.link.queue", '{ type = "codel" }') == "codel"
    of_many = '{ type = "gilbert_elliott", good_to_bad = 0.05, bad_to_good = 0.2, per = "packet" }'
    assert sweeps.value_text("radio.link.errors", of_many).startswith("type = gilbert_elliott, ")
    assert sweeps.value_text("radio.link.errors.probability", "0.0025") == "0.25 %"
    assert sweeps.value_text("radio.link.rate", "5 Mbit/s") == "5 Mbit/s"


def test_values_of_a_sweep_lie_where_their_numbers_are() -> None:
    assert sweeps.axis_values(["4 packets", "16 packets"]) == (
        {"4 packets": 4.0, "16 packets": 16.0},
        "packets",
    )
    assert sweeps.axis_values(["64 kbit/s", "1 Mbit/s"]) == (
        {"64 kbit/s": 64.0, "1 Mbit/s": 1000.0},
        "kbit/s",
    )
    assert sweeps.axis_values(["1 s", "20 ms"]) == ({"1 s": 1000.0, "20 ms": 20.0}, "ms")
    assert sweeps.axis_values(["1 s", "2 packets"])[1] is None, "units of two quantities"
    assert sweeps.axis_values(["reno", "cubic"]) == ({"reno": 0.0, "cubic": 1.0}, None)
    assert sweeps.axis_values([0, 1e-05, 0.03])[1] == "", "numbers without a unit"


def test_of_two_things_each_metric_has_a_panel_of_its_own() -> None:
    controls = ["cubic", "reno"]
    parameters = {
        f"s/{limit},{control}": {"set": "s", LIMIT: limit, "congestion_control": control}
        for limit, control in product(LIMITS, controls)
    }
    values: dict[str, Callable[[str], int]] = {
        "goodput": LIMITS.index,
        "timeouts": controls.index,
        "drops": lambda _: 0,
    }
    rows = [
        {"set": name, "run": "1", "flow": "", "direction": "", "hop": "", "metric": metric}
        | {"value": 1.0 * value(of[LIMIT if metric == "goodput" else "congestion_control"])}
        | {"unit": "s"}
        for name, of in parameters.items()
        for metric, value in values.items()
    ]
    summary = summarise(pl.DataFrame(rows))
    pictures = {picture.name: picture.figure for picture, _ in sweeps.draw_all(summary, parameters)}
    shown = pictures["sweep-network-radio-link-queue-limit"].get_axes()
    assert [axis.get_ylabel() for axis in shown] == ["Goodput\n(s)", "Timeouts\n(s)"], (
        "what is the same everywhere has no panel"
    )
    assert {axis.get_xlabel() for axis in shown} == {"queue limit (packets)"}
    assert all(axis.get_xscale() == "log" for axis in shown), "from 2 to 64"
    bars = pictures["sweep-congestion_control"].get_axes()[0]
    assert {line.get_linestyle() for line in bars.get_lines()} == {"None"}, "nothing lies between"
    same, _ = sweeps.draw_over(summary.filter(metric="drops"), parameters, LIMIT)
    assert same is not None, "what was asked for alone is drawn, the same everywhere or not"
    assert len(same.figure.get_axes()) == 1, "without room for a second metric"


def test_networks_and_workloads_are_axes_too() -> None:
    parameters = {
        f"s/{network},{workload}": {"set": "s", "network": network, "workload": workload}
        for network, workload in product(["gsm", "gprs"], ["download", "upload"])
    }
    values = sweeps.swept(parameters)
    assert values == {"network": ["gsm", "gprs"], "workload": ["download", "upload"]}


def test_of_many_sets_those_that_differ_in_one_thing_stand_side_by_side(
    sweep: tuple[pl.DataFrame, Mapping[str, Mapping[str, Any]]],
) -> None:
    parameters = sweep[1]
    shown = choice.side_by_side(list(parameters), parameters)
    assert len(shown) == choice.MOST_SETS
    varying = {key for name in shown for key in parameters[name]} - {LIMIT}
    for key in varying:
        assert len({str(parameters[name][key]) for name in shown}) == 1
    assert parameters[shown[0]][LIMIT] == "2 packets"
    assert parameters[shown[-1]][LIMIT] == "64 packets"
    assert choice.side_by_side(["b 16", "b 4"], {}) == ["b 4", "b 16"]


def test_long_names_below_an_axis_are_slanted(
    sweep: tuple[pl.DataFrame, Mapping[str, Mapping[str, Any]]],
) -> None:
    summary, parameters = sweep
    names = list(parameters)[:5]
    for workloads, angle in (
        (["reno", "cubic", "bbr", "reno-2", "bbr-2"], 0),
        (
            [
                "reno-of-today",
                "reno-like-2001",
                "reno-like-2001-no-sack",
                "cubic-of-today",
                "defaults",
            ],
            30,
        ),
    ):
        swept = {
            name: {"workload": workload} for name, workload in zip(names, workloads, strict=True)
        }
        picture, _ = sweeps.draw_over(summary.filter(pl.col("set").is_in(names)), swept, "workload")
        assert picture is not None
        labels = picture.figure.get_axes()[0].get_xticklabels()
        assert [label.get_text().replace("\n", "") for label in labels] == workloads
        assert {label.get_rotation() for label in labels} == {angle}
