# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The case study of Seawind: its transfer program, its experiment, its results, its comparison."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import threading
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from airpath.experiment.load import load
from airpath.experiment.plan import make_plan
from airpath.experiment.programs import programs
from airpath.report.beside import SCHEMA, mean_error
from airpath.run import RunError, load_run
from experiments import airpath
from seawind_case import compare, transfer
from seawind_files import EXPERIMENT, RECORDED, STUDY, one_cell, reduced
from synthetic import write_run

# Table 2 of Kojo et al. 2001: 20 replications, Linux 2.4.0; 601 bytes/s are 4808 bit/s.
PAPER: dict[str, dict[str, float]] = {
    "transfer_time/downlink": {"p10": 153.27, "median": 170.51, "p90": 196.40},
    "goodput/downlink": {"median": 4808},
    "retransmitted_segments/downlink": {"median": 65},
    "drops/downlink": {"median": 47},
}
LIKE_2001 = (
    "--sysctl net.ipv4.tcp_timestamps=0 --sysctl net.ipv4.tcp_recovery=0 "
    "--sysctl net.ipv4.tcp_early_retrans=0 --sysctl net.ipv4.tcp_frto=0 --initial-window 2"
)
KERNELS = {
    "reno": ("reno", "--sysctl net.ipv4.tcp_timestamps=0"),
    "reno-like-2001": ("reno", LIKE_2001),
    "reno-like-2001-no-sack": (
        "reno",
        f"{LIKE_2001} --sysctl net.ipv4.tcp_sack=0 --sysctl net.ipv4.tcp_dsack=0",
    ),
    "cubic": ("cubic", "--sysctl net.ipv4.tcp_timestamps=0"),
    "defaults": (None, ""),
}
"""TCPs of the kernel: congestion control, and options of both programs."""
VIRTUAL = ("virtual-reno", "virtual-cubic")
NETWORKS = ("errors-both-ways", "clean-acks")
SIZE_BYTES = 102_400
TRANSMISSION_S = 8 * SIZE_BYTES / 9600


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_the_pattern_has_no_two_equal_words() -> None:
    pattern = transfer.pattern(4_001)
    words = [pattern[at : at + 4] for at in range(0, 4_000, 4)]
    assert len(pattern) == 4_001
    assert len(set(words)) == len(words)


def test_a_transfer_arrives_and_ends_at_both_ends() -> None:
    port = free_port()
    sender = threading.Thread(target=transfer.send, args=(port, 300_000), daemon=True)
    sender.start()
    for _ in range(500):
        try:
            transfer.receive("127.0.0.1", port, 300_000)
            break
        except ConnectionRefusedError:
            threading.Event().wait(0.02)
    sender.join(timeout=60)
    assert not sender.is_alive()


def test_a_transfer_of_other_bytes_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            connection.sendall(b"x" * 1000)
            connection.close()

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        with pytest.raises(ValueError, match="1000 bytes, which are not the 1000"):
            transfer.receive("127.0.0.1", listener.getsockname()[1], 1000)
        server.join(timeout=60)


def test_only_settings_of_the_namespace_are_written() -> None:
    with pytest.raises(ValueError, match="only settings of a network namespace"):
        transfer.set_kernel("kernel.panic", "1")


@pytest.fixture(scope="module")
def recorded() -> pl.DataFrame:
    """Return the figures that are kept: references.csv of the whole experiment."""
    return pl.read_csv(RECORDED, schema=SCHEMA)


def readme_table(figures: pl.DataFrame) -> str:
    """Return the table of README.md: a row for each TCP, network and clock."""
    lines = [
        "| TCP | network | clock | transfer time, s: median (p10 to p90) | B/s | retransmitted "
        "| data dropped | mean error |",
        "|---|---|---|---|---|---|---|---|",
        "| Linux 2.4.0 (Kojo et al. 2001) | ? | | 170.5 (153.3 to 196.4) | 601 | 65 | 47 | |",
    ]
    for workload in (*KERNELS, *VIRTUAL):
        for network in NETWORKS:
            for clock in ("live", "warp", "virtual"):
                rows = figures.filter(pl.col("set") == f"{clock}/{network},{workload}")
                if rows.is_empty():
                    continue
                middle = dict(rows.select("metric", "median").iter_rows())
                time = rows.row(by_predicate=pl.col("metric") == "transfer_time", named=True)
                lines.append(
                    f"| {workload} | {network} | {clock} "
                    f"| {time['median']:.1f} ({time['p10']:.1f} to {time['p90']:.1f}) "
                    f"| {middle['goodput'] / 8:.0f} | {middle['retransmitted_segments']:g} "
                    f"| {middle['drops']:g} | {100 * (mean_error(rows) or 0):.0f} % |"
                )
    return "\n".join(lines)


