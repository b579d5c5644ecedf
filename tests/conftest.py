"""Fixtures shared by the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from experiments import SMALL, written
from synthetic import write_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session", autouse=True)
def no_calibration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what the developer has calibrated out of all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def download(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a download over a link that turns poor at 40 s; not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / "download"
    write_run(folder)
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the file of an experiment in virtual time."""
    return written(tmp_path, SMALL)
