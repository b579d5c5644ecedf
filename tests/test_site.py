# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The documentation as a site: built, complete, whole by itself, and searchable."""

from __future__ import annotations

import os
import re
import subprocess
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from browser import PROGRAM, Browser

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / ".docs-packages" / "installed.lock"
FIRST = "index.html"


class Page(HTMLParser):
    """Links, anchors, and whatever a browser fetches to show a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = {""}
        self.fetched: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag leads to, names or fetches."""
        values = {name: value or "" for name, value in attrs}
        self.anchors.add(values.get("id", ""))
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if tag == "meta" and values.get("http-equiv") == "refresh":
            self.links.add(values["content"].partition("url=")[2])
        if tag == "link" and {"stylesheet", "icon", "preload"} & set(values["rel"].split()):
            self.fetched.add(values["href"])
        if tag in ("script", "img", "iframe", "source") and "src" in values:
            self.fetched.add(values["src"])


def foreign(address: str) -> bool:
    return bool(re.match(r"[a-z][a-z+.-]*:|//", address))


def problems_of(site: Path, pages: dict[Path, Page]) -> list[str]:
    """Return every link of the pages that leads nowhere, and what comes from elsewhere."""
    wrong = []
    for file, page in pages.items():
        wrong += [
            f"{file.relative_to(site)} fetches {address}"
            for address in page.fetched
            if foreign(address) and not address.startswith("data:")
        ]
        for link in page.links | page.fetched:
            if foreign(link):
                continue
            path, anchor = urldefrag(link)
            target = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
            if not target.is_file():
                wrong.append(f"{file.relative_to(site)}: there is no {link}")
            elif target in pages and unquote(anchor) not in pages[target].anchors:
                wrong.append(f"{file.relative_to(site)}: no such place: {link}")
    return wrong


def reached(site: Path, pages: dict[Path, Page]) -> set[Path]:
    """Return the pages to which links lead from the first one."""
    waiting, found = [site / FIRST], {site / FIRST}
    while waiting:
        file = waiting.pop()
        for link in pages[file].links:
            target = (file.parent / unquote(urldefrag(link).url)).resolve()
            if target in pages and target not in found:
                found.add(target)
                waiting.append(target)
    return found


def search(site: Path, profile: Path, word: str) -> list[str]:
    """Return the addresses that the site's search gives for a word, in a browser offline."""
    with Browser(profile) as browser:
        browser.ask("Page.navigate", url=f"{(site / 'search.html').as_uri()}?q={word}")
        deadline = time.monotonic() + 60
        links = "[...document.querySelectorAll('#search-results li a')].map((one) => one.href)"
        while not (found := browser.evaluate(links)) and time.monotonic() < deadline:
            time.sleep(0.1)
        elsewhere = [one for one in browser.requests if not one.startswith(("file:", "data:"))]
        assert not elsewhere
        return [str(one) for one in found]


CUT = """
document.documentElement.scrollWidth > innerWidth ? ["the page itself"] :
["table", "img", "p", "pre"].flatMap((tag) => [...document.querySelectorAll(`article ${tag}`)])
.filter((one) => {
  for (let box = one; box && box.tagName !== "ARTICLE"; box = box.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
  return one.getBoundingClientRect().right > innerWidth + 1;
}).map((one) => one.outerHTML.slice(0, 80))
"""
"""Elements wider than the window, and in no box that scrolls."""


WIDE = ("genindex", "docs/analysis", "docs/benchmarks", "docs/gallery", "docs/site/python-api")
"""Pages with the widest tables, pictures and names of each kind."""


def cut_on_a_telephone(site: Path, profile: Path) -> dict[str, list[str]]:
    """Return what of the widest pages does not fit into the 375 px of a small telephone."""
    found = {}
    with Browser(profile) as browser:
        browser.ask(
            "Emulation.setDeviceMetricsOverride",
            width=375,
            height=700,
            deviceScaleFactor=1,
            mobile=False,
        )
        for page in WIDE:
            browser.open(site / f"{page}.html")
            found[page] = browser.evaluate(CUT)
    return {page: cut for page, cut in found.items() if cut}


def test_the_site_is_complete_and_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    if not PACKAGES.exists() and not os.environ.get("CI"):
        pytest.skip("the packages of the documentation are missing: scripts/docs --packages")
    site = tmp_path / "site"
    built = subprocess.run(
        [ROOT / "scripts" / "docs", site], capture_output=True, text=True, timeout=360, check=False
    )
    assert built.returncode == 0, built.stderr
    pages = {file: Page(file) for file in site.rglob("*.html")}
    wanted = {
        site / page.relative_to(ROOT).with_suffix(".html")
        for pattern in ("docs/**/*.md", "studies/*/README.md", "examples/*/README.md")
        for page in ROOT.glob(pattern)
    }
    assert len(wanted) > 60
    assert not wanted - reached(site, pages)
    assert not problems_of(site, pages)
    interface = (site / "docs/site/python-api.html").read_text()
    assert "Run workloads over a link in virtual time" in interface
    assert "/_images/" in (site / "docs/gallery.html").read_text()
    for sheet in site.rglob("*.css"):
        addresses = re.findall(r"(?:@import|url\()[ '\"]*([^'\")]+)", sheet.read_text())
        assert not [one for one in addresses if foreign(one) and not one.startswith("data:")]
    if PROGRAM:
        found = search(site, tmp_path / "profile", "calibrate")
        assert any("docs/timing.html" in address for address in found), found
        assert not cut_on_a_telephone(site, tmp_path / "telephone")


def test_every_name_of_the_python_interface_is_on_its_page() -> None:
    import airpath
    import airpath.testing

    page = (ROOT / "docs/site/python-api.md").read_text()
    shown = set(re.findall(r"auto(?:function|class|exception):: (\S+)", page))
    assert shown == {
        *(f"airpath.{name}" for name in airpath.__all__),
        *(f"airpath.testing.{name}" for name in airpath.testing.__all__),
    }
