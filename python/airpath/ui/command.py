# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Command ``airpath ui``: serves the page, and says where it is."""

from __future__ import annotations

import getpass
import ipaddress
import secrets
import socket
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.facts import EXIT_STATUSES
from airpath.ui.errors import UiError

if TYPE_CHECKING:
    from airpath.ui.accounts import Accounts

GRACE_S = 5
"""Time that open answers get at the end."""


def ui(
    folder: Path | None,
    *,
    port: int,
    host: str,
    no_browser: bool,
    certificate: Path | None,
    key: Path | None,
    accounts: Path | None,
    add_account: str | None,
) -> int:
    """Carry ``airpath ui`` out."""
    try:
        if add_account is not None:
            return _add(accounts, add_account)
        return _serve(
            (folder or Path()).resolve(), port, host, not no_browser, (certificate, key), accounts
        )
    except UiError as error:
        print(f"airpath ui: {error}", file=sys.stderr)
        return int(EXIT_STATUSES["usage"])


def _add(file: Path | None, name: str) -> int:
    from airpath.ui.accounts import add_account

    if file is None:
        raise UiError("--add-account needs --accounts FILE, the file to add it to")
    if sys.stdin.isatty():
        password = getpass.getpass(f"Password of {name}: ")
        if getpass.getpass("Again: ") != password:
            raise UiError("the two passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\n")
    add_account(file, name, password)
    print(f"{file}: has the account {name}")
    return 0


def _serve(
    folder: Path,
    port: int,
    host: str,
    browser: bool,
    tls: tuple[Path | None, Path | None],
    accounts: Path | None,
) -> int:
    if not folder.is_dir():
        raise UiError(f"{folder}: is no folder; name the folder with your scenarios and results")
    known = _known(host, tls, accounts)
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)

    import uvicorn

    from airpath.ui.server import Setting, app

    certificate, key = tls
    config = uvicorn.Config(
        app(Setting(folder, token, port, known)),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    shown = f"[{host}]" if ":" in host else host
    if known is None:
        address = f"http://{shown}:{port}/#token={token}"
    else:
        address = f"https://{shown}:{port}/"
    print(f"airpath ui: {address}", flush=True)
    print(f"airpath ui: scenarios and results of {folder}; Ctrl-C ends it", file=sys.stderr)
    if browser:
        webbrowser.open(address)
    server = uvicorn.Server(config)
    server.run(sockets=[listening])
    return 0


def _known(
    host: str, tls: tuple[Path | None, Path | None], accounts: Path | None
) -> Accounts | None:
    """Return the accounts, which a page needs that other machines can reach; None on loopback."""
    from airpath.ui.accounts import Accounts

    if _is_loopback(host):
        if accounts is not None:
            raise UiError("--accounts is for a page that other machines can reach; see --host")
        return None
    if None in tls or accounts is None:
        raise UiError(
            f"--host {host} lets other machines reach the page, where it runs commands as you: "
            f"that needs --certificate, --key and --accounts"
        )
    for file in tls:
        if file is not None and not file.is_file():
            raise UiError(f"{file}: is no file")
    return Accounts.of_file(accounts)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that a port in use is said before anything else.

    Raises:
        UiError: the address cannot be listened on.

    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or str(error)
        raise UiError(f"{host} port {port}: {why}; choose another with --port") from error
    return listening
