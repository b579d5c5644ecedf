# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Comparing the analysis of a run with the naive one, metric by metric."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from airpath.analysis.metric import REGISTRY, choose
from airpath.analysis.program_metrics import COUNTED, PROGRAMS
from airpath.analysis.table import measure
from airpath.analysis.traffic import Traffic
from airpath.run import load_run
from naive.figures import fairness
from naive.link import bits_of_users, elapsed_time, link_metrics
from naive.packets import pdus_of_connections, pdus_of_users
from naive.quic import quic_metrics
from naive.tcp import Arrivals, competitors, overlap_metrics, tcp_metrics

if TYPE_CHECKING:
    from pathlib import Path

CHECKED: set[str] = set()
"""Metrics of which a value was compared so far; all of them must be (tests/test_metrics.py)."""

PER_CONNECTION = {"connection_setup_time", "syn_retransmissions"}
OF_FLOWS = "flow_"
OF_USERS = "user_"


def _tolerance(name: str) -> float:
    """Return how far values may differ; times in qlog files are taken to the nanosecond."""
    return 1e-6 if name.startswith("quic_") else 1e-9


def assert_agrees(folder: Path) -> dict[tuple[str, str, str, str], float]:
    """Fail unless every metric that the naive way computes is the same; return the values."""
    run = load_run(folder)
    table = measure(run, choose(["all"]))
    values = {
        (row["metric"], row["flow"], row["hop"], row["direction"]): row["value"]
        for row in table.iter_rows(named=True)
    }
    flows = {
        (row["client"], row["client_port"], row["server"], row["server_port"]): row["label"]
        for row in Traffic(run).flows.iter_rows(named=True)
        if row["name"] == "tcp"
    }
    expected: dict[tuple[str, str, str, str], float] = {}
    expected["elapsed_time", "", "", ""] = elapsed_time(folder)
    arrivals: Arrivals = {}
    streams = tcp_metrics(folder, run.start_unix_ns, arrivals)
    for direction, rates in competitors(streams).items():
        if len(rates) > 1:
            expected["jain_fairness", "", "", direction] = fairness(rates)
    for (rival, direction), found in overlap_metrics(arrivals).items():
        for name, value in found.items():
            expected[name, flows[rival[:4]] if rival else "", "", direction] = value
    for path in sorted(folder.glob("*.*qlog")):
        direction, found = quic_metrics(path)
        for name, value in found.items():
            expected[name, path.name, "", direction] = value
    for (key, direction), found in streams.items():
        for name, value in found.items():
            way = "" if name in PER_CONNECTION else direction
            expected[name, flows[key[:4]], "", way] = value
    for (direction, hop), found in link_metrics(folder, run.duration_ns).items():
        for name, value in found.items():
            expected[name, "", hop, direction] = value
    for key, pdus in pdus_of_connections(folder, run.start_unix_ns).items():
        for (direction, _), found in link_metrics(folder, run.duration_ns, pdus).items():
            for name, value in found.items():
                if OF_FLOWS + name in REGISTRY:
                    expected[OF_FLOWS + name, flows[key[:4]], "", direction] = value
    wrong = [
        f"{place}: analysis {values.get(place)}, naive {value}"
        for place, value in expected.items()
        if place not in values
        or not math.isclose(values[place], value, rel_tol=_tolerance(place[0]), abs_tol=1e-12)
    ]
    assert not wrong, "\n".join(wrong)
    for (name, *place), value in values.items():
        if name == "counted_packets_delivered" and ("packets_delivered", *place) in values:
            copies = values["packets_delivered", *place] + values["duplicates", *place]
            assert value == copies, f"{place}: the engine counted {value}, packets {copies}"
    # What the analysis tells and the naive way does not is not checked; that knows TCP flows only,
    # and neither programs nor the engine's counters.
    unchecked = {
        place
        for place in values
        if place not in expected
        and (not place[1] or not place[0].startswith(OF_FLOWS))
        and REGISTRY[place[0]].group not in (PROGRAMS, COUNTED)
    }
    assert not unchecked, f"not computed by the naive way: {sorted(unchecked)[:20]}"
    CHECKED.update(name for name, *_ in expected)
    return values


def assert_users_agree(folder: Path) -> None:
    """Fail unless users share a run, and have packets, as the naive way says."""
    run = load_run(folder)
    of_users = [name for name in REGISTRY if name.startswith(OF_USERS)]
    table = measure(run, choose(["jain_fairness_users", *of_users]))
    delivered = run.path_events("delivered").to_dicts()
    expected = {
        ("jain_fairness_users", "", direction): fairness(bits)
        for direction, bits in bits_of_users(delivered, run.users).items()
    }
    for user, pdus in pdus_of_users(folder).items():
        for (direction, _), found in link_metrics(folder, run.duration_ns, pdus).items():
            for name, value in found.items():
                if OF_USERS + name in REGISTRY:
                    expected[OF_USERS + name, user, direction] = value
    columns = ("metric", "flow", "direction", "value")
    values = {tuple(place): value for *place, value in table.select(columns).iter_rows()}
    assert values.keys() == expected.keys(), values.keys() ^ expected.keys()
    wrong = [
        f"{place}: analysis {values[place]}, naive {value}"
        for place, value in expected.items()
        if not math.isclose(values[place], value, rel_tol=1e-9, abs_tol=1e-12)
    ]
    assert not wrong, "\n".join(wrong)
    CHECKED.update(name for name, *_ in expected)
