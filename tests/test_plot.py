# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Pictures: what is in them, not how they look."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_rgb

from airpath.app import run as run_app
from airpath.facts import CAUSES
from airpath.plots import KINDS, delay, draw, queue, sets, style, throughput, time_sequence
from airpath.plots.style import Span, drop_styles
from airpath.run import load_run
from airpath.status import DAMAGED
from synthetic import event, write_events, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WHOLE = Span()
SUFFIXES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def legend(axis: Axes) -> list[str]:
    box = axis.get_legend()
    assert box is not None
    return [text.get_text() for text in box.get_texts()]


def texts(figure: Figure) -> str:
    found: list[Any] = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return "\n".join(artist.get_text() for artist in found)


def test_the_diagram_tells_segments_retransmissions_and_drops_apart(download: Path) -> None:
    run = load_run(download)
    (picture,) = time_sequence.draw(run, WHOLE)
    assert picture.name == "time-sequence-1-downlink"
    (axis,) = picture.figure.get_axes()
    entries = legend(axis)
    assert "400 segments" in entries
    drops = run.drops().filter(pl.col("direction") == "downlink")
    queue_drops = drops.filter(pl.col("cause") == "queue_packets").height
    assert f"dropped, queue full: {queue_drops}" in entries
    for start in ("dropped, channel error", "ACK dropped, channel error"):
        assert any(entry.startswith(start) for entry in entries)
    said = texts(picture.figure)
    assert "Seawind case study" in said
    assert "poor" in said
    assert "Sequence number (kB)" in said
    markers = {line.get_marker() for line in axis.get_lines() if line.get_linestyle() == "None"}
    assert len(markers) >= 2, "causes differ in shape, not in colour alone"


def test_a_part_of_a_run(download: Path) -> None:
    run = load_run(download)
    (picture,) = time_sequence.draw(run, Span(0, 20))
    (axis,) = picture.figure.get_axes()
    low, high = axis.get_xlim()
    assert low == pytest.approx(-0.2)
    assert high == pytest.approx(20.2)
    segments = next(entry for entry in legend(axis) if entry.endswith("segments"))
    assert 0 < int(segments.split()[0]) < 200


def test_many_drops_go_into_a_strip_below(download: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_sequence, "MOST_MARKS", 20)
    run = load_run(download)
    assert run.drops().height > time_sequence.MOST_MARKS
    (picture,) = time_sequence.draw(run, WHOLE)
    _diagram, strip = picture.figure.get_axes()
    labels = [label.get_text() for label in strip.get_yticklabels()]
    assert any(label.startswith("channel error: ") for label in labels)
    assert any(label.startswith("ACK channel error: ") for label in labels)


def test_damaged_segments_are_marked(tmp_path: Path) -> None:
    world = write_run(tmp_path / "run", size=5120)
    delivered = [
        row for row in world.rows if row["kind"] == "delivered" and row["direction"] == "downlink"
    ]
    damage = [
        event(row["time_ns"], "damaged", pdu=row["pdu"], direction="downlink", bits=3)
        for row in delivered[:4]
    ]
    write_events(tmp_path / "run" / "events.arrow", world.rows + damage)
    (picture,) = time_sequence.draw(load_run(tmp_path / "run"), WHOLE)
    assert "arrived damaged: 4" in legend(picture.figure.get_axes()[0])


def test_an_untrusted_run_says_so_in_every_picture(tmp_path: Path) -> None:
    write_run(tmp_path / "run", verdict="suspect", two_hops=True)
    pictures = draw(load_run(tmp_path / "run"), KINDS, WHOLE)
    assert len(pictures) == 6
    for picture in pictures:
        assert "Verdict suspect: 12 packets left more than 1 ms late" in texts(picture.figure)


