# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Warp, chosen on the page: Seawind's case study by the kernel's TCP, and a single run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ui.case_study import build, compose, table_of
from ui.inpage import IN_BROWSER, look_at

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from ui.served import Served

pytestmark = IN_BROWSER


@pytest.fixture(scope="module", autouse=True)
def kernel() -> None:
    """Make sure that there is a kernel."""
    words = [str(Path(sys.executable).with_name("airpath")), "warp", "setup", "--check"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        reason = f"no kernel for virtual time: {found.stderr.strip()}"
        # Where everything is to be covered, a test that is skipped is a failure.
        assert "CI" not in os.environ, reason
        pytest.skip(reason)
    # The page of these tests has a cache of its own.
    os.environ["AIRPATH_WARP_KERNEL"] = found.stdout.strip()


@pytest.fixture(scope="module")
def served(kernel: None, tmp_path_factory: pytest.TempPathFactory) -> object:
    """Return a page whose programs find the kernel."""
    from ui.served import Served

    with Served(tmp_path_factory.mktemp("warp")) as page:
        yield page
    del os.environ["AIRPATH_WARP_KERNEL"]


def test_the_case_study_is_run_in_warp_and_read_off_the_page(page: Page, served: Served) -> None:
    build(page)
    compose(page, "in-warp", "warp", "102400 B", 3)
    table = table_of(page, "in-warp", "warp")
    # The study has 114 to 131 s, without time stamps; 102,400 bytes alone take 85 s.
    elapsed = float(list(table["warp/limit=7packets"].values())[4].split()[0])
    assert 95 < elapsed < 160
    manifests = list((served.folder / "results/in-warp").glob("runs/*/*/*/run.json"))
    manifests += list((served.folder / "results/in-warp").glob("runs/*/*/*/*/run.json"))
    assert {json.loads(one.read_text())["clock"] for one in manifests} == {"warp"}


def test_a_run_is_started_in_warp_and_looked_at(page: Page, served: Served) -> None:
    page.get_by_role("link", name="Drive", exact=True).click()
    page.get_by_label("Name of the run").fill("warped")
    page.get_by_label("Command at the client").fill("ping -c 50 server")
    page.get_by_label("Clock").select_option("warp")
    page.get_by_role("button", name="Start", exact=True).click()
    look_at(page, "warped", timeout_ms=300_000)
    packets = page.get_by_role("region", name="Packets", exact=True)
    packets.get_by_text("100 of 100", exact=True).wait_for()
    about = json.loads((served.folder / "results/warped/run.json").read_text())
    assert about["clock"] == "warp"
    assert about["results"]["duration_ns"] > 45e9
