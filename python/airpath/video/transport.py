# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Sockets that carry RTP: UDP, and UDP-Lite of the kernel or over raw IP sockets.

Linux has UDP-Lite since 2.6.20; the newest kernels have dropped it. Without it, ``udplite.py``
makes and checks the packets, and raw sockets of the protocol 136 carry them, which needs the right
to open raw sockets (CAP_NET_RAW). Both ways put the same bytes on the wire.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from airpath.video import udplite
from airpath.video.endpoints import Endpoint
from airpath.video.errors import LackingError, VideoError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEND_COVERAGE = 10
_RECEIVE_COVERAGE = 11
"""Socket options of Linux (linux/udp.h): UDPLITE_SEND_CSCOV, UDPLITE_RECV_CSCOV."""
_TIMESTAMP_NS = 35
"""SO_TIMESTAMPNS; Python names it from version 3.15 on."""
LONGEST_BYTES = 65536
"""Of a datagram, and a little more."""
_RECEIVE_BUFFER_BYTES = 4 << 20


class Arrival(NamedTuple):
    """A datagram that arrived."""

    data: bytes
    arrived_ns: int
    """Since 1970: the kernel's time stamp."""
    coverage_bytes: int | None
    """Of UDP-Lite over raw sockets; the kernel does not tell it."""


class Sender(Protocol):
    """Sends datagrams to one receiver."""

    way: str
    """Name of the transport in reports: udp, udp-lite (kernel), udp-lite (raw)."""

    def send(self, data: bytes, coverage_bytes: int) -> None:
        """Send a datagram.

        Args:
            data: what it carries.
            coverage_bytes: of UDP-Lite, from its header on; 0 for all of it.

        """

    def close(self) -> None:
        """Close the socket."""


class Receiver(Protocol):
    """Receives datagrams at one port."""

    way: str
    refused: int
    """Number of datagrams that this process refused for their checksum."""

    def receive(self, wait_seconds: float) -> list[Arrival]:
        """Return what has arrived, after at most the given time."""

    def close(self) -> None:
        """Close the sockets."""


def kernel_has_udplite(family: int = socket.AF_INET) -> bool:
    """Say whether the kernel has UDP-Lite."""
    try:
        socket.socket(family, socket.SOCK_DGRAM, udplite.PROTOCOL).close()
    except OSError:
        return False
    return True


def _chosen(way: str, family: int) -> str:
    if way == "auto":
        return "kernel" if kernel_has_udplite(family) else "raw"
    if way == "kernel" and not kernel_has_udplite(family):
        message = "this kernel has no UDP-Lite; leave --udp-lite-sockets out, or say raw"
        raise LackingError(message)
    return way


def open_sender(endpoint: Endpoint, transport: str, way: str) -> Sender:
    """Return what sends to an endpoint.

    Args:
        endpoint: the receiver.
        transport: one of ``choices.TRANSPORTS``.
        way: one of ``choices.WAYS``.

    Raises:
        VideoError: there is no route, no right to open raw sockets, or no UDP-Lite.

    """
    with _told(f"send to {endpoint.shown}"):
        if transport == "udp":
            return _KernelSender(endpoint, 0)
        if _chosen(way, endpoint.family) == "kernel":
            return _KernelSender(endpoint, udplite.PROTOCOL)
        return _RawSender(endpoint)


def open_receiver(endpoint: Endpoint, transport: str, way: str, least_coverage: int) -> Receiver:
    """Return what receives at an endpoint.

    Args:
        endpoint: address and port to listen at.
        transport: one of ``choices.TRANSPORTS``.
        way: one of ``choices.WAYS``.
        least_coverage: of UDP-Lite: datagrams with a coverage below this are dropped; 0 for none.

    Raises:
        VideoError: the port is taken, no right to open raw sockets, or no UDP-Lite.

    """
    with _told(f"listen at {endpoint.shown}"):
        if transport == "udp":
            return _KernelReceiver(endpoint, 0, 0)
        if _chosen(way, endpoint.family) == "kernel":
            return _KernelReceiver(endpoint, udplite.PROTOCOL, least_coverage)
        return _RawReceiver(endpoint, least_coverage)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = {
            errno.EADDRINUSE: "; another program listens there: name another port",
            errno.EADDRNOTAVAIL: "; this host has no such address",
            errno.EACCES: "; a port below 1024 needs root: name a higher one",
            errno.EPERM: "; UDP-Lite over raw sockets needs root (in a run: exec --as-root)",
            errno.ENETUNREACH: "; there is no route",
        }.get(error.errno or 0, "")
        message = f"cannot {what}: {error.strerror}{advice}"
        raise VideoError(message) from error


