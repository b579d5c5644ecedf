# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Limits of the page's server: the page itself, with its token, inside its workspace."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airpath.ui.accounts import Accounts, add_account
from airpath.ui.errors import UiError
from airpath.ui.guard import MOST_BODY_BYTES
from airpath.ui.routes import build, drive, experiments, look

if TYPE_CHECKING:
    from ui.served import Served

ADDRESSES = [route for part in (build, drive, experiments, look) for route in part.ROUTES]


def filled(path: str) -> str:
    """Return an address with something in the place of its parameters."""
    return re.sub(r"\{\w+(:int)?\}", lambda found: "1" if found[1] else "x", path)


@pytest.mark.parametrize("token", [None, "wrong", ""], ids=["none", "wrong", "empty"])
def test_every_address_wants_the_token(served: Served, token: str | None) -> None:
    headers = {"Authorization": "Bearer "} if token == "" else {}
    for route in [*ADDRESSES]:
        for method in route.methods or ():
            given = None if token == "" else token
            answer = served.ask(filled(route.path), method=method, token=given, headers=headers)
            assert answer.status == 401, (method, route.path)
            assert method == "HEAD" or "token" in answer.json["error"]


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "127.0.0.1:1", ""],
)
def test_other_names_of_the_server_are_refused(served: Served, host: str) -> None:
    answer = served.ask("/api/about", headers={"Host": host.format(port=served.port)})
    assert answer.status in (400, 421)


def test_names_of_loopback_are_taken(served: Served) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST"):
        assert served.ask("/api/about", headers={"Host": f"{host}:{served.port}"}).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}"])
def test_pages_of_other_origins_are_refused(served: Served, origin: str) -> None:
    headers = {"Origin": origin.format(port=served.port)}
    assert served.ask("/api/about", headers=headers).status == 403
    assert served.ask("/api/scenario/check", {"toml": ""}, headers=headers).status == 403


def test_the_pages_own_origin_is_taken(served: Served) -> None:
    headers = {"Origin": f"http://127.0.0.1:{served.port}", "Sec-Fetch-Site": "same-origin"}
    assert served.ask("/api/about", headers=headers).status == 200


def test_requests_of_other_sites_are_refused(served: Served) -> None:
    assert served.ask("/api/about", headers={"Sec-Fetch-Site": "cross-site"}).status == 403


def test_headers_of_every_answer_forbid_what_the_page_does_not_need(served: Served) -> None:
    for path, token in (("/", ""), ("/api/about", ""), ("/api/about", None), ("/nothing", "")):
        headers = served.ask(path, token=token).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'self';" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_a_large_request_is_refused(served: Served) -> None:
    headers = {"Content-Length": str(MOST_BODY_BYTES + 1)}
    answer = served.ask("/api/scenario/check", b"", method="POST", headers=headers)
    assert answer.status == 413


@pytest.mark.parametrize(
    "name",
    [
        "../secret.toml",
        "away/secret.toml",
        "/etc/hostname.toml",
        "x/../../secret.toml",
        "%2e%2e/secret.toml",
        "..%2fsecret.toml",
        "~/secret.toml",
        "tried.toml%00.txt",
    ],
)
def test_nothing_outside_the_workspace_is_read(served: Served, name: str) -> None:
    for path in ("/api/file", "/api/past/about", "/api/past/report", "/api/plan", "/api/trace"):
        answer = served.ask(f"{path}?name={name}")
        assert answer.status in (400, 403, 404, 422), (path, answer.body)
        assert b"not to be read" not in answer.body


@pytest.mark.parametrize("name", ["../new.toml", "away/new.toml", "a/b/c.toml", "new.sh", ".toml"])
def test_nothing_is_written_elsewhere(served: Served, name: str) -> None:
    answer = served.ask("/api/file", {"name": name, "text": "x"}, method="PUT")
    assert answer.status in (400, 403, 404), answer.body
    assert not (served.folder.parent / "new.toml").exists()


def test_a_link_in_the_place_of_a_new_file_is_not_followed(served: Served) -> None:
    target = served.folder.parent / "target.txt"
    (served.folder / "link.toml").symlink_to(target)
    try:
        answer = served.ask("/api/file", {"name": "link.toml", "text": "x"}, method="PUT")
        assert answer.status in (403, 409), answer.body
        assert not target.exists()
    finally:
        (served.folder / "link.toml").unlink()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"nonsense", b"[" * 100_000])
def test_what_is_no_object_is_refused(served: Served, body: bytes) -> None:
    answer = served.ask("/api/scenario/check", body, method="POST")
    assert answer.status == 400
    assert answer.json["error"]


def ui(*words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = Path(sys.executable).with_name("airpath")
    return subprocess.run(
        [command, "ui", *words],
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_port_in_use_is_named(served: Served, tmp_path: Path) -> None:
    done = ui(str(tmp_path), "--port", str(served.port), "--no-browser")
    assert done.returncode == 2
    assert str(served.port) in done.stderr
    assert "--port" in done.stderr


def test_other_machines_need_tls_and_accounts(tmp_path: Path) -> None:
    done = ui(str(tmp_path), "--host", "0.0.0.0", "--no-browser")
    assert done.returncode == 2
    assert "--certificate, --key and --accounts" in done.stderr


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = ui(str(tmp_path / "nowhere"), "--no-browser")
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_accounts_open_by_their_password_alone(tmp_path: Path) -> None:
    file = tmp_path / "accounts"
    done = ui("--accounts", str(file), "--add-account", "alice", typed="correct horse battery\n")
    assert done.returncode == 0, done.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    assert "horse" not in file.read_text()
    add_account(file, "bob", "another password")
    add_account(file, "alice", "a newer password")
    accounts = Accounts.of_file(file)
    assert accounts.opens("alice", "a newer password")
    assert accounts.opens("bob", "another password")
    assert not accounts.opens("alice", "correct horse battery")
    assert not accounts.opens("carol", "another password")


def test_wrong_passwords_have_to_wait(tmp_path: Path) -> None:
    file = tmp_path / "accounts"
    add_account(file, "alice", "a long password")
    accounts = Accounts.of_file(file)
    for _ in range(5):
        assert not accounts.opens("alice", "guess")
    with pytest.raises(UiError, match="too many wrong passwords"):
        accounts.opens("alice", "a long password")


def test_accounts_that_others_may_read_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "accounts"
    add_account(file, "alice", "a long password")
    os.chmod(file, 0o644)  # noqa: PTH101 (as a user would)
    with pytest.raises(UiError, match="chmod 600"):
        Accounts.of_file(file)
    with pytest.raises(UiError, match="shorter than"):
        add_account(file, "bob", "short")
