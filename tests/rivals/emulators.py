# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Emulators that may stand between two ends. One function and one line in ``ALL`` adds another."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rivals.ends import Ends, Setting, Started, mark, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

MAHIMAHI_PACKET_BITS = 12_000
"""Bits that one line of a trace of Mahimahi lets through."""
UNLIMITED_PACKETS = 10_000
LOOK_UP = "getent ahostsv4 server | head -n 1 | cut -d ' ' -f 1"


@dataclass(frozen=True)
class Emulator:
    """An emulator and whether it is here."""

    name: str
    between: Callable[[Setting, Path], AbstractContextManager[Ends]]
    missing: Callable[[], str]
    """The reason why it cannot be measured; empty where it can."""
    only: Callable[[Setting], bool] = lambda _: True
    """Says whether it can emulate a link of this setting."""


@contextlib.contextmanager
def _namespaces(*names: str) -> Iterator[dict[str, int]]:
    """Make network namespaces, and return a process in each."""
    with contextlib.ExitStack() as ends:
        pids = {}
        for name in names:
            holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep 600"],
                                      stdout=subprocess.PIPE)  # fmt: skip
            ends.callback(holder.wait)
            ends.callback(holder.kill)
            assert holder.stdout
            holder.stdout.readline()
            holder.stdout.close()
            pids[name] = holder.pid
        yield pids


def _in(pid: int) -> list[str]:
    return ["nsenter", "-t", str(pid), "-n"]


def _at(pid: int, *words: object) -> None:
    subprocess.run([*_in(pid), *map(str, words)], check=True)


def _client(folder: Path, address: str) -> list[str]:
    """Return the client's command: it writes the server's address, which the shell finds so."""
    return ["sh", "-c", f"echo {address} > {folder}/address; {mark(folder, 'client')}"]


def _ends(emulator: Started, server: int) -> Ends:
    """Return the ends of an emulator whose client runs what `_client` returns."""
    client = emulator.namespace_of("client")
    address = (emulator.folder / "address").read_text().strip()
    own = {client, server}
    return Ends(client, server, address, lambda: [pid for pid in emulator.pids() if pid not in own])


def _cable(
    pids: dict[str, int], one: str, one_address: str, other: str, other_address: str
) -> None:
    pair = ("type", "veth", "peer", "name", f"to-{one}", "netns", pids[other])
    _at(pids[one], "ip", "link", "add", f"to-{other}", *pair)
    for name, peer, address in ((one, other, one_address), (other, one, other_address)):
        _at(pids[name], "ip", "addr", "add", f"{address}/24", "dev", f"to-{peer}")
        _at(pids[name], "ip", "link", "set", f"to-{peer}", "up")


@contextlib.contextmanager
def bare_veth(_: Setting, __: Path) -> Iterator[Ends]:
    """Join the ends by a veth pair: the floor."""
    with _namespaces("client", "server") as pids:
        _cable(pids, "client", "10.79.0.1", "server", "10.79.0.2")
        yield Ends(pids["client"], pids["server"], "10.79.0.2")