def test_throughput_integrates_to_what_was_delivered(download: Path) -> None:
    run = load_run(download)
    (picture,) = throughput.draw(run, WHOLE)
    panels = picture.figure.get_axes()
    assert len(panels) == 2
    for axis, direction in zip(panels, ("uplink", "downlink"), strict=True):
        unit = {"kbit/s": 1e3, "Mbit/s": 1e6, "bit/s": 1.0}[axis.get_ylabel()[6:-1]]
        stairs = {patch.get_label(): patch for patch in axis.patches}
        data = stairs["delivered (IP)"].get_data()  # type: ignore[attr-defined]
        bits = float((data.values * np.diff(data.edges)).sum()) * unit
        delivered = run.path_events("delivered").filter(pl.col("direction") == direction)
        assert bits == pytest.approx(delivered["bits"].sum())
    assert "goodput (new TCP payload)" in legend(panels[1])
    assert "goodput (new TCP payload)" not in legend(panels[0])


def test_no_curve_of_throughput_runs_into_the_legend(download: Path) -> None:
    (picture,) = throughput.draw(load_run(download), WHOLE)
    picture.figure.draw_without_rendering()
    for axis in picture.figure.get_axes():
        box = axis.get_legend()
        assert box is not None
        lowest = box.get_window_extent().transformed(axis.transData.inverted()).y0
        highest = max(patch.get_data().values.max() for patch in axis.patches)  # type: ignore[attr-defined]
        assert highest < lowest


@pytest.mark.parametrize(
    ("duration", "packets", "width"),
    [(100.0, 100_000, 1.0), (170.0, 400, 2.0), (10.0, 3, 10.0), (0.004, 10_000, 0.00005)],
)
def test_bins_are_round_and_not_too_empty(duration: float, packets: int, width: float) -> None:
    assert throughput.bin_width(duration, packets) == pytest.approx(width)


def test_each_used_queue_has_a_panel(tmp_path: Path) -> None:
    write_run(tmp_path / "run", two_hops=True)
    by_packets, by_bytes = queue.draw(load_run(tmp_path / "run"), WHOLE)
    for picture, unit in ((by_packets, "packets"), (by_bytes, "B)")):
        said = texts(picture.figure)
        assert "radio, downlink (server to client)" in said
        assert "backhaul, downlink (server to client)" in said
        assert unit in picture.figure.get_axes()[0].get_ylabel()


def test_queue_summary_of_a_step_function() -> None:
    # 2 for a second, 6 for half a second, 0 for the rest of four seconds.
    course = queue.summarise(np.array([0.0, 1.0, 1.5, 4.0]), np.array([2.0, 6.0, 0.0, 0.0]), 4)
    assert course.edges.tolist() == [0, 1, 2, 3, 4]
    assert course.mean.tolist() == [2, 3, 0, 0]
    assert course.greatest.tolist() == [2, 6, 0, 0]
    assert course.least.tolist() == [2, 0, 0, 0]


def test_queue_summary_keeps_the_integral() -> None:
    generator = np.random.default_rng(7)
    times = np.sort(generator.uniform(0, 10, 1000))
    values = generator.integers(0, 50, 1000).astype(float)
    course = queue.summarise(times, values, 37)
    integral = float((values[:-1] * np.diff(times)).sum())
    assert float((course.mean * np.diff(course.edges)).sum()) == pytest.approx(integral)
    assert (course.least <= course.mean + 1e-9).all()
    assert (course.mean <= course.greatest + 1e-9).all()


def test_delays_end_when_packets_really_left(tmp_path: Path) -> None:
    rows = [
        event(1_000, "offered", hop="path", direction="uplink", pdu=1),
        event(2_000, "offered", hop="path", direction="uplink", pdu=2),
        event(2_500, "dropped", hop="radio", direction="uplink", pdu=2, cause="channel_error"),
        event(9_000, "offered", hop="path", direction="downlink", pdu=3),
        event(11_000, "delivered", hop="path", direction="uplink", pdu=1, emitted_ns=11_300),
        event(12_000, "delivered", hop="path", direction="downlink", pdu=3),
    ]
    write_events(tmp_path / "events.arrow", rows)
    delays = delay.one_way_delays(load_run(tmp_path))
    assert dict(delays.select("pdu", "delay_ns").iter_rows()) == {1: 10_300, 3: 3_000}