def test_the_readme_shows_the_expected_figures(recorded: pl.DataFrame) -> None:
    text = (STUDY / "README.md").read_text()
    table = readme_table(recorded)
    assert text.count(table) == 1, f"README.md does not hold the table of {RECORDED.name}:\n{table}"
    # No second table of results.
    assert text.count("Linux 2.4.0 (Kojo et al. 2001)") == 1


def test_every_cell_has_recorded_figures_and_their_errors(recorded: pl.DataFrame) -> None:
    plan = make_plan(load(EXPERIMENT), [])
    planned = {f"{one.cell.set_name}/{one.cell.name}" for one in plan.cells}
    quic = {name for name in planned if name.startswith("virtual-quic/")}
    assert set(recorded["set"]) == planned - quic
    assert recorded["n"].to_list() == [20] * (len(planned - quic) * len(PAPER))
    for name in planned - quic:
        rows = recorded.filter(pl.col("set") == name)
        errors = [assert_beside_the_paper(row) for row in rows.iter_rows(named=True)]
        assert len(errors) == len(PAPER)
        assert mean_error(rows) == pytest.approx(sum(map(abs, errors)) / len(PAPER))


def assert_beside_the_paper(row: dict[str, Any]) -> float:
    """Fail unless a row compares its median with the paper's; return the error."""
    paper = PAPER[f"{row['metric']}/{row['direction']}"]
    assert row["reference_median"] == paper["median"]
    assert (row["reference_p10"], row["reference_p90"]) == (paper.get("p10"), paper.get("p90"))
    error = (float(row["median"]) - paper["median"]) / paper["median"]
    assert row["relative_error"] == pytest.approx(error)
    return error


def test_the_experiment_has_five_tcps_by_two_clocks_and_the_papers_figures() -> None:
    plan = make_plan(load(EXPERIMENT), [])
    experiment = plan.loaded.experiment
    for name, (congestion_control, options) in KERNELS.items():
        workload = experiment.workloads[name]
        assert workload.congestion_control == congestion_control
        ends = []
        for program in programs(workload):
            assert isinstance(program.command, str)
            words = shlex.split(program.command)
            size = words.index("--bytes")
            assert words[1].endswith("transfer.py")
            assert words[size + 1] == str(SIZE_BYTES)
            assert words[size + 2 :] == options.split()
            ends.append(words[2])
        assert ends == ["send", "receive"]
    for name in (*VIRTUAL, "quic-cubic"):
        (text,) = experiment.workloads[name].virtual
        kind, _, cc = name.partition("-")
        protocol = "quic" if kind == "quic" else "tcp"
        segments = " timestamps=no" if protocol == "tcp" else ""
        assert text == f"{protocol} bytes={SIZE_BYTES} from=server cc={cc}{segments}"
    sets = {"live": KERNELS, "warp": KERNELS, "virtual": VIRTUAL, "virtual-quic": ["quic-cubic"]}
    for name, workloads in sets.items():
        cells = [one.cell for one in plan.cells if one.cell.set_name == name]
        assert {(cell.network, cell.workload_name) for cell in cells} == {
            (network, workload) for network in NETWORKS for workload in workloads
        }
        assert len(cells) == 2 * len(workloads)
        assert {cell.repetitions for cell in cells} == {20}
        assert {cell.clock for cell in cells} == {name.partition("-")[0]}
        # The same seeds everywhere, so that the same transmissions meet errors.
        assert {(cell.seed(1), cell.seed(20)) for cell in cells} == {(1, 20)}
    (reference,) = experiment.references
    told = {name: value.model_dump(exclude_none=True) for name, value in reference.metrics.items()}
    assert told == PAPER


