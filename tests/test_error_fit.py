# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""``airpath trace fit``: models found again in traces drawn from them, and naive likelihoods.

Seeds are fixed. A parameter found again lies within 4.5 standard errors of the true one (two-sided
probability 7e-6 to miss by chance), the errors being those of the observed information.
"""

from __future__ import annotations

import json
import math
import subprocess
import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from airpath.app import run as run_app
from airpath.engine import find_engine
from airpath.errortrace import compare, gilbert_elliott, lengths, mta, runs
from airpath.errortrace.declarations import ERROR_MODELS
from airpath.errortrace.model import Model, probability
from airpath.errortrace.trace import Trace, TraceError, drawn, exceedance, of_elements, read
from airpath.plots import error_fit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

STANDARD_ERRORS = 4.5

CHAIN = gilbert_elliott.GilbertElliott(0.008, 0.08, 0.01, 0.7)
ON_OFF = runs.Runs(
    lengths.MixedGeometric(np.array([0.7, 0.3]), np.array([6.0, 120.0])),
    lengths.MixedGeometric(np.array([0.8, 0.2]), np.array([1.5, 15.0])),
)
WEIBULL = runs.Runs(lengths.Weibull(2.0, 30.0), lengths.Weibull(1.7, 6.0))
# Two units without errors are always followed by an error, so that lossy states have no longer runs
# without, and bursts are of two as a rule: C lies above 2, and error-free states are longer.
PAIRS = mta.Mta(12.0, 60.0, 30.0, np.array([1.0, 0.9, 0.15, 0.1, 1.0, 0.8, 0.3, 0.2]))

TRUE: dict[str, Model] = {
    "gilbert_elliott": CHAIN,
    "mta": PAIRS,
    "on_off": ON_OFF,
    "weibull": WEIBULL,
}
UNITS = 60_000
ORDER = 3


@cache
def fitted(name: str) -> compare.Comparison:
    """Return all models fitted to a trace that is drawn from one."""
    return compare.compare(drawn(TRUE[name].errors(), UNITS, 5), 0.3, ORDER)


def found_again(name: str) -> Any:
    """Return the model of the true kind that was fitted."""
    return next(one.model for one in fitted(name).models if one.name == name)


def standard_errors(log: Callable[[Sequence[float]], float], at: Sequence[float]) -> list[float]:
    """Return standard errors from the second differences of a logarithm of the likelihood."""
    count = len(at)
    step = [1e-3 * value for value in at]

    def moved(*changes: tuple[int, int]) -> float:
        point = list(at)
        for index, sign in changes:
            point[index] += sign * step[index]
        return log(point)

    second = np.empty((count, count))
    for i in range(count):
        for j in range(count):
            signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            corners = [a * b * moved((i, a), (j, b)) for a, b in signs]
            second[i, j] = sum(corners) / (4 * step[i] * step[j])
    return list(np.sqrt(np.diag(np.linalg.inv(-second))))


def assert_near(found: Sequence[float], true: Sequence[float], errors: Sequence[float]) -> None:
    for value, expected, error in zip(found, true, errors, strict=True):
        assert abs(value - expected) <= STANDARD_ERRORS * error, (found, true, errors)
        assert error < 0.25 * expected, (found, errors)


def test_probabilities_are_as_fine_as_scenarios_have_them() -> None:
    assert probability(1.13227e-08) == "1.1323e-08"
    assert probability(0.12345678) == "0.123457"
    assert probability(0) == "0.0"


def test_a_gilbert_elliott_chain_is_found_again() -> None:
    trace = fitted("gilbert_elliott").trace
    model = found_again("gilbert_elliott")
    names = ("good_to_bad", "bad_to_good", "error_in_good", "error_in_bad")
    found = [getattr(model, name) for name in names]

    def log(point: Sequence[float]) -> float:
        chain = gilbert_elliott.GilbertElliott(*point)
        return float(chain.log_likelihood(trace, [2])[0])

    assert_near(found, [getattr(CHAIN, name) for name in names], standard_errors(log, found))


@pytest.mark.parametrize("kind", ["good", "bad"])
def test_mixed_geometric_runs_are_found_again(kind: str) -> None:
    data = getattr(fitted("on_off").trace, kind)
    model, true = getattr(found_again("on_off"), kind), getattr(ON_OFF, kind)
    assert len(model.means) == 2

    def log(point: Sequence[float]) -> float:
        weights = np.array([point[0], 1 - point[0]])
        mixture = lengths.MixedGeometric(weights, np.array(point[1:]))
        return float(mixture.log_probability(data).sum())

    found = [model.weights[0], *model.means]
    assert_near(found, [true.weights[0], *true.means], standard_errors(log, found))


@pytest.mark.parametrize("kind", ["good", "bad"])
def test_weibull_runs_are_found_again(kind: str) -> None:
    data = getattr(fitted("weibull").trace, kind)
    model, true = getattr(found_again("weibull"), kind), getattr(WEIBULL, kind)

    def log(point: Sequence[float]) -> float:
        return float(lengths.Weibull(*point).log_probability(data).sum())

    found = [model.shape, model.scale]
    assert_near(found, [true.shape, true.scale], standard_errors(log, found))


def test_error_free_and_lossy_states_are_found_again() -> None:
    trace, model = fitted("mta").trace, found_again("mta")
    assert 2 < model.constant < 12
    states = trace.units / (PAIRS.error_free_mean + PAIRS.lossy_mean)
    # A lossy state ends at its last error: up to two units without are told of the error-free one.
    spread = PAIRS.error_free_mean - PAIRS.least + 1
    bound = STANDARD_ERRORS * math.sqrt(spread * (spread - 1) / states)
    assert -bound < model.error_free_mean - PAIRS.error_free_mean < bound + 2
    bound = STANDARD_ERRORS * math.sqrt(PAIRS.lossy_mean * (PAIRS.lossy_mean - 1) / states)
    assert -bound - 2 < model.lossy_mean - PAIRS.lossy_mean < bound
    # Units after each history, as often as in the lossy states of the trace itself.
    history = np.zeros(trace.units, dtype=np.int64)
    for distance in (1, 2, 3):
        history[distance:] |= trace.elements[:-distance].astype(np.int64) << (distance - 1)
    for index, true in enumerate(PAIRS.error_after):
        visits = int((history == index).sum())
        if index == 0:  # three units without errors are of error-free states here
            continue
        error = math.sqrt(max(true * (1 - true), 1e-4) / visits)
        bound = STANDARD_ERRORS * error + 1 / visits
        if index in (2, 4, 6):  # the end of a lossy state looks like a unit without an error
            bound += 2 * states / visits
        assert abs(model.error_after[index] - true) < bound, (index, model.error_after)


@pytest.mark.parametrize("name", TRUE)
def test_held_out_likelihood_chooses_the_true_model(name: str) -> None:
    found = fitted(name)
    assert found.best.name == name
    assert found.equals == ()
    assert 0.25 * UNITS < found.held_out < 0.35 * UNITS
    true = TRUE[name].log_likelihood(found.trace, [found.split])[0] / math.log(2)
    # The true model is better than what was fitted, by little: half a bit or so for each parameter.
    count = found.best.model.parameters
    lead = true - found.best.log_likelihood * (found.held_out - 1)
    assert -0.01 * found.held_out < lead < 10 * count


@pytest.mark.parametrize("name", TRUE)
def test_figures_of_a_model_are_those_of_its_data(name: str) -> None:
    found = fitted(name)
    of_data, of_model = found.statistics, found.best.statistics
    assert of_model.error_rate == pytest.approx(of_data.error_rate, rel=0.1)
    for kind in ("good", "bad"):
        assert getattr(of_model, kind).mean == pytest.approx(getattr(of_data, kind).mean, rel=0.1)
        # Error-free states of MTA are longer than the longest runs in lossy states, and no more.
        for share in (0.5, 0.99):
            value = getattr(of_data, kind).quantiles[share]
            other = getattr(of_model, kind).quantiles[share]
            assert abs(other - value) <= max(2, 0.25 * value), (kind, share)
    for lag in (1, 2, 5):
        values = of_model.autocorrelation[lag], of_data.autocorrelation[lag]
        assert values[0] == pytest.approx(values[1], abs=0.05), lag


def naive_forward(elements: Sequence[int], states: int, step: Any, start: Any) -> list[float]:
    """Return the logarithm of the probability of all units up to each, by one state after another.

    Args:
        elements: the units.
        states: number of states.
        step: of a state, the history and a unit: the unit's probability and next states.
        start: probabilities of the states.

    """
    now = dict(enumerate(start)) if states else dict(start)
    log, logs = 0.0, []
    for place, unit in enumerate(elements):
        after: dict[Any, float] = {}
        for state, chance in now.items():
            for to, share in step(state, place, unit):
                after[to] = after.get(to, 0.0) + chance * share
        total = sum(after.values())
        log += math.log(total)
        now = {state: chance / total for state, chance in after.items()}
        logs.append(log)
    return logs


SHORT = of_elements(
    np.array([int(digit) for digit in "00110100000000010110001000000000001110" * 3], dtype=np.uint8)
)


def parts(logs: Sequence[float], trace: Trace, cuts: Sequence[int]) -> list[float]:
    """Return the logarithms of parts, the first unit being given, from those up to each unit."""
    ends = [int(trace.starts[cut]) - 1 for cut in cuts[1:]] + [trace.units - 1]
    begins = [int(trace.starts[cuts[0]]), *ends[:-1]]
    return [logs[end] - logs[begin] for begin, end in zip(begins, ends, strict=True)]


def test_the_likelihood_of_a_chain_is_that_of_one_unit_after_another() -> None:
    chain = gilbert_elliott.GilbertElliott(0.1, 0.3, 0.05, 0.8)

    def step(state: int, _: int, unit: int) -> list[tuple[int, float]]:
        hit = (chain.error_in_good, chain.error_in_bad)[state]
        leave = (chain.good_to_bad, chain.bad_to_good)[state]
        chance = hit if unit else 1 - hit
        return [(state, chance * (1 - leave)), (1 - state, chance * leave)]

    logs = naive_forward(list(SHORT.elements), 2, step, (0.75, 0.25))
    for cuts in ([2], [4, 8, 12]):
        found = chain.log_likelihood(SHORT, cuts)
        assert list(found) == pytest.approx(parts(logs, SHORT, cuts), abs=1e-9)


@pytest.mark.parametrize(("least", "lossy"), [(1, 4.0), (2, 4.0), (3, 9.0), (6, 1.5)])
def test_the_likelihood_of_lossy_states_is_that_of_one_unit_after_another(
    least: int, lossy: float
) -> None:
    table = np.array([0.2, 0.5, 0.3, 0.9, 0.1, 0.7, 0.6, 0.4])
    model = mta.Mta(float(least), least + 5.0, lossy, table)
    ends, leaves = 1 / 6.0, 1 / lossy
    elements = [int(unit) for unit in SHORT.elements]

    # States: 0 is lossy, n > 0 an error-free state of which n units have passed, up to the least.
    def step(state: int, place: int, unit: int) -> list[tuple[int, float]]:
        found = []
        if state == 0:
            history = [elements[place - back] if place >= back else 0 for back in (1, 2, 3)]
            chance = table[history[0] + 2 * history[1] + 4 * history[2]]
            found.append((0, (1 - leaves) * (chance if unit else 1 - chance)))
            if not unit:
                found.append((1, leaves))
            return found
        end = ends if state == least else 0.0
        if unit:
            return [(0, end)]
        return [(min(state + 1, least), 1 - end)]

    logs = naive_forward(elements, 0, step, {least: 1.0}.items())
    for cuts in ([2], [4, 8, 12]):
        found = model.log_likelihood(SHORT, cuts)
        assert list(found) == pytest.approx(parts(logs, SHORT, cuts), abs=1e-9)


@pytest.mark.parametrize("process", [ON_OFF, WEIBULL])
def test_the_likelihood_of_runs_is_that_of_their_lengths(process: runs.Runs) -> None:
    def exceeded(kind: Any, length: int) -> float:
        if isinstance(kind, lengths.Weibull):
            return math.exp(-((length / kind.scale) ** kind.shape))
        pairs = zip(kind.weights, kind.means, strict=True)
        return float(sum(weight * (1 - 1 / mean) ** length for weight, mean in pairs))

    logs = []
    for number, length in enumerate(SHORT.lengths):
        kind = (process.good, process.bad)[number % 2]
        end = 0.0 if number == len(SHORT.lengths) - 1 else exceeded(kind, int(length))
        logs.append(math.log(exceeded(kind, int(length) - 1) - end))
    found = process.log_likelihood(SHORT, [2, 6])
    assert list(found) == pytest.approx([sum(logs[2:6]), sum(logs[6:])], abs=1e-9)


SCENARIO = """
[[hops]]
name = "radio"
[hops.uplink]
rate = "1 Mbit/s"
{errors}
"""


def engine(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [find_engine(), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a trace."""
    path = tmp_path / "bursts.txt"
    made = engine("trace", "generate", CHAIN.errors(), path, "-n", 8_000, "--seed", 3, "--quiet")
    assert made.returncode == 0, made.stderr
    return path


