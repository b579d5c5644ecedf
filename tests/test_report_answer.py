# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Beginning of the page: which comparisons are made, in which order, and what they say."""

from __future__ import annotations

import math
import zlib
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pytest

import airpath
from airpath.analysis import text, titles
from airpath.analysis.table import COLUMNS
from airpath.experiment.shown import Selector
from airpath.report import asked, comparison, contrasts, sentences
from airpath.report.facts import _goodput
from airpath.report.material import load_material
from airpath.report.measured import Measured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airpath.run import Run

LIMIT = "network.radio.link.queue.limit"
LOSS = "network.radio.link.errors.probability"
ELAPSED = {"metric": "elapsed", "flow": "", "hop": "", "direction": "", "unit": "s"}


def cells(**values: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Return the cells of one set of an experiment: every combination, with their parameters."""
    names = {"limit": LIMIT, "loss": LOSS}
    found = {}
    for combination in product(*values.values()):
        of = dict(zip(values, combination, strict=True))
        name = "s/" + ",".join(f"{key}={value}" for key, value in of.items())
        named = {names.get(key, key): value for key, value in of.items()}
        found[name] = {"set": "s", "network": "gsm", "workload": "get"} | named
    return found


def measured(
    parameters: Mapping[str, Any], value: Callable[[Mapping[str, Any], int], float], seeds: int = 6
) -> pl.DataFrame:
    """Return a value of every run."""
    return pl.DataFrame(
        [
            {"set": name, "run": f"{seed:04}", "seed": seed, "value": value(of, seed)} | ELAPSED
            for name, of in parameters.items()
            for seed in range(1, seeds + 1)
        ]
    )


def noise(*words: object) -> float:
    """Return some per cent of chance, the same for the same words."""
    return float(np.random.default_rng(zlib.crc32(repr(words).encode())).normal(0, 0.03))


def pairs(found: Sequence[contrasts.Contrast]) -> list[tuple[str, str, str, int]]:
    return [(one.factor, one.first, one.second, len(one.strata)) for one in found]


def test_what_was_swept_is_compared_once_and_before_networks() -> None:
    parameters = cells(network=["gprs", "gsm"], limit=["4 packets", "8 packets", "16 packets"])
    found = contrasts.contrasts(list(parameters), parameters)
    assert pairs(found) == [
        (LIMIT, "4 packets", "8 packets", 2),
        (LIMIT, "4 packets", "16 packets", 2),
        ("network", "gprs", "gsm", 3),
    ], "3 comparisons, not the 15 pairs of 6 sets"
    for one in found:
        for stratum in one.strata:
            first, second = parameters[stratum.first], parameters[stratum.second]
            assert [key for key in first if first[key] != second[key]] == [one.factor]


def test_of_many_values_some_are_compared_and_the_last_one_is() -> None:
    limits = [f"{number} packets" for number in (2, 3, 4, 6, 8, 10, 12, 16, 24, 32)]
    parameters = cells(limit=limits, loss=[0.0, 0.01], cc=["reno", "cubic"])
    found = contrasts.contrasts(list(parameters), parameters)
    of_limit = [one.second for one in found if one.factor == LIMIT]
    assert len(of_limit) == contrasts.MOST_LEVELS
    assert of_limit[-1] == "32 packets"
    assert {one.first for one in found if one.factor == LIMIT} == {"2 packets"}
    assert len(found) == contrasts.MOST_LEVELS + 1 + 1


def test_values_that_change_together_are_compared_cell_by_cell() -> None:
    parameters = {
        f"s/{name}": {"set": "s", "network": "gsm", "workload": "get", LIMIT: limit, "mtu": mtu}
        for name, limit, mtu in (("a", 4, 1500), ("b", 8, 1400), ("c", 16, 1300))
    }
    assert pairs(contrasts.contrasts(list(parameters), parameters)) == [
        (contrasts.CELL, "s/a", "s/b", 1),
        (contrasts.CELL, "s/a", "s/c", 1),
    ]


def test_sets_of_an_experiment_are_compared_where_their_cells_are_alike() -> None:
    parameters = {
        f"{group}/{network}": {"set": group, "network": network, "workload": "get"}
        for group in ("model", "live")
        for network in ("gprs", "gsm")
    }
    found = contrasts.contrasts(list(parameters), parameters)
    assert pairs(found) == [
        ("network", "gprs", "gsm", 1),
        ("network", "gprs", "gsm", 1),
        (contrasts.SET, "model", "live", 2),
    ]
    assert [one.group for one in found] == ["model", "live", ""]
    alone = {"a/x": {"set": "a", "network": "x"}, "b/y": {"set": "b", "network": "y"}}
    assert pairs(contrasts.contrasts(list(alone), alone)) == [(contrasts.SET, "a", "b", 1)]


def test_folders_without_an_experiment_are_compared_with_the_first() -> None:
    assert pairs(contrasts.contrasts(["cubic", "reno"], {})) == [
        (contrasts.CELL, "cubic", "reno", 1)
    ]
    assert contrasts.contrasts(["cubic"], {}) == []


def test_sentences_say_how_much_and_how_sure_in_the_order_of_importance() -> None:
    parameters = cells(network=["gprs", "gsm"], limit=["4 packets", "8 packets", "16 packets"])
    factor = {"4 packets": 1.0, "8 packets": 1.0, "16 packets": 0.5, "gprs": 1.0, "gsm": 4.0}

    def value(of: Mapping[str, Any], seed: int) -> float:
        chance = noise(of[LIMIT], of["network"], seed)
        return 10 * factor[of[LIMIT]] * factor[of["network"]] * math.exp(chance)

    main = measured(parameters, value)
    found = comparison.compare_all(
        main, contrasts.contrasts(list(parameters), parameters), [ELAPSED]
    )
    assert [(one.contrast.factor, one.contrast.second, one.supported) for one in found] == [
        (LIMIT, "16 packets", True),
        (LIMIT, "8 packets", False),
        ("network", "gsm", True),
    ]
    said = sentences.sentence(found[0])
    assert said.subject == "Queue limit 16 packets"
    effect = found[0].effect
    assert 0.45 < effect.low < effect.estimate < effect.high < 0.55
    ends = f"{effect.low:.2f} to {effect.high:.2f}"
    gprs, gsm = effect.of_blocks
    assert said.words == (
        f"{effect.estimate:.2f} times the elapsed time with 4 packets, simultaneous 95 % interval "
        f"{ends}, 6 pairs in each of 2 networks (gprs: {gprs:.2f}; gsm: {gsm:.2f})"
    )
    (open_question,) = sentences.not_told_apart(found)
    assert open_question.subject == "Queue limit 8 packets"


def test_p_is_corrected_for_what_is_asked_and_nothing_else() -> None:
    parameters = cells(limit=["4 packets", "8 packets", "16 packets", "32 packets"])
    main = measured(parameters, lambda of, seed: 10 + 3 * noise(of[LIMIT], seed))
    every = contrasts.contrasts(list(parameters), parameters)
    found = comparison.compare_all(main, every, [ELAPSED])
    raw = sorted(one.effect.p or 0 for one in found)
    # Holm by hand: 3, 2, 1 times, never falling, 1 at most.
    expected = [min(1, 3 * raw[0])]
    expected.append(max(expected[-1], min(1, 2 * raw[1])))
    expected.append(max(expected[-1], raw[2]))
    assert sorted(one.p_holm or 0 for one in found) == pytest.approx(expected)
    other = main.with_columns(metric=pl.lit("goodput"))
    again = comparison.compare_all(pl.concat([main, other]), every, [ELAPSED])
    assert [one.p_holm for one in again] == [one.p_holm for one in found]


def test_intervals_hold_together_for_what_is_asked() -> None:
    parameters = cells(limit=["4 packets", "8 packets", "16 packets", "32 packets"])
    main = measured(parameters, lambda of, seed: 10 + 3 * noise(of[LIMIT], seed))
    every = contrasts.contrasts(list(parameters), parameters)
    found = comparison.compare_all(main, every, [ELAPSED])
    assert len(found) == 3
    for one in found:
        (stratum,) = one.contrast.strata
        sides = [
            main.filter(pl.col("set") == of).sort("seed")["value"]
            for of in (stratum.first, stratum.second)
        ]
        ratios = np.log(sides[1].to_numpy() / sides[0].to_numpy())
        # Student's t with 5 degrees of freedom leaves 0.05 / 6 above 3.5341.
        half = 3.5341 * ratios.std(ddof=1) / math.sqrt(6)
        ends = [math.exp(ratios.mean() - half), math.exp(ratios.mean() + half)]
        assert [one.effect.low, one.effect.high] == pytest.approx(ends, rel=1e-5)
    alone = comparison.compare_all(main, every[:1], [ELAPSED])[0]
    same = next(one for one in found if one.contrast == every[0])
    assert same.effect.low < alone.effect.low
    assert "times the elapsed time with 4 packets, 95 %" in sentences.sentence(alone).words


def test_five_pairs_of_an_experiment_can_be_significant() -> None:
    parameters = cells(limit=["4 packets", "8 packets"])
    sizes = {"4 packets": 1.0, "8 packets": 1.5}
    main = measured(parameters, lambda of, seed: sizes[of[LIMIT]] + noise(of[LIMIT], seed), seeds=5)
    every = contrasts.contrasts(list(parameters), parameters)
    (one,) = comparison.compare_all(main, every, [ELAPSED])
    assert one.p_holm is not None
    assert one.p_holm < 0.01
    assert one.supported


def test_without_common_seeds_the_sides_are_independent() -> None:
    parameters = cells(limit=["4 packets", "8 packets"])
    main = measured(parameters, lambda of, seed: 1 + noise(of[LIMIT], seed)).with_columns(
        seed=pl.col("seed") + pl.when(pl.col("set").str.contains("8")).then(100).otherwise(0)
    )
    (one,) = comparison.compare_all(
        main, contrasts.contrasts(list(parameters), parameters), [ELAPSED]
    )
    assert not one.effect.paired
    assert "6 and 6 runs" in sentences.sentence(one).words


def test_runs_that_are_all_alike_are_told_apart_without_a_test() -> None:
    parameters = cells(limit=["4 packets", "8 packets"])
    main = measured(parameters, lambda of, seed: float(of[LIMIT].split()[0]))
    every = contrasts.contrasts(list(parameters), parameters)
    (one,) = comparison.compare_all(main, every, [ELAPSED])
    assert (one.effect.p, one.p_holm, one.supported) == (None, None, True)
    assert sentences.sentence(one).words.startswith(
        "2.00 times the elapsed time with 4 packets, in every run"
    )


def test_counts_are_told_as_more_or_less() -> None:
    parameters = cells(loss=[0.0, 0.02])
    key = ELAPSED | {"metric": "timeouts", "unit": "timeouts"}
    main = measured(parameters, lambda of, seed: 100 * of[LOSS] + (seed if of[LOSS] else 0) % 2)
    main = main.with_columns(metric=pl.lit("timeouts"), unit=pl.lit("timeouts"))
    every = contrasts.contrasts(list(parameters), parameters)
    (one,) = comparison.compare_all(main, every, [key])
    said = sentences.sentence(one)
    assert said.subject == "Errors probability 2 %"
    assert said.words.startswith("timeouts: 2.5 timeouts more than with 0 %, 95 % interval 1.925")


def durations(values: Mapping[str, Sequence[float]], flow: str = "") -> pl.DataFrame:
    return pl.DataFrame(
        [
            ELAPSED
            | {"set": "s", "run": str(run), "seed": run, "metric": metric, "value": value}
            | {"flow": flow if metric == "transfer_time" else ""}
            for metric, each in values.items()
            for run, value in enumerate(each)
        ]
    )


def test_no_duration_is_shown_under_two_names() -> None:
    alike = {
        "elapsed": [10.0, 20.0, 30.0],
        "elapsed_time": [10.5, 20.5, 30.5],
        "transfer_time": [9.9, 19.9, 29.9],
    }
    assert set(asked.without_synonyms(durations(alike))["metric"]) == {"elapsed"}
    kept = asked.without_synonyms(durations(alike), ["transfer_time"])
    assert set(kept["metric"]) == {"elapsed", "transfer_time"}, "what somebody names stays"
    pause = alike | {"transfer_time": [3.0, 6.0, 9.0]}
    assert set(asked.without_synonyms(durations(pause))["metric"]) == {"elapsed", "transfer_time"}
    of_two = pl.concat([durations(alike, "tcp-1"), durations(alike, "tcp-2")])
    assert "transfer_time" in set(asked.without_synonyms(of_two)["metric"]), "each flow has its own"
    later = {"elapsed_time": [10.0, 20.0], "transfer_time": [9.9, 19.9]}
    assert set(asked.without_synonyms(durations(later))["metric"]) == {"elapsed_time"}


def test_the_metric_tested_is_the_one_named_or_how_long_it_took() -> None:
    took = durations({"elapsed": [10.0, 20.0], "goodput": [5.0, 6.0]})
    assert [one["metric"] for one in asked.tested(took, [], [])] == ["elapsed"]
    named = asked.tested(took, [Selector("goodput"), Selector("elapsed")], [])
    assert [one["metric"] for one in named] == ["goodput", "elapsed"]
    fixed = durations({"elapsed": [10.0, 10.01], "goodput": [5.0, 6.0]})
    assert [one["metric"] for one in asked.tested(fixed, [], [])] == ["goodput"]
    media = durations({"elapsed": [10.0, 10.01], "one_way_delay_median": [5.0, 6.0]})
    assert [one["metric"] for one in asked.tested(media, [], [])] == ["one_way_delay_median"]
    constant = durations({"elapsed": [10.0, 10.0]})
    assert asked.tested(constant, [], []) == [], "what is the same everywhere is no result"


def test_the_flow_of_the_first_workload_is_told_first_and_what_all_share_is_not_told() -> None:
    """The download has the lower name and is of less interest than the media flow before it."""
    rows = [
        {"set": name, "run": f"{run:04}", "seed": run, "verdict": "trusted"}
        | {"metric": "goodput_overlap", "flow": flow, "hop": "", "direction": "downlink"}
        | {"unit": "bit/s", "value": 1e6 * factor + run}
        for name, factor in (("s/a", 1), ("s/b", 2))
        for flow in ("download", "media")
        for run in range(1, 7)
    ]
    table = pl.DataFrame(rows).select(list(COLUMNS))
    named = [Selector("goodput_overlap")]
    found = Measured(table, {}, named, usual=False, asked=named, order=["s/a", "s/b"])
    found.flows = ["media", "download"]
    assert [one["flow"] for one in found.tested] == ["media", "download"]
    told = text.differing(found.tested)
    assert told == ["flow"]
    words = [sentences.sentence(one, told).words for one in found.comparisons]
    assert words[0].startswith("2.00 times the goodput while all send (media) with s/a")
    assert words[1].startswith("2.00 times the goodput while all send (download) with s/a")
    both = [*found.tested, found.tested[0] | {"direction": "uplink"}]
    assert sentences.metric_name(both[0], text.differing(both)).endswith(" (media, downlink)")


def test_the_goodput_of_a_run_is_that_of_its_transfers() -> None:
    def rates(*flows: tuple[str, str, float, float]) -> pl.DataFrame:
        return pl.DataFrame(
            {"metric": metric, "flow": flow, "direction": way, "value": value}
            for flow, way, carried, rate in flows
            for metric, value in (("received_bytes", carried), ("goodput", rate))
        )

    download = ("tcp a", "downlink", 65e6, 5.2e6)
    requests = ("tcp a", "uplink", 3e3, 200.0)
    # A measurement's own connection carries more down than up.
    control = [("tcp b", "downlink", 2e3, 160.0), ("tcp b", "uplink", 1e3, 80.0)]
    other = ("tcp c", "downlink", 6e6, 1e6)
    run = cast("Run", None)
    assert _goodput(run, rates(download, requests, *control), "downlink") == 5.2e6
    assert _goodput(run, rates(download, requests, other), "downlink") == 3.1e6


def test_metrics_have_names_that_one_says() -> None:
    said = {
        "elapsed": "elapsed time",
        "program_delay_mean": "mean delay",
        "program_frames_on_time_ratio": "share of frames on time",
        "jain_fairness_overlap": "Jain's index while all send",
        "one_way_delay_p95": "95th percentile of one way delay",
        "rtt_median": "median rtt",
        "retransmitted_segments": "retransmitted segments",
    }
    assert {name: titles.title(name) for name in said} == said


def test_medians_of_one_set_are_told_in_the_order_asked_for_and_shares_in_per_cent() -> None:
    names = ("program_frames_on_time_ratio", "throughput")
    empty = {"flow": "", "hop": "", "direction": "", "unit": "1"}
    values = {"throughput": 2000.0, "program_frames_on_time_ratio": 0.25}
    rows = [
        {"set": "s/all", "run": f"{run:04}", "seed": run, "verdict": "trusted"}
        | {"metric": name, "value": value * (1 + run / 100)}
        | empty
        for name, value in values.items()
        for run in range(1, 7)
    ]
    table = pl.DataFrame(rows).select(list(COLUMNS))
    found = Measured(table, {}, [Selector(name) for name in names], usual=False)
    found.asked = [Selector(name) for name in names]
    said = sentences.of_sets(found.tested_summary, 6)
    assert [one.subject for one in said] == ["Share of frames on time", "Throughput"]
    assert said[0].words == "25.88 % (median of 6 runs, 95 % interval 25.38 to 26.38)"
    two = pl.concat([found.tested_summary, found.tested_summary.with_columns(set=pl.lit("t"))])
    assert [one.subject for one in sentences.of_sets(two, 6)] == ["s/all", "s/all", "t", "t"]


def test_the_example_of_queues_opens_with_what_the_queue_does(tmp_path: Path) -> None:
    example = Path(__file__).parent.parent / "examples" / "queue-length.toml"
    airpath.run_experiment(example, only="model", out=tmp_path / "results")
    measured = load_material([tmp_path / "results"], None, 0).measured
    first, second, _ = measured.comparisons
    assert [one.contrast.factor for one in (first, second)] == [LIMIT, LIMIT]
    assert all(one.supported for one in measured.comparisons)
    # Four times the queue: less than half of the time, and no more than 0.6 of it.
    assert first.effect.estimate < 0.5
    assert first.effect.high is not None
    assert first.effect.high < 0.6
    assert str(sentences.sentence(first).subject) == "Queue limit 16 packets"
