# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The page in Firefox: a link built, a run followed."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run
from ui.marionette import FIREFOX, Firefox
from ui.served import STATIC, Served

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(FIREFOX is None, reason="neither firefox-esr nor firefox is installed"),
    pytest.mark.skipif(
        not (STATIC / "index.html").exists(), reason="the page is not built: there was no Node"
    ),
]
CURVE = "[...document.querySelectorAll('figure')].find(f => f.innerText.includes('One-way delay'))"


def test_a_link_is_built_and_a_run_followed_in_firefox(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    with Served(folder) as served, Firefox(tmp_path / "profile") as firefox:
        firefox.open(served.address)
        valid = "return document.body.innerText.includes('The scenario is valid.')"
        firefox.until(valid)
        assert served.token not in firefox.evaluate("return location.href")
        firefox.type("//input[@id='field-hops-0-link-propagation']", "35 ms")
        text = firefox.until(
            "const all = document.querySelector('textarea').value; "
            "return all.includes('35 ms') ? all : ''"
        )
        assert tomllib.loads(text)["hops"][0]["link"]["propagation"] == "35 ms"
        firefox.click("//nav/a[text()='Drive']")
        client = "//label[contains(., 'Command at the client')]//input"
        firefox.type(client, "ping -c 20 -i 0.1 server")
        firefox.click("//button[text()='Start']")
        firefox.until("return document.body.innerText.includes('The run has ended.')")
        shown = firefox.until(f"const curve = {CURVE}; return curve?.querySelector('p').innerText")
        assert firefox.evaluate(f"return {CURVE}.querySelector('canvas').width") > 100
        run = load_run(folder / "results/run")
        assert "uplink 35" in shown
        offered = run.events.filter(run.events["kind"] == "offered").height
        counted = firefox.evaluate(
            "return document.getElementById('live-title').parentNode.innerText"
        )
        assert f"{offered:,} packets offered" in counted
