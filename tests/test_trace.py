# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""airpath trace: conversions there and back, what is shown, what is wrong, and the picture."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from airpath.app import run as run_app
from airpath.engine import find_engine
from airpath.plots import rate_trace
from airpath.status import UNWRITABLE

if TYPE_CHECKING:
    from pathlib import Path

MAHIMAHI = [1, 1, 4, 9, 9, 9, 10, 250, 251, 400]


def trace(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), "trace", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def convert(source: object, target: object, *options: object) -> subprocess.CompletedProcess[str]:
    result = trace("convert", source, target, *options)
    assert result.returncode == 0, result.stderr
    return result


def show(file: Path, *options: str) -> dict[str, Any]:
    result = trace("show", file, "--json", *options)
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def mahimahi(tmp_path: Path) -> Path:
    file = tmp_path / "up.trace"
    file.write_text("".join(f"{ms}\n" for ms in MAHIMAHI))
    return file


@pytest.mark.parametrize("middle", ["there.csv", "there.json", "there.netem.json"])
def test_opportunities_survive_every_format(mahimahi: Path, tmp_path: Path, middle: str) -> None:
    convert(mahimahi, tmp_path / middle)
    result = convert(tmp_path / middle, tmp_path / "back.trace")
    assert (tmp_path / "back.trace").read_text() == mahimahi.read_text()
    assert result.stderr == ""


@pytest.mark.parametrize("first", ["one.csv", "one.json", "one.netem.json"])
@pytest.mark.parametrize("second", ["two.csv", "two.json", "two.netem.json"])
def test_rates_survive_every_pair_of_formats(tmp_path: Path, first: str, second: str) -> None:
    source = tmp_path / "rates.json"
    source.write_text('{"period": "7 s", "points": [[0, "1 Mbit/s"], ["1.5 s", 0], [2, 64001]]}')
    convert(source, tmp_path / first)
    convert(tmp_path / first, tmp_path / second)
    expected, found = show(source, "--points"), show(tmp_path / second, "--points")
    for key in ("duration_ns", "mean_bps", "outages", "outages_ns", "percentiles_bps"):
        assert found[key] == expected[key], key
    # CSV repeats the last rate to say how long it lasts.
    assert found["rates"][:3] == [[0, 1_000_000], [1_500_000_000, 0], [2_000_000_000, 64_001]]


def test_netem_trace_is_written_as_it_is_read_there(tmp_path: Path) -> None:
    source = tmp_path / "rates.csv"
    source.write_text("0,12 Mbit/s\n1.5,24 Mbit/s\n")
    convert(source, tmp_path / "rates.netem.json")
    model = json.loads((tmp_path / "rates.netem.json").read_text())["RepeatedBwPatternConfig"]
    assert model["count"] == 0
    half = {"secs": 1, "nanos": 500_000_000}
    assert model["pattern"] == [
        {"StaticBwConfig": {"bw": {"gbps": 0, "bps": 12_000_000}, "duration": half}},
        {"StaticBwConfig": {"bw": {"gbps": 0, "bps": 24_000_000}, "duration": half}},
    ]


@pytest.mark.parametrize(
    ("rate", "lines"),
    [
        ("12 Mbit/s", [1]),
        ("5 Mbit/s", [3, 5, 8, 10, 12]),
        ("36 Mbit/s", [1, 1, 1]),
        ("9600 bit/s", [1250]),
    ],
)
def test_a_constant_rate_becomes_opportunities(tmp_path: Path, rate: str, lines: list[int]) -> None:
    result = convert(rate, "-")
    assert [int(line) for line in result.stdout.split()] == lines
    assert result.stderr == ""
    # 15 s are a whole number of rounds of each.
    convert(rate, tmp_path / "longer.trace", "--duration", "15 s")
    found = show(tmp_path / "longer.trace")
    bits_per_second = {"12": 12e6, "5 ": 5e6, "36": 36e6, "96": 9600}[rate[:2]]
    assert found["opportunities"] * 12_000 == bits_per_second * 15


def test_opportunities_follow_a_rate_that_changes(tmp_path: Path) -> None:
    source = tmp_path / "rates.csv"
    # 12 kbit in 2 ms, none for 3 ms, then 12 kbit a millisecond.
    source.write_text("time_ms,rate_mbps\n0,6\n2,0\n5,12\n8,3\n")
    result = convert(source, "-", "--to", "mahimahi", "--duration", "8 ms")
    assert result.stdout.split() == ["2", "6", "7", "8"]
    # The rest of the 3 ms at 3 Mbit/s is no whole packet, so that the trace is shorter.
    assert "lasts 8 ms, not 11 ms" in convert(source, "-", "--to", "mahimahi").stderr


