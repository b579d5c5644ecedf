# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Slips on the command line: what is said of each, and the exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from experiments import SMALL

START = "import sys; from airpath.cli import main; sys.exit(main())"
ENVIRONMENT = {**os.environ, "COLUMNS": "100"}


def airpath(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=ENVIRONMENT,
        cwd=cwd,
        check=False,
    )


WINDOW = """\
[[hops]]
name = "radio"
[hops.link]
rate = "1 Mbit/s"
queue = { type = "tail_drop", limit = "64 kB" }
flow_control = { type = "window", bytes = "64 kB" }
"""

SLIPS = [
    ("exec --rate|-5 Mbit/s|-- true", 2, "`-5 Mbit/s` is not a rate: it is negative"),
    ("exec --delay|-1 ms|-- true", 2, "it is negative"),
    ("exec --replications -1 -- true", 2, "invalid value '-1' for '--replications <N>'"),
    ("sim --seed -1", 2, "invalid value '-1' for '--seed <N>': it is not a whole number from 0 on"),
    ("exec --loops 0 -- true", 2, "invalid value '0' for '--loops <N>': it is not a whole number"),
    ("exec --frob -- true", 2, "unexpected argument '--frob' found\n\nUsage"),
    ("plot run --frob", 2, "a similar argument exists: '--from'\n\nUsage"),
    ("send --bytes -5 server", 2, "it is negative"),
    ("recv --port -1", 2, "invalid value '-1' for '--port <N>'"),
    (
        "exec --rate|1 Mbit/s|curl http://server/",
        2,
        "put `--` before the command: airpath exec --rate '1 Mbit/s' -- curl http://server/",
    ),
    ("exec --seed 3 ping server", 2, "airpath exec --seed 3 -- ping server"),
    ("shell --delay 20ms bash", 2, "airpath shell --delay 20ms -- bash"),
    ("exec --json none/x.json -- true", 122, "cannot write none/x.json: No such file"),
    ("exec --json x.json --replications 2 -- true", 2, "--json FILE is for one run"),
    ("exec --server-ready 0 --server x -- true", 2, "0 is not a port: ports are 1 to 65535"),
    ("exec --server-ready now -- true", 2, "--server <CMD>"),
    ("exec --out small.toml/run -- true", 122, "cannot record in small.toml/run"),
    ("report --pictures -1 run", 2, "--pictures -1 must not be negative"),
    ("exec --rate 1 Mbit/s -- true", 2, "needs quotes: --rate '1 Mbit/s'"),
    ("sim --delay 20 ms", 2, "needs quotes: --delay '20 ms'"),
    ("exec --queue|64 KB|-- true", 2, "did you mean `64 kB`?"),
    ("exec --queue|64 KiB|-- true", 2, "did you mean `64 kB`?"),
    ("exec --queue|7 packet5|-- true", 2, "did you mean `7 packets`?"),
    ("exec --queue 100 -- true", 2, "`100` is not a queue limit"),
    ("exec --rate 5Mbits -- true", 2, "did you mean `Mbit"),
    ("profiles show lte-egde", 2, "profiles show: there is no profile `lte-egde`"),
    ("profiles show lte-god", 2, "did you mean `lte-good`?\n     valid: lte-good, lte-cell-edge\n"),
    ("exec --profile lte-egde -- true", 2, "     valid: lte-good, lte-cell-edge\n"),
    ("exec --profile nothing -- true", 2, "geo-satellite"),
    ("trace generate wall out", 2, "no environment of a wireless LAN; did you mean `walls`?"),
    ("trace generate wall out", 2, "valid: office, walking, adjacent, table, walls"),
    ("check nowhere.toml", 2, "nowhere.toml: cannot be read: No such file or directory"),
    ("frob", 2, "airpath: unrecognized subcommand 'frob'"),
    ("log run --frob", 2, "airpath: unexpected argument '--frob' found"),
    ("plot run --frob", 2, "airpath: unexpected argument '--frob' found"),
    ("plot run --from 5x", 2, "not a time; write for example '2 s'"),
    ("log run --from x", 2, "`x` is not a time"),
    ("log run --from 5", 2, "run is not a directory"),
    ("plot run --from|5 s", 2, "run: no such folder"),
    ("run small.toml --junit none/x.xml", 2, "--junit none/x.xml: there is no folder"),
    ("run small.toml --summary none/x.md", 2, "--summary none/x.md: there is no folder"),
]
"""Words (with a bar around those that have spaces), exit status, and a part of the message."""