def test_drops_stand_where_their_packets_were_offered(tmp_path: Path) -> None:
    rows = [
        event(1_000, "offered", hop="path", direction="uplink", pdu=1),
        event(2_000, "offered", hop="path", direction="uplink", pdu=2),
        event(2_000, "offered", hop="path", direction="downlink", pdu=3),
        event(7_000, "dropped", hop="radio", direction="uplink", pdu=2, cause="channel_error"),
        event(8_000, "dropped", hop="radio", direction="uplink", pdu=9, cause="channel_error"),
        event(9_000, "delivered", hop="path", direction="uplink", pdu=1),
    ]
    write_events(tmp_path / "events.arrow", rows)
    run = load_run(tmp_path)
    drops = delay.offered_drops(run)
    assert list(drops.select("pdu", "time_ns").iter_rows()) == [(2, 2_000), (9, 8_000)]
    (picture,) = delay.draw(run, WHOLE)
    (axis,) = picture.figure.get_axes()
    assert "offered" in axis.get_xlabel()
    marks = {str(line.get_label()): line for line in axis.lines}
    (label,) = [label for label in marks if label.startswith("dropped")]
    assert np.asarray(marks[label].get_xdata()) == pytest.approx([2e-6, 8e-6])


def test_a_cause_looks_the_same_in_every_picture() -> None:
    alone = drop_styles(["channel_error"])["channel_error"]
    among = drop_styles(["queue_packets", "sunspots", "channel_error", "aliens"])
    assert among["channel_error"] == alone
    assert among["sunspots"].text == "sunspots"
    assert len({style.marker for style in among.values()}) == 4


@pytest.mark.parametrize("file_format", SUFFIXES)
def test_the_command_writes_and_names_its_files(
    download: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file_format: str
) -> None:
    out = tmp_path / "pictures"
    status = run_app(["plot", str(download), "--out", str(out), "--format", file_format])
    assert status == 0
    written = capsys.readouterr().out.split()
    names = ["time-sequence-1-downlink", "throughput", "queue-packets", "queue-bytes", "delay"]
    assert written == [str(out / f"{name}.{file_format}") for name in names]
    for path in out.iterdir():
        assert path.read_bytes().startswith(SUFFIXES[file_format])


