# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Folders of runs that somebody else made, and packets that somebody else sent, on the page.

The browser of these tests ignores the page's content policy, which would stop scripts that the page
itself let through.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import polars as pl
import pytest

from ui.inpage import IN_BROWSER, PATIENCE_MS
from ui.served import started
from ui.test_runs import ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from ui.served import Served

BAD = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
SECRET = "not to be read"
ADDRESSES = (
    "/api/past/about?name={}",
    "/api/past/curves?name={}",
    "/api/past/packets?name={}",
    "/api/past/packet/1?name={}",
    "/api/past/transfers?name={}",
    "/api/past/transfer/0?name={}",
    "/api/past/report?name={}",
    "/api/results/table?name={}",
)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with captures."""
    out = tmp_path_factory.mktemp("honest") / "run"
    command = Path(sys.executable).with_name("airpath")
    words = ["sim", "--rate", "1 Mbit/s", "--delay", "10 ms", "--duration", "2 s", "--seed", "1"]
    words += ["--workload", "tcp bytes=20kB from=server", "--out", str(out), "--quiet"]
    subprocess.run([command, *words], check=True, timeout=120)
    return out


@pytest.fixture
def open_page(browser: Browser, served: Served) -> Iterator[Page]:
    """Return the page in a browser that runs any script; none may have run at the end."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.goto(served.address)
    page.get_by_text("The scenario is valid.").wait_for()
    yield page
    hit = page.evaluate("window.hit")
    made = page.locator("img[src=x], main script, main svg[onload]").count()
    context.close()
    assert hit is None
    assert made == 0, "words became elements"


@pytest.fixture
def place(served: Served) -> Iterator[Path]:
    """Return where a folder with a hostile name is to be, in the workspace."""
    folder = served.folder / "results" / BAD.replace("/", "")
    folder.parent.mkdir(exist_ok=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def hostile(value: Any) -> Any:
    """Return a document with every word that decides nothing replaced."""
    if isinstance(value, dict):
        kept = ("format_version", "status", "clock", "level", "ended_unix_ns")
        return {key: one if key in kept else hostile(one) for key, one in value.items()}
    if isinstance(value, list):
        return [hostile(one) for one in value]
    return BAD if isinstance(value, str) else value


def looked_at(page: Page) -> None:
    """Look at the run with the hostile name, its curves and a packet."""
    page.get_by_role("link", name="Look", exact=True).click()
    page.get_by_role("link", name="<img src=x onerror").first.click()
    page.get_by_role("heading", name="<img src=x onerror").wait_for()
    page.wait_for_timeout(1000)
    packet = page.get_by_role("button", name="Packet 1", exact=True)
    if packet.count():
        packet.first.click()
        page.wait_for_timeout(500)


@IN_BROWSER
def test_names_in_the_manifest_stay_words(open_page: Page, honest: Path, place: Path) -> None:
    shutil.copytree(honest, place)
    manifest = json.loads((place / "run.json").read_text())
    (place / "run.json").write_text(json.dumps(hostile(manifest)))
    looked_at(open_page)


@IN_BROWSER
def test_names_in_the_logs_stay_words(open_page: Page, honest: Path, place: Path) -> None:
    shutil.copytree(honest, place)
    events = pl.read_ipc(io.BytesIO((honest / "events.arrow").read_bytes()))
    words = [name for name in ("hop", "state", "cause") if name in events.columns]
    bad = events.with_columns(pl.lit(BAD).cast(pl.Categorical).alias(name) for name in words)
    (place / "events.arrow").unlink()
    bad.write_ipc(place / "events.arrow")
    looked_at(open_page)


@IN_BROWSER
def test_what_packets_and_programs_say_stays_words(
    open_page: Page, served: Served, link: str
) -> None:
    ask = f"import socket; s = socket.create_connection(('server', 80)); s.send({BAD.encode()!r})"
    listen = (
        "import socket; s = socket.create_server(('', 80)); c = s.accept()[0]; "
        f"c.recv(100); print({BAD!r}, flush=True)"
    )
    client, server = (f"{sys.executable} -c {_quoted(text)}" for text in (ask, listen))
    started(served, "said", link, f"sleep 0.5; {client}; sleep 1", server)
    ended(served, "said")
    page = open_page
    page.get_by_role("link", name="Drive", exact=True).click()
    page.locator("li").filter(has_text="said").get_by_role("button").first.click()
    page.get_by_role("group", name="Output of the programs").get_by_text(
        "<img src=x"
    ).first.wait_for()
    page.get_by_role("link", name="Look", exact=True).click()
    page.get_by_role("link", name="results/said").first.click()
    page.get_by_role("heading", name="results/said").wait_for()
    for name in ("Packet 1", "Packet 2", "Packet 3", "Packet 4"):
        page.get_by_role("button", name=name, exact=True).click()
        page.get_by_role("region", name=name, exact=True).wait_for()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _link(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(folder.parents[2] / "secret.toml")


def _pipe(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)


def _huge(folder: Path, name: str) -> None:
    with (folder / name).open("r+b") as file:
        file.truncate(1 << 40)


def _deep(folder: Path, name: str) -> None:
    (folder / name).write_text("[" * 200_000)


@pytest.mark.parametrize("change", [_link, _pipe, _huge, _deep])
@pytest.mark.parametrize("name", ["run.json", "events.arrow", "client.pcapng", "input.arrow"])
def test_files_that_are_not_what_they_seem_neither_tell_nor_hang(
    served: Served, honest: Path, place: Path, change: Callable[[Path, str], None], name: str
) -> None:
    shutil.copytree(honest, place)
    change(place, name)
    for address in ADDRESSES:
        answer = served.ask(address.format(quote(f"results/{place.name}")))
        assert answer.status in (200, 400, 403, 404, 413, 422), (address, answer.body[:500])
        assert SECRET.encode() not in answer.body, address
    assert served.ask("/api/past").status == 200
