# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""HTTP server that answers every GET with 300 kB, over IPv4 and IPv6.

Usage: server.py PORT
"""

from __future__ import annotations

import contextlib
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = bytes(300_000)


class Answers(BaseHTTPRequestHandler):
    """The same answer to every request."""

    def do_GET(self) -> None:
        """Answer a request."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        # A client that gave up is none of the server's errors.
        with contextlib.suppress(ConnectionError):
            self.wfile.write(CONTENT)


class Server(ThreadingHTTPServer):
    """A server of both families."""

    address_family = socket.AF_INET6


if __name__ == "__main__":
    Server(("::", int(sys.argv[1])), Answers).serve_forever()