def _opened(endpoint: Endpoint, kind: socket.SocketKind, protocol: int) -> socket.socket:
    return socket.socket(endpoint.family, kind, protocol)


class _KernelSender:
    """UDP or UDP-Lite of the kernel."""

    def __init__(self, endpoint: Endpoint, protocol: int) -> None:
        self.way = "udp-lite (kernel)" if protocol else "udp"
        self._is_lite = bool(protocol)
        self._coverage: int | None = None
        self._socket = _opened(endpoint, socket.SOCK_DGRAM, protocol)
        try:
            self._socket.connect((endpoint.address, endpoint.port))
        except BaseException:
            self._socket.close()
            raise

    def send(self, data: bytes, coverage_bytes: int) -> None:
        if self._is_lite and coverage_bytes != self._coverage:
            self._socket.setsockopt(udplite.PROTOCOL, _SEND_COVERAGE, coverage_bytes)
            self._coverage = coverage_bytes
        # The receiver may not be there yet, or any more; the next one may arrive.
        with contextlib.suppress(ConnectionRefusedError):
            self._socket.send(data)

    def close(self) -> None:
        self._socket.close()


class _RawSender:
    """UDP-Lite by ``udplite.py``."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.way = "udp-lite (raw)"
        self._endpoint = endpoint
        # An ordinary socket has the source address and a port that nobody else uses.
        with _opened(endpoint, socket.SOCK_DGRAM, 0) as probe:
            probe.connect((endpoint.address, endpoint.port))
            self._source = str(probe.getsockname()[0])
        self._port = _opened(endpoint, socket.SOCK_DGRAM, 0)
        try:
            self._port.bind((self._source, 0))
            self._source_port = int(self._port.getsockname()[1])
            self._socket = _opened(endpoint, socket.SOCK_RAW, udplite.PROTOCOL)
        except BaseException:
            self._port.close()
            raise
        # What arrives of the protocol is for others.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)

    def send(self, data: bytes, coverage_bytes: int) -> None:
        packet = udplite.build(
            self._source,
            self._endpoint.address,
            self._source_port,
            self._endpoint.port,
            data,
            coverage_bytes,
        )
        self._socket.sendto(packet, (self._endpoint.address, 0))

    def close(self) -> None:
        self._socket.close()
        self._port.close()


class _Sockets:
    """Sockets that are read together, each datagram with the kernel's time stamp."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []

    def add(self, one: socket.socket) -> socket.socket:
        self._sockets.append(one)
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, _TIMESTAMP_NS, 1)
        # Beyond the limit of ordinary users the kernel gives what it allows.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        self._selector.register(one, selectors.EVENT_READ)
        return one

    def read(self, wait_seconds: float) -> Iterator[tuple[socket.socket, bytes, int, str, str]]:
        """Yield socket, bytes, arrival, source and (of IPv6 alone) destination of datagrams."""
        for chosen, _ in self._selector.select(wait_seconds):
            one = chosen.fileobj
            assert isinstance(one, socket.socket)
            for _ in range(256):
                try:
                    data, ancillary, _, source = one.recvmsg(LONGEST_BYTES, 256)
                except BlockingIOError:
                    break
                except OSError:  # an ICMP error of something sent before
                    continue
                arrived, destination = time.time_ns(), ""
                for level, kind, value in ancillary:
                    if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMP_NS):
                        seconds, nanoseconds = struct.unpack("qq", value[:16])
                        arrived = seconds * 1_000_000_000 + nanoseconds
                    elif (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
                        destination = socket.inet_ntop(socket.AF_INET6, value[:16])
                yield one, data, arrived, str(source[0]), destination

    def close(self) -> None:
        self._selector.close()
        for one in self._sockets:
            one.close()


class _KernelReceiver:
    """UDP or UDP-Lite of the kernel."""

    def __init__(self, endpoint: Endpoint, protocol: int, least_coverage: int) -> None:
        self.way = "udp-lite (kernel)" if protocol else "udp"
        self.refused = 0
        self._sockets = _Sockets()
        try:
            one = self._sockets.add(_opened(endpoint, socket.SOCK_DGRAM, protocol))
            if endpoint.address == "::":
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            if protocol and least_coverage:
                one.setsockopt(protocol, _RECEIVE_COVERAGE, least_coverage)
            one.bind((endpoint.address, endpoint.port))
        except BaseException:
            self._sockets.close()
            raise

    def receive(self, wait_seconds: float) -> list[Arrival]:
        return [
            Arrival(data, arrived, None)
            for _, data, arrived, _, _ in self._sockets.read(wait_seconds)
        ]

    def close(self) -> None:
        self._sockets.close()


class _RawReceiver:
    """UDP-Lite by ``udplite.py``."""

    def __init__(self, endpoint: Endpoint, least_coverage: int) -> None:
        self.way = "udp-lite (raw)"
        self.refused = 0
        self._port = endpoint.port
        self._least = least_coverage
        self._sockets = _Sockets()
        any_address = endpoint.address == "::"
        try:
            # Raw sockets have no ports: this one is taken for others, and it is what shows that
            # somebody listens. If the kernel has UDP-Lite, it is what keeps it from answering
            # that nobody does. It is read, and what it gets is left aside: with a full buffer
            # the run would seem to have lost it.
            lite = udplite.PROTOCOL if kernel_has_udplite(endpoint.family) else 0
            mark = self._mark = self._sockets.add(_opened(endpoint, socket.SOCK_DGRAM, lite))
            if any_address:
                mark.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            mark.bind((endpoint.address, endpoint.port))
            raw = self._sockets.add(_opened(endpoint, socket.SOCK_RAW, udplite.PROTOCOL))
            if endpoint.family == socket.AF_INET6:
                raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            raw.bind((endpoint.address, 0))
            if any_address:
                self._sockets.add(socket.socket(socket.AF_INET, socket.SOCK_RAW, udplite.PROTOCOL))
        except BaseException:
            self._sockets.close()
            raise

    def receive(self, wait_seconds: float) -> list[Arrival]:
        arrivals = []
        for one, packet, arrived, source, destination in self._sockets.read(wait_seconds):
            if one is self._mark:
                continue
            data, to = packet, destination
            if one.family == socket.AF_INET:
                begin = 4 * (packet[0] & 0xF)
                data, to = packet[begin:], socket.inet_ntop(socket.AF_INET, packet[16:20])
            if data[2:4] != self._port.to_bytes(2, "big"):
                continue
            datagram = udplite.parse(source, to, data)
            if datagram is None or self._too_little(datagram, len(data)):
                self.refused += 1
            else:
                arrivals.append(Arrival(datagram.payload, arrived, datagram.coverage_bytes))
        return arrivals

    def _too_little(self, datagram: udplite.Datagram, length_bytes: int) -> bool:
        """Say whether a partial coverage is below the least one, as Linux does."""
        return datagram.coverage_bytes < min(self._least, length_bytes)

    def close(self) -> None:
        self._sockets.close()


def checksum_failures(transport: str) -> int | None:
    """Return how many datagrams the kernel has refused for their checksum in this namespace.

    Args:
        transport: one of ``choices.TRANSPORTS``.

    Returns:
        The number of both families since the namespace began, or None where the kernel does not
        tell it.

    """
    name = "Udp" if transport == "udp" else "UdpLite"
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        lines = Path("/proc/net/snmp").read_text().splitlines()
        rows = [line.split() for line in lines if line.startswith(f"{name}:")]
        if len(rows) == 2:
            found.append(int(dict(zip(*rows, strict=True))["InCsumErrors"]))
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/net/snmp6").read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == f"{name}6InCsumErrors":
                found.append(int(value))
    return sum(found) if found else None