def test_both_scenarios_are_table_1_but_for_the_errors_on_acknowledgements() -> None:
    paths = (STUDY / "scenario.toml", STUDY / "scenario-clean-acks.toml")
    networks = load(EXPERIMENT).experiment.networks
    assert [networks[name].scenario for name in NETWORKS] == [path.name for path in paths]
    both, clean = (tomllib.loads(path.read_text()) for path in paths)
    (link,), (clean_hop,) = ([hop["link"] for hop in both["hops"]], clean["hops"])
    assert link["rate"] == "9600 bit/s"
    assert link["propagation"] == "200 ms"
    assert link["queue"] == {"type": "tail_drop", "limit": "7 packets"}
    assert (link["send_buffer"], link["receive_buffer"]) == ("4 packets", "4 packets")
    errors = link.pop("errors")
    assert (errors["probability"], errors["effect"]) == (0.01, "drop")
    assert clean_hop["link"] == link
    assert clean_hop["downlink"] == {"errors": errors}
    for scenario, parameter in ((both, "link"), (clean, "downlink")):
        (state,) = scenario["states"]
        assert state["at"] == "40 s"
        assert state["set"] == {f"radio.{parameter}.errors.probability": 0.10}


@pytest.mark.parametrize("clock", ["live", "warp"])
def test_a_cell_by_itself_is_that_of_the_experiment(tmp_path: Path, clock: str) -> None:
    """Tests of warp run it so."""
    (alone,) = make_plan(
        load(one_cell(tmp_path, clock, "clean-acks", "reno", repetitions=1)), []
    ).cells
    assert (alone.cell.set_name, alone.cell.name) == (clock, "all")
    assert (alone.cell.clock, alone.cell.repetitions) == (clock, 1)
    whole = make_plan(load(EXPERIMENT), []).cells
    digests = {(one.cell.set_name, one.cell.name): one.digest for one in whole}
    assert digests[clock, "clean-acks,reno"] == alone.digest


