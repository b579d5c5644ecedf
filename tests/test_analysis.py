# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Metrics of runs: hand-computed cases, the naive second implementation, folders, the command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

import airpath
from agreement import assert_agrees
from airpath.analysis import REGISTRY, find, frame
from airpath.analysis.command import analyse
from airpath.analysis.definitions import renewed
from airpath.analysis.intervals import paired_shift, unpaired_shift
from airpath.analysis.metric import UnknownMetricError, choose
from airpath.analysis.statistics import (
    cliffs_delta,
    compare,
    compare_values,
    holm,
    outliers,
    select_trusted,
    summarise,
)
from airpath.analysis.why import of_sets
from airpath.engine import find_engine
from airpath.run import RunError
from pcapng import Packet, capture, sack, tcp, udp
from synthetic import CLIENT, SERVER, START_UNIX_NS, write_run

ROOT = Path(__file__).resolve().parent.parent
RX, TX = 0, 1
MILLISECOND = 1_000_000


def write(folder: Path, **ends: list[tuple[int, int, int, bytes]]) -> Path:
    """Write a run of captures only; a packet is (time in ms, interface, id, content)."""
    folder.mkdir(parents=True)
    manifest = {
        "start_unix_ns": START_UNIX_NS,
        "seed": 1,
        "results": {"verdict": {"grade": "trusted"}},
    }
    (folder / "run.json").write_text(json.dumps(manifest))
    for end, packets in ends.items():
        written = [
            Packet(START_UNIX_NS + time * MILLISECOND, interface, content, pdu=pdu)
            for time, interface, pdu, content in packets
        ]
        (folder / f"{end}.pcapng").write_bytes(capture(written))
    return folder


def values(folder: Path, names: str = "all") -> dict[tuple[str, str], float]:
    table = frame(find([folder]), [names])
    return {(row["metric"], row["direction"]): row["value"] for row in table.iter_rows(named=True)}


def up(first: int, size: int = 100) -> bytes:
    return tcp(CLIENT, SERVER, sequence=1001 + first, flags=0x18, payload=size)


def ack(number: int, blocks: list[tuple[int, int]] | None = None) -> bytes:
    edges = [(1001 + a, 1001 + b) for a, b in blocks or []]
    return tcp(
        SERVER,
        CLIENT,
        sequence=501,
        acknowledgement=1001 + number,
        options=sack(edges) if edges else b"",
    )


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    """Return an upload with one segment lost and repaired, and one repeated in vain.

    0 ms SYN, 40 ms its answer; segments of 100 bytes at 0, 100, 200, 300, 400; the second is lost.
    """
    syn = tcp(CLIENT, SERVER, sequence=1000, flags=0x02)
    answer = tcp(SERVER, CLIENT, sequence=500, acknowledgement=1001, flags=0x12)
    client = [
        (0, RX, 1, syn),
        (40, TX, 2, answer),
        (50, RX, 3, up(0)),
        (51, RX, 4, up(100)),
        (52, RX, 5, up(200)),
        (53, RX, 6, up(300)),
        (54, RX, 7, up(400)),
        (90, TX, 20, ack(100)),
        (92, TX, 21, ack(100, [(200, 300)])),
        (93, TX, 22, ack(100, [(200, 400)])),
        (94, TX, 23, ack(100, [(200, 500)])),
        (95, RX, 8, up(100)),
        (400, RX, 9, up(100)),
        (440, TX, 24, ack(500)),
        (441, TX, 25, ack(500, [(100, 200)])),
    ]
    server = [
        (20, TX, 1, syn),
        (20, RX, 2, answer),
        (70, TX, 3, up(0)),
        (72, TX, 5, up(200)),
        (73, TX, 6, up(300)),
        (74, TX, 7, up(400)),
        (70, RX, 20, ack(100)),
        (72, RX, 21, ack(100, [(200, 300)])),
        (73, RX, 22, ack(100, [(200, 400)])),
        (74, RX, 23, ack(100, [(200, 500)])),
        (415, TX, 8, up(100)),
        (420, TX, 9, up(100)),
        (420, RX, 24, ack(500)),
        (421, RX, 25, ack(500, [(100, 200)])),
    ]
    return write(tmp_path / "upload", client=client, server=server)


