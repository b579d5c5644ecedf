"""The case study by other clocks than the real one, and its comparison of live and warp."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run
from seawind_case import compare, recorded, study
from seawind_case.packets import Packet, compare_packets
from seawind_case.report import comparison_table
from seawind_case.variants import variants
from synthetic import write_run

if TYPE_CHECKING:
    from pathlib import Path

COMPARED = [one.name for one in variants("warp") if one.ends.name in compare.COMPARED]


def results(folder: Path, *, seeds: range = range(1, 11), rate: int = 9600) -> Path:
    """Write made-up replications, the same ones for every variant that is compared."""
    for seed in seeds:
        write_run(
            folder / COMPARED[0] / f"replication-{seed:04}", size=10_240, seed=seed, rate=rate
        )
    for name in COMPARED[1:]:
        (folder / name).symlink_to(folder / COMPARED[0])
    return folder


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results(tmp_path_factory.mktemp("live"))


def test_equal_results_agree(
    live: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warp = results(tmp_path)
    picture = tmp_path / "picture.png"
    assert compare.main([str(live), str(warp), "--picture", str(picture)]) == 0
    shown = capsys.readouterr().out
    for name in COMPARED:
        assert f"| `{name}` | 10 (10) |" in shown
    assert shown.count("| 1.000 (1.000 to 1.000) | 10 |  | 0.0 (0) |") == len(COMPARED)
    assert "reno_errors-both-ways, seed 1:\n" in shown
    assert "; all the same\n" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    figures = tomllib.loads((warp / "compare.toml").read_text())
    assert comparison_table(figures) in shown


def test_a_slower_link_does_not_agree(
    live: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = results(tmp_path, rate=7000)
    assert compare.main([str(live), str(slower)]) == 1
    told = capsys.readouterr()
    assert told.err.count("warp and live do not agree") == len(COMPARED)
    # The first seed's packets are the same, but every one comes later.
    assert "live later than warp, of the same packets: median -" in told.out


def test_few_pairs_are_not_enough(
    live: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = results(tmp_path, seeds=range(2, 11))
    assert compare.main([str(live), str(few)]) == 1
    told = capsys.readouterr()
    assert "9 pairs, at least 10 needed" in told.err
    assert "reno_errors-both-ways/1: not in both folders" in told.err


def test_nothing_to_compare_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main([str(tmp_path), str(tmp_path)]) == 1
    assert "no seed is in both" in capsys.readouterr().err


def test_the_interval_of_a_ratio() -> None:
    below = [100.0 + 3 * index for index in range(12)]
    # Every pair has the same ratio, and so have the medians of every resample.
    assert compare.ratio_interval([1.05 * value for value in below], below) == pytest.approx(
        (1.05, 1.05, 1.05)
    )
    # A single pair far off moves no median of twelve out of where the others are.
    above = [*below[:-1], 10 * below[-1]]
    ratio, low, high = compare.ratio_interval(above, below)
    assert ratio == 1
    assert low <= 1 <= high < 1.2
    assert compare.ratio_interval(above, below) == (ratio, low, high)


def test_packets_are_aligned_from_the_first(live: Path, tmp_path: Path) -> None:
    folder = live / COMPARED[0]
    one = load_run(folder / "replication-0001")
    assert compare_packets(one, one).same
    # The same seed over a link that is a little slower: the same draws, a little later.
    write_run(tmp_path / "slower", size=10_240, seed=1, rate=9500)
    slower = compare_packets(load_run(tmp_path / "slower"), one)
    assert slower.equal_packets > 0
    differences = slower.differences_ms
    assert differences[0] == 0
    # The first segments answer the client's first packet; 40 bytes take 33.3 ms or 33.7 ms.
    assert differences.max() > 0
    other = compare_packets(one, load_run(folder / "replication-0002"))
    assert not other.same
    at = other.equal_packets
    assert other.first.packets[:at] == other.second.packets[:at]
    assert other.first.packets[at : at + 1] != other.second.packets[at : at + 1]
    assert other.first_different_drop() is not None


def test_a_packet_is_told_as_the_server_sees_it() -> None:
    assert str(Packet("sent", 0x18, 257, 1, 256)) == "sent 257:513"
    assert str(Packet("received", 0x10, 1, 513, 0)) == "received acknowledgement 513"
    assert str(Packet("received", 0x02, 0, 0, 0)) == "received SYN"


@pytest.mark.parametrize("kind", ["compare", "compare-same-start"])
def test_the_readme_shows_the_comparison(kind: str) -> None:
    figures = recorded.expected(kind)
    tables = {name: value for name, value in figures.items() if isinstance(value, dict)}
    assert list(tables) == COMPARED
    assert all(compare.agrees(value) for value in tables.values())
    assert recorded.README.read_text().count(recorded.table_of(kind, figures)) == 1


def test_figures_are_recorded_in_place_of_the_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "HERE", tmp_path)
    monkeypatch.setattr(recorded, "README", tmp_path / "README.md")
    figures = (recorded.README.parent / "expected.toml", tmp_path / "results.toml")
    old = "[reno_clean-acks]\n"
    for quantity in ("elapsed_seconds", "throughput_bytes_per_second", "idle_seconds"):
        old += f"{quantity} = {{ p10 = 1.0, median = 100.0, p90 = 3.0 }}\n"
    for quantity in ("retransmitted", "dropped", "dropped_data", "dropped_data_by_queue"):
        old += f"{quantity} = {{ p10 = 1.0, median = 2.0, p90 = 3.0 }}\n"
    old += "dropped_acknowledgements = { p10 = 1.0, median = 2.0, p90 = 3.0 }\n"
    new = old.replace("100.0", "250.0")
    figures[0].write_text(old)
    figures[1].write_text(new)
    before = recorded.table_of("live", tomllib.loads(old))
    recorded.README.write_text(f"Above.\n\n{before}\n\nBelow.\n")
    recorded.record("live", figures[1])
    after = recorded.table_of("live", tomllib.loads(new))
    assert after != before
    assert recorded.README.read_text() == f"Above.\n\n{after}\n\nBelow.\n"
    assert figures[0].read_text() == new
    recorded.README.write_text("another table")
    with pytest.raises(ValueError, match="mend it by hand"):
        recorded.record("live", figures[1])


def test_virtual_time_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["smoltcp-reno_clean-acks", "quic-cubic_clean-acks"]
    words = ["--clock", "virtual", "--replications", "2", "--out", str(tmp_path), *names]
    assert study.main(words) == 0, capsys.readouterr().err
    figures = tomllib.loads((tmp_path / "results.toml").read_text())
    assert figures["clock"] == "virtual"
    for name, congestion_control in zip(names, ("reno", "cubic"), strict=True):
        found = figures[name]
        assert (found["replications"], found["trusted"]) == (2, 2)
        assert found["congestion_control"] == congestion_control
        # 102,400 bytes at 9600 bit/s take 85.3 s at least.
        assert found["elapsed_seconds"]["p10"] > 85.3
        assert found["wall_seconds"] > 0
        assert found["wall_seconds_without_files"] > 0
        assert found["dropped_acknowledgements"]["p90"] == 0
    assert figures[names[0]]["segments"]["p10"] >= 400
    # A second time it is refused, lest results mix.
    assert study.main(words) == 1
    assert "holds replications already" in capsys.readouterr().err


def test_transfers_start_as_the_live_ones(
    live: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "airpath"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/commands\nexit 3\n')
    fake.chmod(0o755)
    monkeypatch.setattr(study, "AIRPATH", fake)
    out = tmp_path / "out"
    words = ["--clock", "warp", "--start-as", str(live), "--out", str(out), COMPARED[0]]
    assert study.main(words) == 1
    commands = (tmp_path / "commands").read_text().splitlines()
    assert len(commands) == 10
    for command in commands:
        seed = int(command.partition("--seed ")[2].split()[0])
        assert f"--out {out}/{COMPARED[0]}/replication-{seed:04} " in command
        # The made-up client sends its first packet when the run begins.
        assert command.endswith("--wait 0.000000")


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words, told in (
        (["--clock", "virtual", "reno_clean-acks"], "there are smoltcp-reno_errors-both-ways"),
        (["--start-as", "x"], "--start-as needs --clock warp"),
        (["--record", "reno_clean-acks"], "name none"),
    ):
        with pytest.raises(SystemExit, match="2"):
            study.main(words)
        assert told in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        compare.main(["a", "b", "--packets", "reno"])
    assert "a variant and a seed, such as reno_errors-both-ways/1" in capsys.readouterr().err


def test_how_long_a_set_took_is_read_again(tmp_path: Path) -> None:
    variant = next(one for one in variants("warp") if one.name == COMPARED[0])
    write_run(tmp_path / variant.name / "replication-0001")
    (tmp_path / variant.name / study.TIMES).write_text(json.dumps({"wall_seconds": 12.5}))
    analysed = study.analyse(variant, tmp_path)
    assert analysed is not None
    assert analysed[0]["wall_seconds"] == 12.5
