# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Cells: several users of one medium, simulated by the engine and read by analysis."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import polars as pl
import pytest

import airpath
from airpath.analysis.command import analyse
from airpath.engine import find_engine
from airpath.plots import fairness, queue
from airpath.plots.style import Picture, Span
from airpath.run import NoUserError, Run, load_run

CELL = Path(__file__).parent.parent / "examples" / "cell-wired.toml"
USERS = ["near", "middle", "far"]


def engine(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(find_engine()), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run in which each user fetches 200 kB, and the far one calls."""
    out = tmp_path_factory.mktemp("cell") / "run"
    bulk, call = "tcp bytes=200kB", "cbr user=far size=200 interval='20 ms' packets=50 from=client"
    sim = ("sim", "--scenario", CELL, "--seed", "5", "--out", out, "--json")
    done = engine(*sim, "--workload", bulk, "--workload", call)
    assert done.returncode == 0, done.stderr
    (out.parent / "summary.json").write_text(done.stdout)
    return out


@pytest.fixture
def run(folder: Path) -> Run:
    return load_run(folder)


def test_each_event_names_its_user(run: Run) -> None:
    whole = run.events.filter(pl.col("hop").cast(pl.String) == "path")
    delivered = whole.filter(pl.col("kind").cast(pl.String) == "delivered")
    counts = delivered.group_by(user=pl.col("user").cast(pl.String)).agg(
        flows=pl.col("flow").n_unique()
    )
    assert dict(counts.iter_rows()) == {"near": 1, "middle": 1, "far": 2}
    # Each workload of each user has packets of a flow of its own.
    assert delivered["flow"].n_unique() == 4
    assert set(run.events["hop"].cast(pl.String)) == {"path", "radio"}


def test_a_user_waits_for_its_own_propagation(run: Run) -> None:
    whole = run.events.filter(pl.col("hop").cast(pl.String) == "path")
    kind, user = pl.col("kind").cast(pl.String), pl.col("user").cast(pl.String)
    offered = whole.filter(kind == "offered").select("pdu", offered_ns="time_ns")
    delays = whole.filter(kind == "delivered").join(offered, on="pdu")
    least = delays.group_by(user=user).agg((pl.col("time_ns") - pl.col("offered_ns")).min() / 1e6)
    found = dict(least.iter_rows())
    for name, propagation_ms in zip(USERS, [10, 30, 60], strict=True):
        assert propagation_ms < found[name] < propagation_ms + 0.5


def test_the_files_tell_of_users(folder: Path, run: Run) -> None:
    assert [user["name"] for user in run.manifest["users"]] == USERS
    workloads = [workload["workload"] for workload in run.manifest["workloads"]]
    assert [f"user={name} " in text for name, text in zip(USERS, workloads, strict=False)] == [
        True
    ] * 3
    ends = ("client", "server")
    assert all(
        (folder / f"{name}-{end}.pcapng").stat().st_size > 1000 for name in USERS for end in ends
    )
    summary = json.loads((folder.parent / "summary.json").read_text())
    assert [user["name"] for user in summary["users"]] == USERS
    packets = [user["downlink"]["delivered_packets"] for user in summary["users"]]
    assert sum(packets) == summary["downlink"]["delivered_packets"]
    assert all(count >= 134 for count in packets), "200 kB are at least 134 packets"


def test_the_log_shows_users_and_one_of_them(folder: Path) -> None:
    def shown(*words: str) -> list[str]:
        done = engine("log", folder, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    head, *rows = shown()
    assert head.split()[:3] == ["time/s", "user", "hop"]
    assert {row.split()[1] for row in rows} == set(USERS)
    far = [json.loads(line) for line in shown("--user", "far", "--json")]
    assert {row["user"] for row in far} == {"far"}
    assert len(far) == sum(row.split()[1] == "far" for row in rows)
    assert len(shown("--tcpdump")) == sum(len(shown("--tcpdump", "--user", name)) for name in USERS)
    # 50 packets of the call, and the acknowledgements of TCP.
    assert len(shown("--tcpdump", "--user", "far", "--direction", "uplink")) > 50
    wrong = engine("log", folder, "--user", "fat")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert (
        "there is no user `fat`, did you mean `far`?; there are near, middle, far" in wrong.stderr
    )


def test_a_replay_is_identical(folder: Path) -> None:
    again = engine("replay", folder)
    assert (again.returncode, again.stdout[:9]) == (0, "identical"), again.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("sim", "--workload", "tcp bytes=1kB user=fat"),
            "did you mean `far`?; the users are near",
        ),
        (("shell", "--", "true"), "name the one at whose end the shell runs, as in --user near"),
    ],
)
def test_what_a_cell_cannot_do_is_told(words: tuple[str, ...], told: str) -> None:
    refused = engine(words[0], "--scenario", CELL, *words[1:])
    assert refused.returncode != 0
    assert told in refused.stderr


def test_a_check_tells_who_shares_a_medium() -> None:
    checked = engine("check", CELL)
    assert "cell-wired.toml: ok (1 medium, 3 users, 3 hops, 0 states)" in checked.stdout
    assert "medium bottleneck: uplink of near.radio, middle.radio, far.radio;" in checked.stdout


def test_captures_of_users_are_read_together(run: Run) -> None:
    assert run.users == USERS
    for packets in run.captures.values():
        assert set(packets["user"].unique()) == set(USERS)
        assert packets["time_ns"].is_sorted()
    alone = run.of_user("middle")
    assert set(alone.captures["client"]["user"].unique()) == {"middle"}
    assert set(alone.events["user"].unique()) == {"middle"}
    assert alone.captures["client"].height == (
        run.captures["client"].filter(pl.col("user") == "middle").height
    )
    with pytest.raises(NoUserError, match="did you mean `far`"):
        run.of_user("fat")


def test_metrics_of_one_user_and_of_all(run: Run) -> None:
    def found(of: Run, name: str) -> dict[tuple[str, str], float]:
        rows = airpath.frame(of, name)
        return {
            (direction, hop): value
            for direction, hop, value in rows.select("direction", "hop", "value").iter_rows()
        }

    delays = {name: found(run.of_user(name), "one_way_delay_min") for name in USERS}
    for name, propagation_s in zip(USERS, [0.010, 0.030, 0.060], strict=True):
        assert propagation_s < delays[name]["uplink", ""] < propagation_s + 0.0005
    hops = {hop for _, hop in found(run, "queue_packets_max")}
    assert hops == {f"{name}.radio" for name in USERS}
    assert {hop for _, hop in found(run.of_user("far"), "queue_packets_max")} == {"radio"}
    assert found(run.of_user("far"), "jain_fairness_users") == {}


def legends(picture: Picture) -> list[str]:
    """Return the titles of the legends of a picture's panels."""
    found = [axis.get_legend() for axis in picture.figure.get_axes()]
    return [legend.get_title().get_text() for legend in found if legend is not None]


def test_pictures_of_one_user_and_of_all(run: Run) -> None:
    (packets, _) = queue.draw(run, Span())
    heads = legends(packets)
    assert heads[-1] == "radio of 3 users together, downlink (server to client)"
    # At each instant the length is the sum of what the queues of all users last had.
    lengths = dict.fromkeys(USERS, 0)
    events = run.events.filter(
        (pl.col("stage") == "queue") & (pl.col("direction") == "downlink")
    ).with_columns(pl.col("user").cast(pl.String))
    most = 0
    for (_,), rows in events.group_by("time_ns", maintain_order=True):
        lengths |= dict(rows.select("user", "queue_packets").iter_rows())
        most = max(most, sum(lengths.values()))
    drawn = packets.figure.get_axes()[-1].get_ylim()[1] / 1.5
    assert drawn == most > 0
    (packets, _) = queue.draw(run.of_user("far"), Span())
    heads = legends(packets)
    assert heads[-1] == "radio, downlink (server to client)"
    assert packets.figure.get_suptitle() == "cell-wired, far: queue length in packets"
    (picture,) = fairness.draw(run, Span())
    legend = picture.figure.get_axes()[0].get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == set(USERS)


def test_the_command_measures_a_user(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = analyse(
        [folder],
        metrics=["one_way_delay_min"],
        user="far",
        as_json=True,
        as_csv=False,
        sets=None,
        include_untrusted=True,
    )
    assert status == 0
    values = json.loads(capsys.readouterr().out)["values"]
    assert {row["direction"] for row in values} == {"uplink", "downlink"}
    assert all(row["value"] > 0.060 for row in values)
    wrong = analyse(
        [folder],
        metrics=None,
        user="fat",
        as_json=False,
        as_csv=False,
        sets=None,
        include_untrusted=True,
    )
    assert wrong == 2
    assert "did you mean `far`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("frames", "scenario", "recorded"),
    [
        ((), "cell-ofdm.toml", False),
        (("--frames", "on"), "cell-ofdm.toml", True),
        ((), "cell-wired.toml", True),
        (("--frames", "off"), "cell-wired.toml", False),
    ],
)
def test_frames_are_recorded_where_asked_and_counted_always(
    tmp_path: Path, frames: tuple[str, ...], scenario: str, *, recorded: bool
) -> None:
    out = tmp_path / "run"
    words = ("--scenario", CELL.parent / scenario, "--users", "2", "--seed", "5", "--out", out)
    done = engine("sim", *words, *frames, "--quiet", "--workload", "tcp bytes=20kB from=server")
    assert done.returncode == 0, done.stderr
    run = load_run(out)
    kinds = set(run.events["kind"].cast(pl.String))
    assert {kind.startswith("frame_") for kind in kinds} == ({True, False} if recorded else {False})
    assert {"offered", "delivered"} < kinds
    assert run.manifest["frames"] is recorded
    has_entities = scenario == "cell-ofdm.toml"
    assert (out / "link.arrow").exists() is (recorded and has_entities)
    sites = run.manifest["results"]["counters"]
    sent = sum(site["kinds"].get("frame_sent", {"count": 0})["count"] for site in sites)
    assert sent > 40
    again = engine("replay", out, "--out", tmp_path / "again")
    assert again.returncode == 0, again.stdout + again.stderr
    assert load_run(tmp_path / "again").manifest["frames"] is recorded
