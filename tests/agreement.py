"""Comparing the analysis of a run with the naive one, metric by metric."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import naive
from airpath.analysis.metric import REGISTRY
from airpath.analysis.table import choose, measure
from airpath.analysis.traffic import Traffic
from airpath.run import load_run

if TYPE_CHECKING:
    from pathlib import Path

PER_CONNECTION = {"connection_setup_time", "syn_retransmissions"}
OF_FLOWS = "flow_"


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
    for (key, direction), found in naive.tcp_metrics(folder, run.start_unix_ns).items():
        for name, value in found.items():
            way = "" if name in PER_CONNECTION else direction
            expected[name, flows[key[:4]], "", way] = value
    for (direction, hop), found in naive.link_metrics(folder, run.duration_ns).items():
        for name, value in found.items():
            expected[name, "", hop, direction] = value
    # Where one flow is all there is, its packets are those of the direction.
    if len(Traffic(run).flows) == 1 and Traffic(run).packets["flow"].null_count() == 0:
        expected |= {
            (OF_FLOWS + name, "tcp-1", "", direction): value
            for (name, _, hop, direction), value in expected.items()
            if hop == "" and OF_FLOWS + name in REGISTRY and direction and name != "elapsed_time"
        }
    wrong = [
        f"{place}: analysis {values.get(place)}, naive {value}"
        for place, value in expected.items()
        if place not in values
        or not math.isclose(values[place], value, rel_tol=1e-9, abs_tol=1e-12)
    ]
    assert not wrong, "\n".join(wrong)
    # What the analysis tells of TCP and of directions and the naive way does not is not checked.
    unchecked = {
        place
        for place in values
        if place not in expected
        and REGISTRY[place[0]].scope in ("flow", "direction", "queue")
        and not place[0].startswith(OF_FLOWS)
        and REGISTRY[place[0]].group != "Fairness"
    }
    assert not unchecked, f"not computed by the naive way: {sorted(unchecked)[:20]}"
    return values
