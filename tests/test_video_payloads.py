# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""RTP packets of video: cut by ffmpeg, put together again; UDP-Lite as bytes."""

from __future__ import annotations

import struct
from collections.abc import Collection
from pathlib import Path

import pytest

from airpath.video import about, packetise, payload_av1, payload_nal, rtp, udplite
from airpath.video.codecs import CODECS
from airpath.video.payloads import DEPACKETISERS
from videos import make_clip, needs_ffmpeg

# UDP-Lite (RFC 3828).


def words_sum(words: str) -> int:
    """Return the checksum over words in hexadecimal, with the carry put back at each step."""
    total = 0
    for word in words.split():
        total += int(word, 16)
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def test_the_checksum_of_rfc_1071() -> None:
    assert udplite.checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF ^ 0xDDF2
    assert udplite.checksum(b"\x01") == 0xFEFF


def test_a_packet_by_hand_over_ipv4() -> None:
    # 10.0.0.1 to 10.0.0.2, protocol 136, length 12; the first ten bytes are covered.
    covered = words_sum("0a00 0001 0a00 0002 0088 000c 1388 138c 000a 0000 4869")
    packet = udplite.build("10.0.0.1", "10.0.0.2", 5000, 5004, b"Hixx", 10)
    assert packet.hex() == f"1388138c000a{covered:04x}48697878"
    # By hand: the words above add up to 0x841e without a carry.
    assert covered == 0xFFFF - 0x841E
    found = udplite.parse("10.0.0.1", "10.0.0.2", packet)
    assert found == udplite.Datagram(5000, 5004, 10, b"Hixx")


def test_a_packet_by_hand_over_ipv6() -> None:
    pseudo = "fe80 0 0 0 0 0 0 1 fe80 0 0 0 0 0 0 2 0 000c 0 0088"
    value = words_sum(f"{pseudo} 1388 138c 0000 0000 4869 7878")
    packet = udplite.build("fe80::1%eth0", "fe80::2", 5000, 5004, b"Hixx", 0)
    assert packet.hex() == f"1388138c0000{value:04x}48697878"
    found = udplite.parse("fe80::1", "fe80::2", packet)
    assert found == udplite.Datagram(5000, 5004, 12, b"Hixx")


@pytest.mark.parametrize(("asked", "field"), [(0, 0), (8, 8), (11, 11), (12, 12), (5000, 12)])
def test_coverage_is_written_as_linux_writes_it(asked: int, field: int) -> None:
    packet = udplite.build("10.0.0.1", "10.0.0.2", 1, 2, b"Hixx", asked)
    assert struct.unpack_from("!H", packet, 4) == (field,)
    assert udplite.parse("10.0.0.1", "10.0.0.2", packet) is not None


@pytest.mark.parametrize("coverage", [0, 8, 9, 12, 20])
def test_damage_is_refused_within_the_coverage_alone(coverage: int) -> None:
    payload = bytes(range(20))
    packet = udplite.build("10.0.0.1", "10.0.0.2", 1, 2, payload, coverage)
    covered = coverage or len(packet)
    for place in range(6, len(packet)):
        damaged = bytearray(packet)
        damaged[place] ^= 0x10
        found = udplite.parse("10.0.0.1", "10.0.0.2", bytes(damaged))
        assert (found is None) == (place < covered), place
        if found is not None:
            assert found.payload == bytes(damaged[8:])
    assert udplite.parse("10.0.0.1", "10.0.0.3", packet) is None


def test_illegal_packets_are_refused() -> None:
    packet = udplite.build("10.0.0.1", "10.0.0.2", 1, 2, b"1234", 0)
    for field in (1, 7, 13, 65535):
        changed = packet[:4] + struct.pack("!H", field) + packet[6:]
        assert udplite.parse("10.0.0.1", "10.0.0.2", changed) is None, field
    assert udplite.parse("10.0.0.1", "10.0.0.2", packet[:6] + b"\0\0" + packet[8:]) is None
    assert udplite.parse("10.0.0.1", "10.0.0.2", packet[:7]) is None
    with pytest.raises(ValueError, match="ends within the header"):
        udplite.build("10.0.0.1", "10.0.0.2", 1, 2, b"", 7)