@pytest.mark.parametrize(("line", "status", "said"), SLIPS)
def test_a_slip_is_explained(line: str, status: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    parts = line.split("|")
    words = [
        word for index, part in enumerate(parts) for word in ([part] if index % 2 else part.split())
    ]
    done = airpath(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert said in done.stderr
    assert "Errno" not in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.toml"]


ADVICE = [
    ("--loss 1", "--loss 1 is a probability of 100 %"),
    ("--loss 0%,1", "--loss 1 is a probability of 100 %"),
    ("--profile lte-good --loss 1%", "--loss replaces the errors of lte-good"),
    ("--profile lte-cell-edge --loss 1%", "--loss replaces the errors of lte-cell-edge"),
    ("--profile lte-good --loss 0%,1%", "for losses beside them write --loss '+0%,+1%'"),
    ("--profile lte-good --loss 1%", "probability = 0.1"),
    ("--profile wifi-poor --loss 1%", "--loss replaces the errors of wifi-poor: {"),
    ("--profile lte-good --loss +1%", ""),
    ("--profile slow-4g --loss 1%", ""),
    ("--profile lte-good", ""),
    ("--loss 1%", ""),
]


@pytest.mark.parametrize(("options", "said"), ADVICE)
def test_losses_that_do_something_else_are_told(options: str, said: str, tmp_path: Path) -> None:
    workload = ["--workload", "cbr rate='64 kbit/s' size=200 from=client", "--duration", "1 s"]
    done = airpath("sim", *options.split(), *workload, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    assert ("--loss" in done.stderr) == bool(said)
    printed = airpath("sim", *options.split(), "--print-scenario", cwd=tmp_path)
    assert said in printed.stderr, "printing the link says the same"
    assert ("--loss" in printed.stderr) == bool(said)


def test_the_source_of_a_profile_says_which_options_changed_it(tmp_path: Path) -> None:
    words = ("--profile", "lte-good", "--loss", "1%", "--delay", "5 ms", "--print-scenario")
    printed = tomllib.loads(airpath("sim", *words, cwd=tmp_path).stdout)
    assert printed["source"].endswith("\nChanged by --delay '5 ms', --loss '1%'.")
    plain = tomllib.loads(airpath("sim", *words[:2], words[-1], cwd=tmp_path).stdout)
    assert "Changed by" not in plain["source"]


@pytest.mark.parametrize("how", ["", "--tcpdump", "--json"])
def test_a_range_behind_the_end_of_a_run_is_told(how: str, tmp_path: Path) -> None:
    workload = ("--workload", "cbr rate='64 kbit/s' size=200 from=client", "--duration", "1 s")
    made = airpath("sim", *workload, "--out", "run", "--quiet", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    shown = airpath("log", "run", *how.split(), "--from", "99 s", cwd=tmp_path)
    assert shown.returncode == 0
    assert "the run ended at 1.00 s: there is nothing from --from '99 s' on" in shown.stderr
    inside = airpath("log", "run", "--from", "0.5 s", cwd=tmp_path)
    assert inside.stdout
    assert not inside.stderr


def test_log_and_plot_say_in_the_same_words_that_nothing_comes(tmp_path: Path) -> None:
    workload = ("--workload", "cbr rate='64 kbit/s' size=200 from=client", "--duration", "1 s")
    made = airpath("sim", *workload, "--out", "run", "--quiet", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    for start in ("99", "99 s", "1.5 min", "99000 s", "2 h", "1234567.891 ms"):
        log, plot = (
            airpath(name, "run", "--from", start, cwd=tmp_path) for name in ("log", "plot")
        )
        assert "the run ended at 1.00 s: " in log.stderr
        words = log.stderr.removeprefix("airpath: ")
        assert plot.stderr.removeprefix("airpath plot: ") == words
        assert plot.returncode == 1


def test_losses_beside_the_errors_of_a_link_are_a_hop_of_their_own(tmp_path: Path) -> None:
    """Both directions of a profile, and what other options mean stays the link's hop."""
    words = ("--profile", "lte-good", "--loss", "+0%,+1%", "--delay", "5 ms", "--print-scenario")
    text = airpath("sim", *words, cwd=tmp_path).stdout
    hops = {hop["name"]: hop for hop in tomllib.loads(text)["hops"]}
    assert list(hops) == ["radio", "loss"]
    assert hops["radio"]["link"]["propagation"] == "5 ms"
    assert hops["radio"]["link"]["errors"]["effect"] == "delay"
    assert hops["loss"]["downlink"]["errors"]["probability"] == 0.01
    workload = ["--workload", "cbr rate='1 Mbit/s' size=200 from=server", "--duration", "2 s"]
    done = airpath("sim", *words[:4], *workload, "--seed", "1", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    counted = airpath("log", "run", "--kind", "dropped", "--json", cwd=tmp_path).stdout
    dropped = [json.loads(line) for line in counted.splitlines()]
    assert 3 <= len(dropped) <= 30
    assert {one["hop"] for one in dropped} == {"loss"}
    held = airpath("log", "run", "--kind", "frame_delayed", "--json", cwd=tmp_path).stdout
    assert held


TWO_PATHS = """\
[[paths]]
name = "near"
[[paths.hops]]
link = { propagation = "10 ms" }
[[paths]]
name = "far"
[[paths.hops]]
link = { propagation = "150 ms" }
"""


def test_paths_that_share_nothing_are_told(tmp_path: Path) -> None:
    (tmp_path / "paths.toml").write_text(TWO_PATHS)
    assert airpath("check", "paths.toml", cwd=tmp_path).returncode == 0
    workload = ("--workload", "tcp bytes=1000")
    done = airpath("sim", *workload, "--scenario", "paths.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "2 links that share nothing" in done.stderr
    assert "[[media]]" in done.stderr


def test_equal_replications_are_told(tmp_path: Path) -> None:
    workload = ["--rate", "1 Mbit/s", "--workload", "tcp bytes=20000", "--replications", "3"]
    assert "all 3 runs are identical" in airpath("sim", *workload, cwd=tmp_path).stderr
    lossy = airpath("sim", *workload, "--loss", "20%", "--seed", "1", cwd=tmp_path)
    assert lossy.returncode == 0
    assert "identical" not in lossy.stderr


def test_a_window_in_bytes_without_room_for_the_last_packet_is_advised_against(
    tmp_path: Path,
) -> None:
    (tmp_path / "link.toml").write_text(WINDOW)
    told = airpath("check", "link.toml", cwd=tmp_path).stdout
    assert "the queue of 64000 bytes has no room for it behind 64000 bytes" in told
    (tmp_path / "link.toml").write_text(WINDOW.replace('limit = "64 kB"', 'limit = "66 kB"'))
    assert "advice" not in airpath("check", "link.toml", cwd=tmp_path).stdout


def test_help_of_schema_tells_of_experiments(tmp_path: Path) -> None:
    assert "--experiment" in airpath("schema", "--help", cwd=tmp_path).stdout


def test_help_of_a_command_is_its_help(tmp_path: Path) -> None:
    for words in (["exec"], ["plot"], ["trace", "generate"]):
        asked = airpath("help", *words, cwd=tmp_path)
        assert asked.returncode == 0
        assert asked.stdout == airpath(*words, "--help", cwd=tmp_path).stdout
        assert f"Usage: airpath {' '.join(words)}" in asked.stdout


def test_profiles_tell_the_idle_round_trip(tmp_path: Path) -> None:
    rows = json.loads(airpath("profiles", "--json", cwd=tmp_path).stdout)
    found = {row["name"]: row["idle_round_trip"] for row in rows}
    # 560 ms of propagation, and 560 ms until the satellite has allocated capacity.
    assert found["geo-satellite"] == "1.12 s"
    # 0.1 ms beside 40 ms of propagation: 84 bytes at 15 and 35 Mbit/s.
    assert found["lte-good"] == "40.1 ms"
    assert None not in found.values()
    assert "RTT IDLE" in airpath("profiles", cwd=tmp_path).stdout.splitlines()[0]