def test_a_transfer_computed_by_hand(upload: Path) -> None:
    found = values(upload)
    expected = {
        "segments": 7,
        "sent_bytes": 700,
        "unique_bytes": 500,
        "received_bytes": 500,
        "retransmitted_segments": 2,
        "retransmitted_bytes": 200,
        "fast_retransmissions": 1,
        "timeouts": 1,
        "other_retransmissions": 0,
        "spurious_retransmissions": 1,
        "spurious_retransmissions_late": 1,  # the first repair was still under way at 400 ms
        "spurious_timeouts": 1,
        "out_of_order_segments": 1,
        "duplicate_segments": 1,
        "acknowledgements": 7,
        "duplicate_acknowledgements": 3,
        "dsack_reports": 1,
        "rtt_samples": 1,  # of the first segment; the last acknowledgement is ambiguous
        "rtt_min": 0.040,
        "transfer_time": 0.440,
        "time_to_first_byte": 0.070,
        "longest_stall": 0.341,
        "goodput": 500 * 8 / 0.415,
        "flight_bytes_max": 500,
        "packets_lost": 1,
        "loss_run_max": 1,
        "reordered": 0,
    }
    for name, value in expected.items():
        assert found[name, "uplink"] == pytest.approx(value), name
    assert found["connection_setup_time", ""] == pytest.approx(0.040)
    assert found["syn_retransmissions", ""] == 0


def test_datagrams_computed_by_hand(tmp_path: Path) -> None:
    content = udp(CLIENT, SERVER, 72)  # 100 bytes
    sent = [(10 * number, RX, number + 1, content) for number in range(6)]
    # 2 is lost, 3 and 4 change places, 5 comes twice; delays 20, -, 35, 20, 20, 24 ms
    arrived = [(20, 1), (50, 4), (55, 3), (60, 5), (61, 5), (74, 6)]
    folder = write(
        tmp_path / "udp",
        client=sent,
        server=[(time, TX, pdu, content) for time, pdu in arrived],
    )
    found = values(folder)
    assert found["loss_ratio", "uplink"] == pytest.approx(1 / 6)
    assert found["flow_packets_lost", "uplink"] == 1
    assert found["duplicates", "uplink"] == 1
    assert found["reordered", "uplink"] == 1
    assert found["reordering_extent_max", "uplink"] == 1
    assert found["one_way_delay_max", "uplink"] == pytest.approx(0.035)
    assert found["delay_variation_max", "uplink"] == pytest.approx(0.015)
    jitter = 0.0
    for step in (0, 15, 15, 1, 3):  # transit times 20, 20, 35, 20, 21, 24
        jitter += (step - jitter) / 16
    assert found["interarrival_jitter", "uplink"] == pytest.approx(jitter / 1e3)
    assert found["throughput", "uplink"] == pytest.approx(6 * 800 / 0.074)


def test_fairness_computed_by_hand(tmp_path: Path) -> None:
    packets = []
    for number, size in enumerate((1000, 500)):
        source = (CLIENT[0], 40000 + number)
        packets.append((0, RX, 1 + number, tcp(source, SERVER, sequence=1, payload=size)))
    folder = write(
        tmp_path / "two",
        client=packets,
        server=[(20, TX, pdu, content) for _, _, pdu, content in packets],
    )
    # 1000 and 500 bytes in the same time: 1.5^2 / (2 * 1.25)
    assert values(folder)["jain_fairness", "uplink"] == pytest.approx(0.9)


def staggered(tmp_path: Path, sizes: list[list[int]]) -> Path:
    """Return a run of flows of which each sends so much at 0 ms, 500 ms, 1000 ms and so on."""
    arrived: list[tuple[int, int, int, bytes]] = []
    for flow, of in enumerate(sizes):
        source, first = (CLIENT[0], 40000 + flow), 1
        for step, size in enumerate(of):
            if size:
                content = tcp(source, SERVER, sequence=first, payload=size)
                arrived.append((500 * step + 20, TX, 1 + len(arrived), content))
                first += size
    arrived.sort(key=lambda packet: packet[0])
    sent = [(time - 20, RX, pdu, content) for time, _, pdu, content in arrived]
    return write(tmp_path / "staggered", client=sent, server=arrived)


def test_fairness_while_all_send_computed_by_hand(tmp_path: Path) -> None:
    # The last begins at 500 ms, the first ends at 2000 ms: that is 1.5 s, of which 1 s is whole.
    found = values(staggered(tmp_path, [[900, 300, 300, 100, 200], [0, 500, 300, 500, 400, 700]]))
    first, second = 300 + 100 + 200, 300 + 500 + 400
    index = (first + second) ** 2 / (2 * (first**2 + second**2))
    assert found["jain_fairness_overlap", "uplink"] == pytest.approx(index)
    index = (400 + 800) ** 2 / (2 * (400**2 + 800**2))
    assert found["jain_fairness_overlap_1s", "uplink"] == pytest.approx(index)
    table = frame(find([tmp_path / "staggered"]), ["goodput_overlap"])
    goodputs = dict(table.select("flow", "value").iter_rows())
    assert goodputs == pytest.approx({"tcp-1": 8 * first / 1.5, "tcp-2": 8 * second / 1.5})


