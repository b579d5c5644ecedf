# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Measurements of sleep methods: reading, pictures (what is in them), tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from airpath.app import run as run_app
from airpath.plots.timing import KINDS, cost, draw, errors, line_rate, look, packet_delay, requests
from airpath.status import UNWRITABLE
from airpath.timing import TimingError, load_report
from airpath.timing_table import tables
from test_plot import SUFFIXES, texts
from timing_folder import USUAL, Way, write_timing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from airpath.timing import Report


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("timing") / "quiet"
    write_timing(folder)
    return load_report(folder)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("timing") / "loaded"
    write_timing(folder, load="cpu", scale=20)
    return load_report(folder)


def test_a_report_is_read(quiet: Report) -> None:
    assert [series.method for series in quiet.series] == [way.method for way in USUAL]
    assert len(quiet.measured) == 4
    assert quiet.series[2].setting == "timer slack 1 ns"
    assert quiet.series[4].unavailable == "/dev/rtc: No such file or directory"
    assert quiet.samples.height == 4000
    for series in quiet.measured:
        assert series.measured is not None
        found = quiet.errors_of(series)
        assert found.mean() == pytest.approx(series.measured.absolute_error_ms.mean.value * 1e6)
        assert found.sum() == series.measured.drift_ns


def damage_key(content: dict[str, Any]) -> None:
    del content["series"][1]["measured"]["drift_ns"]


def damage_type(content: dict[str, Any]) -> None:
    content["series"][0]["measured"]["error_ns"]["p99"] = "soon"


def damage_version(content: dict[str, Any]) -> None:
    content["format_version"] = 2


def damage_interval(content: dict[str, Any]) -> None:
    content["series"][0]["measured"]["relative_error"]["mean_interval"] = [1]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_key, "series[1].measured.drift_ns is missing"),
        (damage_type, "series[0].measured.error_ns.p99 is 'soon', not a whole number"),
        (damage_version, "has format 2, but this version of Airpath reads format 1"),
        (damage_interval, "series[0].measured.relative_error.mean_interval is no pair"),
    ],
)
def test_reports_of_another_form_are_refused(
    tmp_path: Path, damage: Callable[[dict[str, Any]], None], words: str
) -> None:
    write_timing(tmp_path, requests=3)
    path = tmp_path / "timing.json"
    content = json.loads(path.read_text())
    damage(content)
    path.write_text(json.dumps(content))
    with pytest.raises(TimingError) as told:
        load_report(tmp_path)
    assert words in str(told.value)
    assert str(path) in str(told.value)


def test_keys_of_later_versions_are_left_alone(tmp_path: Path) -> None:
    write_timing(tmp_path, requests=3)
    path = tmp_path / "timing.json"
    content = json.loads(path.read_text())
    content["weather"] = "fine"
    content["series"][0]["measured"]["skew"] = 1.5
    path.write_text(json.dumps(content))
    assert len(load_report(tmp_path).measured) == 4


