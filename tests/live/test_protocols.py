# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Transfers of real programs through a link, compared byte for byte, by many protocols."""

from __future__ import annotations

import datetime
import ipaddress
import json
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from airpath.run import load_run
from live.programs import IPPROTO_UDPLITE, content, datagram

if TYPE_CHECKING:
    from live.harness import Airpath, Way

FAMILIES = ("4", "6")


def has_udplite() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM, IPPROTO_UDPLITE).close()
    except OSError:
        return False
    return True


needs_udplite = pytest.mark.skipif(not has_udplite(), reason="this kernel has no UDP-Lite")


@pytest.mark.parametrize("family", FAMILIES)
def test_tcp(airpath: Airpath, way: Way, family: str) -> None:
    server = airpath.server("tcp-server", family, 5000, airpath.path("counters"))
    client = airpath.program("tcp-client", family, 5000, 3_000_000, 2_000_000)
    result = airpath.exec(way, "--delay", "3 ms", "--server", server, "--", *client).check()
    summary = result.summary()
    assert summary["uplink"]["delivered_bytes"] > 3_000_000
    assert summary["downlink"]["delivered_bytes"] > 2_000_000
    assert summary["uplink"]["dropped"] == []


@pytest.mark.parametrize("mtu", [9000, 65535])
def test_tcp_with_a_large_mtu(airpath: Airpath, port_way: Way, mtu: int) -> None:
    server = airpath.server("tcp-server", 6, 5000, airpath.path("counters"))
    client = airpath.program("tcp-client", 6, 5000, 2_000_000, 2_000_000)
    out = airpath.path("run")
    arguments = ("--mtu", mtu, "--out", out, "--log", "events", "--server", server, "--", *client)
    airpath.exec(port_way, *arguments).check()
    assert longest_offered(out) > 0.9 * mtu if mtu == 9000 else longest_offered(out) > 30_000
    assert longest_offered(out) <= mtu


@pytest.mark.parametrize("mtu", [296, 68])
def test_tcp_with_a_small_mtu_is_ipv4_only(airpath: Airpath, port_way: Way, mtu: int) -> None:
    server = airpath.server("tcp-server", 4, 5000, airpath.path("counters"))
    client = airpath.program("tcp-client", 4, 5000, 40_000, 40_000)
    out = airpath.path("run")
    arguments = ("--mtu", mtu, "--out", out, "--log", "events", "--server", server, "--", *client)
    result = airpath.exec(port_way, *arguments).check()
    assert "IPv4 only" in result.err
    assert str(mtu) in result.err
    assert longest_offered(out) == mtu


def test_names_with_a_small_mtu_are_ipv4_only(airpath: Airpath, port_way: Way) -> None:
    command = airpath.program("resolve", "server", "client")
    result = airpath.exec(port_way, "--mtu", 1279, "--", *command).check()
    found = json.loads(result.out)
    assert found["server4"].count(".") == 3
    assert ":" not in found["server6"].split()[0]


def longest_offered(out: Path) -> int:
    """Return the length in bytes of the longest packet that was offered to the link."""
    events = load_run(out).path_events("offered")
    return int(events["bits"].max()) // 8  # type: ignore[arg-type]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("protocol", "coverage"),
    [
        ("udp", 0),
        pytest.param("udplite", 0, marks=needs_udplite),
        pytest.param("udplite", 8, marks=needs_udplite),
    ],
)
def test_datagrams(airpath: Airpath, way: Way, family: str, protocol: str, coverage: int) -> None:
    count, length = 50, 700
    path, report = airpath.path("datagrams"), airpath.path("counters")
    server = airpath.server("datagram-server", family, protocol, coverage, 5000, path, report)
    client = airpath.program(
        "datagram-client", family, protocol, coverage, 5000, count, length, 0.002, 5
    )
    result = airpath.exec(way, "--delay", "2 ms", "--server", server, "--", *client).check()
    received = [bytes.fromhex(line.split()[1]) for line in path.read_text().splitlines()]
    assert received == [datagram(number, length) for number in range(count)]
    assert json.loads(result.out) == list(range(count))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("effect", ["none", "drop", "corrupt"])
def test_datagrams_segmented_by_the_kernel(
    airpath: Airpath, port_way: Way, family: str, effect: str
) -> None:
    # Ten datagrams come to the link as one; each is a packet of its own there.
    path, report = airpath.path("datagrams"), airpath.path("counters")
    server = airpath.server("datagram-server", family, "udp", 0, 5000, path, report)
    client = airpath.program("burst-client", family, 5000, 300, 1000)
    errors = f'{{ type = "bernoulli", per = "packet", probability = 0.1, effect = "{effect}" }}'
    changes = () if effect == "none" else ("--set", f"radio.uplink.errors={errors}")
    out = airpath.path("run")
    arguments = ("--out", out, "--log", "events", "--delay", "2 ms", "--server", server, *changes)
    airpath.exec(port_way, *arguments, "--", *client).check()
    received = [bytes.fromhex(line.split()[1]) for line in path.read_text().splitlines()]
    sent = [datagram(number, 1000) for number in range(300)]
    kinds = load_run(out).events.filter(pl.col("direction") == "uplink")["kind"].value_counts()
    count = dict(zip(*(column.to_list() for column in kinds), strict=True))
    assert count["offered"] == 300
    if effect == "none":
        assert received == sent
    else:
        hit = count["dropped" if effect == "drop" else "damaged"]
        assert 5 < hit < 80
        assert len(received) >= 300 - hit
        assert set(received) <= set(sent)


