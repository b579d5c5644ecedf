# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""A page with its objects, served by nginx over TLS; run as a script.

The page and its objects are made anew, with a certificate that nobody signed, in a folder of the
working directory that is removed at the end. The first object is a style sheet that the page waits
for, the second a large picture, the others small ones. Pictures have random bytes up to the length
that was asked for, so that no compression makes them shorter.

usage: site.py PORT HTTP_VERSION PAGE_BYTES OBJECTS OBJECT_BYTES
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

SBIN = "/usr/local/sbin:/usr/sbin"
"""Folders of servers, in which an ordinary user's PATH on Debian does not look."""

STYLE = "body { font: 16px sans-serif } img { margin: 2px }\n"
LARGE, SMALL = (640, 360), (96, 96)
"""Width and height of pictures. A browser does not count pixels beyond those of the file."""

TEXT = "The quick brown fox jumps over the lazy dog. "
CONFIGURATION = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
    access_log off;
    types {{ text/html html; text/css css; image/png png; }}
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen [::]:{port} ipv6only=off ssl{http2};
        ssl_certificate {folder}/certificate.pem;
        ssl_certificate_key {folder}/key.pem;
        root {folder}/pages;
    }}
}}
"""


def chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG file."""
    sum_of_all = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", sum_of_all)


def picture(length: int, width: int, height: int, noise: random.Random) -> bytes:
    """Return a PNG file of one colour; no shorter than such a file is."""
    # One bit a pixel: the lines take little of the file.
    rows = (b"\0" + bytes(width // 8)) * height
    header = struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)
    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"PLTE", noise.randbytes(3))
    tail = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    # A chunk that no reader of pictures knows, and every one skips.
    filling = max(0, length - len(head) - len(tail) - 12)
    return head + chunk(b"raNd", noise.randbytes(filling)) + tail


def page(length: int, objects: int) -> str:
    """Return the page; no shorter than the names of its objects make it."""
    style = '<link rel="stylesheet" href="0.css">' if objects else ""
    pictures = "".join(
        f'<img width={width} height={height} src="{number}.png" alt="">'
        for number in range(1, objects)
        for width, height in [LARGE if number == 1 else SMALL]
    )
    # Without an icon of its own the browser asks for one.
    icon = '<link rel="icon" href="data:,">'
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Page</title>'
    head += f"{icon}{style}<body>"
    body = f"<h1>Page</h1><p>{TEXT}</p>{pictures}"
    # As a comment: as text it would be larger than the large picture.
    return head + body + f"<!--{'x' * max(0, length - len(head) - len(body) - 7)}-->"


def make(folder: Path, page_bytes: int, objects: int, object_bytes: int) -> None:
    """Write the page and its objects."""
    noise = random.Random(1)
    folder.mkdir()
    (folder / "index.html").write_text(page(page_bytes, objects))
    if objects:
        style = STYLE + "/*" + " " * max(0, object_bytes - len(STYLE) - 4) + "*/"
        (folder / "0.css").write_text(style)
    for number in range(1, objects):
        shape = LARGE if number == 1 else SMALL
        (folder / f"{number}.png").write_bytes(picture(object_bytes, *shape, noise))


def certify(folder: Path) -> None:
    """Write a key, and a certificate of the name `server` that it signed itself.

    Raises:
        subprocess.CalledProcessError: openssl failed.

    """
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    words += ["-nodes", "-days", "30", "-subj", "/CN=server"]
    words += ["-addext", "subjectAltName=DNS:server"]
    words += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)


def main() -> int:
    """Serve until stopped."""
    port, http = sys.argv[1:3]
    lengths = [int(word) for word in sys.argv[3:6]]

    def stop(_: int, __: FrameType | None) -> None:
        sys.exit(0)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    with tempfile.TemporaryDirectory(prefix="site-", dir=".") as name:
        folder = Path(name).resolve()
        make(folder / "pages", *lengths)
        certify(folder)
        configuration = folder / "nginx.conf"
        configuration.write_text(
            CONFIGURATION.format(folder=folder, port=port, http2=" http2" if http == "2" else "")
        )
        places = os.pathsep.join([os.environ.get("PATH", os.defpath), SBIN])
        words = [
            shutil.which("nginx", path=places) or "nginx",
            "-e",
            "stderr",
            "-p",
            str(folder),
            "-c",
            str(configuration),
        ]
        server = subprocess.Popen(words)
        try:
            return server.wait()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    sys.exit(main())
