# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Video received: sockets of both kinds, order, losses, damage, figures."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airpath.video import (
    about,
    endpoints,
    packetise,
    receive,
    rtp,
    sentlog,
    statistics,
    transport,
    udplite,
)
from airpath.video.errors import OptionError, VideoError
from airpath.video.reorder import ReorderBuffer
from videos import needs_ffmpeg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airpath.video.packetise import Stream
    from airpath.video.transport import Receiver

needs_raw = pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets need root")
needs_udplite = pytest.mark.skipif(
    not transport.kernel_has_udplite(), reason="this kernel has no UDP-Lite"
)
WAYS = [pytest.param("kernel", marks=needs_udplite), "raw"]
HOSTS = ["127.0.0.1", "::1"]


def has_address(host: str) -> bool:
    with contextlib.suppress(OSError), socket.socket(family_of(host), socket.SOCK_DGRAM) as one:
        one.bind((host, 0))
        return True
    return False


def family_of(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def endpoint_at(host: str) -> endpoints.Endpoint:
    """Return an endpoint with a port that nobody has."""
    with socket.socket(family_of(host), socket.SOCK_DGRAM) as one:
        one.bind((host, 0))
        return endpoints.Endpoint(family_of(host), host, one.getsockname()[1])


@contextlib.contextmanager
def receiving(
    endpoint: endpoints.Endpoint, name: str, way: str, coverage: int = 0
) -> Iterator[Receiver]:
    with contextlib.closing(transport.open_receiver(endpoint, name, way, coverage)) as receiver:
        yield receiver


def arrivals(receiver: Receiver, count: int) -> list[transport.Arrival]:
    """Return so many datagrams, or those that came within some seconds."""
    found: list[transport.Arrival] = []
    end = time.monotonic() + 5
    while len(found) < count and time.monotonic() < end:
        found += receiver.receive(0.05)
    return found + receiver.receive(0.05)


# UDP-Lite of the kernel and over raw sockets.


@needs_raw
@needs_udplite
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("coverage", [0, 8, 20, 40])
def test_both_ways_put_the_same_bytes_on_the_wire(host: str, coverage: int) -> None:
    if not has_address(host):
        pytest.skip(f"this host has no {host}")
    endpoint, payload = endpoint_at(host), bytes(range(30))
    kinds = (socket.SOCK_RAW, udplite.PROTOCOL)
    seen = {}
    with (
        receiving(endpoint, "udp-lite", "kernel"),
        socket.socket(endpoint.family, *kinds) as wire,
    ):
        wire.bind((host, 0))
        wire.settimeout(5)
        for way in ("kernel", "raw"):
            sender = transport.open_sender(endpoint, "udp-lite", way)
            sender.send(payload, coverage)
            sender.close()
            while True:
                packet = wire.recv(2000)
                header = 0 if endpoint.family == socket.AF_INET6 else 20
                if packet[header + 2 : header + 4] == endpoint.port.to_bytes(2, "big"):
                    break
            source_port = int.from_bytes(packet[header : header + 2], "big")
            expected = udplite.build(host, host, source_port, endpoint.port, payload, coverage)
            assert packet[header:] == expected, way
            # Behind it all that is not the number and the checksum of the packet.
            seen[way] = packet[:4] + packet[6:10] + packet[12:20] if header else b""
    assert seen["kernel"] == seen["raw"]


@needs_raw
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("way", WAYS)
def test_damage_behind_the_coverage_arrives_and_within_it_does_not(host: str, way: str) -> None:
    if not has_address(host):
        pytest.skip(f"this host has no {host}")
    endpoint, payload, coverage = endpoint_at(host), bytes(range(40)), 20
    packet = udplite.build(host, host, 4000, endpoint.port, payload, coverage)
    with (
        receiving(endpoint, "udp-lite", way) as receiver,
        socket.socket(endpoint.family, socket.SOCK_RAW, udplite.PROTOCOL) as sender,
    ):
        expected = []
        for place in (8, 19, 20, 47):
            damaged = bytearray(packet)
            damaged[place] ^= 1
            sender.sendto(bytes(damaged), (host, 0))
            if place >= coverage:
                expected.append(bytes(damaged[8:]))
        sender.sendto(packet, (host, 0))
        expected.append(payload)
        found = arrivals(receiver, len(expected))
        assert [one.data for one in found] == expected
        assert all(abs(one.arrived_ns - time.time_ns()) < 60e9 for one in found)
        if way == "raw":
            assert receiver.refused == 2
            assert {one.coverage_bytes for one in found} == {coverage}


@needs_raw
@pytest.mark.parametrize("way", WAYS)
def test_a_receiver_may_ask_for_more_coverage(way: str) -> None:
    endpoint = endpoint_at("127.0.0.1")
    with receiving(endpoint, "udp-lite", way, 20) as receiver:
        sender = transport.open_sender(endpoint, "udp-lite", way)
        for coverage in (8, 19, 20, 0, 30):
            sender.send(bytes([coverage]) * 30, coverage)
        sender.close()
        assert [one.data[0] for one in arrivals(receiver, 3)] == [20, 0, 30]


@needs_raw
@pytest.mark.parametrize(
    ("name", "way"), [("udp", "auto"), *[("udp-lite", way) for way in ("kernel", "raw")]]
)
def test_a_port_in_use_is_told(name: str, way: str) -> None:
    if way == "kernel" and not transport.kernel_has_udplite():
        pytest.skip("this kernel has no UDP-Lite")
    endpoint = endpoint_at("127.0.0.1")
    with receiving(endpoint, name, way), pytest.raises(VideoError) as raised:
        transport.open_receiver(endpoint, name, way, 0)
    assert str(raised.value) == (
        f"cannot listen at 127.0.0.1:{endpoint.port}: Address already in use; another program "
        f"listens there: name another port"
    )


def test_without_udp_lite_in_the_kernel_raw_sockets_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "kernel_has_udplite", lambda _family=0: False)
    endpoint = endpoint_at("127.0.0.1")
    with pytest.raises(VideoError, match="this kernel has no UDP-Lite"):
        transport.open_sender(endpoint, "udp-lite", "kernel")
    if os.geteuid() != 0:
        with pytest.raises(VideoError, match="needs root"):
            transport.open_sender(endpoint, "udp-lite", "auto")
        return
    with receiving(endpoint, "udp-lite", "auto") as receiver:
        sender = transport.open_sender(endpoint, "udp-lite", "auto")
        assert receiver.way == sender.way == "udp-lite (raw)"
        sender.send(b"hello", 8)
        sender.close()
        assert [one.data for one in arrivals(receiver, 1)] == [b"hello"]


