# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Fixtures shared by the tests."""

from __future__ import annotations

import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airpath.video.codecs import CODECS
from experiments import SMALL, written
from hang import pytest_runtest_call, pytest_runtest_logfinish
from synthetic import write_run
from videos import make_clip

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["pytest_runtest_call", "pytest_runtest_logfinish"]


@pytest.fixture(scope="session", autouse=True)
def no_calibration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what the developer has calibrated out of all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session", autouse=True)
def own_temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give every program a TMPDIR of these tests, which must be empty in the end.

    A short path, as sockets lie in it. In the common one, tests that look for what a run leaves
    behind would find the runs of those beside them.
    """
    folder = Path(tempfile.mkdtemp(prefix="airpath-live-"))
    folder.chmod(0o1777)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        # This process has chosen by now; what it makes for itself lasts as long as it does.
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
        yield
    left = [path.name for path in folder.iterdir()]
    shutil.rmtree(folder)
    assert not left, f"temporary files were left: {left}"


@pytest.fixture(scope="session", autouse=True)
def signals_reach_programs() -> Iterator[None]:
    """Let programs die of signals also where the tests run in the background or under nohup.

    Ignored signals stay ignored in every program that is started, caught ones do not.
    """
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
    ignored = [number for number in numbers if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


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


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a video of 20 frames for each codec; not to be changed."""
    folder = tmp_path_factory.mktemp("clips")
    made = {}
    for codec in CODECS.values():
        made[codec.name] = folder / f"clip{codec.suffix}"
        make_clip(made[codec.name], codec.name)
    return made
