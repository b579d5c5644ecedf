# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Networks of a test's own: machines in network namespaces, joined by veth pairs and a bridge."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FRAMES = Path(__file__).with_name("frames.py")
FEATURES = Path(__file__).with_name("features.py")


def ip(*words: object) -> str:
    """Run `ip`, and return what it printed."""
    command = ["ip", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@dataclass
class Networks:
    """Namespaces with names of this test's own."""

    prefix: str = field(default_factory=lambda: f"apt{os.getpid()}x{uuid.uuid4().hex[:6]}")
    names: list[str] = field(default_factory=list)

    def of(self, name: str) -> str:
        """Return the name of the namespace of a machine."""
        return f"{self.prefix}-{name}"

    def add(self, name: str) -> str:
        """Make the namespace of a machine."""
        namespace = self.of(name)
        ip("netns", "add", namespace)
        self.names.append(namespace)
        ip("-n", namespace, "link", "set", "lo", "up")
        return namespace

    def cable(self, one: str, interface: str, other: str, to: str, mtu: int = 1500) -> None:
        """Join two machines by a veth pair."""
        end = ("netns", self.of(other), "mtu", mtu)
        pair = ("name", interface, "mtu", mtu, "type", "veth", "peer", "name", to, *end)
        ip("-n", self.of(one), "link", "add", *pair)
        ip("-n", self.of(one), "link", "set", interface, "up")
        ip("-n", self.of(other), "link", "set", to, "up")

    def inside(self, name: str, *words: object) -> list[str]:
        """Return the words that run a program at a machine."""
        return ["ip", "netns", "exec", self.of(name), *map(str, words)]

    def run(self, name: str, *words: object, status: int | None = 0) -> str:
        """Run a program at a machine, and return its output."""
        done = subprocess.run(
            self.inside(name, *words), capture_output=True, text=True, check=False, timeout=60
        )
        assert status in (None, done.returncode), f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def frames(self, *words: object) -> list[str]:
        """Return the words of the program for frames."""
        return [sys.executable, str(FRAMES), *map(str, words)]

    def switch_off(self, name: str, interface: str, *features: str) -> None:
        """Switch features of an interface off."""
        self.run(name, sys.executable, FEATURES, interface, *features)

    def ping(self, name: str, address: str, *words: object) -> list[float]:
        """Ping, and return the round-trip times in ms."""
        out = self.run(name, "ping", "-n", "-c", 3, "-i", 0.2, "-W", 20, *words, address)
        return [float(part.split()[0]) for part in out.split("time=")[1:]]

    def remove(self) -> None:
        """Take everything away."""
        for namespace in self.names:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", namespace)


@contextlib.contextmanager
def two_networks(mtu: int = 1500) -> Iterator[Networks]:
    """Make `a1` and `a2` behind a switch and `eth1` of `gw`, and `b1` behind its `eth2`."""
    networks = Networks()
    try:
        for name in ("a1", "a2", "switch", "gw", "b1"):
            networks.add(name)
        switch = networks.of("switch")
        ip("-n", switch, "link", "add", "br0", "mtu", mtu, "type", "bridge")
        for number, (name, interface) in enumerate(
            [("a1", "eth0"), ("a2", "eth0"), ("gw", "eth1")]
        ):
            networks.cable(name, interface, "switch", f"p{number}", mtu)
            ip("-n", switch, "link", "set", f"p{number}", "master", "br0")
        ip("-n", switch, "link", "set", "br0", "up")
        networks.cable("b1", "eth0", "gw", "eth2", mtu)
        for host, name in enumerate(("a1", "a2", "b1"), 1):
            machine = networks.of(name)
            ip("-n", machine, "address", "add", f"192.0.2.{host}/24", "dev", "eth0")
            ip("-n", machine, "address", "add", f"2001:db8::{host}/64", "dev", "eth0", "nodad")
        yield networks
    finally:
        networks.remove()


def may_make_networks() -> bool:
    """Return true if this user may make named namespaces."""
    return os.geteuid() == 0
