# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Reading of captures and of packet headers."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from airpath.capture import CaptureError, read_capture
from pcapng import Packet, capture, ip, sack, tcp, udp

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

A, B = ("10.77.0.1", 40000), ("10.77.0.2", 80)
A6, B6 = ("fd00::1", 40000), ("fd00::2", 80)


def read(path: Path, *contents: bytes, snaplen: int = 128) -> pl.DataFrame:
    packets = [Packet(1000 + n, n % 2, content, n + 1) for n, content in enumerate(contents)]
    path.write_bytes(capture(packets, snaplen))
    return read_capture(path).packets


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "client.pcapng"


@pytest.mark.parametrize("earlier", [False, True])
def test_ids_stamps_comments_and_lengths_survive(path: Path, *, earlier: bool) -> None:
    stamp = 1_790_000_000_123_456_789
    long = tcp(A, B, sequence=1, payload=1460)
    packets = [
        Packet(stamp, 0, long, pdu=(1 << 63) + 5, comment="dropped: queue_packets at radio"),
        Packet(stamp + 1, 1, tcp(B, A, sequence=2), pdu=7),
    ]
    path.write_bytes(capture(packets, earlier=earlier))
    rows = read_capture(path).packets.to_dicts()
    assert rows[0]["time_ns"] == stamp
    assert [row["interface"] for row in rows] == ["rx", "tx"]
    assert [row["pdu"] for row in rows] == [(1 << 63) + 5, 7]
    assert rows[0]["comment"] == "dropped: queue_packets at radio"
    assert rows[0]["length"] == len(long) == 1500
    assert rows[0]["payload"] == 1460, "by the header's length, whatever was captured"


def test_link_headers_are_no_part_of_packets(path: Path) -> None:
    addresses = bytes(range(2, 14))
    packet = tcp(A, B, sequence=9, payload=10)
    headers = ["0800", "810000070800", "88a80001810000070800"]
    frames = [addresses + bytes.fromhex(header) + packet for header in headers]
    # What looks like IPv4 and says that it is ARP; a frame cut within its tags.
    frames += [addresses + b"\x08\x06" + packet, addresses + b"\x81\x00\x00"]
    path.write_bytes(
        capture([Packet(n, 0, frame, n + 1) for n, frame in enumerate(frames)], link_type=1)
    )
    packets = read_capture(path).packets
    assert packets["length"].to_list() == [len(packet)] * 4 + [0]
    assert packets["payload"].to_list()[:3] == [10] * 3
    ports = packets["destination_port"].to_list()
    assert ports[:3] == [80] * 3
    assert 80 not in ports[3:]


def test_a_packet_of_no_direction_marks_a_drop(path: Path) -> None:
    path.write_bytes(capture([Packet(1, -1, tcp(A, B, sequence=1)), Packet(2, 1, b"")]))
    assert read_capture(path).packets["interface"].to_list() == ["drop", "tx"]
    path.write_bytes(capture([Packet(1, 2, tcp(A, B, sequence=1))]))
    with pytest.raises(CaptureError, match="no valid direction"):
        read_capture(path)


@pytest.mark.parametrize(("source", "destination"), [(A, B), (A6, B6)], ids=["IPv4", "IPv6"])
def test_tcp_fields(path: Path, source: tuple[str, int], destination: tuple[str, int]) -> None:
    content = tcp(
        source, destination, sequence=4_000_000_000, acknowledgement=5, flags=0x12, payload=100
    )
    (row,) = read(path, content).to_dicts()
    assert (row["source"], row["source_port"]) == source
    assert (row["destination"], row["destination_port"]) == destination
    assert row["protocol"] == 6
    assert (row["sequence"], row["acknowledgement"]) == (4_000_000_000, 5)
    assert (row["flags"], row["window"], row["payload"]) == (0x12, 65535, 100)


def test_sack_blocks_among_other_options(path: Path) -> None:
    blocks = [(10, 20), (4_294_967_290, 4)]
    time_stamp = b"\x01\x01\x08\x0a" + bytes(8)
    frame = read(
        path,
        tcp(A, B, sequence=1, options=time_stamp + sack(blocks)),
        tcp(A, B, sequence=1, options=time_stamp),
        tcp(A, B, sequence=1, options=sack(blocks[:1])),
        tcp(A6, B6, sequence=1, options=time_stamp + sack([*blocks, (30, 40)])),
        tcp(A, B, sequence=1, options=b"\x05\x01"),  # a length that cannot be
    )
    assert frame["sack"].to_list() == [
        [10, 20, 4_294_967_290, 4],
        None,
        [10, 20],
        [10, 20, 4_294_967_290, 4, 30, 40],
        None,
    ]


def test_udp_and_other_protocols(path: Path) -> None:
    icmp = ip(A[0], B[0], 1, bytes(64))
    rows = read(path, udp(A, B, 300), icmp).to_dicts()
    assert (rows[0]["protocol"], rows[0]["payload"], rows[0]["source_port"]) == (17, 300, 40000)
    assert (rows[1]["protocol"], rows[1]["payload"], rows[1]["source_port"]) == (1, 0, 0)