def test_endpoints_are_read() -> None:
    assert endpoints.split("[::1]:5004", "--to") == ("::1", 5004)
    assert endpoints.split(":5004", "--listen") == ("", 5004)
    assert endpoints.resolve("127.0.0.1:9", "--to") == (socket.AF_INET, "127.0.0.1", 9)
    localhost = endpoints.resolve("localhost:9", "--to", ipv4=True)
    assert localhost == (socket.AF_INET, "127.0.0.1", 9)
    with pytest.raises(VideoError, match="::1 is unknown"):
        endpoints.resolve("[::1]:9", "--to", ipv4=True)
    for text in ("server", "::1:5004", "server:0", "server:65536", "server:x"):
        with pytest.raises(OptionError, match="is no HOST:PORT"):
            endpoints.split(text, "--to")
    with pytest.raises(OptionError, match="names no host"):
        endpoints.resolve(":5004", "--to")


def test_a_receiver_is_reached_from_this_host_alone_unless_behind_a_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(endpoints.DEPTH_VARIABLE, raising=False)
    assert endpoints.to_listen(":5004").address == "127.0.0.1"
    # A variable that was carried out of a run proves nothing.
    monkeypatch.setenv(endpoints.DEPTH_VARIABLE, "1")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 2, 17, "", ("192.0.2.1", 0))])
    assert endpoints.to_listen(":5004").address == "127.0.0.1"
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 2, 17, "", ("127.0.0.1", 0))])
    assert endpoints.to_listen(":5004").address in ("::", "0.0.0.0")


# Order.


def in_turn(buffer: ReorderBuffer[int], *numbers: int, at: int = 0) -> list[tuple[int, bool]]:
    return [
        (one.item, one.after_loss)
        for number in numbers
        for one in buffer.push(number % 65536, number, at)
    ]


def test_packets_are_put_into_order_and_holes_are_told() -> None:
    buffer: ReorderBuffer[int] = ReorderBuffer(100)
    assert in_turn(buffer, 65534, 65535, 65537) == [(65534, False), (65535, False)]
    assert in_turn(buffer, 65536, at=50) == [(65536, False), (65537, False)]
    assert in_turn(buffer, 65539, 65540, at=60) == []
    assert list(buffer.expire(159)) == []
    given = [(one.item, one.after_loss) for one in buffer.expire(160)]
    assert given == [(65539, True), (65540, False)]
    assert in_turn(buffer, 65538, 65540, 65540, 65530) == []
    assert (buffer.late, buffer.duplicates) == (2, 2)
    assert in_turn(buffer, 65543, at=200) == []
    assert [(one.item, one.after_loss) for one in buffer.flush()] == [(65543, True)]
    assert (buffer.first, buffer.highest) == (65534, 65543)


