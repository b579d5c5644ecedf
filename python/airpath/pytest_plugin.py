# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Plugin of pytest: ``@pytest.mark.airpath(…)`` and the fixture ``airpath_link``.

Every pytest that runs where Airpath is installed loads this module, so the rest of the package is
imported only for tests that have the mark.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from airpath.testing import Link
    from airpath.testing.marks import Settings

MARK = "airpath"
OWN = ".airpath-test"
"""File by which a folder is known as one that this plugin made."""

LONGEST_NAME = 100
"""Characters of the name of a test's folder."""

_SETTINGS = pytest.StashKey["Settings"]()
_LINK = pytest.StashKey["Link"]()
_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of the command line."""
    group = parser.getgroup("airpath", "links of @pytest.mark.airpath")
    group.addoption(
        "--airpath-results",
        metavar="DIR",
        help="Directory for the files of runs [default: that of pytest's temporary files]",
    )
    group.addoption(
        "--airpath-keep",
        action="store_true",
        help="Keep the files of tests that passed, too",
    )
    group.addoption(
        "--airpath-report",
        action="store_true",
        help="Write the report page of each run of a failed test (airpath report)",
    )
    group.addoption(
        "--airpath-clock",
        choices=("live", "warp"),
        default="live",
        help="Clock of tests whose mark names none [default: live]",
    )
    group.addoption(
        "--airpath-unavailable",
        choices=("fail", "skip"),
        default="fail",
        help="What tests do where the machine cannot emulate a link, if their mark does not say "
        "[default: fail]",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    line = "airpath(profile=…, loss=…, clock=…): link of the fixture airpath_link"
    config.addinivalue_line("markers", line)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Have wrong marks fail where tests are collected, before any of them has run."""
    report = yield
    if report.passed:
        wrong = [
            f"{item.nodeid}: {problem}"
            for item in report.result or ()
            if isinstance(item, pytest.Item) and (problem := _read_marks(item))
        ]
        if wrong:
            report.outcome = "failed"
            # A fault of several tests is told once.
            report.longrepr = "\n".join(dict.fromkeys(wrong))
            report.result = []
    return report


def _read_marks(item: pytest.Item) -> str:
    """Read the marks of a test, if it has any; return what is wrong with them."""
    marks = list(item.iter_markers(MARK))
    if not marks:
        return ""
    from airpath.testing.marks import MarkError, read

    given = [(mark.args, mark.kwargs) for mark in reversed(marks)]
    try:
        item.stash[_SETTINGS] = read(given, item.path.parent)
    except MarkError as error:
        return str(error)
    return ""


@pytest.fixture
def airpath_link(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Link]:
    """Link of the test's mark: ``airpath_link.run(client, server=…)`` runs commands at its ends."""
    from airpath.testing import Link
    from airpath.testing.links import why_unavailable

    item = request.node
    assert isinstance(item, pytest.Item)
    settings = item.stash.get(_SETTINGS, None)
    if settings is None:
        pytest.fail(
            "airpath_link needs a link: mark the test, such as "
            '@pytest.mark.airpath(profile="lte-good")',
            pytrace=False,
        )
    clock = settings.get("clock", item.config.getoption("airpath_clock"))
    if clock == "warp" and (reason := why_unavailable(clock)):
        _give_up(item, settings, reason)
    folder = _folder(item, tmp_path_factory)
    link = item.stash[_LINK] = Link(settings, clock, folder)
    yield link
    if not item.stash.get(_FAILED, False) and not item.config.getoption("airpath_keep"):
        shutil.rmtree(folder, ignore_errors=True)


def _folder(item: pytest.Item, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder for the files of a test."""
    named = item.config.getoption("airpath_results")
    base = Path(named).absolute() if named else tmp_path_factory.getbasetemp() / "airpath"
    name = re.sub(r"[^\w.]+", "-", item.nodeid).strip("-.")[-LONGEST_NAME:]
    folder = base / name
    if (folder / OWN).exists():  # of an earlier session
        shutil.rmtree(folder)
    number = 1
    while folder.exists():
        number += 1
        folder = base / f"{name}.{number}"
    folder.mkdir(parents=True)
    (folder / OWN).touch()
    return folder


def _give_up(item: pytest.Item, settings: Settings, reason: str) -> None:
    """Skip the test if that was asked for, else fail."""
    usual = item.config.getoption("airpath_unavailable")
    if settings.get("unavailable", usual) == "skip":
        pytest.skip(f"airpath: {reason}")
    pytest.fail(f"airpath: {reason}\n(--airpath-unavailable=skip skips such tests)", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Skip or fail a test whose link this machine cannot make."""
    if _SETTINGS not in item.stash:
        return (yield)
    from airpath.testing import UnavailableError

    try:
        return (yield)
    except UnavailableError as error:
        _give_up(item, item.stash[_SETTINGS], str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell of a failed test's runs."""
    report = yield
    link = item.stash.get(_LINK, None)
    if link is None or call.when != "call" or not report.failed:
        return report
    from airpath.testing.failures import told, write_report

    item.stash[_FAILED] = True
    if link.outcomes:
        text = told(link.outcomes)
        if item.config.getoption("airpath_report"):
            text += "\n" + write_report(link.outcomes)
        report.sections.append(("airpath", text))
    return report