def test_the_same_run_gives_the_same_file(download: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        arguments = ["plot", str(download), "--out", str(tmp_path / name), "--format", "svg"]
        assert run_app([*arguments, "--only", "delay"]) == 0
    first, second = ((tmp_path / name / "delay.svg").read_bytes() for name in ("first", "second"))
    assert first == second


def test_events_alone_give_all_but_the_diagram(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run", captures=False)
    assert run_app(["plot", str(tmp_path / "run")]) == 0
    names = {path.stem for path in (tmp_path / "run" / "plots").iterdir()}
    assert names == {"throughput", "queue-packets", "queue-bytes", "delay"}
    assert capsys.readouterr().err == ""


def test_captures_alone_give_the_diagram(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run")
    (tmp_path / "run" / "events.arrow").unlink()
    assert run_app(["plot", str(tmp_path / "run")]) == DAMAGED
    names = {path.stem for path in (tmp_path / "run" / "plots").iterdir()}
    assert names == {"time-sequence-1-downlink"}
    assert "events.arrow is missing, although the run recorded it" in capsys.readouterr().err


def test_parts_that_were_not_joined_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is to be restored: the log is in the folders of the parts."""
    write_run(tmp_path / "run")
    part = tmp_path / "run/hosts/local"
    part.mkdir(parents=True)
    (tmp_path / "run" / "events.arrow").rename(part / "events.arrow")
    assert run_app(["plot", str(tmp_path / "run")]) == DAMAGED
    errors = capsys.readouterr().err
    assert f"name one of the parts, such as {part}" in errors
    assert "restore" not in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "no such folder"),
        (["."], "not the folder of a run"),
        ([".", "--from", "5", "--to", "5"], "--to 5 must be later"),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_app(["plot", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_empty_run_has_nothing_to_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_events(tmp_path / "events.arrow", [])
    assert run_app(["plot", str(tmp_path)]) == 1
    assert "nothing to draw" in capsys.readouterr().err


@pytest.mark.parametrize("sockets", [0, 2])
def test_a_run_without_tcp_names_no_congestion_control(sockets: int, tmp_path: Path) -> None:
    """The host's default is recorded of every run; a run of QUIC alone does not use it."""
    write_run(tmp_path / "run")
    run = load_run(tmp_path / "run")
    run.manifest["settings"] = {"congestion_control": "bbr"}
    run.manifest["tcp_state"] = {"sockets": sockets}
    (picture,) = draw(run, ["throughput"], Span())
    small_print = picture.figure.get_axes()[0].get_title(loc="left")
    assert ("bbr" in small_print) == (sockets > 0)


def test_a_part_behind_the_end_has_nothing_to_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run")
    assert run_app(["plot", str(tmp_path / "run"), "--from", "1000000"]) == 1
    said = capsys.readouterr()
    assert said.err == (
        "airpath plot: the run ended at 132 s: there is nothing from --from '1000000 s' on\n"
    )
    assert "Warning" not in said.err
    assert not said.out
    assert not (tmp_path / "run" / "plots").exists()


def test_outliers_close_together_share_a_text_beside_the_box() -> None:
    values = [10.0] * 10 + [10.2] * 10 + [1.0, 50, 50.1, 50.2, 50.3]
    rows = [
        {"set": "s", "run": f"replication-{run:04}", "seed": run, "verdict": "trusted"}
        | {"flow": "", "direction": "", "hop": "", "metric": "elapsed_time"}
        | {"value": value, "unit": "s"}
        for run, value in enumerate(values)
    ]
    (picture,) = sets.draw([], pl.DataFrame(rows), ["distribution"])
    (axis,) = picture.figure.get_axes()
    names = {text.get_text(): text.get_horizontalalignment() for text in axis.texts}
    # Left of the least value is the axis.
    assert names == {"0020": "left", "0021, 0022, 0023, 1 more": "left"}


def test_a_folder_that_is_not_there_is_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(["plot", str(tmp_path / "nowhere"), "--only", "sweep"]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err


def test_a_wrong_option_names_the_right_ones(download: Path) -> None:
    start = "import sys; from airpath.cli import main; sys.exit(main())"
    result = subprocess.run(
        [sys.executable, "-c", start, "plot", str(download), "--format", "gif"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "200"},
        check=False,
    )
    assert result.returncode == 2
    assert "[possible values: png, svg, pdf, xplot, multitracer]" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_picture_of_one_run_needs_no_statistics_of_many() -> None:
    modules = "airpath.app, airpath.analysis.command, airpath.plots.sets, airpath.report.command"
    loaded = f"import sys, {modules}; print('scipy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "False\n"


def test_marks_of_light_colours_have_a_dark_edge() -> None:
    with style.canvas(2) as figure:
        axis = figure.subplots()
    for cause, look in style.drop_styles(CAUSES).items():
        style.mark_drops(axis, np.zeros(1), 1.0, look, cause)
    for line in axis.get_lines():
        face, edge = (
            to_rgb(str(colour))
            for colour in (line.get_markerfacecolor(), line.get_markeredgecolor())
        )
        # The luminance of white is 1: face or edge has to be far from it.
        darkest = min(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (face, edge))
        assert darkest < 0.65, line.get_label()
