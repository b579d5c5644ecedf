# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The study of Alfredsson et al. 2006 with the TCP of virtual time, in a small form."""

from __future__ import annotations

from pathlib import Path

import pytest

import figures
import table2
from experiments import airpath

STUDY = Path(__file__).resolve().parent.parent / "studies/wipemu"


def reduced(folder: Path, name: str, sets: str) -> Path:
    """Write an experiment of the study with other sets."""
    text, cut, _ = (STUDY / name).read_text().partition("[[sets]]")
    assert cut
    (folder / "scenario.toml").symlink_to(STUDY / "scenario.toml")
    file = folder / name
    file.write_text(f'{text}[[sets]]\nname = "model"\nclock = "virtual"\n{sets}')
    return file


def test_tcp_fills_frames_of_fixed_modulations(tmp_path: Path) -> None:
    sets = """
network = "radio"
workload = "download"
repetitions = 1
[sets.sweep.zip]
"network.media.ofdm.adaptation.mode" = ["bpsk", "128-qam", "256-qam"]
"workload.bytes" = ["150 kB", "1 MB", "1 MB"]
"""
    done = airpath("run", reduced(tmp_path, "table2.toml", sets), "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = {row.bits_per_symbol: row for row in table2.rows(tmp_path / "out")}
    assert list(found) == [1, 7, 8]
    for bits, row in found.items():
        # What the columns add up to is what the slots with frames carry.
        idle = (row.idle_in_slow_start + row.idle_later) / row.slots
        assert row.total == pytest.approx(1 - idle, abs=2e-3), bits
    assert {row.after_slow_start for row in found.values()} == {1}
    lines = table2.table(list(found.values()))
    assert [line.split(" | ")[1] for line in lines[2:]] == ["162000", "1134000", "1296000"]


def test_persistent_repetition_by_the_link_spares_tcp(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = """
network = ["adaptive", "best", "qam4"]
workload = "download"
repetitions = 2
sweep.grid."network.radio.downlink.entity.retransmissions" = [3, 15]
"""
    file = reduced(tmp_path, "experiment.toml", sets)
    text = file.read_text()
    file.write_text(text.replace("bytes=3000000", "bytes=1000000"))
    assert file.read_text() != text
    done = airpath("run", file, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    cells = figures.read(tmp_path / "out")
    assert {len(downloads) for downloads in cells.values()} == {2}

    def total(network: str, retransmissions: int) -> tuple[float, float]:
        downloads = cells["model", network, retransmissions]
        return (
            sum(one.elapsed_s for one in downloads),
            sum(one.repeated_segments for one in downloads),
        )

    for network in ("adaptive", "best", "qam4"):
        assert total(network, 3)[0] > total(network, 15)[0]
    # Repetition reorders what adapts; with a fixed mode it spares TCP what it repairs.
    assert total("qam4", 3)[1] > total("qam4", 15)[1]
    assert total("best", 15)[0] < total("adaptive", 15)[0]
    figures.main([str(tmp_path / "out"), "--picture", str(tmp_path / "pictures/throughput.png")])
    printed = capsys.readouterr().out
    assert "| TCP of virtual time | 3 | 15 |" in printed
    assert "Replications: 2 to 2 of each cell." in printed
    assert (tmp_path / "pictures/throughput.png").stat().st_size > 10_000