def test_show_says_what_a_trace_is_like(mahimahi: Path) -> None:
    found = show(mahimahi)
    assert (found["format"], found["opportunities"], found["duration_ns"]) == (
        "mahimahi",
        10,
        400_000_000,
    )
    # Bins of 100 ms hold 7, 0, 2 and 1 opportunities.
    assert found["mean_bps"] == 10 * 12_000 / 0.4
    assert (found["least_bps"], found["most_bps"]) == (0, 840_000)
    assert (found["outages"], found["longest_outage_ns"]) == (1, 100_000_000)
    assert found["percentiles_bps"] == [
        [5, 0],
        [25, 0],
        [50, 120_000],
        [75, 240_000],
        [95, 840_000],
    ]
    text = trace("show", mahimahi).stdout
    for part in (
        "mahimahi",
        "400 ms, repeats",
        "10 opportunities",
        "300 kbit/s",
        "1, 100 ms in all",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x.trace", "1\n2\n1\n", "line 3: 1 comes after 2"),
        ("x.trace", "1\n\n", "line 2: it is empty"),
        ("x.csv", "time,rate\n0,1e6\n1,fast\n", "line 3: `fast`"),
        ("x.csv", "time,rate\n0,1e6\n0,2e6\n", "line 3: its time is not later"),
        ("x.json", '{"points": [[0, 1],\n [1, }', "line 2"),
        ("x.json", '{"points": [[0, 1], [1]]}', "point 2"),
        ("x.json", '{"StaticBwConfig": {"bw": "fast"}}', "`bw` of StaticBwConfig"),
        ("x.csv", "", "it is empty"),
    ],
)
def test_malformed_files_are_told_with_name_and_line(
    tmp_path: Path, name: str, content: str, expected: str
) -> None:
    file = tmp_path / name
    file.write_text(content)
    for arguments in (("show", file), ("convert", file, tmp_path / "out.csv")):
        result = trace(*arguments)
        assert result.returncode == 2
        assert str(file) in result.stderr
        assert expected in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_other_mistakes_are_explained(mahimahi: Path, tmp_path: Path) -> None:
    for arguments, expected in (
        (("show", tmp_path / "none.trace"), "cannot read the trace"),
        (("convert", "5 Mb/s", "-"), "`Mb/s` is not a unit of rate"),
        (("convert", mahimahi, tmp_path / "no" / "x.csv"), "cannot write"),
        (("convert", mahimahi, "-", "--to", "cvs"), "`cvs` is not a trace format"),
        (("convert", mahimahi, "-", "--to", "csv", "--bin", "1.5 ms"), "whole number of milli"),
        (("convert", "1 kbit/s", "-", "--duration", "1 s"), "less than one packet"),
    ):
        result = trace(*arguments)
        assert result.returncode != 0
        assert expected in result.stderr


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_plot_draws_traces(
    mahimahi: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    csv = tmp_path / "down.csv"
    csv.write_text("0,5 Mbit/s\n1,0\n2,1 Mbit/s\n")
    picture = tmp_path / "pictures" / f"both{suffix}"
    arguments = ["trace", "plot", str(mahimahi), str(csv), "--out", str(picture)]
    assert run_app(arguments) == 0
    assert capsys.readouterr().out.strip() == str(picture)
    assert picture.stat().st_size > 1_000


def test_a_picture_shows_rates_means_and_outages(tmp_path: Path) -> None:
    csv = tmp_path / "down.csv"
    csv.write_text("0,5 Mbit/s\n1,0\n2,1 Mbit/s\n")
    picture = rate_trace.draw([("down.csv", rate_trace.read(csv, "100 ms"))])
    (axis,) = picture.figure.get_axes()
    values, edges, _ = axis.patches[0].get_data()  # type: ignore[attr-defined]
    assert list(values) == [5.0, 0.0, 1.0]
    assert list(edges) == [0.0, 1.0, 2.0, 3.0]
    assert "mean 2 Mbit/s" in axis.get_title(loc="left")
    assert rate_trace.outages(np.array([0.0, 1, 2, 3]), np.array([5.0, 0, 1])) == [(1.0, 2.0)]


def test_plot_explains_what_it_cannot_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.trace"
    bad.write_text("2\n1\n")
    assert run_app(["trace", "plot", str(bad), "--out", str(tmp_path / "x.png")]) == 2
    assert "line 2" in capsys.readouterr().err
    assert run_app(["trace", "plot", str(bad), "--out", "x.gif"]) == 2
    assert ".svg" in capsys.readouterr().err


BURSTS = '{ type = "gilbert_elliott", good_to_bad = 0.05, bad_to_good = 0.3 }'


def digits(file: Path) -> str:
    lines = file.read_text().splitlines()
    assert [line[:1] for line in lines[:2]] == ["#", "#"]
    return "".join(lines[2:])


def dropped(folder: Path, *options: str) -> list[int]:
    """Return the numbers of the packets that a run drops, the first being 0."""
    words = ["--seed", "5", "--workload", 'cbr rate="800 kbit/s" size=100 from=client packets=500']
    done = subprocess.run(
        [find_engine(), "sim", *options, *words, "--out", str(folder), "--quiet"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = pl.read_ipc(folder / "events.arrow")
    drops = events.filter((pl.col("kind") == "dropped") & (pl.col("cause") == "channel_error"))
    return sorted(number - 1 for number in drops["pdu"].unique().to_list())


def test_a_generated_trace_has_the_errors_of_a_run_of_its_seed(tmp_path: Path) -> None:
    file = tmp_path / "bursts.txt"
    done = trace("generate", BURSTS, file, "--units", "500", "--seed", "5")
    assert done.returncode == 0, done.stderr
    drawn = digits(file)
    hits = [number for number, digit in enumerate(drawn) if digit == "1"]
    assert len(drawn) == 500
    assert 0 < len(hits) < 250
    assert f"{len(hits)} of 500 units are hit" in done.stderr
    assert "seed 5" in done.stderr
    lines = file.read_text().splitlines()
    assert {len(line) for line in lines[2:]} == {100}
    assert BURSTS in lines[0]
    process = f"radio.uplink.errors={BURSTS}"
    replayed = f"radio.uplink.errors={{ type = 'trace', file = '{file}' }}"
    assert dropped(tmp_path / "process", "--set", process) == hits
    assert dropped(tmp_path / "trace", "--set", replayed) == hits


def test_a_generated_trace_is_the_same_for_the_same_draws_only(tmp_path: Path) -> None:
    def drawn(*options: str) -> str:
        file = tmp_path / "trace.txt"
        done = trace("generate", BURSTS, file, "-n", "2000", "--quiet", *options)
        assert (done.returncode, done.stderr) == (0, "")
        return digits(file)

    first = drawn("--seed", "1")
    assert drawn("--seed", "1") == first
    other = [("--seed", "2"), ("--seed", "1", "--hop", "core"),
             ("--seed", "1", "--direction", "downlink")]  # fmt: skip
    assert all(drawn(*options) != first for options in other)
    assert drawn() != drawn(), "a seed of its own each time"
    printed = trace("generate", BURSTS, "-", "-n", "2000", "--seed", "1")
    assert "".join(printed.stdout.splitlines()[2:]) == first


@pytest.mark.parametrize("environment", ["table", "walls"])
def test_an_environment_as_a_trace_has_the_errors_of_a_run(
    environment: str, tmp_path: Path
) -> None:
    file = tmp_path / "environment.trace"
    done = trace("generate", environment, file, "--units", "500", "--seed", "5")
    assert done.returncode == 0, done.stderr
    process = f"radio.uplink.errors={{ type = 'environment', environment = '{environment}' }}"
    replayed = f"radio.uplink.errors={{ type = 'trace', file = '{file}' }}"
    lost = dropped(tmp_path / "process", "--set", process)
    assert dropped(tmp_path / "trace", "--set", replayed) == lost
    ends = [
        pl.read_ipc(tmp_path / name / "events.arrow")
        .filter(pl.col("kind").is_in(["damaged", "truncated"]))
        .select("time_ns", "kind", "pdu", "bits")
        for name in ("process", "trace")
    ]
    assert ends[0].equals(ends[1])
    shown = json.loads(trace("show", file, "--json").stdout)["outcomes"]
    assert shown["lost"] == len(lost)
    assert shown["loss"] == len(lost) / 500
    assert shown["length_bytes"] == 1408
    short = json.loads(trace("show", file, "--json", "--length", "100 bytes").stdout)["outcomes"]
    assert short["lost"] == shown["lost"]
    assert short["truncated"] + short["corrupted"] < shown["truncated"] + shown["corrupted"]
    assert trace("show", file, "--length", "9 bit").returncode == 2


@pytest.mark.parametrize(
    ("errors", "options", "said"),
    [
        ('{ type = "bernouli", probability = 0.1 }', (), "bernoulli"),
        ('{ type = "bernoulli", probability = 1.1 }', (), "1.1"),
        ('{ type = "bernoulli" }', (), "probability"),
        ("bernoulli", (), "or a table such as"),
        ('{ type = "bernoulli", probability = 0.1, per = "frame" }', (), "belong to the scenario"),
        ('{ type = "bernoulli", probability = 0.1, effect = "corrupt" }', (), "belong to the"),
        ('{ type = "trace", file = "/nowhere" }', (), "/nowhere"),
        (BURSTS, ("-n", "0"), "1..=100000000"),
        (BURSTS, ("--direction", "up"), "uplink"),
    ],
)
def test_what_cannot_be_generated_is_told(
    errors: str, options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = trace("generate", errors, tmp_path / "trace.txt", *options)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert not (tmp_path / "trace.txt").exists()


def test_a_trace_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    done = trace("generate", BURSTS, tmp_path / "missing/trace.txt")
    assert done.returncode == UNWRITABLE
    assert "missing/trace.txt: No such file or directory" in done.stderr
    full = trace("generate", BURSTS, "/dev/full")
    assert full.returncode == UNWRITABLE
    assert "cannot write /dev/full: No space left on device" in full.stderr


def test_error_traces_are_shown_and_converted(tmp_path: Path) -> None:
    frames = tmp_path / "frames.g192"
    words = [0x6B21, 0x6B21, 0x6B20, 0x6B20, 0x6B21, 0x6B20]
    frames.write_bytes(b"".join(word.to_bytes(2, "little") for word in words))
    found = show(frames, "--runs")
    assert found["runs"] == [2, 2, 1, 1]
    assert (found["units"], found["errors"], found["bursts"]) == (6, 3, 2)
    assert (found["longest_burst"], found["longest_good"]) == (2, 2)
    assert "2, 1.50 units on average, the longest of 2" in trace("show", frames).stdout
    records, places = tmp_path / "frames.txt", tmp_path / "places.txt"
    convert(frames, records)
    assert records.read_text() == "ok 2\nhit 2\nok 1\nhit 1\n"
    convert(records, places, "--to", "positions")
    assert places.read_text() == "# of 6 units\n2-3\n5\n"
    back = convert(places, "-", "--from", "positions", "--units", "7")
    assert back.stdout == "ok 2\nhit 2\nok 1\nhit 1\nok 1\n"
    compact = tmp_path / "compact"
    compact.write_bytes(bytes([0b00101100, 0b1]))
    assert show(compact, "--from", "g191-compact", "--runs")["runs"] == [2, 2, 1, 1, 2, 1, 7]
    # Lines of one digit are opportunities of mm-link, unless somebody says what they are.
    lines = tmp_path / "lines"
    lines.write_text("0\n1\n1\n")
    assert show(lines)["format"] == "mahimahi"
    assert show(lines, "--from", "errors", "--runs")["runs"] == [1, 2]


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (b"\x21\x6b\x20", ("show",), "the file ends within word 1"),
        (b"\x21\x6b\x81\x00", ("show",), "word 1 of this error pattern"),
        (b"001100", ("show", "--json", "--points"), "--points is for traces of rates"),
        (b"1\n2\n", ("show", "--json", "--from", "csv", "--runs"), "`1` has no rate"),
        (b"001100", ("show", "--units", "9"), "--units is for lists of positions"),
        (b"001100", ("convert", "-", "--to", "csv"), "is a trace of errors, not for csv"),
        (b"001100", ("convert", "-", "--duration", "1 s"), "--duration is for traces of rates"),
        (b"000000", ("convert", "-", "--to", "positions"), "there is no error in it"),
        (b"lost 3", ("convert", "-", "--to", "positions"), "cannot tell losses"),
        (b"1\n2\n", ("convert", "-", "--to", "errors"), "has rates, and --to errors is for errors"),
        (b"1\n2\n", ("show", "--json", "--from", "mahimahi", "--runs"), "--runs is for traces of"),
    ],
)  # fmt: skip
def test_what_is_no_trace_of_errors_is_told(
    content: bytes, arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "trace"
    file.write_bytes(content)
    done = trace(arguments[0], file, *arguments[1:])
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
