# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""qlog files of a real QUIC connection, between two ends of aioquic in one process.

No socket and no clock: datagrams go through a queue with a delay, some are lost, and time is what
the queue says.
"""

from __future__ import annotations

import datetime
import heapq
import itertools
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import StreamDataReceived
from aioquic.quic.logger import QuicLogger
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DELAY_S = 0.020
SIZE = 300_000
LOST = range(60, 160, 20)
"""Numbers of the server's datagrams that are lost."""
DROPPED = len(LOST)
CLIENT, SERVER = ("192.0.2.1", 1), ("192.0.2.2", 2)


@dataclass
class End:
    """One end's own statistics at the end of the transfer."""

    packets_sent: int = 0
    least_rtt_s: float = 0.0
    windows: list[int] = field(default_factory=list)


def write(folder: Path) -> dict[str, End]:
    """Write a file of each end, the server's as JSON text sequence; return what the ends knew."""
    ends, loggers = _transfer()
    for name, logger in loggers.items():
        (trace,) = logger.to_dict()["traces"]
        head = {key: value for key, value in trace.items() if key != "events"}
        if name == "client.qlog":
            (folder / name).write_text(json.dumps({"qlog_version": "0.3", "traces": [trace]}))
        else:
            records = [{"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": head}]
            text = "".join(f"\x1e{json.dumps(one)}\n" for one in [*records, *trace["events"]])
            (folder / name).write_text(text)
    return ends


def _transfer() -> tuple[dict[str, End], dict[str, QuicLogger]]:
    """Let the client ask, and the server answer with data."""
    loggers = {"client.qlog": QuicLogger(), "server.sqlog": QuicLogger()}
    at_client = QuicConfiguration(is_client=True, quic_logger=loggers["client.qlog"])
    at_server = QuicConfiguration(is_client=False, quic_logger=loggers["server.sqlog"])
    with tempfile.TemporaryDirectory() as folder:
        _certificate(at_server, at_client, Path(folder))
    client = QuicConnection(configuration=at_client)
    client.connect(SERVER, now=0.0)
    server = QuicConnection(
        configuration=at_server,
        original_destination_connection_id=client.original_destination_connection_id,
    )
    ends = {"client.qlog": (client, SERVER, End()), "server.sqlog": (server, CLIENT, End())}
    under_way: list[tuple[float, int, str, bytes]] = []
    order = itertools.count()
    now = 0.0
    asked = answered = False
    received = sent_by_server = 0
    while now < 60:
        for name, (connection, _, knew) in ends.items():
            if not connection._network_paths:
                continue  # a server that has heard of nobody yet
            for data, _ in connection.datagrams_to_send(now=now):
                if name == "server.sqlog":
                    sent_by_server += 1
                    if sent_by_server in LOST:
                        continue
                other = "client.qlog" if name == "server.sqlog" else "server.sqlog"
                heapq.heappush(under_way, (now + DELAY_S, next(order), other, data))
            knew.windows.append(connection._loss.congestion_window)
        timers = [one.get_timer() for one, _, _ in ends.values()]
        due = [time for time in timers if time is not None] + [one[0] for one in under_way[:1]]
        if not due:
            break
        now = max(now, min(due))
        for connection, _, _ in ends.values():
            timer = connection.get_timer()
            if timer is not None and timer <= now:
                connection.handle_timer(now=now)
        while under_way and under_way[0][0] <= now:
            _, _, name, data = heapq.heappop(under_way)
            connection, peer, knew = ends[name]
            connection.receive_datagram(data, peer, now=now)
            knew.windows.append(connection._loss.congestion_window)
        while (event := server.next_event()) is not None:
            if isinstance(event, StreamDataReceived) and not answered:
                answered = True
                server.send_stream_data(event.stream_id, bytes(SIZE), end_stream=True)
        while (event := client.next_event()) is not None:
            if isinstance(event, StreamDataReceived):
                received += len(event.data)
        if client._handshake_complete and not asked:
            asked = True
            client.send_stream_data(client.get_next_available_stream_id(), b"x", end_stream=True)
        if received == SIZE:
            break
    assert received == SIZE, f"{received} of {SIZE} bytes came"
    found = {}
    for name, (connection, _, knew) in ends.items():
        knew.packets_sent = connection._packet_number
        knew.least_rtt_s = connection._loss._rtt_min
        found[name] = knew
    return found, loggers


def _certificate(server: Any, client: Any, folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("server")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (folder / "certificate").write_bytes(pem)
    (folder / "key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server.load_cert_chain(folder / "certificate", folder / "key")
    client.load_verify_locations(cadata=pem)
    client.server_name = "server"
