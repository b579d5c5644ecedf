# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Files are written into folders of one's own, and never through links that others left there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airpath.app import run as run_app
from airpath.experiment.catalogue import DATABASE, Catalogue
from airpath.experiment.folder import FolderError, Results
from airpath.facts import EXIT_STATUSES
from airpath.files import UnwritableError, write_whole
from synthetic import write_run

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER = 54_321


def test_a_planted_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("page", "page.new"):
        (tmp_path / name).symlink_to(victim)
    write_whole(tmp_path / "page", "new")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "page").is_symlink()
    assert (tmp_path / "page").read_text() == "new"
    assert not (tmp_path / "page.new").is_symlink()


def test_what_is_no_file_is_not_written_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "page")
    with pytest.raises(OSError, match="is no ordinary file"):
        write_whole(tmp_path / "page", "new")
    assert (tmp_path / "page").is_fifo()


def test_journal_lock_and_catalogue_follow_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("")
    for name in ("journal", "lock", DATABASE):
        (tmp_path / name).symlink_to(victim)
    results = Results(tmp_path)
    with pytest.raises(OSError, match="symbolic links"):
        results.write("removed", set="a", cell="b", replication=1)
    with pytest.raises(FolderError, match="lock is a link"):
        results.lock()
    with pytest.raises(FolderError, match="is no ordinary file"):
        Catalogue(tmp_path)
    assert victim.read_text() == ""


def test_a_folder_that_everybody_may_change_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UnwritableError, match=r"may be written to by everybody \(`chmod o-w`"):
        write_whole(folder / "page", "new")
    folder.chmod(0o1777)
    write_whole(folder / "page", "new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run", size=2_560)
    folder = tmp_path / "other"
    folder.mkdir()
    os.chown(folder, OTHER, OTHER)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    os.lchown(link, OTHER, OTHER)
    run = str(tmp_path / "run")
    for words in (
        ["report", run, "--out", str(folder / "page.html")],
        ["plot", run, "--format", "svg", "--out", str(folder)],
        ["report", run, "--out", str(link / "page.html")],
    ):
        assert run_app(words) == EXIT_STATUSES["unwritable"]
        said = capsys.readouterr().err
        assert f"belongs to another user ({OTHER})" in said, said
    assert not list(folder.iterdir())
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
def test_a_lock_that_is_no_ordinary_file_is_named(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    results = Results(tmp_path)
    make(tmp_path / "lock")
    with pytest.raises(FolderError, match=r"lock is a link, or no ordinary file; remove it"):
        results.lock()
    assert not results.locked
