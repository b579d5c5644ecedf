# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Networks of others joined by a link: interfaces, namespaces, containers."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from live.harness import NOBODY, ROOT, SYSTEM_PATH, User, await_true
from live.networks import FRAMES, Networks, ip, may_make_networks, two_networks
from live.xdp import needs_xdp
from processes import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from live.harness import Airpath

pytestmark = pytest.mark.skipif(not may_make_networks(), reason="needs root: makes networks")

DELAY_MS = 30.0


class Gateway:
    """A gateway that runs."""

    def __init__(self, airpath: Airpath, *words: object, within: list[str]) -> None:
        """Start it; it is ready once it says what it carries."""
        self.log = airpath.path(f"gateway-{uuid.uuid4().hex}.err")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*within, str(airpath.command), "gateway", "--json", *map(str, words)],
                env=airpath.environment(),
                cwd=airpath.work,
                stdin=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        await_true(
            lambda: "the link carries" in self.text() or self.process.poll() is not None,
            lambda: f"not ready: {self.text()}",
        )
        assert self.process.poll() is None, self.text()

    def text(self) -> str:
        """Return what it has said."""
        return self.log.read_text()

    def end(self, signal_number: int = signal.SIGINT, status: int = 0) -> dict[str, Any]:
        """End it, and return its summary."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        assert self.process.wait(60) == status, self.text()
        summaries = [line for line in self.text().splitlines() if line.startswith("{")]
        return dict(json.loads(summaries[-1])) if summaries else {}


@contextlib.contextmanager
def gateway(airpath: Airpath, *words: object, within: list[str] | None = None) -> Iterator[Gateway]:
    """Run a gateway for the time of a test."""
    running = Gateway(airpath, *words, within=within or [])
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait(60)


def interfaces(networks: Networks, kind: str = "packet") -> tuple[str, ...]:
    """Return the options that name the interfaces of the machine in the middle."""
    one, other = f"{networks.of('gw')}/eth1", f"{networks.of('gw')}/eth2"
    return ("--client-interface", one, "--server-interface", other, "--socket", kind)


@pytest.fixture(params=["packet", "af-xdp"])
def kind(request: pytest.FixtureRequest) -> str:
    """Return a kind of socket on interfaces."""
    kind = str(request.param)
    if kind == "af-xdp":
        needs_xdp()
    return kind


def hexadecimal(networks: Networks, name: str) -> str:
    """Return the Ethernet address of a machine in hex."""
    told = json.loads(ip("-n", networks.of(name), "-j", "link", "show", "eth0"))
    return str(told[0]["address"]).replace(":", "")


def test_three_machines_find_each_other_through_the_link(airpath: Airpath, kind: str) -> None:
    out = airpath.path("run")
    with (
        two_networks() as networks,
        gateway(
            airpath, *interfaces(networks, kind), "--delay", f"{DELAY_MS} ms", "--out", out
        ) as running,
    ):
        # Nobody knows anybody: ARP and neighbour discovery cross the link before the first ping.
        for name, address in [("a1", "192.0.2.3"), ("a2", "192.0.2.3"), ("a1", "2001:db8::3")]:
            times = networks.ping(name, address)
            assert len(times) == 3
            assert min(times) >= 2 * DELAY_MS, times
        # Within one network nothing crosses it.
        assert min(networks.ping("a1", "192.0.2.2")) < 2 * DELAY_MS
        # The machines see each other's own addresses, not those of the host between them.
        neighbours = ip("-n", networks.of("a1"), "neighbour").replace(":", "")
        assert hexadecimal(networks, "b1") in neighbours
        promiscuous = ip("-n", networks.of("gw"), "-d", "link", "show", "eth1")
        assert "promiscuity 1 " in promiscuous or "promiscuity 1\n" in promiscuous, promiscuous
        summary = running.end()
        after = ip("-n", networks.of("gw"), "-d", "link", "show", "eth1")
        assert "promiscuity 0" in after, after
    assert summary["uplink"]["delivered_packets"] >= 9
    told = json.loads((out / "run.json").read_text())
    assert told["status"] == "finished"
    assert told["settings"]["gateway"]["carries"] == "frames"
    carried_by = told["settings"]["gateway"]["client_port"]
    assert carried_by.startswith("interface" if kind == "packet" else "af-xdp, program in the ")
    airpath.run("replay", out).check()


def test_tags_and_unknown_ether_types_pass_unchanged(airpath: Airpath, kind: str) -> None:
    out = airpath.path("run")
    with (
        two_networks() as networks,
        gateway(airpath, *interfaces(networks, kind), "--out", out) as running,
    ):
        if kind == "af-xdp":
            # Tags have to be in the frames, as on a cable: those beside them are lost.
            networks.switch_off("switch", "p2", "tx-vlan-hw-insert", "tx-vlan-stag-hw-insert")
        ends = hexadecimal(networks, "b1") + hexadecimal(networks, "a1")
        payload = bytes(range(100)).hex()
        headers = ["88b5", "8100600788b5", "88a800098100000588b5"]
        sent = [ends + header + payload for header in headers]
        words = networks.frames("receive", "eth0", "88b5", len(sent))
        receiver = subprocess.Popen(
            networks.inside("b1", *words), stdout=subprocess.PIPE, text=True
        )
        assert receiver.stdout
        assert receiver.stdout.readline() == "ready\n"
        networks.run("a1", *networks.frames("send", "eth0", *sent))
        assert receiver.communicate(timeout=60)[0].split() == sent
        running.end()
    # Captures at both ends hold them as they were, though frames of the switch may be between them.
    for end in ("client", "server"):
        content = (out / f"{end}.pcapng").read_bytes()
        assert content[content.index(struct.pack("<II", 1, 0)[:4], 28) + 8] == 1, "link type"
        assert all(content.count(bytes.fromhex(frame)) == 1 for frame in sent)


def test_two_networks_that_are_joined_already_end_the_run(airpath: Airpath, kind: str) -> None:
    out = airpath.path("run")
    with two_networks() as networks:
        # A cable past the gateway, and a bridge on which it ends.
        networks.cable("b1", "past", "switch", "p9")
        ip("-n", networks.of("switch"), "link", "set", "p9", "master", "br0")
        ip("-n", networks.of("b1"), "link", "add", "br1", "type", "bridge")
        for name in ("eth0", "past"):
            ip("-n", networks.of("b1"), "link", "set", name, "master", "br1")
        with gateway(
            airpath, *interfaces(networks, kind), "--delay", "2 ms", "--out", out
        ) as running:
            # Only the gateway closes the circle, once the bridge is there.
            ip("-n", networks.of("b1"), "link", "set", "br1", "up")
            networks.run("a1", "ping", "-n", "-c", 1, "-W", 1, "192.0.2.77", status=1)
            assert running.process.wait(60) == 125
            assert "frames circle" in running.text()
    assert json.loads((out / "run.json").read_text())["status"] == "failed"


def test_jumbo_frames_pass_or_are_refused_and_counted(airpath: Airpath, kind: str) -> None:
    with two_networks(9000) as networks:
        with gateway(airpath, *interfaces(networks, kind)) as running:
            assert len(networks.ping("a1", "192.0.2.3", "-s", 8972, "-M", "do")) == 3
            assert "at most 9000 bytes" in running.text()
            running.end()
        with gateway(airpath, *interfaces(networks, kind), "--mtu", 1500) as running:
            words = ("ping", "-c", 2, "-i", 0.2, "-W", 1, "-s", 8972, "-M", "do", "192.0.2.3")
            networks.run("a1", *words, status=1)
            assert running.end()["ends"]["too_long_frames"] == 2
        error = airpath.run("gateway", *interfaces(networks, kind), "--mtu", 9500).check(2)
        assert "9000" in error.err


def test_tcp_crosses_both_ways_at_the_rate_of_the_link(airpath: Airpath, kind: str) -> None:
    with (
        two_networks() as networks,
        gateway(
            airpath,
            *interfaces(networks, kind),
            "--rate",
            "20 Mbit/s,40 Mbit/s",
            "--duration",
            "60 s",
        ) as running,
    ):
        for options in ([], ["--reverse"]):
            server = subprocess.Popen(
                networks.inside("b1", airpath.command, "recv", "--once", "--listen", "192.0.2.3"),
                env=airpath.environment(),
                stderr=subprocess.DEVNULL,
            )
            await_true(lambda: ":5201" in networks.run("b1", "ss", "-ltnH"))
            command = [airpath.command, "send", "192.0.2.3", "--bytes", 2_000_000, *options]
            networks.run("a1", *command)
            assert server.wait(60) == 0
        summary = running.end()
    for direction in ("uplink", "downlink"):
        assert summary[direction]["delivered_bytes"] >= 2_000_000


DATAGRAMS = """
import socket, sys
sizes = [1, 17, 18, 100, 1024, 1472, 1473, 4000, 9001]
for family, address in [(socket.AF_INET, "192.0.2.3"), (socket.AF_INET6, "2001:db8::3")]:
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        if sys.argv[1] == "receive":
            one.bind((address, 7000))
            one.settimeout(40)
            print("ready", flush=True)
            got = [one.recv(65536) for _ in sizes]
            assert all(data == bytes(len(data)) for data in got)
            print(sorted(map(len, got)) == sizes, flush=True)
        else:
            assert sys.stdin.readline() == "ready\\n"
            for size in sizes:
                one.sendto(bytes(size), (address, 7000))
