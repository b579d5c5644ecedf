# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""AF_XDP on interfaces of a gateway: what it leaves, what it refuses, and where no driver helps."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from live.harness import NOBODY, SYSTEM_PATH, await_true
from live.networks import Networks, ip, may_make_networks, two_networks
from live.test_gateway import DELAY_MS, gateway, interfaces
from live.xdp import needs_xdp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from live.harness import Airpath

pytestmark = pytest.mark.skipif(not may_make_networks(), reason="needs root: makes networks")


@pytest.fixture(autouse=True)
def _needs_xdp() -> None:
    needs_xdp()


@pytest.fixture
def networks() -> Iterator[Networks]:
    """Make networks, and take them away."""
    with two_networks() as made:
        yield made


def has_program(networks: Networks, interface: str) -> bool:
    """Return true if an interface of the machine in the middle has an XDP program."""
    told = json.loads(ip("-n", networks.of("gw"), "-j", "-d", "link", "show", interface))
    return "xdp" in told[0]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_program_stays_however_the_run_ends(
    airpath: Airpath, networks: Networks, signal_number: int
) -> None:
    with gateway(airpath, *interfaces(networks, "af-xdp")) as running:
        assert has_program(networks, "eth1")
        assert has_program(networks, "eth2")
        assert len(networks.ping("a1", "192.0.2.3")) == 3
        running.end(signal_number, -signal_number if signal_number == signal.SIGKILL else 0)
    await_true(partial(has_no_program, networks))


def has_no_program(networks: Networks) -> bool:
    """Return true if neither interface of the machine in the middle has one."""
    return not any(has_program(networks, interface) for interface in ("eth1", "eth2"))


def engines(process: int) -> list[int]:
    """Return the processes below a process."""
    done = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in done.stdout.split()]


def test_no_program_stays_when_the_engine_is_killed(airpath: Airpath, networks: Networks) -> None:
    with gateway(airpath, *interfaces(networks, "af-xdp")) as running:
        for engine in engines(running.process.pid):
            os.kill(engine, signal.SIGKILL)
        assert running.process.wait(60) != 0
    await_true(partial(has_no_program, networks))


def test_an_interface_with_a_program_is_refused(airpath: Airpath, networks: Networks) -> None:
    words = interfaces(networks, "af-xdp")
    with gateway(airpath, *words) as running:
        told = airpath.run("gateway", *words).check(2).err
        assert "has an XDP program already" in told
        assert "ip link set" in told
        # The first run is none the worse for it.
        assert len(networks.ping("a1", "192.0.2.3")) == 3
        running.end()
    done = airpath.run(
        "gateway",
        "--socket",
        "af-xdp",
        "--between",
        f"netns:{networks.of('a1')},netns:{networks.of('b1')}",
    )
    assert "neither end is an interface" in done.check(2).err
    assert "possible values: packet, af-xdp" in airpath.run("gateway", "--socket", "x").check(2).err


