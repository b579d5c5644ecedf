# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The picture of competing flows: what is in it, not how it looks."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from airpath.analysis.traffic import Traffic
from airpath.engine import find_engine
from airpath.plots import fairness
from airpath.plots.style import Span
from airpath.run import TCP_STATE_COLUMNS, load_run

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.run import Run

LINK = ("--rate", "1 Mbit/s", "--delay", "20 ms", "--queue", "40 packets", "--seed", "1")


def simulated(folder: Path, *workloads: str, duration: str = "") -> Run:
    """Run workloads in virtual time over one link, until they end or for a time."""
    words = [find_engine(), "sim", *LINK, "--quiet", "--out", str(folder)]
    for workload in workloads:
        words += ["--workload", workload]
    words += ["--duration", duration] if duration else []
    subprocess.run(words, check=True, timeout=120, stderr=subprocess.DEVNULL)
    return load_run(folder)


def test_flows_and_their_fairness_over_time(tmp_path: Path) -> None:
    run = simulated(
        tmp_path / "run",
        "tcp bytes=400000 from=server cc=reno",
        "tcp bytes=400000 from=server cc=cubic start=1s",
    )
    (picture,) = fairness.draw(run, Span())
    assert picture.name == "fairness-downlink"
    upper, lower = picture.figure.get_axes()
    labels = [text.get_text() for text in upper.get_legend().get_texts()]  # type: ignore[union-attr]
    assert labels == ["tcp-1", "tcp-2"]
    first, second = (patch.get_data().values for patch in upper.patches)  # type: ignore[attr-defined]
    edges = upper.patches[0].get_data().edges  # type: ignore[attr-defined]
    # The second has no rate before it begins; together they fill the link, and no more.
    assert np.isnan(second[edges[1:] <= 1.0]).all()
    both = np.nan_to_num(first) + np.nan_to_num(second)
    # Rates are in Mbit/s: every byte is in the picture once, and the link is not outdone.
    assert (both * np.diff(edges)).sum() == pytest.approx(2 * 8 * 0.4)
    assert both.max() <= 1.1
    index = lower.patches[0].get_data().values  # type: ignore[attr-defined]
    told = index[~np.isnan(index)]
    assert len(told) > 5
    assert ((told >= 0.5) & (told <= 1)).all()


def test_one_flow_competes_with_nobody(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", "tcp bytes=100000 from=server cc=reno")
    assert fairness.draw(run, Span()) == []


def test_flows_without_answers_compete(tmp_path: Path) -> None:
    cbr = "cbr rate='300 kbit/s' size=200 from=client"
    run = simulated(tmp_path / "two", f"{cbr} name=a", f"{cbr} name=b", duration="3 s")
    (picture,) = fairness.draw(run, Span())
    assert picture.name == "fairness-uplink"
    upper, _ = picture.figure.get_axes()
    labels = [text.get_text() for text in upper.get_legend().get_texts()]  # type: ignore[union-attr]
    assert sorted(labels) == ["a", "b"]
    alone = simulated(tmp_path / "one", cbr, duration="3 s")
    assert fairness.draw(alone, Span()) == []


@pytest.mark.parametrize("told", [True, False])
def test_flows_bear_the_name_that_the_kernel_told_last(tmp_path: Path, told: bool) -> None:
    two = "tcp bytes=100000 from=server cc=reno"
    run = simulated(tmp_path / "run", two, two)
    traffic = Traffic(run)
    rows = []
    for flow in traffic.flows.iter_rows(named=True):
        server, client = (
            {"address": flow[end], "port": flow[f"{end}_port"]} for end in ("server", "client")
        )

        def ends(local: dict[str, object], remote: dict[str, object]) -> dict[str, object]:
            both = (("local", local), ("remote", remote))
            return {f"{which}_{key}": of[key] for which, of in both for key in of}

        ports = ends(server, client)
        # A connection of the same ports between other ends, as another user may have it.
        other = {**ports, "remote_address": "192.0.2.1"}
        rows += [{"end": "server", "congestion_control": "cubic", **ports}]
        rows += [{"end": "server", "congestion_control": f"of-{flow['label']}", **ports}]
        rows += [{"end": "server", "congestion_control": "bbr", **other}]
        # What the receiver has does not matter.
        back = ends(client, server)
        rows += [{"end": "client", "congestion_control": "reno", **back}]
    if told:
        vars(run)["tcp_state"] = pl.DataFrame(
            rows, schema_overrides={key: TCP_STATE_COLUMNS[key] for key in rows[0]}
        )
    names = fairness.congestion_controls(run, traffic, "downlink")
    assert sorted(names.values()) == (["of-tcp-1", "of-tcp-2"] if told else [])