"""
"""Datagrams of several sizes by IPv4 and IPv6, some of them in fragments."""


def test_datagrams_of_any_size_pass_with_their_checksums(airpath: Airpath, kind: str) -> None:
    out = airpath.path("run")
    with (
        two_networks() as networks,
        gateway(airpath, *interfaces(networks, kind), "--delay", "1 ms", "--out", out) as running,
    ):
        command = [sys.executable, "-c", DATAGRAMS]
        receiver = subprocess.Popen(
            networks.inside("b1", *command, "receive"), stdout=subprocess.PIPE, text=True
        )
        sender = subprocess.Popen(
            networks.inside("a1", *command, "send"), stdin=subprocess.PIPE, text=True
        )
        assert receiver.stdout
        assert sender.stdin
        for _ in range(2):
            # An address is found before many packets wait for it.
            assert receiver.stdout.readline() == "ready\n"
            networks.ping("a1", "192.0.2.3", "-c", 1)
            networks.ping("a1", "2001:db8::3", "-c", 1)
            sender.stdin.write("ready\n")
            sender.stdin.flush()
            assert receiver.stdout.readline() == "True\n"
        assert receiver.wait(60) == sender.wait(60) == 0
        running.end()
    airpath.run("replay", out).check()


def no_interface_is_left(namespace: str) -> bool:
    return "airpath" not in ip("-n", namespace, "link")


def test_two_namespaces_are_joined_and_left_as_they_were(airpath: Airpath) -> None:
    networks = Networks()
    try:
        one, other = networks.add("one"), networks.add("other")
        ends = f"netns:{one},netns:{other}"
        with gateway(airpath, "--between", ends, "--delay", f"{DELAY_MS} ms") as running:
            client, server = ("10.77.0.2", "10.77.0.1")
            assert client in running.text()
            assert server in running.text()
            times = networks.ping("one", server)
            assert min(times) >= 2 * DELAY_MS
            if "IPv4 only" not in running.text():
                assert len(networks.ping("other", "fd61:6972:7000::2")) == 3
            # A second link between the same two has addresses of its own.
            with gateway(airpath, "--between", ends) as second:
                assert "10.77.32.2" in second.text(), second.text()
                second.end(signal.SIGTERM)
            summary = running.end()
        assert summary["uplink"]["delivered_packets"] >= 3
        for namespace in (one, other):
            await_true(partial(no_interface_is_left, namespace))
    finally:
        networks.remove()


def test_a_process_and_a_network_behind_an_interface(airpath: Airpath) -> None:
    """A namespace gets a cable to the network: the addresses are that network's."""
    with two_networks() as networks:
        phone = networks.add("phone")
        with subprocess.Popen(networks.inside("phone", "sleep", 600)) as sleeper:
            try:
                # `ip netns exec` becomes the program.
                ends = f"pid:{sleeper.pid},interface:{networks.of('gw')}/eth2"
                with gateway(airpath, "--between", ends, "--delay", f"{DELAY_MS} ms") as running:
                    ip("-n", phone, "address", "add", "192.0.2.77/24", "dev", "airpath0")
                    assert min(networks.ping("phone", "192.0.2.3")) >= 2 * DELAY_MS
                    running.end()
            finally:
                sleeper.kill()