def test_a_checksum_of_zero_is_sent_as_ones() -> None:
    value = int.from_bytes(udplite.build("10.0.0.1", "10.0.0.2", 1, 2, b"\0\0", 0)[6:8], "big")
    # The sum is the complement of the checksum: with the checksum in it, it is all ones.
    packet = udplite.build("10.0.0.1", "10.0.0.2", 1, 2, struct.pack("!H", value), 0)
    assert packet[6:8] == b"\xff\xff"
    assert udplite.parse("10.0.0.1", "10.0.0.2", packet) is not None


# RTP and RTCP (RFC 3550).


def test_an_rtp_packet_by_hand() -> None:
    packet = rtp.Packet(97, True, 0x1234, 0x11223344, 0x55667788, b"abc")
    data = bytes.fromhex("80e1 1234 11223344 55667788 616263")
    assert rtp.build(packet) == data
    assert rtp.parse(data) == packet


def test_csrcs_extension_and_padding_are_no_payload() -> None:
    data = bytes.fromhex("b1 61 0001 00000000 00000000 aaaaaaaa bede0001 01020304 6869 0002")
    found = rtp.parse(data)
    assert found is not None
    assert found.payload == b"hi"
    assert rtp.parse(data[:20]) is None
    assert rtp.parse(b"\x40" + data[1:]) is None


def test_a_goodbye_says_how_much_was_sent() -> None:
    data = rtp.build_goodbye(rtp.Goodbye(7, 1000, 123456), 1_500_000_000, 90_000)
    assert data[:4].hex() == "80c80006"
    seconds, fraction, time = struct.unpack_from("!III", data, 8)
    assert (seconds, fraction, time) == (2_208_988_801, 1 << 31, 90_000)
    assert data[28:].hex() == "81cb000100000007"
    assert rtp.is_rtcp(data)
    assert rtp.parse(data) is None
    assert rtp.parse_goodbye(data) == rtp.Goodbye(7, 1000, 123456)
    assert rtp.parse_goodbye(data[:28]) is None
    assert rtp.parse_goodbye(data[:20]) is None


# Payloads.


def joined(codec: str, packets: list[rtp.Packet], lost: Collection[int] = ()) -> bytes:
    """Return the bitstream of packets of which some are lost."""
    depacketiser, out, before, after_loss = DEPACKETISERS[codec](), b"", -1, False
    for packet in packets:
        if packet.sequence in lost:
            after_loss = True
            continue
        if packet.time != before:
            out += depacketiser.begin_frame()
        before = packet.time
        out += depacketiser.push(packet.payload, after_loss=after_loss)
        after_loss = False
    return out


@needs_ffmpeg
@pytest.mark.parametrize("codec", CODECS)
def test_packets_give_the_bitstream_back(codec: str, clips: dict[str, Path]) -> None:
    file = clips[codec]
    source = packetise.inspect(file)
    assert (source.codec.name, source.width, source.height) == (codec, 176, 144)
    assert source.frames_per_second == 10
    for packet_bytes in (100, 1400):
        stream = packetise.packetise(source, packet_bytes)
        assert joined(codec, stream.packets) == file.read_bytes()
        sizes = [len(rtp.build(packet)) for packet in stream.packets]
        assert max(sizes) <= packet_bytes
        assert [packet.sequence for packet in stream.packets] == list(range(len(sizes)))
        assert sorted(set(stream.frames)) == list(range(20))
        assert [packet.time for packet in stream.packets] == [9000 * n for n in stream.frames]
        marked = [n for n, packet in enumerate(stream.packets) if packet.marker]
        changes = [n for n in range(len(sizes)) if [*stream.frames, -1][n + 1] != stream.frames[n]]
        assert marked == changes