@pytest.fixture(scope="module")
def virtual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results of the sets in virtual time, with three replications of each cell."""
    folder = tmp_path_factory.mktemp("virtual")
    out = folder / "results"
    only = ("--only", "virtual", "--only", "virtual-quic")
    ran = airpath("run", reduced(folder, repetitions=3), *only, "--out", out, timeout=300)
    assert ran.returncode == 0, ran.stderr
    told = airpath("report", out, "--pictures", "0", "--csv", out / "tables", timeout=300)
    assert told.returncode == 0, told.stderr
    return out


def test_virtual_time_is_where_it_was_beside_the_paper(
    virtual: Path, recorded: pl.DataFrame
) -> None:
    listed = airpath("results", virtual, "--runs", "--json", "--metric", "elapsed")
    runs = [json.loads(line) for line in listed.stdout.splitlines()]
    assert len(runs) == 3 * 6
    for run in runs:
        assert (run["status"], run["verdict"]) == ("succeeded", "trusted")
        assert run["metrics"]["elapsed"] > TRANSMISSION_S
    kept = {(row["set"], row["metric"]): row for row in recorded.iter_rows(named=True)}
    rows = pl.read_csv(virtual / "tables/references.csv", schema=SCHEMA).rows(named=True)
    assert len(rows) == 4 * len(PAPER)
    for row in rows:
        assert row["n"] == 3
        assert_beside_the_paper(row)
        usual = kept[row["set"], row["metric"]]
        assert usual["p10"] <= row["median"] <= usual["p90"], row


def test_virtual_time_sends_what_the_experiment_says(virtual: Path) -> None:
    folders = sorted((virtual / "runs").glob("virtual*/*/*"))
    assert len(folders) == 18
    for folder in folders:
        run = load_run(folder)
        (workload,) = run.manifest["workloads"]
        assert workload["report"]["downlink"]["delivered_bytes"] == SIZE_BYTES
        about = json.loads((folder / "replication.json").read_text())["workload"]
        assert workload["report"]["workload"]["cc"] == about.partition("-")[2]
        assert run.settings["mtu_bytes"] == (1280 if about == "quic-cubic" else 296)
        sent = run.captures["server"].filter(pl.col("interface") == "rx").height
        assert sent >= (80 if about == "quic-cubic" else 400)
        lost = run.drops().filter(pl.col("direction") == "uplink").height
        assert (lost == 0) == ("clean-acks" in str(folder)), folder


CELLS = ["clean-acks,cubic", "clean-acks,reno", "errors-both-ways,cubic", "errors-both-ways,reno"]


def results(folder: Path, *, seeds: range = range(1, 11), rate: int = 9600, drawn: int = 0) -> Path:
    """Write made-up replications, the same ones in every cell, drawn from seeds `drawn` further."""
    for seed in seeds:
        run = folder / CELLS[0] / f"{seed:04}"
        write_run(run, size=10_240, seed=seed + drawn, rate=rate)
        manifest = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps({**manifest, "seed": seed}))
    for name in CELLS[1:]:
        shutil.copytree(folder / CELLS[0], folder / name)
    return folder


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results(tmp_path_factory.mktemp("live"))


def compared(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    """Compare; return the exit status and what was told."""
    status = compare.main([str(word) for word in words])
    return (status, *capsys.readouterr())


def test_equal_results_agree(
    live: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = compared(capsys, live, results(tmp_path))
    assert (status, err) == (0, "")
    header, rule, *rows = out.splitlines()
    assert header.count("|") == rule.count("|") == 10
    assert [row.split("`")[1] for row in rows] == CELLS
    for row in rows:
        assert "| 10 (10, 10) |" in row
        assert row.endswith("| 1.000 (1.000 to 1.000) | 10 |  | 0 | 0.0 (0) |")


def test_a_slower_link_does_not_agree(
    live: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = compared(capsys, live, results(tmp_path, rate=7000))
    assert status == 1
    assert [line.split(":")[0] for line in err.splitlines()] == CELLS
    assert err.count("is not within 0.9 and 1.1") == len(CELLS)
    assert "| 1.000 (" not in out


def test_other_packets_are_told_where_times_agree(
    live: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The seeds are said to be the same, but other packets were lost."""
    _, out, _ = compared(capsys, live, results(tmp_path, drawn=100))
    for row in out.splitlines()[2:]:
        ratio, same, until = (cell.strip() for cell in row.split("|")[5:8])
        assert 0.8 < float(ratio.split()[0]) < 1.25
        assert int(same) < 10
        assert until


