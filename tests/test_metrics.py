# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Every metric of the registry against a second computation on the same runs.

``naive`` computes each metric once more in plain Python (``agreement.py`` compares); tshark
dissects the same captures where its definitions meet ours, and the ends' own logs tell of QUIC.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

import qlog_of_aioquic
from agreement import CHECKED, assert_agrees, assert_users_agree
from airpath.analysis import REGISTRY, find, frame
from airpath.analysis.program_metrics import COUNTED, PROGRAMS
from airpath.analysis.traffic import Traffic
from airpath.engine import find_engine
from airpath.run import load_run
from naive.figures import fairness
from synthetic import write_run


@pytest.fixture(scope="module")
def virtual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with three TCP flows each way, over a link with errors of every kind."""
    folder = tmp_path_factory.mktemp("virtual") / "run"
    workloads = [
        f"--workload=tcp bytes={200_000 + 50_000 * number} from={end} cc={cc}"
        for number, (end, cc) in enumerate(
            [("server", "cubic"), ("server", "reno"), ("client", "reno"), ("client", "cubic")]
        )
    ]
    subprocess.run(
        [
            *(str(find_engine()), "sim", "--quiet", "--seed", "9", "--out", str(folder)),
            *("--rate", "2 Mbit/s", "--delay", "20 ms", "--loss", "2%", "--queue", "20 packets"),
            *("--reorder", "2% 30 ms", "--duplicate", "2%", *workloads),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of three users of one bottleneck, with losses."""
    folder = tmp_path_factory.mktemp("cell") / "run"
    scenario = Path(__file__).parent.parent / "examples" / "cell-wired.toml"
    subprocess.run(
        [
            *(str(find_engine()), "sim", "--quiet", "--seed", "4", "--out", str(folder)),
            *("--scenario", str(scenario), "--loss", "3%", "--workload", "tcp bytes=60kB"),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder


def test_every_metric_is_checked_against_another_computation(
    virtual: Path, cell: Path, tmp_path: Path
) -> None:
    CHECKED.clear()
    assert_users_agree(cell)
    assert_agrees(virtual)
    write_run(tmp_path / "run", seed=3, size=25_600, two_hops=True, stamped=True)
    qlog_of_aioquic.write(tmp_path / "run")
    assert_agrees(tmp_path / "run")
    # What programs tell has no second computation, nor have the engine's counters, which
    # assert_agrees sets beside the packets: test_experiment_metrics.py computes them by hand.
    registered = {name for name, one in REGISTRY.items() if one.group not in (PROGRAMS, COUNTED)}
    unchecked = registered - CHECKED
    assert not unchecked, f"tests/naive computes none of: {', '.join(sorted(unchecked))}"


def test_quic_figures_are_what_the_endpoints_themselves_knew(tmp_path: Path) -> None:
    write_run(tmp_path / "run", seed=1, size=2560)
    told = qlog_of_aioquic.write(tmp_path / "run")
    table = frame(find([tmp_path / "run"]), ["quic_*"])
    endpoints = {one.name: one.updates for one in Traffic(load_run(tmp_path / "run")).qlog}
    for name, end in told.items():
        found = dict(table.filter(flow=name).select("metric", "value").iter_rows())
        assert found["quic_packets_sent"] == end.packets_sent
        # Windows between the moments at which the end was asked are in the log only.
        logged = {int(window) for window in endpoints[name]["congestion_window"].drop_nulls()}
        assert len(logged) > 5
        assert set(end.windows) - {end.windows[0]} <= logged
        assert found["quic_cwnd_max"] == max(logged)
        assert found["quic_rtt_min"] == pytest.approx(end.least_rtt_s, rel=1e-3)
        assert found["quic_rtt_min"] >= 2 * qlog_of_aioquic.DELAY_S - 1e-9
    assert sum(table.filter(metric="quic_packets_lost")["value"]) >= qlog_of_aioquic.DROPPED


@pytest.mark.parametrize("seed", range(20))
def test_fairness_by_another_formula(seed: int) -> None:
    generator = random.Random(seed)
    rates = [generator.expovariate(1e-6) for _ in range(generator.randint(2, 30))]
    # As in the definition.
    usual = sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates))
    assert fairness(rates) == pytest.approx(usual, rel=1e-12)
    assert 1 / len(rates) <= usual <= 1
