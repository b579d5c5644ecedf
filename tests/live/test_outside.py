# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Ways outside the link on purpose: a port of the host's loopback, and the host's network."""

from __future__ import annotations

import contextlib
import functools
import http.server
import shutil
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from airpath.status import LACKING
from live.harness import tun_opens
from live.programs import content

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from live.harness import Airpath, User, Way


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Say nothing."""


@contextlib.contextmanager
def web_server(folder: Path, host: str) -> Iterator[int]:
    """Serve a folder at an address of this host; return the port."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer((host, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def curl(airpath: Airpath, url: str) -> list[object]:
    """Return the words that download to the file `copy`."""
    return ["curl", "-sS", "--fail", "--max-time", 30, "-o", airpath.path("copy"), url]


@pytest.mark.parametrize("address", ["server", "10.77.0.1", "[fd61:6972:7000::1]"])
def test_a_port_of_the_host(airpath: Airpath, way: Way, address: str) -> None:
    data = content(11, 400_000)
    airpath.path("data").write_bytes(data)
    with web_server(airpath.path("data").parent, "127.0.0.1") as port:
        words = curl(airpath, f"http://{address}:{port}/data")
        result = airpath.exec(way, "--delay", "5 ms", "--host-port", port, "--", *words).check()
    assert airpath.path("copy").read_bytes() == data
    # It went over the link.
    assert result.summary()["downlink"]["delivered_bytes"] > 400_000


def test_a_datagram_port_of_the_host(airpath: Airpath, way: Way) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        port = server.getsockname()[1]

        def echo() -> None:
            with contextlib.suppress(TimeoutError):
                for _ in range(20):
                    data, sender = server.recvfrom(2000)
                    server.sendto(data[:4], sender)

        thread = threading.Thread(target=echo)
        thread.start()
        client = airpath.program("datagram-client", 4, "udp", 0, port, 20, 300, 0.01, 5)
        result = airpath.exec(way, "--delay", "5 ms", "--host-port", port, "--", *client)
        server.close()
        thread.join()
    assert result.check().out == f"{list(range(20))}\n"


def test_a_port_of_the_host_where_nobody_listens(airpath: Airpath, user: User) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        words = curl(airpath, f"http://server:{port}/")
        result = airpath.run("exec", "-q", "--host-port", port, "--", *words, user=user)
    # Refused or reset, not left to wait.
    assert result.status in (7, 52, 56), result.err


def test_other_ports_of_the_host_stay_closed(airpath: Airpath, user: User) -> None:
    with web_server(airpath.folder("files"), "127.0.0.1") as port:
        words = curl(airpath, f"http://server:{port}/")
        result = airpath.run("exec", "-q", "--", *words, user=user)
    assert result.status == 7, result.err


def own_address() -> str | None:
    """Return an address of this host that is not its loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends nothing.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = str(probe.getsockname()[0])
        return None if address.startswith("127.") else address


def test_the_hosts_network(airpath: Airpath, user: User) -> None:
    address = own_address()
    if address is None:
        pytest.skip("this host has no network beside its loopback")
    if not shutil.which("slirp4netns"):
        result = airpath.run("exec", "--internet", "--", "true", user=user).check(LACKING)
        assert "slirp4netns" in result.err
        pytest.skip("slirp4netns is not installed; only the message was checked")
    if not tun_opens(user):
        result = airpath.run("exec", "--internet", "--", "true", user=user).check(LACKING)
        assert "/dev/net/tun" in result.err
        pytest.skip(f"{user} may not open /dev/net/tun; only the message was checked")
    data = content(12, 300_000)
    airpath.path("data").write_bytes(data)
    with web_server(airpath.path("data").parent, address) as port:
        words = curl(airpath, f"http://{address}:{port}/data")
        arguments = ("exec", "--json", "--internet", "--delay", "20 ms", "--", *words)
        result = airpath.run(*arguments, user=user).check()
    assert airpath.path("copy").read_bytes() == data
    assert result.summary()["downlink"]["delivered_bytes"] > 300_000
