# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""One page and one browser for all tests that change nothing in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ui.inpage import BROWSER, PATIENCE_MS
from ui.served import Served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

LINK = """# A link for tests.
name = "tried"  # its name

[[hops]]
name = "radio"

[hops.link]
rate = "5 Mbit/s"  # both ways
propagation = "10 ms"
"""


@pytest.fixture(scope="session")
def link() -> str:
    """Return a scenario with comments."""
    return LINK


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a page over a workspace with one scenario and nothing else."""
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "tried.toml").write_text(LINK)
    (folder.parent / "secret.toml").write_text("name = 'not to be read'\n")
    (folder / "away").symlink_to(folder.parent)
    with Served(folder) as page:
        yield page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return the system's browser, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    """Return the page, open, with an empty workspace of the browser; it must not complain."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    outside: list[str] = []
    opened.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((f"http://127.0.0.1:{served.port}/", "data:", "blob:"))
            else outside.append(request.url)
        ),
    )
    opened.goto(served.address)
    opened.get_by_text("The scenario is valid.").wait_for()
    yield opened
    context.close()
    assert not complaints
    assert not outside, "the page loads nothing from elsewhere"