def test_what_is_no_measurement_is_named(tmp_path: Path) -> None:
    with pytest.raises(TimingError, match="no such folder"):
        load_report(tmp_path / "nowhere")
    with pytest.raises(TimingError, match=r"no timing\.json in it"):
        load_report(tmp_path)
    write_timing(tmp_path, requests=3)
    path = tmp_path / "timing.json"
    path.write_text(path.read_text()[:200])
    with pytest.raises(TimingError, match="torn or damaged"):
        load_report(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_torn_samples_are_refused(tmp_path: Path, share: float) -> None:
    write_timing(tmp_path)
    path = tmp_path / "samples.arrow"
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(TimingError, match=r"samples\.arrow.*torn"):
        _ = load_report(tmp_path).samples


def test_samples_of_another_measurement_are_refused(tmp_path: Path) -> None:
    write_timing(tmp_path / "a", requests=10)
    write_timing(tmp_path / "b", requests=20)
    (tmp_path / "b" / "samples.arrow").replace(tmp_path / "a" / "samples.arrow")
    with pytest.raises(TimingError, match=r"20 requests of series 0 \(select, plain\).* of 10"):
        _ = load_report(tmp_path / "a").samples
    with pytest.raises(TimingError, match="missing"):
        _ = load_report(tmp_path / "b").samples


def curves(axis: Any) -> dict[str, Any]:
    return {str(line.get_label()): line for line in axis.get_lines()}


def test_line_rates_are_a_curve_a_method_beside_the_ideal(quiet: Report, loaded: Report) -> None:
    (picture,) = line_rate.draw([quiet, loaded])
    assert picture.name == "line-rate"
    above, other, below, _ = picture.figure.get_axes()
    assert "100 bytes" in texts(picture.figure)
    assert above.get_ylim() == other.get_ylim()
    found = curves(above)
    assert {"select, plain", "select, slack", "busy, plain"} <= set(found)
    line = found["select, plain"]
    rates = [
        rate for rate in quiet.line_rates if (rate.method, rate.technique) == ("select", "plain")
    ]
    assert list(line.get_xdata()) == [rate.requested_bits_per_second / 1e3 for rate in rates]
    assert list(line.get_ydata()) == [rate.actual_bits_per_second / 1e3 for rate in rates]
    assert any(
        line.get_linestyle() == "--" and np.array_equal(line.get_xdata(), line.get_ydata())
        for line in above.get_lines()
    )
    shares = curves(below)["select, plain"].get_ydata()
    assert shares[-1] == pytest.approx(
        rates[-1].actual_bits_per_second / rates[-1].requested_bits_per_second
    )


def test_packet_delays_are_computed_and_levels_are_measured(quiet: Report) -> None:
    # 1500 bytes at 1 kbit/s take 12 s; 25 bytes at 1 Gbit/s 0.2 µs.
    assert packet_delay.delay_ms(1500, np.array([1e3]))[0] == 12_000
    assert packet_delay.delay_ms(25, np.array([1e9]))[0] == pytest.approx(2e-4)
    levels = packet_delay.levels_ms(quiet)
    assert list(levels) == ["select", "clock_nanosleep_absolute", "busy"]
    plain = quiet.errors_of(quiet.series[0]).abs().to_numpy()
    assert levels["select"] == pytest.approx(np.quantile(plain, 0.99) / 1e6)
    (picture,) = packet_delay.draw([quiet])
    panel, strip = picture.figure.get_axes()
    assert {f"{size} bytes" for size in (1500, 1000, 200, 25)} <= set(curves(panel))
    heights = [
        np.asarray(line.get_ydata())[0] for line in panel.get_lines() if line.get_label() == "_"
    ]
    assert heights == [*levels.values(), 14.5]
    assert {"select", "busy"} <= {text.get_text() for text in strip.texts}


def test_requests_stand_over_what_was_asked(quiet: Report, loaded: Report) -> None:
    plain, slack = requests.draw([quiet])
    assert [plain.name, slack.name] == ["requests-plain", "requests-slack"]
    shown = [axis for axis in plain.figure.get_axes() if axis.get_visible()]
    assert len(shown) == 6, "a panel and what was missed, for each of three ways"
    line = curves(shown[0])["select"]
    first = quiet.samples_of(quiet.series[0]).head(100)
    assert line.get_xdata() == pytest.approx(first["requested_ns"].to_numpy() / 1e6)
    assert line.get_ydata() == pytest.approx(first["actual_ns"].to_numpy() / 1e6)
    both, _ = requests.draw([quiet, loaded])
    visible = [axis for axis in both.figure.get_axes() if axis.get_visible()]
    assert len(visible) == 12
    assert len({axis.get_ylim() for axis in visible}) == 2, "the same axes for both"


def test_errors_fall_from_one_to_the_rarest(quiet: Report, loaded: Report) -> None:
    missed, share = errors.exceeded(np.array([1.0, 2.0, 3.0, 4.0]))
    assert missed.tolist() == [1, 2, 3, 4]
    assert share.tolist() == [1, 0.75, 0.5, 0.25]
    (picture,) = errors.draw([quiet, loaded])
    axes = picture.figure.get_axes()
    assert len(axes) == 4, "two techniques, two measurements"
    assert len({axis.get_xlim() for axis in axes}) == 1
    line = curves(axes[0])["select, default"]
    magnitudes = quiet.errors_of(quiet.series[0]).abs().to_numpy()
    assert line.get_xdata()[-1] == pytest.approx(magnitudes.max() / 1e3)
    assert line.get_ydata()[-1] == pytest.approx(1 / 1000)
    assert "timer slack 1 ns" in texts(picture.figure)


def test_what_is_dominated_is_not_on_the_front(tmp_path: Path) -> None:
    ways = (
        Way("select", constant=50_000, processor=5_000),
        Way("poll", constant=90_000, processor=6_000),
        Way("busy", constant=100, tail=10, processor=5e7),
    )
    write_timing(tmp_path / "x", ways=ways)
    report = load_report(tmp_path / "x")
    found = cost.points(report)
    assert len(found) == 3
    assert [point.series.method for point in cost.front(found)] == ["select", "busy"]
    (picture,) = cost.draw([report])
    names = {text.get_text() for text in picture.figure.get_axes()[0].texts}
    assert names == {"select", "busy"}


def test_names_are_spread_in_order_and_within_limits() -> None:
    assert look.spread([5, 1, 5.1], 1, 0, 10) == pytest.approx([5, 1, 6])
    assert look.spread([9.9, 10, 9.8], 1, 0, 10) == pytest.approx([9, 10, 8])
    crowded = look.spread([5.0] * 21, 1, 0, 10)
    assert min(crowded) >= 0
    assert max(crowded) <= 10 + 1e-9
    assert np.diff(crowded).min() == pytest.approx(0.5)


def test_known_ways_look_different_from_one_another() -> None:
    looks = {(look.colour(name), look.marker(name)) for name in look._METHODS}
    assert len(looks) == len(look._METHODS) == 15
    assert look.marker("sundial") == look.marker("sundial")


def test_little_data_is_drawn_too(tmp_path: Path) -> None:
    write_timing(tmp_path / "x", ways=(Way("select"),), requests=1, line_rates=False)
    pictures = draw([load_report(tmp_path / "x")], KINDS)
    assert [picture.name for picture in pictures] == [
        "packet-delay",
        "requests-plain",
        "errors",
        "cost",
    ]
    for picture in pictures:
        picture.figure.draw_without_rendering()


def test_tables_stand_beside_the_paper(quiet: Report, loaded: Report) -> None:
    text = tables([quiet, loaded])
    lines = text.splitlines()
    first = next(line for line in lines if line.startswith("| standard select()"))
    assert first == "| standard select() | Gurtov 1999 | 14.50 | 10.49 | 0.85 | 4.39 |"
    assert lines[lines.index(first) + 1].startswith("|  | quiet | 0.0")
    assert lines[lines.index(first) + 2].startswith("|  | loaded | 1.2")
    assert "| unavailable: /dev/rtc: No such file or directory |" in text
    assert "Every series of loaded (cpu load, policy other)" in text
    assert sum(line.startswith("| busy | plain | default |") for line in lines) == 2
    widths = {line.count(" | ") for line in lines if line.startswith("| select")}
    assert len(widths) == 1
    assert "compare in kind only" not in text


def test_held_wake_latency_and_broken_off_measurements_are_told(tmp_path: Path) -> None:
    write_timing(tmp_path / "held", requests=5)
    path = tmp_path / "held" / "timing.json"
    content = json.loads(path.read_text())
    content["asked"]["wake_latency"] = "hold"
    content["interrupted"] = True
    path.write_text(json.dumps(content))
    report = load_report(tmp_path / "held")
    assert report.title == "held (no load, policy other, wake latency held)"
    assert "policy other, wake latency held" in tables([report])
    assert "broken off early" in tables([report])


def test_who_reads_no_further_gets_no_complaint(quiet: Report) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-c",
        "import sys; from airpath.app import run; sys.exit(run(sys.argv[1:]))",
        "timing",
        "table",
        str(quiet.directory),
    ]
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, b"")


