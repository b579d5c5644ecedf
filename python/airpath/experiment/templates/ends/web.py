# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A small HTTP server whose files have the lengths that were asked for; run as a script.

usage: web.py PORT PAGE_BYTES PART_BYTES
"""

from __future__ import annotations

import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = bytes(range(256)) * 256


class Files(BaseHTTPRequestHandler):
    """Answers /page and /part-N with bytes of the set lengths."""

    protocol_version = "HTTP/1.1"
    lengths: dict[str, int]

    def do_GET(self) -> None:
        """Send a file."""
        kind = self.path.lstrip("/").partition("-")[0]
        if kind not in self.lengths:
            self.send_error(404)
            return
        left = self.lengths[kind]
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(left))
        self.end_headers()
        while left:
            left -= self.wfile.write(PIECE[: min(left, len(PIECE))])


class Server(ThreadingHTTPServer):
    """A server for IPv4 and IPv6, one thread a connection."""

    address_family = socket.AF_INET6
    daemon_threads = True

    def server_bind(self) -> None:
        """Listen for IPv4 too."""
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Without looking up this host's name, as the usual server does.
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "server", self.socket.getsockname()[1]


def main() -> None:
    """Serve until stopped."""
    port, page, part = (int(word) for word in sys.argv[1:4])
    Files.lengths = {"page": page, "part": part}
    Server(("::", port), Files).serve_forever()


if __name__ == "__main__":
    main()