def test_ipv6_extension_headers_are_stepped_over(path: Path) -> None:
    segment = tcp(A6, B6, sequence=9, payload=10)[40:]
    hop_by_hop = bytes([60, 0]) + bytes(6)
    destination_options = bytes([6, 1]) + bytes(14)
    (row,) = read(path, ip(A6[0], B6[0], 0, hop_by_hop + destination_options + segment)).to_dicts()
    assert (row["protocol"], row["source_port"], row["payload"]) == (6, 40000, 10)


def test_later_fragments_have_no_ports(path: Path) -> None:
    content = bytearray(udp(A, B, 300))
    content[6:8] = struct.pack(">H", 185)
    (row,) = read(path, bytes(content)).to_dicts()
    assert (row["source_port"], row["payload"]) == (0, 0)


@pytest.mark.parametrize("length", [0, 1, 19, 20, 39, 40])
def test_headers_cut_short_are_no_error(path: Path, length: int) -> None:
    frame = read(path, tcp(A, B, sequence=1, payload=10)[:length])
    assert frame.height == 1
    assert frame["source_port"][0] == (40000 if length == 40 else 0)


def test_a_capture_cut_anywhere_keeps_its_complete_packets(path: Path) -> None:
    packets = [Packet(n, 0, tcp(A, B, sequence=n, payload=50), n) for n in range(1, 9)]
    content = capture(packets)
    seen = set()
    for length in range(0, len(content), 3):
        path.write_bytes(content[:length])
        read_back = read_capture(path)
        assert read_back.packets["pdu"].to_list() == list(range(1, read_back.packets.height + 1))
        assert 0 <= read_back.torn_bytes <= length
        seen.add(read_back.packets.height)
    assert seen == set(range(len(packets)))


def test_a_damaged_block_ends_what_is_read_or_is_refused(path: Path) -> None:
    packets = [Packet(1000 + n, 0, tcp(A, B, sequence=n), n + 1) for n in range(3)]
    whole = capture(packets)
    block = (len(whole) - len(capture([]))) // 3
    # The second length of the second packet's block is another than the first.
    damaged = bytearray(whole)
    damaged[len(whole) - block - 4] ^= 4
    path.write_bytes(damaged)
    read_back = read_capture(path)
    assert read_back.packets.height == 1
    assert read_back.torn_bytes == 2 * block
    # More bytes captured than the block holds.
    damaged = bytearray(whole)
    damaged[len(whole) - block + 8 + 12 + 1] ^= 0x40
    path.write_bytes(damaged)
    with pytest.raises(CaptureError, match="contradicts itself"):
        read_capture(path)


def test_what_is_no_capture_is_refused_by_name(path: Path) -> None:
    path.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(40))  # the older pcap format
    with pytest.raises(CaptureError, match=r"client\.pcapng: not a pcapng"):
        read_capture(path)


def test_another_link_type_is_refused(path: Path) -> None:
    content = bytearray(capture([]))
    interface = content.index(struct.pack("<I", 1), 28)
    content[interface + 8 : interface + 10] = struct.pack("<H", 113)
    path.write_bytes(bytes(content))
    with pytest.raises(CaptureError, match="link type 113;"):
        read_capture(path)


def test_big_endian_sections_and_other_units_of_time(path: Path) -> None:
    def block(kind: int, body: bytes) -> bytes:
        length = struct.pack(">I", len(body) + 12)
        return struct.pack(">I", kind) + length + body + length

    def option(code: int, value: bytes) -> bytes:
        return struct.pack(">HH", code, len(value)) + value + bytes(-len(value) % 4)

    content = tcp(A, B, sequence=3)
    stamp = 1_790_000_000_123_456
    head = struct.pack(">5I", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(content), len(content))
    options = option(2, struct.pack(">I", 2)) + option(5, struct.pack(">Q", 1 << 40))
    options += option(1, b"odd") + bytes(4)
    big = block(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1))
    big += block(1, struct.pack(">HHI", 101, 0, 128) + option(2, b"link") + bytes(4))
    big += block(6, head + content + options)
    # A second section, of the other order of bytes.
    path.write_bytes(big + capture([Packet(7, 0, content, 8)]))
    rows = read_capture(path).packets.to_dicts()
    assert [row["time_ns"] for row in rows] == [stamp * 1000, 7], "microseconds unless told"
    assert [row["interface"] for row in rows] == ["tx", "rx"]
    assert [row["pdu"] for row in rows] == [1 << 40, 8]
    assert [row["comment"] for row in rows] == ["odd", ""]
    assert [row["sequence"] for row in rows] == [3, 3]


def test_a_packet_of_no_declared_interface_is_refused(path: Path) -> None:
    whole = bytearray(capture([Packet(1, 0, tcp(A, B, sequence=1))]))
    block = len(whole) - len(capture([]))
    whole[-block + 8] = 1
    path.write_bytes(whole)
    with pytest.raises(CaptureError, match="undeclared interface"):
        read_capture(path)
