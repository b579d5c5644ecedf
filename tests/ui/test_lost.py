# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Remote hops, browsers and servers killed while a run is followed: nothing recorded is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

from airpath.engine import find_engine
from airpath.run import load_run
from live import lab as labs
from ui.inpage import IN_BROWSER, look_at
from ui.served import PATIENCE_S, Served, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from live.lab import Lab

HOPS = """
[[hops]]
name = "radio"
[hops.link]
rate = "2 Mbit/s"
propagation = "20 ms"

[[hops]]
name = "core"
host = "lab2"
[hops.link]
rate = "10 Mbit/s"
propagation = "30 ms"
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Return two hosts."""
    if reason := labs.missing():
        pytest.skip(reason)
    lab = labs.build(tmp_path_factory.mktemp("hosts") / "lab")
    yield lab
    lab.close()


def link_of(lab: Lab) -> str:
    """Return a scenario of two hops on two hosts, for a run outside of the near one's network."""
    across = ["nsenter", "-t", str(lab.near.pid), "-n", "ssh", *lab.options(), "-oLogLevel=ERROR"]
    across += ["-W", f"{labs.FAR}:2222", f"root@{labs.FAR}"]
    options = [*lab.options(), f"-oProxyCommand={' '.join(across)}"]
    host = f'[hosts.lab2]\nssh = "root@{labs.FAR}"\nssh_options = {json.dumps(options)}\n'
    return f'{host}engine = "{find_engine()}"\n{HOPS}'


def followed(browser: Browser, page: Served, number: int) -> Page:
    """Return the live view of a run, with curves."""
    opened = browser.new_page()
    opened.set_default_timeout(PATIENCE_S * 1e3)
    opened.goto(page.address)
    opened.get_by_role("link", name="Drive", exact=True).click()
    opened.get_by_role("button", name=f"Follow Run {number}").click()
    opened.get_by_text("One-way delay").wait_for()
    return opened


def offered_in(page: Page) -> int:
    """Return the number of packets offered that a page shows."""
    text = page.locator("#live-title").locator("..").inner_text()
    found = re.search(r"([\d,]+) packets offered", text)
    assert found, text
    return int(found[1].replace(",", ""))


def offered_of(folder: Path) -> int:
    """Return the number of packets that a run's log says entered the path."""
    events = load_run(folder).events
    return events.filter((events["kind"] == "offered") & (events["stage"] == "path")).height


@IN_BROWSER
def test_a_killed_remote_hop_ends_the_run_and_the_page_keeps_all(
    browser: Browser, lab: Lab, tmp_path: Path
) -> None:
    with Served(tmp_path) as served:
        run = started(served, "far", link_of(lab), "ping -i 0.05 server")
        page = followed(browser, served, run["run"])
        page.wait_for_timeout(1000)
        shown = offered_in(page)
        assert shown > 0
        os.kill(lab.runner(), signal.SIGKILL)
        page.get_by_text("The run has ended.").or_(
            page.get_by_text("The run was killed.")
        ).wait_for()
        shown = max(shown, offered_in(page))
        about = served.until("/api/started/far/console", lambda one: not one["running"])
        assert about["exit_status"] != 0
        assert "lab2" in about["text"]
        # The page goes on to the results, and what it showed is there.
        look_at(page, "far")
        page.get_by_role("button", name="Packet 1", exact=True).wait_for()
        page.close()
    assert offered_of(tmp_path / "results/far/hosts/local") >= shown
    assert load_run(tmp_path / "results/far").verdict != "trusted"
    assert load_run(tmp_path / "results/far/hosts/lab2").events.height > 0


@IN_BROWSER
def test_a_run_on_two_hosts_outlives_browser_and_server(
    browser: Browser, lab: Lab, tmp_path: Path
) -> None:
    with Served(tmp_path) as served:
        line = f"while [ ! -e {tmp_path}/enough ]; do ping -c 1 server; sleep 0.05; done"
        run = started(served, "kept", link_of(lab), line)
        page = followed(browser, served, run["run"])
        shown = offered_in(page)
        page.close()
        # Without a browser the run goes on; without a server too.
        assert served.ask("/api/runs").json["active"]
        served.process.kill()
        served.process.wait()
    time.sleep(0.5)
    (tmp_path / "enough").touch()
    manifest = tmp_path / "results/kept/run.json"
    end = time.monotonic() + PATIENCE_S
    while not manifest.exists() or json.loads(manifest.read_text()).get("status") != "finished":
        assert time.monotonic() < end
        time.sleep(0.1)
    assert offered_of(tmp_path / "results/kept") > shown