def test_the_buffer_agrees_with_sorting() -> None:
    """Without losses, and with delays below that of the buffer, everything comes in order."""
    draw = random.Random(5)
    numbers = sorted(range(2000), key=lambda number: number + draw.uniform(0, 20))
    numbers.remove(0)
    buffer: ReorderBuffer[int] = ReorderBuffer(50)
    found = in_turn(buffer, 0)
    for now, number in enumerate(numbers):
        found += in_turn(buffer, number, at=now)
        found += [(one.item, one.after_loss) for one in buffer.expire(now)]
    assert found == [(number, False) for number in range(2000)]


# Figures.


def test_jitter_by_hand() -> None:
    jitter = statistics.Jitter()
    # Frames each 10 ms; transits of 5, 5, 13 and 9 ms.
    for number, transit in enumerate((5, 5, 13, 9)):
        jitter.push((10 * number + transit) * 1_000_000, 900 * number)
    second = 8e6 / 16
    third = second + (4e6 - second) / 16
    assert jitter.now_ns == pytest.approx(third)
    assert jitter.mean_ns == pytest.approx((0 + second + third) / 3)
    assert jitter.highest_ns == pytest.approx(third)


def test_percentiles() -> None:
    assert statistics.spread([]) is None
    values = list(range(1, 21))
    found = statistics.spread(values)
    assert found == {"mean": 10, "median": 10, "p95": 19, "least": 1, "greatest": 20}


# Reception.


def received(
    tmp_path: Path, data: list[tuple[int, bytes]], *, delay_ns: int = 10**9
) -> tuple[bytes, receive.Reception]:
    """Return the bitstream of datagrams, each with its arrival in milliseconds."""
    path = tmp_path / "out"
    with path.open("wb") as file:
        reception = receive.Reception(file.fileno(), delay_ns)
        for at, one in data:
            reception.expire(at * 1_000_000)
            reception.push(transport.Arrival(one, at * 1_000_000, None))
        reception.end()
    return path.read_bytes(), reception


@pytest.fixture(scope="module")
def stream(clips: dict[str, Path]) -> Stream:
    return packetise.packetise(packetise.inspect(clips["h264"]), 200)


@needs_ffmpeg
def test_everything_in_any_order_gives_the_file(
    tmp_path: Path, stream: Stream, clips: dict[str, Path]
) -> None:
    data = [(n, rtp.build(packet)) for n, packet in enumerate(stream.packets)]
    order = [data[0], *sorted(data[1:], key=lambda one: one[0] ^ 3)]
    bitstream, reception = received(tmp_path, order)
    assert bitstream == clips["h264"].read_bytes()
    assert [frame.rtp_time for frame in reception.frames] == [9000 * n for n in range(20)]
    ends = [frame.offset_bytes + frame.length_bytes for frame in reception.frames]
    assert [frame.offset_bytes for frame in reception.frames] == [0, *ends[:-1]]
    assert sum(frame.packets for frame in reception.frames) == len(data)
    assert not reception.is_complete
    goodbye = rtp.build_goodbye(rtp.Goodbye(rtp.SSRC, len(data), 1), 0, 0)
    reception.push(transport.Arrival(goodbye, 0, None))
    assert reception.is_complete


@needs_ffmpeg
def test_strangers_are_not_of_the_stream(tmp_path: Path, stream: Stream) -> None:
    first = stream.packets[0]
    strange = [
        b"no rtp",
        rtp.build(first._replace(ssrc=1, sequence=1)),
        rtp.build(first._replace(payload_type=96, sequence=1)),
        rtp.build(first._replace(sequence=20_000)),
    ]
    data = [(0, rtp.build(first)), *((1, one) for one in strange)]
    _, reception = received(tmp_path, data)
    assert (len(reception.arrived), reception.invalid) == (1, 4)
    _, reception = received(tmp_path, [(0, rtp.build(first._replace(payload_type=0)))])
    assert (len(reception.arrived), reception.invalid) == (0, 1)


class Played:
    """A receiver that gives what it was given, and loses and damages some of it."""

    way = "udp-lite (raw)"
    refused = 0

    def __init__(self, data: list[bytes]) -> None:
        self.data = data

    def receive(self, wait_seconds: float) -> list[transport.Arrival]:
        """Return everything at once, then nothing."""
        given, self.data = self.data, []
        if not given:
            time.sleep(min(wait_seconds, 0.01))
        return [
            transport.Arrival(one, 1_000_000_000 + 1_000_000 * n, 22) for n, one in enumerate(given)
        ]

    def close(self) -> None:
        """Do nothing."""


LIMITS = receive.Limits(0.3, 0.3, None)


def played(tmp_path: Path, data: list[bytes], sent: Path | None = None) -> dict[str, Any]:
    return receive.receive(
        Played(data),
        out=tmp_path / "received.h264",
        transport_name="udp-lite",
        limits=LIMITS,
        reorder_delay_ns=10**7,
        sent=sent,
    )