def test_flows_one_after_the_other_share_nothing(tmp_path: Path) -> None:
    found = values(staggered(tmp_path, [[900, 300, 0, 0], [0, 0, 500, 500]]))
    assert ("jain_fairness", "uplink") in found
    assert not [place for place in found if "overlap" in place[0]]


@pytest.mark.parametrize("seed", range(3))
def test_fairness_while_all_send_of_random_amounts(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    sizes = [[random.choice((0, 100, 400, 1200)) for _ in range(9)] for _ in range(4)]
    begin = max(next(step for step, size in enumerate(of) if size) for of in sizes)
    end = min(max(step for step, size in enumerate(of) if size) for of in sizes)
    assert end > begin
    shares = [sum(of[begin + 1 : end + 1]) for of in sizes]
    found = values(staggered(tmp_path, sizes))
    index = sum(shares) ** 2 / (4 * sum(share**2 for share in shares))
    assert found["jain_fairness_overlap", "uplink"] == pytest.approx(index)
    indices = []
    for step in range(begin, end - 1, 2):
        of_second = [of[step + 1] + of[step + 2] for of in sizes]
        if any(of_second):
            squares = sum(share**2 for share in of_second)
            indices.append(sum(of_second) ** 2 / (4 * squares))
    if indices:
        mean = sum(indices) / len(indices)
        assert found["jain_fairness_overlap_1s", "uplink"] == pytest.approx(mean)


@pytest.mark.parametrize("seed", [3, 9, 27])
def test_the_naive_way_agrees_on_made_up_runs(seed: int, tmp_path: Path) -> None:
    write_run(tmp_path / "run", seed=seed, size=51_200, two_hops=seed % 2 == 0)
    found = assert_agrees(tmp_path / "run")
    assert found["retransmitted_segments", "tcp-1", "", "downlink"] > 0


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two sets of replications in virtual time with common seeds; not to be changed."""
    folder = tmp_path_factory.mktemp("sets")
    for cc in ("cubic", "reno"):
        subprocess.run(
            [
                *(str(find_engine()), "sim", "--quiet", "--seed", "5", "--replications", "6"),
                *("--rate", "2 Mbit/s", "--delay", "20 ms", "--loss", "1%"),
                *("--queue", "20 packets", "--out", str(folder / cc)),
                *("--workload", f"tcp bytes=150000 from=server cc={cc}"),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
    return folder


def test_the_naive_way_agrees_on_virtual_runs(sets: Path) -> None:
    repaired = 0.0
    for place in find([sets]):
        found = assert_agrees(place.directory)
        repaired += found["retransmitted_segments", "tcp-1", "", "downlink"]
    assert repaired > 0


def test_folders_of_sets_are_found_and_named(sets: Path) -> None:
    assert {one.set_name for one in find([sets])} == {"cubic", "reno"}
    assert {one.set_name for one in find([sets / "reno"])} == {"reno"}
    assert len(airpath.runs(sets / "reno" / "replication-0001")) == 1
    with pytest.raises(RunError, match="no such folder"):
        find([sets / "nowhere"])
    with pytest.raises(RunError, match="no run in it"):
        find([ROOT / "docs"])


def test_sets_of_an_experiment_are_named_as_it_names_them(sets: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "model").symlink_to(sets)
    assert {one.set_name for one in find([tmp_path])} == {"runs/model/cubic", "runs/model/reno"}
    (tmp_path / "plan.json").write_text("{}")
    assert {one.set_name for one in find([tmp_path])} == {"model/cubic", "model/reno"}


def test_sets_with_common_seeds_are_paired(sets: Path) -> None:
    table = frame(airpath.runs(sets), ["transfer_time"])
    assert table.columns == [
        *("set", "run", "seed", "verdict", "flow", "direction", "hop", "metric", "value", "unit")
    ]
    compared = compare(table, "reno", "cubic")
    (row,) = compared.table.iter_rows(named=True)
    assert row["paired"]
    assert row["n_first"] == row["n_second"] == 6
    pairs = table.pivot("set", index="seed", values="value").sort("seed")
    differences = (pairs["cubic"] - pairs["reno"]).to_list()
    walsh = [(a + b) / 2 for place, a in enumerate(differences) for b in differences[place:]]
    assert row["shift"] == pytest.approx(float(np.median(walsh)))
    assert row["shift_low"] <= row["shift"] <= row["shift_high"]
    other = table.with_columns(
        seed=pl.when(pl.col("set") == "reno").then(pl.col("seed") + 100).otherwise("seed")
    )
    assert not compare(other, "reno", "cubic").table["paired"].any()


def test_sets_without_chance_are_not_tested(sets: Path) -> None:
    table = frame(airpath.runs(sets), ["transfer_time"])
    same = table.with_columns(
        value=pl.when(pl.col("set") == "reno").then(pl.lit(10.0)).otherwise(pl.lit(12.0))
    )
    compared = compare(same, "reno", "cubic")
    (row,) = compared.table.iter_rows(named=True)
    assert (row["shift"], row["p"], row["p_holm"]) == (2.0, None, None)
    assert any("nothing is left to chance" in note for note in compared.notes)


def test_statistics_computed_by_hand() -> None:
    first, second = np.array([1.0, 2, 3, 4, 5, 6]), np.array([3.0, 4, 6, 7, 9, 12])
    assert cliffs_delta(first, second) == pytest.approx(_delta(first, second))
    assert unpaired_shift(first, second)[0] == pytest.approx(
        float(np.median([b - a for a in first for b in second]))
    )
    assert paired_shift(first, second)[0] == pytest.approx(3.0)
    # All six differences are positive: 2 of the 64 signs are as extreme.
    paired = compare_values(first, second + np.arange(6) / 100, paired=True)
    assert paired["p"] == pytest.approx(2 / 64)
    # Six values below six others: 2 of the 924 arrangements are as extreme.
    apart = compare_values(first, first + 10, paired=False)
    assert apart["p"] == pytest.approx(2 / 924)
    assert apart["cliffs_delta"] == 1
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert outliers(np.array([1.0, 2, 2, 3, 2, 1, 50])) == [6]
    assert compare_values(first[:3], second[:3], paired=True)["p"] is None


def _delta(first: np.ndarray, second: np.ndarray) -> float:
    greater = sum(b > a for a in first for b in second)
    smaller = sum(b < a for a in first for b in second)
    return float(greater - smaller) / (len(first) * len(second))


def test_untrusted_replications_are_left_out_with_a_note(tmp_path: Path) -> None:
    for number in range(6):
        write_run(
            tmp_path / "set" / str(number),
            size=2560,
            seed=number,
            verdict="suspect" if number == 2 else "trusted",
        )
    table = frame(find([tmp_path / "set"]), ["transfer_time"])
    left = select_trusted(table, include_untrusted=False)
    assert left.table["run"].to_list() == ["0", "1", "3", "4", "5"]
    assert left.notes == ["set: 2 is suspect, and left out (--include-untrusted keeps it)"]
    assert not left.all_left_out
    everything = select_trusted(table, include_untrusted=True)
    assert everything.table.height == 6
    assert everything.notes == ["set: 2 is suspect, and included"]
    (row,) = summarise(left.table).iter_rows(named=True)
    assert row["n"] == 5
    assert row["median_low"] <= row["median"] <= row["median_high"]


def test_a_set_that_is_left_out_as_a_whole_says_why_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        write_run(tmp_path / "set" / str(number), size=2560, seed=number, verdict="suspect")
    status = analyse(
        [tmp_path / "set"],
        metrics=["transfer_time"],
        as_json=False,
        as_csv=False,
        sets=None,
        include_untrusted=False,
    )
    told = capsys.readouterr()
    assert (status, told.out) == (1, "")
    first, second = told.err.splitlines()
    assert first.startswith("airpath analyse: set: all 3 runs left out (--include-untrusted keeps")
    assert "late_emissions in 3, such as: 12 packets left more than 1 ms late; run on a" in first
    assert "(--jobs)" in first
    assert "--lateness-bound" in first
    assert "--clock warp" in first
    assert second == "airpath analyse: nothing to show: all runs were left out"
    # One that is trusted makes the others exceptions, each told by itself.
    write_run(tmp_path / "set" / "3", size=2560, seed=3)
    assert of_sets(find([tmp_path / "set"])) == {}


def test_quic_logs_are_read_in_both_forms(tmp_path: Path) -> None:
    folder = write(tmp_path / "quic", client=[(0, RX, 1, udp(CLIENT, SERVER, 100))])
    events = [
        {"time": 10, "name": "transport:packet_sent", "data": {}},
        {"time": 20, "name": "recovery:metrics_updated", "data": {"cwnd": 1000, "latest_rtt": 40}},
        {
            "time": 30,
            "name": "recovery:metrics_updated",
            "data": {"congestion_window": 4000, "latest_rtt": 60.5, "bytes_in_flight": 900},
        },
        {"time": 60, "name": "recovery:packet_lost", "data": {}},
    ]
    head: dict[str, dict[str, object]] = {
        "vantage_point": {"type": "server"},
        "common_fields": {"reference_time": 0},
    }
    (folder / "a.qlog").write_text(
        json.dumps({"qlog_version": "0.3", "traces": [{**head, "events": events}]})
    )
    head["vantage_point"]["type"] = "client"
    records = [{"qlog_version": "0.4", "trace": head}, *events]
    text = "".join(f"\x1e{json.dumps(record)}\n" for record in records)
    (folder / "b.sqlog").write_text(text + '\x1e{"time": 7')
    notes: list[str] = []
    table = frame(find([folder]), ["quic_*"], notes=notes)
    for direction in ("downlink", "uplink"):
        found = dict(table.filter(direction=direction).select("metric", "value").iter_rows())
        assert found["quic_packets_lost"] == found["quic_packets_sent"] == 1
        assert found["quic_rtt_min"] == pytest.approx(0.040)
        assert found["quic_rtt_max"] == pytest.approx(0.0605)
        assert found["quic_cwnd_time_mean"] == pytest.approx((1000 * 10 + 4000 * 30) / 40)
        assert found["quic_bytes_in_flight_max"] == 900
    assert any("b.sqlog is torn" in note for note in notes)
    # One that is none is named, and the others are measured all the same.
    (folder / "c.qlog").write_text("nonsense")
    problems: list[str] = []
    again = frame(find([folder]), ["quic_*"], problems=problems)
    assert again.drop("verdict").equals(table.drop("verdict"))
    assert set(again["verdict"]) == {"damaged"}
    (problem,) = problems
    assert problem.startswith(f"{folder}: c.qlog: not a qlog file")
    assert problem.endswith("the file was left out")


def test_a_wrong_name_of_a_metric_names_the_nearest() -> None:
    with pytest.raises(UnknownMetricError, match="the nearest is goodput "):
        choose(["goodputs"])
    assert [metric.name for metric in choose(["goodput", "elapsed_time"])] == [
        "elapsed_time",
        "goodput",
    ]


def command(*paths: Path, **options: object) -> int:
    defaults: dict[str, object] = {
        "metrics": ["transfer_time"],
        "as_json": False,
        "as_csv": False,
        "sets": None,
        "include_untrusted": False,
    }
    return analyse(list(paths), **(defaults | options))  # type: ignore[arg-type]


def test_the_command_prints_tables_json_and_csv(
    sets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(sets) == 0
    assert "reno: 6 replications" in capsys.readouterr().out
    assert command(sets, as_json=True, sets=("reno", "cubic")) == 0
    content = json.loads(capsys.readouterr().out)
    assert len(content["values"]) == 12
    assert len(content["comparison"]) == 1
    assert command(sets, as_csv=True) == 0
    assert len(capsys.readouterr().out.splitlines()) == 13
    assert command(sets, sets=("reno", "rino")) == 2
    assert "no set is called rino; there are cubic, reno" in capsys.readouterr().err
    assert command(sets / "nowhere") == 2
    assert "no such folder" in capsys.readouterr().err


def test_the_definitions_in_the_documentation_are_fresh() -> None:
    page = (ROOT / "docs" / "analysis.md").read_text()
    assert page == renewed(page), "run python -m airpath.analysis.definitions docs/analysis.md"
    assert all(f"`{name}`" in page for name in REGISTRY)


def test_sets_are_drawn(sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from airpath.app import run

    assert run(["plot", str(sets), "--out", str(tmp_path), "--format", "svg"]) == 0
    paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
    kinds = ("distribution", "cdf", "goodput-course", "delay-course", "queue-course")
    assert [path.stem for path in paths] == list(kinds), "no tcp.arrow, no course of cwnd"
    strips = paths[0].read_text()
    assert "reno (6)" in strips
    assert "transfer time, tcp-1, downlink (ms)" in strips
    assert "cubic: median, 5 to 95 %" in paths[2].read_text()
    assert run(["plot", str(sets), "--only", "queue"]) == 2
    assert run(["plot", str(sets / "reno" / "replication-0001"), "--only", "cdf"]) == 2
    assert "is for sets of runs" in capsys.readouterr().err