def test_without_rights_over_the_host_it_is_told(airpath: Airpath) -> None:
    """A user namespace has networks of its own, but the kernel lets it load no programs."""
    unshare = shutil.which("unshare", path=SYSTEM_PATH)
    pairs = "ip link add v1 type veth peer name w1; ip link add v2 type veth peer name w2; "
    pairs += "for name in v1 w1 v2 w2; do ip link set $name up; done; "
    ends = ["--client-interface", "v1", "--server-interface", "v2", "--socket", "af-xdp"]
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    words = [*drop, str(unshare), "--user", "--map-root-user", "--net"]
    probe = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        pytest.skip(f"no user namespaces here: {probe.stderr.strip()}")
    script = pairs + 'exec "$@"'
    command = ["sh", "-c", script, "sh", str(airpath.command), "gateway", *ends]
    done = subprocess.run(
        [*words, *command],
        env=airpath.environment(),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 123, done.stderr
    assert "CAP_BPF" in done.stderr
    assert "--socket af-xdp" in done.stderr


def test_a_limit_on_locked_memory_is_told(airpath: Airpath, networks: Networks) -> None:
    words = interfaces(networks, "af-xdp")
    limits = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]
    limits += ["prlimit", "--memlock=1048576:1048576"]
    done = subprocess.run(
        [*limits, str(airpath.command), "gateway", *words],
        env=airpath.environment(),
        cwd=airpath.work,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 123, done.stderr
    assert "ulimit -l" in done.stderr
    assert not has_program(networks, "eth1")


def test_an_interface_whose_driver_runs_no_programs(airpath: Airpath, networks: Networks) -> None:
    gw = networks.of("gw")
    try:
        mac = ("link", "add", "link", "eth1", "name", "mac0", "type", "macvlan")
        ip("-n", gw, *mac, "mode", "passthru")
    except subprocess.CalledProcessError:
        pytest.skip("this kernel has no macvlan")
    ip("-n", gw, "link", "set", "mac0", "up")
    out = airpath.path("run")
    ends = ("--client-interface", f"{gw}/mac0", "--server-interface", f"{gw}/eth2")
    link = ("--delay", f"{DELAY_MS} ms", "--out", out)
    with gateway(airpath, *ends, "--socket", "af-xdp", *link) as running:
        assert "generic mode" in running.text()
        assert min(networks.ping("a1", "192.0.2.3")) >= 2 * DELAY_MS
        assert len(networks.ping("b1", "2001:db8::1")) == 3
        running.end()
    told = json.loads((out / "run.json").read_text())["settings"]["gateway"]
    assert "generic mode" in told["client_port"]
    assert "in the driver" in told["server_port"]
    airpath.run("replay", out).check()


FLOWS = """
import socket, sys
count = 64
if sys.argv[1] == "receive":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("192.0.2.3", 7000))
        one.settimeout(40)
        print("ready", flush=True)
        print(sorted(int(one.recv(9)) for _ in range(count)) == list(range(count)))
else:
    for number in range(count):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"%d" % number, ("192.0.2.3", 7000))
"""


COUNTERS = """
import ctypes, fcntl, socket, struct, sys
SIOCETHTOOL, GSTRINGS, GSTATS, GSSET_INFO, STATISTICS = 0x8946, 0x1B, 0x1D, 0x37, 1
def ask(head, more):
    buffer = ctypes.create_string_buffer(head, len(head) + more)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        name = sys.argv[1].encode()
        fcntl.ioctl(one, SIOCETHTOOL, struct.pack("16sP16x", name, ctypes.addressof(buffer)))
    return buffer.raw[len(head):]
count, = struct.unpack("I", ask(struct.pack("IIQ", GSSET_INFO, 0, 1 << STATISTICS), 4))
names = ask(struct.pack("III", GSTRINGS, STATISTICS, count), 32 * count)
values = struct.unpack(f"{count}Q", ask(struct.pack("II", GSTATS, count), 8 * count))
for number, value in enumerate(values):
    print(names[32 * number:32 * number + 32].rstrip(b"\\0").decode(), value)
"""


def frames_of_queues(networks: Networks, interface: str) -> list[int]:
    """Return the frames that the driver gave to programs, by queue, in the middle."""
    words = networks.inside("gw", sys.executable, "-c", COUNTERS, interface)
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    counters = dict(line.split() for line in told.splitlines())
    return [int(counters[f"rx_queue_{queue}_xdp_packets"]) for queue in range(4)]


def test_every_queue_of_an_interface_is_read(airpath: Airpath) -> None:
    networks = Networks()
    try:
        for name in ("a1", "gw", "b1"):
            networks.add(name)
        queues = ("numtxqueues", 4, "numrxqueues", 4)
        for host, (name, interface) in enumerate([("a1", "eth1"), ("b1", "eth2")], 1):
            machine = networks.of(name)
            peer = ("peer", "name", interface, *queues, "netns", networks.of("gw"))
            ip("-n", machine, "link", "add", "name", "eth0", *queues, "type", "veth", *peer)
            ip("-n", machine, "link", "set", "eth0", "up")
            ip("-n", networks.of("gw"), "link", "set", interface, "up")
            ip("-n", machine, "address", "add", f"192.0.2.{2 * host - 1}/24", "dev", "eth0")
        out = airpath.path("run")
        words = interfaces(networks, "af-xdp")
        with gateway(airpath, *words, "--out", out) as running:
            networks.ping("a1", "192.0.2.3")
            receiver = subprocess.Popen(
                networks.inside("b1", sys.executable, "-c", FLOWS, "receive"),
                stdout=subprocess.PIPE,
                text=True,
            )
            assert receiver.stdout
            assert receiver.stdout.readline() == "ready\n"
            networks.run("a1", sys.executable, "-c", FLOWS, "send")
            assert receiver.communicate(timeout=60)[0] == "True\n"
            frames = frames_of_queues(networks, "eth1")
            assert sum(count > 0 for count in frames) > 1, frames
            running.end()
        told = json.loads((out / "run.json").read_text())["settings"]["gateway"]
        assert "4 queues" in told["client_port"], told
    finally:
        networks.remove()
