# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A QUIC server and client (aioquic) that exchange known bytes.

Usage: quic.py server FAMILY PORT CERTIFICATE KEY | quic.py client FAMILY PORT CERTIFICATE LENGTH
"""

from __future__ import annotations

import asyncio
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration
from programs import ANY, address, content  # type: ignore[import-not-found]

NAME = "server"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a request back."""
    writer.write(await reader.read())
    writer.write_eof()


async def run_server(family: str, port: str, certificate: str, key: str) -> None:
    """Serve until killed."""
    configuration = QuicConfiguration(is_client=False)
    configuration.load_cert_chain(certificate, key)
    tasks = set()

    def on_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(answer(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    await serve(ANY[family], int(port), configuration=configuration, stream_handler=on_stream)
    await asyncio.Event().wait()


async def run_client(family: str, port: str, certificate: str, length: str) -> None:
    """Send `length` bytes, and check that they come back."""
    configuration = QuicConfiguration(is_client=True, server_name=NAME)
    configuration.load_verify_locations(certificate)
    host = address(NAME, int(port), family)[0]
    async with connect(host, int(port), configuration=configuration) as connection:
        reader, writer = await connection.create_stream()
        data = content(3, int(length))
        writer.write(data)
        writer.write_eof()
        if await reader.read() != data:
            sys.exit("something else came back than was sent")
    print(f"{length} bytes came back")


if __name__ == "__main__":
    asyncio.run({"server": run_server, "client": run_client}[sys.argv[1]](*sys.argv[2:]))