def test_a_scenario_accepts_every_model_as_it_is_printed(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "scenario.toml"
    assert run_app(["trace", "fit", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for model in found["models"]:
        line = f"errors = {model['errors']}"
        assert tomllib.loads(line)["errors"]["type"] in ("gilbert_elliott", "mta", "runs")
        scenario.write_text(SCENARIO.format(errors=line))
        done = engine("check", scenario)
        assert done.returncode == 0, done.stderr
        out = tmp_path / model["name"]
        cbr = 'cbr rate="800 kbit/s" size=100 from=client packets=500'
        done = engine("sim", "--scenario", scenario, "--workload", cbr, "--out", out, "--quiet")
        assert done.returncode == 0, done.stderr
        counters = json.loads((out / "run.json").read_text())["results"]["counters"]
        kinds = next(one["kinds"] for one in counters if one["hop"] == "path")
        assert 0 < kinds["delivered"]["count"] < kinds["offered"]["count"] == 500


def test_the_report_is_the_same_each_time_and_names_the_best(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(["trace", "fit", str(file)]) == 0
    text = capsys.readouterr().out
    assert "best model: Gilbert-Elliott (gilbert_elliott)" in text
    for part in ("bad runs: median", "autocorrelation at 50", "bit per unit"):
        assert part in text
    printed = [line for line in text.splitlines() if line.startswith("errors = ")]
    assert len(printed) == 4
    assert run_app(["trace", "fit", str(file), "--model", "best"]) == 0
    assert capsys.readouterr().out == f"{printed[0]}\n"


def test_models_are_drawn_beside_the_data(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "pictures" / "fit.svg"
    words = ["trace", "fit", str(file), "--model", "weibull", "--out", str(picture)]
    assert run_app(words) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("errors = ")
    assert str(picture) in captured.err
    assert "Autocorrelation of errors" in picture.read_text()


def test_a_picture_has_every_model_in_every_panel() -> None:
    found = fitted("on_off")
    good, bad, correlation = error_fit.draw(found, "trace").figure.get_axes()
    for axis in (good, bad, correlation):
        labels = [line.get_label() for line in axis.get_lines()]
        assert len(labels) == 5
        assert labels[0] == "data"
    values = np.asarray(good.get_lines()[0].get_xydata())
    shown, shares = exceedance(found.trace.good)
    assert values[0].tolist() == [shown[0], 1.0]
    assert values[:, 1].tolist() == shares.tolist()


def test_every_format_of_errors_is_read(tmp_path: Path) -> None:
    digits = "0011010001110000100000011010000"
    expected = of_elements(np.array([int(digit) for digit in digits], dtype=np.uint8))
    frames = [0x6B20 if digit == "1" else 0x6B21 for digit in digits]
    bits = [0x0081 if digit == "1" else 0x007F for digit in digits]
    compact = sum(1 << place for place, digit in enumerate(digits) if digit == "1")
    places = " ".join(str(place) for place, digit in enumerate(digits) if digit == "1")
    contents: dict[str, tuple[bytes, str | None, int | None]] = {
        "digits": (digits.encode(), None, None),
        "lines": ("\n".join(digits).encode(), None, None),
        "blanks": (f"# drawn\n{' '.join(digits)} # all".encode(), None, None),
        "binary": (bytes(int(digit) for digit in digits), None, None),
        "records": (b"ok 2\nlost 2\nok\nhit\nat 9 lost 3\nat 16 hit\nat 23 lost 2\nok\nhit\nok 4",
                    None, None),
        "little": (np.array(frames, dtype="<u2").tobytes(), None, None),
        "big": (np.array(frames, dtype=">u2").tobytes(), None, None),
        "softbits": (np.array(bits, dtype="<u2").tobytes(), None, None),
        "softbits-big": (np.array(bits, dtype=">u2").tobytes(), None, None),
        "bytes": (bytes(word & 0xFF for word in frames), None, None),
        "softbit-bytes": (bytes(word & 0xFF for word in bits), None, None),
        "positions": (places.encode(), "positions", len(digits)),
        "compact": (compact.to_bytes(4, "little"), "g191-compact", None),
    }  # fmt: skip
    for name, (content, file_format, units) in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        found = read(path, file_format, units)
        wanted = list(expected.lengths)
        if name == "compact":  # whole bytes: one unit more
            wanted[-1] += 1
        assert list(found.lengths) == wanted, name


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (b"0" * 500, (), 'nothing to fit; the process of such a link is errors = { type = "no'),
        (b"1" * 500, (), "exchange 0 and 1"),
        (b"0001" * 9, (), "9 bursts of errors in 36 units; at least 20 are needed"),
        (b"0001" * 30, ("--held-out", "0.05"), "the held-out part of the trace has"),
        (b"0021", (), "`0021` is no record"),
        (b"\x21\x6b\x20", (), "the file ends within word 1"),
        (b"\x21\x6b\x20\x6b\x40\x01", (), "word 2 of this error pattern of ITU-T G.191 is 0x0140"),
        (b"3 5 9", ("--from", "positions", "--units", "5"), "position 9 is not among 5 units"),
        (b"0011", ("--units", "5"), "--units is for lists of positions"),
        (b"0011", ("--held-out", "1.5"), "--held-out 1.5 must be from 0.05 to 0.9"),
        (b"0011", ("--order", "0"), "--order 0 must be from 1 to 12"),
        (b"0011", ("--out", "x.gif"), "must end with .png, .svg or .pdf"),
        (b"0011", ("--model", "gilbert"), "gilbert_elliott"),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted_is_told(
    content: bytes,
    options: tuple[str, ...],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "trace"
    path.write_bytes(content)
    assert run_app(["trace", "fit", str(path), *options]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(["trace", "fit", str(tmp_path / "none.txt")]) == 2
    assert "none.txt" in capsys.readouterr().err


def test_a_trace_too_short_or_of_a_link_that_changed_is_warned_of() -> None:
    few = compare.compare(drawn(CHAIN.errors(), 3_000, 1), 0.3, ORDER)
    assert any("bursts of errors only: parameters are rough" in text for text in few.warnings)
    assert any("which model is best is uncertain" in text for text in few.warnings)
    calm = gilbert_elliott.GilbertElliott(0.004, 0.08, 0.01, 0.7)
    both = (drawn(calm.errors(), 7_000, 1).elements, drawn(CHAIN.errors(), 3_000, 1).elements)
    changed = compare.compare(of_elements(np.concatenate(both)), 0.3, ORDER)
    assert any("the link has changed" in text for text in changed.warnings)


def test_every_model_can_be_asked_for_and_drawn() -> None:
    assert (*compare.KINDS, "best") == ERROR_MODELS
    assert list(error_fit.STYLES) == list(compare.KINDS)


def test_degenerate_traces_are_fitted_or_refused_but_break_nothing() -> None:
    """Every run of one length, bursts of one unit, a trace that begins or ends with errors."""
    for text in ("0001" * 60, "10" * 80, "0" * 500 + "01" * 60, "1" * 300 + "001" * 60):
        trace = of_elements(np.array([int(digit) for digit in text], dtype=np.uint8))
        try:
            found = compare.compare(trace, 0.3, ORDER)
        except TraceError:
            continue
        for one in found.models:
            assert math.isfinite(one.log_likelihood), (text[:20], one.name)
            assert one.statistics.units > 0
