# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Whatever is wrong is told by what, where and how to mend it, and nothing is left behind."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from live.harness import PATIENCE_S, Result

if TYPE_CHECKING:
    from live.harness import Airpath, User

USAGE = 2
LACKING = 123
FAILED = 125
UNWRITABLE = 122

OPTIONS: dict[str, tuple[str, int, list[str]]] = {
    # What is typed after `exec`; the exit status; what the message must hold.
    "rate without a unit": ("--rate 5 -- true", USAGE, ["--rate", "no unit", "12 Mbit/s"]),
    "rate of an unknown unit": (
        "--rate '5 Mbitt/s' -- true", USAGE, ["--rate", "Mbitt/s", "did you mean `Mbit/s`"],
    ),
    "rate of nothing": ("--rate '0 bit/s' -- true", USAGE, ["--rate"]),
    "negative rate": ("--rate='-5 Mbit/s' -- true", USAGE, ["--rate", "-5"]),
    "three rates": (
        "--rate '1 Mbit/s,2 Mbit/s,3 Mbit/s' -- true", USAGE, ["--rate", "UP,DOWN"],
    ),
    "empty rate": ("--rate '' -- true", USAGE, ["--rate"]),
    "delay without a unit": ("--delay 20 -- true", USAGE, ["--delay", "no unit", "200 ms"]),
    "delay beyond all bounds": (
        "--delay '99999999999999 h' -- true", USAGE, ["--delay", "99999999999999"],
    ),
    "jitter without a unit": ("--jitter 5 -- true", USAGE, ["--jitter", "no unit"]),
    "reordering until whenever": (
        "--reorder '1% soon' -- true", USAGE, ["--reorder", "soon", "1% 20 ms"],
    ),
    "duplicates above one": ("--duplicate 2 -- true", USAGE, ["--duplicate", "between 0 and 1"]),
    "loss above one": ("--loss 120% -- true", USAGE, ["--loss", "120%", "between 0 and 1"]),
    "loss that is no number": ("--loss some -- true", USAGE, ["--loss", "some"]),
    "loss that is not a number": ("--loss nan -- true", USAGE, ["--loss", "nan"]),
    "queue of apples": ("--queue '5 apples' -- true", USAGE, ["--queue", "5 apples", "packets"]),
    "setting an unknown key": (
        "--set radio.link.rat=1 -- true", USAGE, ["radio.link.rat", "did you mean", "rate"],
    ),
    "setting an unknown hop": (
        "--set radoi.link.rate='1 bit/s' -- true", USAGE, ["radoi", "radio"],
    ),
    "setting nothing": ("--set radio.link.rate -- true", USAGE, ["radio.link.rate", "="]),
    "unknown profile": (
        "--profile umts-38 -- true", USAGE, ["umts-38", "did you mean `umts-384`"],
    ),
    "profile and scenario": (
        "--profile umts-384 --scenario x.toml -- true", USAGE, ["--profile", "--scenario"],
    ),
    "scenario that is not there": (
        "--scenario nowhere.toml -- true", USAGE, ["nowhere.toml", "No such file"],
    ),
    "scenario that is a folder": ("--scenario /tmp -- true", USAGE, ["/tmp", "directory"]),
    "MTU too small": ("--mtu 20 -- true", USAGE, ["--mtu", "20", "68"]),
    "MTU too large": ("--mtu 70000 -- true", USAGE, ["--mtu", "70000", "65535"]),
    "MTU that is no number": ("--mtu big -- true", USAGE, ["--mtu", "big"]),
    "unknown port": ("--port tap -- true", USAGE, ["--port", "tap", "packet"]),
    "unknown log level": ("--log evnts -- true", USAGE, ["evnts", "did you mean `events`"]),
    "log without a folder": ("--log packets -- true", USAGE, ["--log packets", "--out"]),
    "snaplen of nothing": ("--snaplen 0 -- true", USAGE, ["--snaplen", "full"]),
    "snaplen beyond all packets": (
        "--snaplen 99999999999 -- true", USAGE, ["--snaplen", "99999999999", "full"],
    ),
    "port 0 of the host": ("--host-port 0 -- true", USAGE, ["--host-port", "0", "1 to 65535"]),
    "replications beyond the last seed": (
        f"--seed {2**64 - 2} --replications 3 -- true",
        USAGE,
        ["--seed", "--replications 3", "smaller seed"],
    ),
    "bad seed": ("--seed abc -- true", USAGE, ["--seed", "abc"]),
    "bad bound on lateness": ("--lateness-bound 3 -- true", USAGE, ["--lateness-bound", "no unit"]),
    "bad spin": ("--spin sometimes -- true", USAGE, ["--spin", "sometimes", "auto"]),
    "no jobs": ("--jobs 0 -- true", USAGE, ["--jobs"]),
    "no replications": ("--replications 0 -- true", USAGE, ["--replications"]),
    "no command": ("--delay '1 ms'", USAGE, ["CMD"]),
    "no command after the dashes": ("--delay '1 ms' --", USAGE, ["CMD"]),
    "unknown option": ("--delya '1 ms' -- true", USAGE, ["--delya", "--delay"]),
    "unknown congestion control": (
        "--cc renno -- true", USAGE, ["renno", "available: ", "reno"],
    ),
    "folder under a file": ("--out /etc/passwd/run -- true", UNWRITABLE, ["/etc/passwd/run"]),
    "bad server timeout": ("--server-timeout soon -- true", USAGE, ["--server-timeout", "soon"]),
    "replications with a bad log level": (
        "--replications 2 --log events -- true", USAGE, ["--log events", "--out"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("words", "status", "fragments"), OPTIONS.values(), ids=OPTIONS)
def test_options(
    airpath: Airpath, rootless: User, words: str, status: int, fragments: list[str]
) -> None:
    result = airpath.run("exec", *shlex.split(words), user=rootless)
    explains(result, status, fragments)
    assert list(airpath.work.rglob("*")) == [airpath.temporary]


def explains(result: Result, status: int, fragments: list[str]) -> None:
    """Check the exit status, and that the message holds all fragments and no backtrace."""
    result.check(status)
    assert result.out == ""
    for fragment in fragments:
        assert fragment in result.err, f"no {fragment!r} in:\n{result.err}"
    assert "panicked" not in result.err
    assert len(result.err.splitlines()) < 15, result.err


HOP = '[[hops]]\nname = "radio"\n[hops.link]\n'

SCENARIOS: dict[str, tuple[str, list[str]]] = {
    # What the file holds; what the message must hold, with its line.
    "nothing": ("", ["hops"]),
    "no TOML": ("rate: fast\n", [":1:"]),
    "unfinished text": (HOP + 'rate = "1 Mbit/s\n', [":4:"]),
    "unknown key": (HOP + 'rat = "1 Mbit/s"\n', [":4:", "rat", "did you mean `rate`"]),
    "unknown key at the top": ("mtuu = 1500\n" + HOP, [":1:", "mtuu", "did you mean `mtu`"]),
    "number without a unit": (HOP + "rate = 9600\n", [":4:", "rate", "bit/s"]),
    "wrong unit": (HOP + 'propagation = "10 Mbit/s"\n', [":4:", "propagation", "ms"]),
    "unknown type of queue": (
        HOP + 'queue = { type = "tial_drop", limit = "7 packets" }\n',
        [":4:", "tial_drop", "did you mean `tail_drop`"],
    ),
    "queue of nothing": (
        HOP + 'queue = { type = "tail_drop", limit = "0 packets" }\n', [":4:", "queue"],
    ),
    "probability above one": (
        HOP + 'errors = { type = "bernoulli", probability = 1.5 }\n', [":4:", "1.5"],
    ),
    "delay effect without a delay": (
        HOP + 'errors = { type = "bernoulli", probability = 0.1, effect = "delay" }\n',
        [":4:", "delay", "300 ms"],
    ),
    "headers without corruption": (
        HOP + 'errors = { type = "bernoulli", probability = 0.1, headers = "spared" }\n',
        [":4:", "headers", "corrupt"],
    ),
    "frames of nothing": (
        HOP + 'fragmentation = { frame_payload = "0 bit" }\n', [":4:", "frame_payload"],
    ),
    "two hops of one name": (HOP + HOP, [":5:", "radio"]),
    "bad name of a hop": ('[[hops]]\nname = "the radio"\n', [":2:", "the radio"]),
    "state that sets an unknown key": (
        HOP + '[[states]]\nname = "poor"\nat = "1 s"\nset = { "radio.link.rat" = "1 bit/s" }\n',
        [":7:", "radio.link.rat", "rate"],
    ),
    "state without a name": (HOP + '[[states]]\nat = "1 s"\n', [":4:", "name"]),
    "bad MTU": ("mtu = 20\n" + HOP, [":1:", "mtu", "68"]),
    "text instead of a table": ('[[hops]]\nlink = "fast"\n', [":2:", "link"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "fragments"), SCENARIOS.values(), ids=SCENARIOS)
def test_scenarios(airpath: Airpath, rootless: User, text: str, fragments: list[str]) -> None:
    path = airpath.file("bad.toml", text)
    place = [fragment for fragment in fragments if fragment.startswith(":")]
    others = [fragment for fragment in fragments if fragment not in place]
    wanted = [f"{path}{fragment}" for fragment in place] + others
    out = airpath.path("run")
    result = airpath.run("exec", "--scenario", path, "--out", out, "--", "true", user=rootless)
    explains(result, USAGE, wanted)
    assert not out.exists()
    if fragments != ["2 paths"]:
        checked = airpath.run("check", path, user=rootless)
        assert checked.status in (1, 2), checked.err
        assert all(fragment in checked.out + checked.err for fragment in wanted)


def test_a_scenario_that_is_no_text(airpath: Airpath, rootless: User) -> None:
    path = airpath.file("bad.toml", "")
    path.write_bytes(b"\xff\xfe\x00\x01")
    result = airpath.run("exec", "--scenario", path, "--", "true", user=rootless)
    explains(result, USAGE, [str(path), "UTF-8"])


def test_a_scenario_that_may_not_be_read(airpath: Airpath, rootless: User) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file that this user may not read and cannot chmod")
    path = airpath.file("secret.toml", HOP)
    path.chmod(0o600)
    result = airpath.run("exec", "--scenario", path, "--", "true", user=rootless)
    explains(result, USAGE, [str(path), "Permission denied"])


def test_a_folder_that_may_not_be_made(airpath: Airpath, rootless: User) -> None:
    folder = airpath.folder("closed")
    folder.chmod(0o555)
    if os.access(folder, os.W_OK) and rootless.name != "nobody":
        pytest.skip("root may write everywhere, and there is no other user to try")
    result = airpath.run("exec", "--out", folder / "run", "--", "true", user=rootless)
    explains(result, UNWRITABLE, [str(folder / "run"), "Permission denied"])
    result = airpath.run("exec", "--out", folder, "--", "true", user=rootless)
    explains(result, UNWRITABLE, [str(folder), "Permission denied"])
    assert list(folder.iterdir()) == []


def test_tun_as_an_ordinary_user(airpath: Airpath, rootless: User) -> None:
    from live.harness import tun_opens

    if tun_opens(rootless):
        pytest.skip(f"{rootless} may open /dev/net/tun here")
    result = airpath.run("exec", "--port", "tun", "--", "true", user=rootless)
    explains(result, LACKING, ["/dev/net/tun", "--port packet", "Permission denied"])


LIMITS = {
    "max_user_namespaces": ["user namespace", "sysctl -w user.max_user_namespaces="],
    "max_net_namespaces": ["network", "sysctl -w user.max_net_namespaces="],
    "max_pid_namespaces": ["process", "sysctl -w user.max_pid_namespaces="],
    "max_mnt_namespaces": ["mount", "sysctl -w user.max_mnt_namespaces="],
}


@pytest.mark.parametrize("limit", LIMITS)
def test_forbidden_namespaces(airpath: Airpath, rootless: User, limit: str) -> None:
    # A user namespace has limits of its own, so the host's need not be touched.
    line = (
        f"echo 0 > /proc/sys/user/{limit} || exit 99; "
        f"setpriv --bounding-set=-sys_admin --inh-caps=-all {airpath.command} exec -- true"
    )
    process = subprocess.run(
        [*rootless.prefix, "unshare", "-Ur", "sh", "-c", line],
        env=airpath.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    if process.returncode == 99 or "unshare" in process.stderr:
        pytest.skip(f"no limit of its own for a user namespace: {process.stderr}")
    result = Result(process.returncode, process.stdout, process.stderr, 0)
    # A mount namespace is that of the engine's process, which fails as such.
    status = FAILED if limit == "max_mnt_namespaces" else LACKING
    explains(result, status, LIMITS[limit])


def test_no_new_privileges_do_no_harm(airpath: Airpath, user: User) -> None:
    process = subprocess.run(
        [*user.prefix, "setpriv", "--no-new-privs", str(airpath.command), "exec", "--",
         "ping", "-c", "1", "server"],
        env=airpath.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr


def test_too_few_descriptors(airpath: Airpath, rootless: User) -> None:
    process = subprocess.run(
        [*rootless.prefix, "prlimit", "--nofile=12:12", str(airpath.command), "exec", "--", "true"],
        env=airpath.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert process.returncode == LACKING, process.stderr
    assert "Too many open files" in process.stderr
    assert "panicked" not in process.stderr


def test_nonsense_in_the_environment(airpath: Airpath, rootless: User) -> None:
    environment = {"AIRPATH_DEPTH": "many", "AIRPATH_LINK_BLOCK": "x"}
    result = airpath.run("exec", "--", "true", user=rootless, environment=environment)
    explains(result, USAGE, ["AIRPATH_DEPTH", "unset"])


def test_closed_standard_streams(airpath: Airpath, rootless: User) -> None:
    line = f"{airpath.command} exec --delay '1 ms' -- true <&- >&- 2>&-"
    process = subprocess.run(
        [*rootless.prefix, "sh", "-c", line],
        env=airpath.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (("log", "nowhere"), ["nowhere", "is not a directory"]),
        (("log", "/usr"), ["/usr", "is not the folder of a run"]),
        (("replay", "/usr"), ["/usr", "is not the folder of a run"]),
        (("check", "nowhere.toml"), ["nowhere.toml"]),
        (("profiles", "show", "umts-38"), ["umts-38", "umts-384"]),
        (("shell", "--rate", "5"), ["--rate", "no unit"]),
        (("exce",), ["exce", "exec"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_other_commands(
    airpath: Airpath, rootless: User, words: tuple[str, ...], fragments: list[str]
) -> None:
    result = airpath.run(*words, user=rootless)
    assert result.status not in (0, 101)
    for fragment in fragments:
        assert fragment in result.err + result.out
    assert "panicked" not in result.err


def test_the_log_of_replications_is_that_of_one(airpath: Airpath, rootless: User) -> None:
    airpath.folder("files/many/replication-0001")
    result = airpath.run("log", airpath.path("many"), user=rootless)
    explains(
        result, USAGE, ["holds several replications", "show one of them", "many/replication-0001"]
    )


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        ("--hop radoi", ["radoi", "did you mean `radio`", "path, radio"]),
        ("--hop radoi --tcpdump", ["radoi", "did you mean `radio`"]),
        ("--kind droped --json", ["droped", "did you mean `dropped`"]),
        ("--direction up", ["up", "uplink, downlink"]),
        ("--from '2 s' --to '1 s'", ["--from 2 s", "--to 1 s"]),
    ],
)
def test_filters_of_the_log(
    airpath: Airpath, rootless: User, words: str, fragments: list[str]
) -> None:
    out = airpath.path("run")
    # A refused connection: one packet each way is a log.
    refused = ("bash", "-c", "exec 3<>/dev/tcp/server/9")
    airpath.run("exec", "-q", "--out", out, "--", *refused, user=rootless).check(1)
    result = airpath.run("log", out, *shlex.split(words), user=rootless)
    explains(result, USAGE, fragments)


def test_a_folder_of_another_format_or_with_a_torn_capture(
    airpath: Airpath, rootless: User
) -> None:
    out = airpath.path("run")
    refused = ("bash", "-c", "exec 3<>/dev/tcp/server/9")
    airpath.run("exec", "-q", "--out", out, "--", *refused, user=rootless).check(1)
    kept = airpath.work / "kept"
    shutil.copytree(out, kept)
    capture = kept / "client.pcapng"
    capture.write_bytes(capture.read_bytes()[:-3])
    torn = airpath.run("log", kept).check()
    assert "client.pcapng was cut off or damaged" in torn.err
    assert "server.pcapng" not in torn.err
    manifest = json.loads((kept / "run.json").read_text())
    manifest["format_version"] = 99
    (kept / "run.json").write_text(json.dumps(manifest))
    explains(airpath.run("log", kept), USAGE, ["format 99", "reads format 1", "run.json"])