@contextlib.contextmanager
def kernel(setting: Setting, _: Path) -> Iterator[Ends]:
    """Join the ends through a router with netem for the delay and tbf for the rate."""
    with _namespaces("client", "router", "server") as pids:
        _cable(pids, "client", "10.79.0.2", "router", "10.79.0.1")
        _cable(pids, "router", "10.79.1.1", "server", "10.79.1.2")
        _at(pids["router"], "sysctl", "-qw", "net.ipv4.ip_forward=1")
        _at(pids["client"], "ip", "route", "add", "default", "via", "10.79.0.1")
        _at(pids["server"], "ip", "route", "add", "default", "via", "10.79.1.1")
        limit = setting.queue_packets or UNLIMITED_PACKETS
        for device in ("to-client", "to-server"):
            parent = "root"
            if setting.delay_ms:
                words = ("delay", f"{setting.delay_ms}ms", "limit", limit)
                _at(pids["router"], *_qdisc(device, parent), "handle", "1:", "netem", *words)
                parent = "parent 1:1"
            if setting.rate_bit_per_s:
                rate = int(setting.rate_bit_per_s)
                # As much as a timer's tick lets through, and at least a super-packet.
                words = ("rate", f"{rate}bit", "burst", max(rate // 8 // 1000, 65_536 + 1514))
                size = limit * 1514
                _at(pids["router"], *_qdisc(device, parent), "tbf", *words, "limit", size)
        yield Ends(pids["client"], pids["server"], "10.79.1.2")


def _qdisc(device: str, parent: str) -> list[str]:
    return ["tc", "qdisc", "add", "dev", device, *parent.split()]


def airpath(engine: Path, *more: str) -> Callable[[Setting, Path], AbstractContextManager[Ends]]:
    """Return what joins the ends by this engine, with further options."""

    @contextlib.contextmanager
    def between(setting: Setting, folder: Path) -> Iterator[Ends]:
        words = [str(engine), "exec", "--seed", "1", "--log", "counters", *more]
        if setting.rate_bit_per_s:
            words += ["--rate", f"{setting.rate_bit_per_s:.0f} bit/s"]
        if setting.delay_ms:
            words += ["--delay", f"{setting.delay_ms} ms"]
        if setting.queue_packets:
            words += ["--queue", f"{setting.queue_packets} packets"]
        words += ["--server", mark(folder, "server"), "--server-ready", "now"]
        words += ["--", *_client(folder, f"$({LOOK_UP})")]
        with started(words, folder, "client", "server") as emulator:
            yield _ends(emulator, emulator.namespace_of("server"))

    return between


@contextlib.contextmanager
def mahimahi(setting: Setting, folder: Path) -> Iterator[Ends]:
    """Join the ends by mm-delay and mm-link, as an ordinary user in a network of its own."""
    shells = []
    if setting.delay_ms:
        shells += ["mm-delay", str(setting.delay_ms)]
    if setting.rate_bit_per_s:
        trace = folder / "trace"
        trace.write_text(mahimahi_trace(setting.rate_bit_per_s))
        shells += ["mm-link", str(trace), str(trace)]
        if setting.queue_packets:
            for way in ("uplink", "downlink"):
                limit = f"packets={setting.queue_packets}"
                shells += [f"--{way}-queue=droptail", f"--{way}-queue-args={limit}"]
        shells += ["--"]
    if not setting.delay_ms and not setting.rate_bit_per_s:
        shells = ["mm-delay", "0"]
    folder.chmod(0o777)
    with _namespaces("server") as pids:
        _at(pids["server"], "ip", "link", "set", "lo", "up")
        # Mahimahi wants forwarding, and a way out whose resolver it can name.
        _at(pids["server"], "sysctl", "-qw", "net.ipv4.ip_forward=1")
        user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        words = [*_in(pids["server"]), *user, *shells, *_client(folder, "$MAHIMAHI_BASE")]
        with started(words, folder, "client") as emulator:
            yield _ends(emulator, pids["server"])


def mahimahi_trace(rate_bit_per_s: float) -> str:
    """Return a trace of Mahimahi with this rate, exact over its length of up to a second."""
    per_ms = rate_bit_per_s / 1000 / MAHIMAHI_PACKET_BITS
    length_ms = next(
        (ms for ms in range(1, 1000) if abs(per_ms * ms - round(per_ms * ms)) < 1e-9), 1000
    )
    count = max(1, round(per_ms * length_ms))
    lines = [-(-(index + 1) * length_ms // count) for index in range(count)]
    return "".join(f"{ms}\n" for ms in lines)


@contextlib.contextmanager
def rattan(setting: Setting, folder: Path) -> Iterator[Ends]:
    """Join the ends by Rattan, as root."""
    words = ["rattan", "link"]
    for way in ("uplink", "downlink"):
        if setting.rate_bit_per_s:
            words += [f"--{way}-bandwidth", f"{setting.rate_bit_per_s / 1e6:g}Mbps"]
        if setting.delay_ms:
            words += [f"--{way}-delay", f"{setting.delay_ms}ms"]
        if setting.queue_packets:
            words += [f"--{way}-queue", "droptail", f"--{way}-queue-args",
                      f'{{"packet_limit":{setting.queue_packets}}}']  # fmt: skip
    with _namespaces("server") as pids:
        _at(pids["server"], "ip", "link", "set", "lo", "up")
        inside = [*_in(pids["server"]), *words, "--", *_client(folder, "$RATTAN_BASE")]
        with started(inside, folder, "client") as emulator:
            yield _ends(emulator, pids["server"])


def _without(program: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(program) else f"no {program} on PATH"


QDISCS = {
    "netem": ("delay", "1ms"),
    "tbf": ("rate", "1gbit", "burst", "99999", "limit", "99999"),
}


def _without_qdisc(*kinds: str) -> str:
    with _namespaces("one") as pids:
        for kind in kinds:
            words = ["tc", "qdisc", "replace", "dev", "lo", "root", kind, *QDISCS[kind]]
            done = subprocess.run([*_in(pids["one"]), *words], check=False, capture_output=True)
            if done.returncode != 0:
                return f"this kernel has no {kind}"
    return ""


def all_of(engine: Path) -> list[Emulator]:
    """Return the emulators, the floor first and this one second."""
    here: Callable[[], str] = str
    return [
        Emulator("bare veth pair", bare_veth, here, lambda link: link.floor),
        Emulator("airpath", airpath(engine), here),
        Emulator("tbf", kernel, lambda: _without_qdisc("tbf"), lambda link: not link.delay_ms),
        Emulator("netem and tbf", kernel, lambda: _without_qdisc("netem", "tbf")),
        Emulator("mahimahi", mahimahi, _without("mm-link")),
        Emulator("rattan", rattan, _without("rattan")),
    ]
