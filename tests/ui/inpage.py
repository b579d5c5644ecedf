# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The page in a browser, for tests: where the browser is, and what axe finds."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ui.served import STATIC

if TYPE_CHECKING:
    from playwright.sync_api import Page

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
AXE = Path(__file__).parents[2] / "ui/node_modules/axe-core/axe.min.js"
PATIENCE_MS = 120_000

_missing = (
    "neither chromium nor google-chrome is installed"
    if BROWSER is None
    else "the page is not built: there was no Node"
)
IN_BROWSER = pytest.mark.skipif(
    BROWSER is None or not (STATIC / "index.html").exists(), reason=_missing
)
"""Mark of tests that need the page in a browser."""


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """Return what axe finds, with some of the places."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document).then((all) => all.violations)")
    return [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found]


def look_at(page: Page, run: str, timeout_ms: float = PATIENCE_MS) -> None:
    """Follow the link to the results of a run; others' links may stand beside it."""
    link = page.get_by_role("link", name="Look at the results")
    link.and_(page.locator(f'[href$="results%2F{run}"]')).first.click(timeout=timeout_ms)
    page.get_by_role("heading", name=f"results/{run}").wait_for()