def test_few_pairs_are_not_enough(
    live: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = compared(capsys, live, results(tmp_path, seeds=range(2, 11)))
    assert status == 1
    assert err.splitlines() == [f"{cell}: 9 pairs, at least 10 needed" for cell in CELLS]
    few = results(tmp_path / "fewer", seeds=range(1, 4))
    status, out, err = compared(capsys, live, few, "--cells", "clean-acks,*", "*,bbr")
    assert status == 1
    assert "(0.000 to inf)" in out
    assert err.endswith("*,bbr: 0 pairs, at least 10 needed\n")


def test_runs_that_cannot_be_paired_are_told(
    live: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = compared(capsys, live, tmp_path)
    assert status == 2
    assert str(tmp_path) in err
    twice = tmp_path / "both" / "again"
    shutil.copytree(live, twice)
    shutil.copytree(live, tmp_path / "both" / "once")
    status, _, err = compared(capsys, live, twice.parent)
    assert status == 2
    assert "has seed 1 twice; name one set" in err
    (twice / CELLS[0] / "0003" / "server.pcapng").unlink()
    status, out, err = compared(capsys, live, twice)
    assert status == 1
    assert "0003: needs one TCP transfer from the server in the captures of both ends" in err
    assert f"{CELLS[0]}: 9 pairs, at least 10 needed" in err
    assert out.count("| 10 (10, 10) |") == len(CELLS) - 1


def made_up(live: list[float], warp: list[float]) -> list[compare.Pair]:
    """Return pairs with these transfer times and no packets."""
    made = [
        [compare.Transfer(seed, "trusted", value, 0.0, [], [], []) for seed, value in enumerate(of)]
        for of in (live, warp)
    ]
    return [compare.Pair(one, other) for one, other in zip(*made, strict=True)]


def test_the_interval_of_a_ratio() -> None:
    times = [100.0 + 3 * index for index in range(12)]
    same = made_up(times, [1.05 * value for value in times])
    # Every pair has the same ratio, and so has their interval.
    assert compare.ratio(same) == pytest.approx((1.05, 1.05, 1.05))
    assert compare.disagreement(same) == ""
    for factor in (0.89, 1.11):
        told = compare.disagreement(made_up(times, [factor * value for value in times]))
        assert told == f"{factor:.3f} to {factor:.3f} is not within 0.9 and 1.1"
    # A single pair far off moves the interval of twelve no further than the others allow.
    ratio, low, high = compare.ratio(made_up(times, [*times[:-1], 10 * times[-1]]))
    assert ratio == low == 1
    assert high < 10**0.5 + 0.01
    assert compare.disagreement(made_up(times[:9], times[:9])) == "9 pairs, at least 10 needed"


def test_packets_are_aligned_from_the_first(live: Path, tmp_path: Path) -> None:
    folder = live / CELLS[0]
    one = compare.read(folder / "0001")
    assert compare.Pair(one, one).same
    assert one.packets[0] == ("received", 0x02, 0, 0, 0)
    # The same seed over a link that is a little slower: the same draws, a little later.
    write_run(tmp_path / "slower", size=10_240, seed=1, rate=9500)
    slower = compare.Pair(compare.read(tmp_path / "slower"), one)
    assert slower.equal_packets > 0
    assert slower.differences_ms[0] == 0
    assert max(slower.differences_ms) > 0
    other = compare.Pair(one, compare.read(folder / "0002"))
    assert not other.same
    at = other.equal_packets
    assert other.live.packets[:at] == other.warp.packets[:at]
    assert other.live.packets[at : at + 1] != other.warp.packets[at : at + 1]
    # One packet less is a difference, and so is any field of one packet.
    shorter = compare.Pair(one, replaced(one, len(one.packets) - 1))
    assert (shorter.same, shorter.equal_packets) == (False, len(one.packets) - 1)
    for field in ("way", "flags", "sequence", "acknowledgement", "payload_bytes"):
        changed = compare.Pair(one, replaced(one, len(one.packets), 7, field))
        assert (changed.same, changed.equal_packets) == (False, 7)


def replaced(
    one: compare.Transfer, count: int, at: int | None = None, field: str = ""
) -> compare.Transfer:
    """Return a transfer with so many packets, one of them with another value of a field."""
    packets = one.packets[:count]
    if at is not None:
        values: dict[str, Any] = {field: "other" if field == "way" else 123_456}
        packets[at] = packets[at]._replace(**values)
    return compare.Transfer(
        one.seed, one.verdict, one.elapsed_s, one.start_ms, packets, one.times_ms, one.drops
    )


def test_two_runs_are_told_packet_by_packet(
    virtual: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both, clean = (virtual / "runs/virtual" / f"{one},virtual-reno" / "0001" for one in NETWORKS)
    status, out, _ = compared(capsys, both, both)
    assert status == 0
    assert out.startswith("all ")
    assert "first drop that differs" not in out
    assert out.count("nothing more") == 2
    status, out, _ = compared(capsys, both, clean)
    assert status == 1
    at = int(out.split()[2])
    assert out.startswith(f"the first {at} packets are the same\n")
    assert at > 100
    assert out.count(f"packet {at + 1}: ") == 2
    # Before the change at 40 s few packets are lost; the first other drop is an acknowledgement's.
    assert "first drop that differs: live uplink packet " in out


def test_a_run_without_a_transfer_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", captures=False)
    with pytest.raises(RunError, match="needs one TCP transfer from the server"):
        compare.read(tmp_path / "run")


def test_a_packet_is_told_as_the_server_sees_it() -> None:
    assert str(compare.Packet("sent", 0x18, 257, 1, 256)) == "sent 257:513"
    assert str(compare.Packet("received", 0x10, 1, 513, 0)) == "received acknowledgement 513"
    assert str(compare.Packet("received", 0x02, 0, 0, 0)) == "received SYN"
