# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of the analysis for stopping rules and the catalogue: names that choose one number.

``NAME`` chooses a metric, ``NAME/PLACE`` and ``NAME/PLACE/PLACE`` one of its values: a place is a
direction, a flow (``tcp-1``), a hop, a user or a program. The metrics themselves are declared in
``airpath.analysis``; the values of a run are kept under their full names, such as
``goodput/tcp-1/downlink``.
"""

from __future__ import annotations

import difflib
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from airpath.analysis.metric import Metric

DEFAULT = ("transfer_time", "goodput", "retransmitted_segments", "loss_ratio")
"""Measured of every replication unless the experiment says otherwise; what programs tell of
themselves and what the engine counted always is."""

DIRECTIONS = ("uplink", "downlink")

_NUMBERED = re.compile(r"[\w.-]+-[0-9]+")
"""Flows, by protocol or by kind of workload."""


class MetricError(ValueError):
    """A name chooses no metric, or more than one value; the message says what would."""


def metric_of(text: str) -> Metric:
    """Return the metric that a name chooses.

    Raises:
        MetricError: there is none, or its places do not fit what it is of.

    """
    # Here, as a command that measures nothing shall not wait for the libraries.
    from airpath.analysis import REGISTRY

    name, *places = text.split("/")
    if name not in REGISTRY:
        near = difflib.get_close_matches(name, REGISTRY, n=3, cutoff=0.4)
        meant = f"; did you mean {' or '.join(f'`{one}`' for one in near)}?" if near else ""
        message = f"there is no metric `{name}`{meant} (airpath analyse --list names all)"
        raise MetricError(message)
    metric = REGISTRY[name]
    ways = [place for place in places if place in DIRECTIONS]
    most = {"run": 0, "direction": 1, "program": 1, "queue": 2}.get(metric.scope, 2)
    if len(places) > most or len(ways) > 1 or "" in places:
        fits = {"run": name, "direction": f"{name}/downlink", "program": f"{name}/PROGRAM"}
        example = fits.get(metric.scope, f"{name}/PLACE/downlink")
        raise MetricError(f"`{text}`: write `{example}`")
    if metric.scope in ("direction", "queue") and not ways:
        raise MetricError(f"`{text}` has a value for each direction: write `{text}/downlink`")
    return metric


def check_places(text: str, words: Collection[str]) -> None:
    """Make sure that a run may have the places of a name.

    Args:
        text: the name.
        words: words of the plan: a place that is neither a direction nor a numbered flow is the
            name of a hop, a user, a bearer or a program, which stands there.

    Raises:
        MetricError: a run has no such place.

    """
    if metric_of(text).scope == "endpoint":
        return  # named by the files that it writes
    for place in text.split("/")[1:]:
        if place in DIRECTIONS or _NUMBERED.fullmatch(place):
            continue
        if not set(place.split(".")) <= set(words):
            near = difflib.get_close_matches(place, DIRECTIONS, n=1)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            message = (
                f"`{place}` is no direction (uplink, downlink), flow (such as tcp-1), hop, user"
            )
            raise MetricError(f"{message} or program of the experiment{meant}")


def problem_with_log(text: str, log: str) -> str:
    """Say why a metric cannot be measured from what a run records, if so."""
    from airpath.analysis.metric import FROM_PACKETS, WITHOUT_LOG

    group = metric_of(text).group
    if group in WITHOUT_LOG or log == "packets" or (log == "events" and group not in FROM_PACKETS):
        return ""
    needed = "packets" if group in FROM_PACKETS else "events"
    return f'`{text}` is measured from packets: it needs log = "{needed}", and log is "{log}"'


def pick(values: Mapping[str, float], text: str) -> float | None:
    """Return the value that a name chooses of those of a run, if there is one.

    A metric that has one value is chosen by its name alone; requests (a direction that carried
    less than a tenth of what the flow carried in the other) and single hops beside the whole path
    count only if they are named.

    Raises:
        MetricError: it chooses more than one.

    """
    left = choices(values, text)
    if len(left) > 1:
        message = f"`{text}` has several values: name one of {', '.join(left)}"
        raise MetricError(message)
    return values[left[0]] if left else None


def choices(values: Mapping[str, float], text: str) -> list[str]:
    """Return the full names of all values that a name chooses."""
    if text in values:
        return [text]
    name, *places = text.split("/")
    found = [
        key
        for key in values
        if key.split("/")[0] == name and set(places) <= set(key.split("/")[1:])
    ]
    if len(found) > 1:
        found = [key for key in found if not _is_request(values, key)] or found
    if len(found) > 1:
        shortest = min(key.count("/") for key in found)
        found = [key for key in found if key.count("/") == shortest]
    return found


def _is_request(values: Mapping[str, float], key: str) -> bool:
    from airpath.analysis.requests import LEAST_SHARE, SIZES

    words = key.split("/")
    if len(words) != 3 or words[2] not in DIRECTIONS:
        return False
    _, flow, way = words
    sizes = {one: values.get(f"{SIZES}/{flow}/{one}", 0.0) for one in DIRECTIONS}
    return sizes[way] < LEAST_SHARE * max(sizes.values())


def measured(folder: Path, names: Iterable[str]) -> dict[str, float]:
    """Measure a run: full names with plain numbers.

    Args:
        folder: the run's.
        names: of metrics, without places.

    Raises:
        RunError: the run cannot be read, or its logs contradict each other.

    """
    from airpath.analysis import REGISTRY, measure
    from airpath.run import contradictions_named, load_run

    chosen = [REGISTRY[name] for name in names if name in REGISTRY]
    with contradictions_named(folder):
        table = measure(load_run(folder), chosen)
    return {
        "/".join(
            word for word in (row["metric"], row["flow"], row["hop"], row["direction"]) if word
        ): (row["value"])
        for row in table.iter_rows(named=True)
    }


def needed(names: Iterable[str]) -> list[str]:
    """Return the metrics to measure for names.

    Beside these what is needed to choose among their values, and what costs next to nothing.
    """
    return list(_needed(tuple(names)))


@lru_cache
def _needed(names: tuple[str, ...]) -> tuple[str, ...]:
    from airpath.analysis.metric import in_order
    from airpath.analysis.requests import SIZES

    chosen = {metric_of(name).name if "/" in name else name for name in names}
    metrics = [one for one in in_order() if one.name in chosen or one.group in _ALWAYS]
    if any(one.scope == "flow" for one in metrics):
        chosen.add(SIZES)
    there = {one.name for one in metrics}
    return tuple(one.name for one in in_order() if one.name in there or one.name in chosen)


_ALWAYS = ("Programs", "Counted by the engine")


def measure_aside(folder: Path, names: Iterable[str]) -> tuple[dict[str, float], str]:
    """Measure a run in a thread of lowest priority, as others may run live; say what failed.

    One at a time: the packets of a run may be many.
    """
    global _aside  # made when it is first needed, in whatever process that is
    with _making:
        if _aside is None:
            _aside = ThreadPoolExecutor(1, "measuring", initializer=_give_way)
    try:
        return _aside.submit(measured, folder, list(names)).result(), ""
    except Exception as error:  # whatever the logs hold, the run was made
        return {}, f"not measured: {error}"


_aside: ThreadPoolExecutor | None = None
_making = threading.Lock()


def _give_way() -> None:
    """Take the least priority; the threads that polars makes from here have it as well."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