def test_pictures_that_cannot_be_written_are_told_with_what_to_do(
    quiet: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        assert run_app(["timing", "plot", str(quiet.directory), "--out", str(place)]) == UNWRITABLE
        told = capsys.readouterr().err
        assert str(tmp_path / "file") in told
        assert "name another place" in told


def test_the_command_draws_and_names_its_files(
    quiet: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "figures"
    for file_format, magic in SUFFIXES.items():
        arguments = ["timing", "plot", str(quiet.directory), "--out", str(out)]
        arguments += ["--only", "cost", "--format", file_format]
        assert run_app(arguments) == 0
        assert capsys.readouterr().out.split() == [str(out / f"cost.{file_format}")]
        assert (out / f"cost.{file_format}").read_bytes().startswith(magic)


def test_mistakes_are_told_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("plot", "table"):
        assert run_app(["timing", command, str(tmp_path / "nowhere")]) == 2
        assert f"airpath timing {command}: " in capsys.readouterr().err
    write_timing(tmp_path / "x", requests=2, line_rates=False)
    assert run_app(["timing", "plot", str(tmp_path / "x"), "--only", "line-rate"]) == 1
    assert "--line-rates" in capsys.readouterr().err
    (tmp_path / "x" / "samples.arrow").write_bytes(b"nonsense")
    assert run_app(["timing", "plot", str(tmp_path / "x"), "--only", "cost"]) == 2
    assert "samples.arrow" in capsys.readouterr().err
    assert run_app(["timing", "table", str(tmp_path / "x")]) == 0
