"""The case study's own parts: its transfer program, its measures and its table."""

from __future__ import annotations

import shlex
import socket
import threading
import tomllib
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from airpath.experiment.load import load
from airpath.experiment.plan import make_plan
from airpath.experiment.programs import programs
from airpath.run import RunError
from seawind_case import transfer
from seawind_case.measure import Replication, measure
from seawind_case.recorded import README, expected, table_of
from seawind_case.report import PAPER, distance, summarise, table, to_toml
from seawind_case.variants import (
    CLOCKS,
    HERE,
    KERNELS,
    SCENARIOS,
    SIZE_BYTES,
    VARIANTS,
    Clock,
    variants,
)
from synthetic import write_run

if TYPE_CHECKING:
    from pathlib import Path


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


def test_a_replication_is_measured_from_its_logs(tmp_path: Path) -> None:
    world = write_run(tmp_path / "run")
    measured = measure(tmp_path / "run")
    sent = [
        row for row in world.rows if row["kind"] == "offered" and row["direction"] == "downlink"
    ]
    drops = [row for row in world.rows if row["kind"] == "dropped"]
    assert measured.payload_bytes == 102_400
    # The made-up server sends nothing but data: each of the 400 segments once, then again.
    assert measured.segments == len(sent)
    assert measured.retransmitted == len(sent) - 400
    assert measured.retransmitted > 0
    assert measured.drops() == len(drops)
    for way in ("uplink", "downlink"):
        causes = Counter(row["cause"] for row in drops if row["direction"] == way)
        assert measured.dropped[way] == causes
    # The SYN enters at 0 and reaches the server 40 bytes and 200 ms later; the last
    # acknowledgement is the last event of all.
    arrivals = [row["time_ns"] for row in world.rows if row["kind"] == "delivered"]
    assert measured.elapsed_seconds == pytest.approx((arrivals[-1] - arrivals[0]) / 1e9)
    assert measured.idle_seconds == measured.elapsed_seconds  # the made-up log has no frames
    assert measured.throughput_bytes_per_second == pytest.approx(102_400 / measured.elapsed_seconds)


def test_a_run_without_a_transfer_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", captures=False)
    with pytest.raises(RunError, match=r"no TCP data from the server in server\.pcapng"):
        measure(tmp_path / "run")


def replication(elapsed_seconds: float, drops: int) -> Replication:
    return Replication(
        elapsed_seconds=elapsed_seconds,
        idle_seconds=5.0,
        payload_bytes=1000,
        segments=10 + drops,
        retransmitted=drops,
        dropped={
            "downlink": Counter(channel_error=drops - 1, queue_packets=1),
            "uplink": Counter(channel_error=2),
        },
        congestion_control="reno",
        verdict="trusted" if drops == 2 else "suspect",
        lateness_max_seconds=0.0015,
    )


def test_figures_are_medians_and_percentiles() -> None:
    figures = summarise([replication(100.0 + 10 * index, 2 + index) for index in range(11)])
    assert figures["elapsed_seconds"] == {"p10": 110.0, "median": 150.0, "p90": 190.0}
    assert figures["throughput_bytes_per_second"]["median"] == 6.7
    assert figures["retransmitted"]["median"] == 7
    assert figures["dropped"]["median"] == 9
    assert figures["dropped_data"]["median"] == 7
    assert figures["dropped_data_by_queue"]["median"] == 1
    assert figures["dropped_acknowledgements"]["median"] == 2
    assert (figures["replications"], figures["trusted"]) == (11, 1)
    assert figures["lateness_max_ms"] == 1.5


def test_the_distance_from_the_paper_is_a_mean_relative_error() -> None:
    assert distance(PAPER) == 0
    doubled = {name: {"median": 2 * value["median"]} for name, value in PAPER.items()}
    assert distance(doubled) == pytest.approx(1)


def test_figures_survive_toml() -> None:
    figures = {"a_b": summarise([replication(100.0, 2)])}
    again = tomllib.loads(to_toml({"kernel": "6.1"}, figures))
    assert again == {"kernel": "6.1", **figures}


def test_the_table_sets_the_figures_beside_the_paper() -> None:
    lines = table([("Reno", "clean-acks", summarise([replication(100.0, 2)]))]).splitlines()
    assert "170.5 (153.3 to 196.4) | 601 | 65 | 47" in lines[2]
    assert lines[3].startswith(
        "| Reno | clean acks | 100.0 (100.0 to 100.0) | 10 | 2 | 4 | 2 (1) + 2 | 5 |"
    )


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_readme_shows_the_expected_figures(clock: Clock) -> None:
    figures = expected(clock)
    names = [variant.name for variant in variants(clock)]
    assert [name for name, value in figures.items() if isinstance(value, dict)] == names
    assert all(figures[name]["replications"] >= 20 for name in names)
    assert README.read_text().count(table_of(clock, figures)) == 1


def test_the_experiment_has_the_same_cases_and_the_papers_figures() -> None:
    plan = make_plan(load(HERE / "experiment.toml"), [])
    experiment = plan.loaded.experiment
    for kernel in KERNELS:
        workload = experiment.workloads[kernel.name]
        assert workload.congestion_control == kernel.congestion_control
        for program in programs(workload):
            assert isinstance(program.command, str)
            words = shlex.split(program.command)
            size = words.index("--bytes")
            assert words[size + 1] == str(SIZE_BYTES)
            assert words[size + 2 :] == list(kernel.options)
    for clock in ("warp", "live"):
        cells = {(one.cell.network, one.cell.workload_name) for one in plan.cells}
        assert cells == {(one.acknowledgements, one.ends.name) for one in variants(clock)}
        ours = [one.cell for one in plan.cells if one.cell.clock == clock]
        assert len(ours) == len(variants(clock))
        assert {cell.repetitions for cell in ours} == {20}
    (reference,) = experiment.references
    told = {name: value.model_dump(exclude_none=True) for name, value in reference.metrics.items()}
    assert told == {
        "transfer_time/downlink": PAPER["elapsed_seconds"],
        "goodput/downlink": {"median": 8 * PAPER["throughput_bytes_per_second"]["median"]},
        "retransmitted_segments/downlink": PAPER["retransmitted"],
        "drops/downlink": PAPER["dropped"],
    }


def test_both_scenarios_are_table_1_but_for_the_errors_on_acknowledgements() -> None:
    both, clean = (tomllib.loads(path.read_text()) for path in SCENARIOS.values())
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
def test_commands_differ_only_in_what_a_variant_says(tmp_path: Path, clock: Clock) -> None:
    commands = {
        variant.name: variant.command(tmp_path / "airpath", tmp_path, 20, 4, 1)
        for variant in variants(clock)
    }
    assert len(set(map(tuple, commands.values()))) == len(VARIANTS)
    assert "--cc" not in commands["defaults_clean-acks"]
    assert "net.ipv4.tcp_timestamps=0" not in " ".join(commands["defaults_clean-acks"])
    for name, command in commands.items():
        end = command.index("--")
        assert command[end + 2].endswith("transfer.py")
        assert ("--cc" in command) != name.startswith("defaults")
        # But for the clock, virtual time runs the very same command.
        assert command.count("--clock") == (clock == "warp")


def test_virtual_variants_have_workloads_for_programs(tmp_path: Path) -> None:
    for variant in variants("virtual"):
        command = variant.command(tmp_path / "airpath", None, 20, 2, 1)
        assert command[1] == "sim"
        assert "--" not in command
        assert "bytes=102400 from=server" in command[command.index("--workload") + 1]
        assert command[command.index("--log") + 1] == "none"
        assert ("--mtu" in command) == variant.name.startswith("quic")