def test_parameters_change_while_it_runs_and_the_time_ends_it(airpath: Airpath) -> None:
    with (
        two_networks() as networks,
        gateway(airpath, *interfaces(networks), "--delay", "1 ms", "--duration", "8 s") as running,
    ):
        networks.ping("a1", "192.0.2.3")
        airpath.run("set", "radio.link.propagation=40 ms").check()
        assert min(networks.ping("a1", "192.0.2.3")) >= 80
        assert running.process.wait(60) == 0
        assert running.end()["uplink"]["delivered_packets"] >= 6


def test_an_interface_that_goes_away_ends_the_run(airpath: Airpath, kind: str) -> None:
    out = airpath.path("run")
    with (
        two_networks() as networks,
        gateway(airpath, *interfaces(networks, kind), "--out", out) as running,
    ):
        networks.ping("a1", "192.0.2.3")
        ip("-n", networks.of("gw"), "link", "del", "eth2")
        assert running.process.wait(60) == 125
        assert "disappeared" in running.text()
        assert "deleted" in running.text(), running.text()
    assert json.loads((out / "run.json").read_text())["status"] == "failed"
    # Up to the last packet before that.
    assert airpath.run("log", out, "--tcpdump").check().out.count("ICMP echo reply") == 3


def test_what_cannot_be_joined_is_told(airpath: Airpath, tmp_path: Path) -> None:
    def refused(*words: object, status: int = 2) -> str:
        return airpath.run("gateway", *words).check(status).err

    with two_networks() as networks:
        gw = networks.of("gw")
        one, _other = f"{gw}/eth1", f"{gw}/eth2"

        def between(*ends: str) -> tuple[str, str]:
            return ("--between", ",".join(ends))

        assert "same interface" in refused("--client-interface", one, "--server-interface", one)
        told = refused("--client-interface", one, "--server-interface", f"{gw}/eth9")
        assert "eth9" in told
        assert "eth2" in told
        assert "no network namespace" in refused(*between("netns:nowhere", f"netns:{gw}"))
        assert "same network namespace" in refused(*between(f"netns:{gw}", f"netns:{gw}"))
        assert "no name of a network namespace" in refused(*between("netns:.", f"netns:{gw}"))
        assert "address of one host" in refused(*between("vxlan:0.0.0.0", f"netns:{gw}"))
        assert "no process" in refused(*between("pid:4194304", f"netns:{gw}"))
        assert "two ends" in refused(*between(f"netns:{gw}"))
        assert "--lan NAME" in refused()
        assert "netns:NAME" in refused(*between("eth1", "eth2"))
        assert "docker" in refused(*between("docker:nothing-of-this-name", f"netns:{gw}"))
        assert "--internet" in refused(*interfaces(networks), "--internet")
        cells = ("--scenario", "examples/cell-wired.toml")
        assert (
            "users" in airpath.run("gateway", *interfaces(networks), *cells, cwd=ROOT).check(2).err
        )
        ip("-n", gw, "link", "set", "eth2", "down")
        assert "ip link set eth2 up" in refused(*interfaces(networks))
        ip("-n", gw, "link", "set", "eth2", "up")
        ip("-n", gw, "address", "add", "192.0.2.9/24", "dev", "eth2")
        ip("-n", gw, "route", "add", "default", "via", "192.0.2.3")
        assert "--force" in refused(*interfaces(networks))
        with gateway(airpath, *interfaces(networks), "--force") as running:
            running.end()
        ip("-n", gw, "link", "add", "v1", "type", "veth", "peer", "name", "v2")
        for name in ("v1", "v2"):
            ip("-n", gw, "link", "set", name, "up")
        pair = ("--client-interface", f"{gw}/v1", "--server-interface", f"{gw}/v2")
        assert "veth pair" in refused(*pair)
        if os.geteuid() == 0:
            drop = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
            words = [*drop, str(airpath.command), "gateway", *interfaces(networks)]
            environment = airpath.environment()
            done = subprocess.run(
                words,
                env=environment,
                cwd=airpath.work,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 123, done.stderr
            assert "root" in done.stderr


def index(networks: Networks, name: str, interface: str) -> int:
    """Return the index of an interface of a machine."""
    told = json.loads(ip("-n", networks.of(name), "-j", "link", "show", interface))
    return int(told[0]["ifindex"])


def ends(networks: Networks, one: str, other: str) -> tuple[str, ...]:
    """Return the options that name two interfaces, each as MACHINE/INTERFACE."""
    named = [f"interface:{networks.of(end)}" for end in (one, other)]
    return ("--between", ",".join(named))


def test_an_interface_is_an_end_of_one_gateway(airpath: Airpath) -> None:
    with two_networks() as networks:
        networks.add("third")
        networks.cable("third", "eth0", "gw", "eth3")
        # Numbers of interfaces are those of their namespace.
        assert index(networks, "third", "eth0") == index(networks, "gw", "eth1")
        with gateway(airpath, *interfaces(networks)) as running:
            told = airpath.run("gateway", *ends(networks, "gw/eth1", "gw/eth3")).check(2).err
            assert f"{networks.of('gw')}/eth1 is an end of another gateway" in told
            assert f"`kill {running.process.pid}`" in told
            # The same interface by another name, at the other end, and by the other kind of socket.
            there = User("there", tuple(networks.inside("gw")))
            words = ("--between", "interface:eth3,interface:eth2", "--socket", "af-xdp")
            told = airpath.run("gateway", *words, user=there).check(2).err
            assert "eth2 is an end of another gateway" in told
            with gateway(airpath, *ends(networks, "third/eth0", "b1/eth0")) as second:
                second.end()
            # The first one is none the worse for it.
            assert len(networks.ping("a1", "192.0.2.3")) == 3
            running.end()


def test_a_gateway_may_be_started_anew_at_once(airpath: Airpath) -> None:
    with two_networks() as networks:
        for signal_number in (signal.SIGKILL, signal.SIGTERM):
            with gateway(airpath, *interfaces(networks)) as old:
                old.process.send_signal(signal_number)
                with gateway(airpath, *interfaces(networks)) as new:
                    # The first one may come before the run begins, and then nobody repeats it.
                    assert len(networks.ping("a1", "192.0.2.3")) >= 2
                    new.end()


def test_a_signal_to_all_of_its_process_group_ends_it(airpath: Airpath) -> None:
    """As `timeout` sends it: what the engine gets by way of the first process may be lost."""
    with two_networks() as networks, gateway(airpath, *interfaces(networks)) as running:
        (engine,) = children(running.process.pid)
        os.kill(engine, signal.SIGSTOP)
        os.killpg(running.process.pid, signal.SIGINT)
        # The engine has its own one by the time that the other is handed on.
        await_true(lambda: is_pending(engine, signal.SIGINT))
        await_true(lambda: not is_pending(running.process.pid, signal.SIGINT))
        os.kill(engine, signal.SIGCONT)
        assert running.process.wait(60) == 0
        assert running.end()["verdict"]


def is_pending(pid: int, number: signal.Signals) -> bool:
    """Say whether a signal to a process waits for it."""
    status = Path(f"/proc/{pid}/status").read_text()
    pending = next(line for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(pending.split()[1], 16) >> (number - 1) & 1)


def test_ends_of_one_cable_are_refused_in_two_namespaces(airpath: Airpath) -> None:
    networks = Networks()
    try:
        for name in ("one", "other", "third"):
            networks.add(name)
        networks.cable("one", "eth0", "other", "eth0")
        networks.cable("one", "eth1", "third", "eth0")
        for pair in (("one/eth0", "other/eth0"), ("third/eth0", "one/eth1")):
            told = airpath.run("gateway", *ends(networks, *pair)).check(2).err
            assert "the ends of a veth pair" in told
        # One that has the number of the peer, in another namespace.
        assert index(networks, "third", "eth0") == index(networks, "other", "eth0")
        with gateway(airpath, *ends(networks, "one/eth0", "third/eth0")) as running:
            running.end()
    finally:
        networks.remove()


@pytest.mark.skipif(
    not all(shutil.which(name, path=SYSTEM_PATH) for name in ("dnsmasq", "slirp4netns")),
    reason="needs the packages dnsmasq-base and slirp4netns",
)
def test_a_phone_gets_an_address_and_the_network_of_the_host(airpath: Airpath) -> None:
    networks = Networks()
    try:
        networks.add("phone")
        networks.add("gw")
        networks.cable("phone", "wlan0", "gw", "eth1")
        ends = f"interface:{networks.of('gw')}/eth1,router:192.168.77.1"
        with gateway(airpath, "--between", ends, "--delay", f"{DELAY_MS} ms") as running:
            client = str(FRAMES.with_name("dhcp.py"))
            # /sys shows the interfaces of the namespace that `ip netns exec` enters.
            lease = json.loads(networks.run("phone", sys.executable, client, "wlan0"))
            assert lease == ["192.168.77.100", "192.168.77.1"] or lease[0].startswith("192.168.77.")
            phone = networks.of("phone")
            ip("-n", phone, "address", "add", f"{lease[0]}/24", "dev", "wlan0")
            ip("-n", phone, "route", "add", "default", "via", lease[1])
            assert min(networks.ping("phone", lease[1])) >= 2 * DELAY_MS
            # The gateway of slirp4netns answers behind the router.
            assert min(networks.ping("phone", "10.0.2.2")) >= 2 * DELAY_MS
            running.end()
    finally:
        networks.remove()


@contextlib.contextmanager
def two_hosts() -> Iterator[Networks]:
    """Make `west` and `east`, joined by IP, with `one` and `other` behind them."""
    networks = Networks()
    try:
        for name in ("one", "west", "east", "other"):
            networks.add(name)
        networks.cable("one", "eth0", "west", "lan")
        networks.cable("west", "wan", "east", "wan")
        networks.cable("other", "eth0", "east", "lan")
        for host, name in enumerate(("one", "other"), 1):
            ip("-n", networks.of(name), "address", "add", f"192.0.2.{host}/24", "dev", "eth0")
        for host, name in enumerate(("west", "east"), 1):
            ip("-n", networks.of(name), "address", "add", f"198.51.100.{host}/24", "dev", "wan")
        yield networks
    finally:
        networks.remove()


def test_two_hosts_joined_by_tcp_which_breaks_and_comes_back(airpath: Airpath) -> None:
    west = ["--between", "interface:lan,tcp-listen:198.51.100.2:7000", "--delay", f"{DELAY_MS} ms"]
    east = ["--between", "tcp:198.51.100.1:7000,interface:lan"]
    with (
        two_hosts() as networks,
        gateway(airpath, *west, within=networks.inside("west")),
    ):
        with gateway(airpath, *east, within=networks.inside("east")):
            assert min(networks.ping("one", "192.0.2.2")) >= 2 * DELAY_MS
            # Full frames, and what the kernel has joined or left without a checksum.
            assert len(networks.ping("other", "192.0.2.1", "-s", 1472, "-M", "do")) == 3
            reply = "import socket; s = socket.create_server(('192.0.2.2', 80)); c = s.accept()[0]"
            reply += "; print(sum(len(d) for d in iter(lambda: c.recv(65536), b'')))"
            server = subprocess.Popen(
                networks.inside("other", sys.executable, "-c", reply),
                stdout=subprocess.PIPE,
                text=True,
            )
            await_true(lambda: ":80" in networks.run("other", "ss", "-ltnH"))
            send = (
                "import socket; socket.create_connection(('192.0.2.2', 80)).sendall(bytes(10**6))"
            )
            networks.run("one", sys.executable, "-c", send)
            assert server.communicate(timeout=60)[0].split() == ["1000000"]
            # Nobody but the named host gets in.
            knock = "import socket; c = socket.create_connection(('198.51.100.1', 7000), 5)"
            knock += "; print(c.recv(8))"
            ip("-n", networks.of("east"), "address", "add", "198.51.100.9/24", "dev", "wan")
            turned = knock.replace("5)", "5, source_address=('198.51.100.9', 0))")
            assert networks.run("east", sys.executable, "-c", turned).strip() == "b''"
        # The other gateway is started anew.
        with gateway(airpath, *east, within=networks.inside("east")):
            assert len(networks.ping("one", "192.0.2.2")) == 3


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("tcp-listen:198.51.100.2:7000", "198.51.100.2 has not connected to port 7000"),
        ("tcp-listen:198.51.100.1:7000", "198.51.100.1 is this host itself"),
        ("tcp:198.51.100.2:7000", "198.51.100.2 does not answer at port 7000"),
    ],
)
def test_a_tunnel_says_whom_it_waits_for(airpath: Airpath, end: str, told: str) -> None:
    """It goes on waiting, until it is ended."""
    with (
        two_hosts() as networks,
        gateway(
            *(airpath, "--between", f"interface:lan,{end}"), within=networks.inside("west")
        ) as alone,
    ):
        await_true(lambda: told in alone.text(), alone.text)
        assert "airpath: server end: waiting: " in alone.text()
        assert alone.process.poll() is None
        alone.end()