@needs_ffmpeg
def test_losses_and_damage_are_counted(tmp_path: Path, stream: Stream) -> None:
    whole = [rtp.build(packet) for packet in stream.packets]
    lost, hit = {3, 4, 20, len(whole) - 1}, {7, 8, 30}
    data = []
    for number, one in enumerate(whole):
        damaged = bytearray(one)
        if number in hit:
            damaged[-1] ^= 0x40
        if number not in lost:
            data.append(bytes(damaged))
    data.append(rtp.build_goodbye(rtp.Goodbye(rtp.SSRC, len(whole), 1), 0, 0))
    log = tmp_path / "sent.csv"
    rows = [
        sentlog.Sent(
            n, packet.time, frame, int(packet.marker), len(one), 900_000_000, sentlog.crc32(one)
        )
        for n, (packet, frame, one) in enumerate(
            zip(stream.packets, stream.frames, whole, strict=True)
        )
    ]
    sentlog.write(log, rows)
    assert sentlog.read(log) == {row.sequence: row for row in rows}
    report = played(tmp_path, data, log)
    assert report["ended_by"] == "sender"
    assert report["packets_sent"] == len(whole)
    assert report["packets_received"] == len(whole) - 4
    assert report["packets_lost"] == 4
    assert report["packets_damaged"] == 3
    # Arrivals begin 100 ms behind the sending, 1 ms from one to the next.
    assert report["delay_ns"]["least"] == 100_000_000
    assert report["delay_ns"]["greatest"] == (100 + len(whole) - 5) * 1_000_000
    sizes = [len(one) for one in data[:-1]]
    assert report["bytes_received"] == sum(sizes)
    assert report["throughput_bps"] == round(sum(sizes) * 8 / (0.001 * (len(sizes) - 1)))
    notes = about.read(tmp_path / "received.h264")
    assert notes is not None
    frames = about.frames(notes, tmp_path / "received.h264", 10**6)
    assert frames is not None
    assert [row["damaged_packets"] for row in notes["frames"]] == [
        sum(stream.frames[n] == round(frame.rtp_time / 9000) for n in hit) for frame in frames
    ]


@needs_ffmpeg
def test_a_loss_is_counted_without_the_senders_word(tmp_path: Path, stream: Stream) -> None:
    data = [rtp.build(packet) for packet in stream.packets[:30]]
    del data[10:13]
    report = played(tmp_path, data)
    assert (report["ended_by"], report["packets_sent"]) == ("silence", None)
    assert (report["packets_lost"], report["packets_damaged"]) == (3, None)


def test_nothing_received_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(VideoError, match=r"no packet of a video arrived within 0\.3 s"):
        played(tmp_path, [])
    with pytest.raises(VideoError, match="1 datagrams were no RTP packets"):
        played(tmp_path, [b"hello"])
    assert list(tmp_path.iterdir()) == []


@needs_ffmpeg
def test_a_damaged_log_of_the_sender_loses_nothing(tmp_path: Path, stream: Stream) -> None:
    log = tmp_path / "sent.csv"
    log.write_text(",".join(sentlog.Sent._fields) + "\n1,2,x\n")
    data = [rtp.build(packet) for packet in stream.packets]
    with pytest.raises(VideoError, match=r"sent\.csv is damaged"):
        played(tmp_path, data, log)
    notes = json.loads((tmp_path / "received.h264.json").read_text())
    assert notes["packets_received"] == len(data)
    assert len(notes["frames"]) == 20


@needs_ffmpeg
def test_a_stream_over_loopback(tmp_path: Path, stream: Stream, clips: dict[str, Path]) -> None:
    """Sender and receiver with their sockets, all at once."""
    endpoint = endpoint_at("127.0.0.1")
    sender = transport.open_sender(endpoint, "udp", "auto")

    def run() -> None:
        for packet in stream.packets:
            sender.send(rtp.build(packet), 0)
        goodbye = rtp.Goodbye(rtp.SSRC, len(stream.packets), 1)
        sender.send(rtp.build_goodbye(goodbye, time.time_ns(), 0), 0)

    thread = threading.Thread(target=run)
    with receiving(endpoint, "udp", "auto") as receiver:
        thread.start()
        report = receive.receive(
            receiver,
            out=tmp_path / "received.h264",
            transport_name="udp",
            limits=receive.Limits(10, 2, None),
            reorder_delay_ns=10**8,
            sent=None,
        )
        thread.join()
    sender.close()
    assert (report["ended_by"], report["packets_lost"]) == ("sender", 0)
    assert (tmp_path / "received.h264").read_bytes() == clips["h264"].read_bytes()