@pytest.mark.parametrize("family", FAMILIES)
def test_datagrams_longer_than_the_mtu(airpath: Airpath, port_way: Way, family: str) -> None:
    # Cut up by the sender's kernel (IP fragments), put together by the receiver's.
    path, report = airpath.path("datagrams"), airpath.path("counters")
    server = airpath.server("datagram-server", family, "udp", 0, 5000, path, report)
    client = airpath.program("datagram-client", family, "udp", 0, 5000, 10, 9000, 0.002, 5)
    airpath.exec(port_way, "--delay", "2 ms", "--server", server, "--", *client).check()
    received = [bytes.fromhex(line.split()[1]) for line in path.read_text().splitlines()]
    assert received == [datagram(number, 9000) for number in range(10)]


@pytest.mark.parametrize("family", FAMILIES)
def test_ping(airpath: Airpath, way: Way, family: str) -> None:
    # Longer than the MTU, so that fragments of ICMP pass as well.
    command = ("ping", f"-{family}", "-c", "3", "-i", "0.1", "-s", "3000", "server")
    result = airpath.exec(way, "--delay", "1 ms", "--", *command).check()
    assert "3 received, 0% packet loss" in result.out


@pytest.mark.parametrize("family", FAMILIES)
def test_quic(airpath: Airpath, way: Way, family: str) -> None:
    aioquic = pytest.importorskip("aioquic", reason="the package aioquic is not installed")
    packages = Path(aioquic.__file__).parents[1]
    program = airpath.work.parent / "quic.py"
    environment = {"PYTHONPATH": str(packages)}
    probe = subprocess.run(
        [*way.user.prefix, airpath.python, "-c", "import aioquic.asyncio"],
        env={**airpath.environment(), **environment},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode:
        pytest.skip(f"{way.user} cannot import aioquic from {packages}: {probe.stderr}")
    certificate, key = certificate_and_key(airpath)
    server = f"{airpath.python} {program} server {family} 4433 {certificate} {key}"
    client = (airpath.python, program, "client", family, 4433, certificate, 300_000)
    result = airpath.exec(
        way, "--delay", "2 ms", "--server", server, "--", *client, environment=environment
    ).check()
    assert result.out == "300000 bytes came back\n"


def certificate_and_key(airpath: Airpath) -> tuple[Path, Path]:
    """Make a certificate for the name `server`, signed by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    now = datetime.datetime.now(datetime.UTC)
    ends = [
        x509.DNSName("server"),
        x509.IPAddress(ipaddress.ip_address("10.77.0.1")),
        x509.IPAddress(ipaddress.ip_address("fd61:6972:7000::1")),
    ]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(ends), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    text = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain).decode()
    return (
        airpath.file("certificate.pem", certificate.public_bytes(pem).decode()),
        airpath.file("key.pem", text),
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_download_with_curl(airpath: Airpath, way: Way, family: str) -> None:
    data = content(7, 1_500_000)
    airpath.path("data.bin").write_bytes(data)
    airpath.path("data.bin").chmod(0o644)
    copy = airpath.path("copy.bin")
    server = airpath.server("http-server", family, 8000, airpath.path("data.bin").parent)
    client = (
        "curl", f"-{family}", "-sS", "--fail", "--max-time", "60",
        "-o", copy, "http://server:8000/data.bin",
    )  # fmt: skip
    arguments = ("--rate", "50 Mbit/s", "--delay", "5 ms", "--server", server, "--", *client)
    airpath.exec(way, *arguments).check()
    assert copy.read_bytes() == data


@pytest.mark.skipif(not shutil.which("iperf3"), reason="iperf3 is not installed")
@pytest.mark.parametrize("reverse", [(), ("-R",)], ids=["up", "down"])
def test_iperf3(airpath: Airpath, way: Way, reverse: tuple[str, ...]) -> None:
    client = ("iperf3", "-c", "server", "-n", "3M", "-J", *reverse)
    arguments = ("--rate", "40 Mbit/s", "--delay", "2 ms", "--server", "iperf3 -s -1 >&2")
    result = airpath.exec(way, *arguments, "--", *client).check()
    end = json.loads(result.out)["end"]
    assert end["sum_received"]["bytes"] > 2_000_000
    assert end["sum_received"]["bits_per_second"] < 41e6


def test_names_and_addresses(airpath: Airpath, way: Way) -> None:
    command = airpath.program("resolve", "server", "client", "server0", "client0")
    found = json.loads(airpath.exec(way, "--", *command).check().out)
    assert found["server4"] == found["server04"] == "10.77.0.1"
    assert found["client4"] == found["client04"] == "10.77.0.2"
    assert found["server6"] == found["server06"] == "fd61:6972:7000::1"
    assert found["client6"] == found["client06"] == "fd61:6972:7000::2"
    # A query for any other name is refused at once: there is no name server.
    result = airpath.exec(way, "--", "sh", "-c", "getent hosts example.org; cat /etc/hosts")
    assert result.seconds < 30
    assert re.search(r"^10\.77\.0\.1\s+server\b", result.out, re.MULTILINE), result.out