@contextlib.contextmanager
def two_containers(folder: Path) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Start two containers without networks; yield the environment for podman, and their names."""
    podman = shutil.which("podman", path=SYSTEM_PATH)
    if not podman:
        pytest.skip("podman is not installed (apt-get install podman runc)")
    storage = folder / "storage.conf"
    storage.write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
    )
    environment = {"CONTAINERS_STORAGE_CONF": str(storage)}

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [podman, *map(str, words)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    root = folder / "root"
    for name in ("usr", "etc", "proc", "sys", "dev", "run", "tmp"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    names = [f"apt{uuid.uuid4().hex[:8]}" for _ in range(2)]
    runtime = "runc" if shutil.which("runc", path=SYSTEM_PATH) else "crun"
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
    try:
        for name in names:
            words = ["--runtime", runtime, "run", "--detach", "--name", name, "--network", "none"]
            words += [
                "--cap-add",
                "NET_RAW",
                *limits,
                "--volume",
                "/usr:/usr:ro",
                "--rootfs",
                str(root),
            ]
            done = run(*words, "/bin/sleep", 600)
            if done.returncode != 0:
                pytest.skip(f"podman cannot start a container here: {done.stderr.strip()}")
        yield environment, names
    finally:
        for name in names:
            run("rm", "--force", "--time", 0, name)


def test_two_containers_are_joined(
    airpath: Airpath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with two_containers(tmp_path) as (environment, names):
        for key, value in environment.items():
            monkeypatch.setenv(key, value)
        ends = ",".join(f"podman:{name}" for name in names)
        with gateway(airpath, "--between", ends, "--delay", f"{DELAY_MS} ms") as running:
            ping = ["podman", "exec", names[0], "/bin/ping", "-n", "-c", "3", "10.77.0.1"]
            done = subprocess.run(ping, capture_output=True, text=True, check=False, timeout=60)
            assert done.returncode == 0, f"{done.stdout}{done.stderr}"
            times = [float(part.split()[0]) for part in done.stdout.split("time=")[1:]]
            assert min(times) >= 2 * DELAY_MS
            assert running.end()["uplink"]["delivered_packets"] >= 3
        subprocess.run(["podman", "stop", "--time", "0", names[1]], check=True, timeout=60)
        told = airpath.run("gateway", "--between", ends).check(2).err
        assert "not running" in told


@contextlib.contextmanager
def service_of_docker(folder: Path, environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Let podman answer the client of Docker; yield the environment for both."""
    if not shutil.which("docker", path=SYSTEM_PATH):
        pytest.skip("the client of Docker is not installed (apt-get install docker.io)")
    if subprocess.run(["docker", "ps"], capture_output=True, check=False).returncode == 0:
        pytest.skip("a daemon of Docker runs here, whose containers are not those of this test")
    socket = folder / "docker.sock"
    words = ["podman", "system", "service", "--time", "0", f"unix://{socket}"]
    service = subprocess.Popen(
        words, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        await_true(lambda: socket.exists() or service.poll() is not None)
        if service.poll() is not None and service.stderr:
            pytest.skip(f"podman cannot serve here: {service.stderr.read().decode().strip()}")
        yield {**environment, "DOCKER_HOST": f"unix://{socket}"}
    finally:
        service.terminate()
        service.wait(timeout=60)
        if service.stderr:
            service.stderr.close()


def test_a_transfer_between_containers_that_docker_knows(
    airpath: Airpath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        two_containers(tmp_path) as (own, names),
        service_of_docker(tmp_path, own) as environment,
    ):
        for key, value in environment.items():
            monkeypatch.setenv(key, value)

        def docker(*words: str) -> str:
            command = ["docker", "exec", *words]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            assert done.returncode == 0, f"{done.stdout}{done.stderr}"
            return done.stdout

        ends = ",".join(f"docker:{name}" for name in names)
        link = ("--rate", "8 Mbit/s", "--delay", f"{DELAY_MS} ms")
        with gateway(airpath, "--between", ends, *link) as running:
            docker("--detach", names[1], "/usr/bin/iperf3", "-s", "-1")
            await_true(lambda: ":5201" in docker(names[1], "/usr/bin/ss", "-ltnH"))
            told = docker(names[0], "/usr/bin/iperf3", "-c", "10.77.0.1", "-t", "2", "--json")
            received = json.loads(told)["end"]["sum_received"]
            assert 0 < received["bits_per_second"] < 8e6
            assert running.end()["uplink"]["delivered_bytes"] > received["bytes"]
        gone = airpath.run("gateway", "--between", "docker:of-this-name-none,docker:nor-this")
        assert "no container of that name" in gone.check(2).err


def skip_without_vxlan(networks: Networks) -> None:
    probe = ("link", "add", "probe", "type", "vxlan", "id", 1, "remote", "198.51.100.9")
    try:
        ip("-n", networks.of("one"), *probe, "dstport", 4789)
    except subprocess.CalledProcessError:
        pytest.skip("this kernel has no VXLAN")


def test_two_hosts_joined_by_a_tunnel(airpath: Airpath) -> None:
    """Each of two gateways stands at a host of its own, and all that is between them is IP."""
    with two_hosts() as networks:
        west = ["--between", "interface:lan,vxlan:198.51.100.2", "--delay", f"{DELAY_MS} ms"]
        east = ["--between", "vxlan:198.51.100.1,interface:lan"]
        skip_without_vxlan(networks)
        with (
            gateway(airpath, *west, within=networks.inside("west")),
            gateway(airpath, *east, within=networks.inside("east")),
        ):
            assert min(networks.ping("one", "192.0.2.2")) >= 2 * DELAY_MS
            assert len(networks.ping("other", "192.0.2.1", "-s", 1472, "-M", "do")) == 3


@pytest.mark.parametrize(
    ("west", "east"),
    [
        ("tcp-listen:198.51.100.2:7000", "tcp:198.51.100.1:7000"),
        ("vxlan:198.51.100.2", "vxlan:198.51.100.1"),
    ],
)
def test_segments_that_the_kernel_joins_pass_a_tunnel(
    airpath: Airpath, west: str, east: str
) -> None:
    """Neither device of a tunnel cuts them, and VXLAN joins them with their data in one piece."""
    outs = [airpath.path("west"), airpath.path("east")]
    link = ("--delay", "5 ms")
    with two_hosts() as networks:
        if "vxlan" in west:
            skip_without_vxlan(networks)
        with (
            gateway(
                *(airpath, "--between", f"interface:lan,{west}", *link, "--out", outs[0]),
                within=networks.inside("west"),
            ) as one,
            gateway(
                *(airpath, "--between", f"{east},interface:lan", "--out", outs[1]),
                within=networks.inside("east"),
            ) as other,
        ):
            await_true(lambda: ", 0% packet loss" in pinged(networks))
            server = subprocess.Popen(
                networks.inside(
                    "other", airpath.command, "recv", "--once", "--listen", "192.0.2.2"
                ),
                env=airpath.environment(),
                stderr=subprocess.DEVNULL,
            )
            await_true(lambda: ":5201" in networks.run("other", "ss", "-ltnH"))
            networks.run("one", airpath.command, "send", "192.0.2.2", "--bytes", 1_000_000)
            assert server.wait(60) == 0
            one.end()
            other.end()
    for out in outs:
        ends = json.loads((out / "run.json").read_text())["results"]["ends"]
        assert ends["refused_writes"] == 0, out
        assert ends.get("too_long_frames", 0) == 0, out


def pinged(networks: Networks) -> str:
    return networks.run("one", "ping", "-n", "-c", 1, "-W", 1, "192.0.2.2", status=None)
