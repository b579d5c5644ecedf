# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The layers of a run as text: what stands in each file of a run that can be read by eye."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

import airpath
from airpath.app import run as run_app
from airpath.engine import find_engine

if TYPE_CHECKING:
    from pathlib import Path

LOSSES = (
    'radio.link.errors={ type = "bernoulli", probability = 0.05, per = "block", block = "20 ms" }'
)

SOCKETS = """\
# time_s end event flow first last pdu
0.000000000 server sent UDP:10.77.0.1:5002>10.77.0.2:49153 0 32 1
1.000000000 server sent UDP:10.77.0.1:5002>10.77.0.2:49153 32 64 2
2.000000000 server sent UDP:10.77.0.1:5002>10.77.0.2:49153 64 96 3
2.440000000 client received UDP:10.77.0.1:5002>10.77.0.2:49153 0 32 1
2.500000000 client received UDP:10.77.0.1:5002>10.77.0.2:49153 32 64 2
2.560000000 client received UDP:10.77.0.1:5002>10.77.0.2:49153 64 96 3
"""

OPENING = """\
# time_s end event frame role p_f n_s n_r v_s v_a v_r outstanding attempts timer_s pdu
0.020000000 client sent XID command 1 - - 0 0 0 0 1 0.500000000 0
0.940000000 client sent SABM command 1 - - 0 0 0 0 1 1.420000000 0
1.160000000 server connected - - - - - 0 0 0 0 0 - 0
1.180000000 server sent I+RR command 0 0 0 1 0 0 1 0 1.660000000 1
1.420000000 client damaged I+RR command 0 1 0 0 0 1 0 1 - 1
1.440000000 client sent SREJ command 0 - 1 0 0 1 0 1 - 0
2.200000000 server repeated I+RR command 0 1 0 2 1 0 1 1 2.680000000 1
""".splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    command = [
        *(find_engine(), "sim", "--profile", "gsm-rlp-9.6k", "--seed", "7", "--set", LOSSES),
        *("--workload", "cbr rate=480bit/s size=60 from=server duration=3s"),
        *("--out", str(tmp_path / "run")),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return tmp_path / "run"


def curves(text: str) -> dict[str, list[tuple[str, int]]]:
    """Read a file for xgraph."""
    found: dict[str, list[tuple[str, int]]] = {}
    for block in text.split("\n\n"):
        name, *points = [line for line in block.splitlines() if "UnitText" not in line]
        if name.startswith("TitleText"):
            name, *points = points
        found[name.strip('"')] = [
            (time, int(value)) for time, value in (point.split() for point in points)
        ]
    return found


def test_the_layers_are_written_as_text(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run_app(["plot", str(folder), "--format", "multitracer", "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {
        "socket-dump.txt",
        "rlp-dump-radio.txt",
        "multitracer-radio-downlink.xg",
        "multitracer-radio-downlink.dat",
    }
    assert (out / "socket-dump.txt").read_text() == SOCKETS
    lines = (out / "rlp-dump-radio.txt").read_text().splitlines()
    assert [line for line in lines if line in OPENING] == OPENING
    text = (out / "multitracer-radio-downlink.xg").read_text()
    assert text.startswith("TitleText: gsm-rlp-9.6k, Downlink (server to client)\nXUnitText: s\n")
    found = curves(text)
    assert found["socket sent (byte)"] == [
        ("0.000000000", 32),
        ("1.000000000", 64),
        ("2.000000000", 96),
    ]
    assert [number for _, number in found["frame sent (number)"]] == list(range(9))
    # Frame 1 is damaged; it comes again, and with it those behind it.
    arrived = [0, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 7, 8]
    assert [number for _, number in found["frame received (number)"]] == arrived
    assert found["frame damaged (number)"] == [("1.420000000", 1)]
    assert [number for _, number in found["V(R) (number)"]] == [*range(10), 9]
    # The matrix has the same points, a curve in each column.
    matrix = (out / "multitracer-radio-downlink.dat").read_text().splitlines()
    names = [line.split(": ", 1)[1] for line in matrix if line.startswith("%")]
    assert names == ["time (s)", *found]
    rows = [line.split() for line in matrix if not line.startswith("%")]
    for column, name in enumerate(names[1:], 1):
        points = [(row[0], int(row[column])) for row in rows if row[column] != "NaN"]
        assert points == found[name], name
    times = [float(row[0]) for row in rows]
    assert times == sorted(times)


def test_text_is_written_of_one_part_of_the_run(folder: Path, tmp_path: Path) -> None:
    words = ["plot", str(folder), "--format", "multitracer", "--out", str(tmp_path / "out")]
    assert run_app([*words, "--from", "2.2", "--to", "2.5"]) == 0
    lines = (tmp_path / "out" / "socket-dump.txt").read_text().splitlines()
    assert lines == [SOCKETS.splitlines()[0], *SOCKETS.splitlines()[4:6]]


def test_runs_without_layers_and_other_kinds_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["plot", str(folder), "--format", "multitracer", "--out", str(tmp_path / "out")]
    assert run_app([*words, "--only", "delay"]) == 2
    assert "--format multitracer is for --only link" in capsys.readouterr().err
    for name in ("link.arrow", "client.pcapng", "server.pcapng"):
        (folder / name).unlink()
    assert run_app(words) == 1
    assert "neither captures nor link.arrow" in capsys.readouterr().err
    assert run_app(["plot", str(folder), "--only", "link"]) == 1
    told = capsys.readouterr().err
    assert "nothing to draw" in told
    assert "no frames in link.arrow" in told
    assert "no packets" not in told


def test_no_legend_of_the_picture_covers_a_point(folder: Path) -> None:
    for figure in airpath.pictures(airpath.load(folder), "link").values():
        figure.draw_without_rendering()
        for axis in figure.get_axes():
            legend = axis.get_legend()
            assert legend is not None
            named = [line for line in axis.lines if not str(line.get_label()).startswith("_")]
            assert named
            points = np.vstack(
                [line.get_transform().transform(line.get_xydata()) for line in named]
            )
            assert np.nanmax(points[:, 1]) < legend.get_window_extent().y0