@needs_ffmpeg
@pytest.mark.parametrize("codec", CODECS)
def test_the_rest_of_the_bitstream_survives_a_loss(codec: str, clips: dict[str, Path]) -> None:
    stream = packetise.packetise(packetise.inspect(clips[codec]), 200)
    whole = clips[codec].read_bytes()
    # All packets of the tenth frame, and one in the middle of the first.
    tenth = {n for n, frame in enumerate(stream.frames) if frame == 10}
    last = {n for n, frame in enumerate(stream.frames) if frame > 10}
    out = joined(codec, stream.packets, tenth)
    assert out == joined(codec, stream.packets, tenth | last) + joined(
        codec, stream.packets, set(range(max(tenth) + 1))
    )
    assert len(out) < len(whole)
    with_hole = joined(codec, stream.packets, {1})
    lost = len(whole) - len(with_hole)
    first_frame = [n for n, frame in enumerate(stream.frames) if frame == 0]
    assert 0 < lost <= sum(len(stream.packets[n].payload) for n in first_frame)
    assert whole.endswith(with_hole[-200:])


def test_a_unit_that_lost_a_fragment_is_cut_there() -> None:
    unit = b"\x65" + bytes(range(1, 30))
    begin = bytes([0x7C, 0x85]) + unit[1:11]
    middle = bytes([0x7C, 0x05]) + unit[11:21]
    end = bytes([0x7C, 0x45]) + unit[21:]
    h264 = payload_nal.H264()
    whole = b"".join(h264.push(part, after_loss=False) for part in (begin, middle, end))
    assert whole == payload_nal.START_CODE + unit
    assert h264.push(begin, after_loss=False) == payload_nal.START_CODE + unit[:11]
    assert h264.push(end, after_loss=True) == b""
    assert h264.push(middle, after_loss=False) == b""
    several = bytes.fromhex("18 0002 6701 0003 680203")
    expected = bytes.fromhex("00000001 6701 00000001 680203")
    assert h264.push(several, after_loss=True) == expected
    assert h264.push(b"", after_loss=False) == h264.push(b"\x1e", after_loss=False) == b""


def test_h263_waits_for_a_start_code_after_a_loss() -> None:
    h263 = DEPACKETISERS["h263p"]()
    assert h263.push(bytes.fromhex("0400 8002"), after_loss=False) == bytes.fromhex("0000 8002")
    assert h263.push(bytes.fromhex("0000 1122"), after_loss=False) == bytes.fromhex("1122")
    assert h263.push(bytes.fromhex("0000 1122"), after_loss=True) == b""
    assert h263.push(bytes.fromhex("0000 3344"), after_loss=False) == b""
    # With a byte for redundancy (V) and two bytes of an extra picture header (PLEN).
    data = bytes.fromhex("0610 ff aaaa 8003")
    assert h263.push(data, after_loss=False) == bytes.fromhex("0000 8003")


def test_leb128_of_the_specification() -> None:
    for value, data in ((0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (16384, "808001")):
        assert payload_av1.leb128(value).hex() == data
        assert payload_av1.read_leb128(bytes.fromhex(data), 0) == (value, len(data) // 2)
    assert payload_av1.read_leb128(b"\x80", 0) is None
    with pytest.raises(ValueError, match="negative"):
        payload_av1.leb128(-1)


def test_an_obu_shorter_than_its_header_is_left_out() -> None:
    av1 = payload_av1.Depacketiser()
    # One element of one byte, which promises a second one by its extension flag.
    assert av1.push(bytes.fromhex("00 01 34"), after_loss=False) == b""
    assert av1.push(bytes.fromhex("00 02 3001"), after_loss=False) == bytes.fromhex("32 01 01")


@needs_ffmpeg
def test_the_test_video_is_the_same_each_time(tmp_path: Path, clips: dict[str, Path]) -> None:
    for codec in ("h263p", "h264"):
        again = tmp_path / clips[codec].name
        notes = make_clip(again, codec)
        assert again.read_bytes() == clips[codec].read_bytes()
        assert notes["bytes"] == again.stat().st_size
        assert about.read(again) == notes
