"""Sweeps as small multiples, and which sets stand side by side."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from airpath.analysis.statistics import summarise
from airpath.plots import facets
from airpath.report import gallery

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    pictures = {picture.name: (picture.figure, note) for picture, note in facets.draw_all(*sweep)}
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
    assert len(figure.get_axes()) == facets.MOST_FACETS
    assert note == "over errors probability, 4 of 10 values of queue limit are drawn"


def test_networks_and_workloads_are_axes_too() -> None:
    parameters = {
        f"s/{network},{workload}": {"set": "s", "network": network, "workload": workload}
        for network, workload in product(["gsm", "gprs"], ["download", "upload"])
    }
    values = facets.swept(parameters)
    assert values == {"network": ["gsm", "gprs"], "workload": ["download", "upload"]}


def test_of_many_sets_those_that_differ_in_one_thing_stand_side_by_side(
    sweep: tuple[pl.DataFrame, Mapping[str, Mapping[str, Any]]],
) -> None:
    parameters = sweep[1]
    shown = gallery.side_by_side(list(parameters), parameters)
    assert len(shown) == gallery.MOST_SETS
    varying = {key for name in shown for key in parameters[name]} - {LIMIT}
    for key in varying:
        assert len({str(parameters[name][key]) for name in shown}) == 1
    assert parameters[shown[0]][LIMIT] == "2 packets"
    assert parameters[shown[-1]][LIMIT] == "64 packets"
    assert gallery.side_by_side(["b 16", "b 4"], {}) == ["b 4", "b 16"]


def test_long_names_below_an_axis_are_slanted(
    sweep: tuple[pl.DataFrame, Mapping[str, Mapping[str, Any]]],
) -> None:
    summary, parameters = sweep
    names = list(parameters)[:5]
    for workloads, angle in (
        (["reno", "cubic", "bbr", "reno-2", "bbr-2"], 0),
        (["reno", "reno-like-2001", "reno-like-2001-no-sack", "cubic", "defaults"], 30),
    ):
        swept = {
            name: {"workload": workload} for name, workload in zip(names, workloads, strict=True)
        }
        picture, _ = facets.draw_over(summary.filter(pl.col("set").is_in(names)), swept, "workload")
        assert picture is not None
        labels = picture.figure.get_axes()[0].get_xticklabels()
        assert [label.get_text() for label in labels] == workloads
        assert {label.get_rotation() for label in labels} == {angle}
