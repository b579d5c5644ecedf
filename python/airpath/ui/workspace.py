# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The folder whose scenarios and results the page shows, and beyond which it reaches nothing."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.files import read_bytes
from airpath.ui.errors import UiError, not_found

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_TEXT_BYTES = 2_000_000
"""Maximum size of a scenario, an experiment or a trace that the page takes."""

MOST_FILES = 5_000
"""Maximum number of files that are looked at for a list."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")


@dataclass(frozen=True)
class Workspace:
    """A folder with scenarios, experiments and results."""

    folder: Path
    """Its absolute path, without links."""

    def inside(self, name: str) -> Path:
        """Return the path of a file or folder of the workspace.

        Args:
            name: a path relative to the workspace.

        Raises:
            UiError: the path is absolute, or leads out of the workspace.

        """
        if "\0" in name or name.startswith(("/", "~")) or ".." in Path(name).parts:
            raise UiError(f"{name!r} is no name inside the workspace", 403)
        path = self.folder / name
        if not path.resolve().is_relative_to(self.folder):
            raise UiError(f"{name!r} leads out of the workspace", 403)
        return path

    def beside(self, name: str) -> Path:
        """Return the folder of a scenario, where files that it names are looked for.

        Args:
            name: the scenario's file; empty for one without, which stands in the workspace itself.

        Raises:
            UiError: the path is absolute, leads out of the workspace, or its folder does not exist.

        """
        folder = self.inside(name).parent if name else self.folder
        if not folder.is_dir():
            raise not_found(f"there is no folder {folder}")
        return folder

    def name_of(self, path: Path) -> str:
        """Return the name of a path inside the workspace."""
        return str(path.relative_to(self.folder))

    def new_file(self, name: str, suffix: str) -> Path:
        """Return the path of a file to write, in the workspace itself or a folder of it.

        Raises:
            UiError: the name is no file's, has another suffix, or its folder does not exist.

        """
        path = self.inside(name)
        if not name.endswith(suffix) or not all(_NAME.fullmatch(part) for part in Path(name).parts):
            raise UiError(
                f"{name!r} is no name for a file here: use letters, digits, `_`, `-`, `+` and `.`, "
                f"and end it with {suffix}"
            )
        if not path.parent.is_dir():
            raise not_found(f"there is no folder {path.parent}")
        return path

    def read_text(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            UiError: the file cannot be read, is too large, or is no text.

        """
        path = self.inside(name)
        try:
            return read_bytes(path, MOST_TEXT_BYTES).decode()
        except OSError as error:
            raise not_found(f"{name}: {error.strerror or error}") from error
        except ValueError as error:
            raise UiError(f"{name}: is no text in UTF-8") from error

    def write_text(self, name: str, suffix: str, text: str) -> Path:
        """Write a file, and replace the one of that name; return its path.

        Raises:
            UiError: the file cannot be written.

        """
        path = self.new_file(name, suffix)
        if len(text.encode()) > MOST_TEXT_BYTES:
            raise UiError(f"{name}: is larger than {MOST_TEXT_BYTES:,} bytes", 413)
        fresh = path.with_name(f".{path.name}.new")
        try:
            # A link of that name would lead the text somewhere else.
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(fresh, flags, 0o644), "w", encoding="utf-8") as file:
                file.write(text)
            fresh.replace(path)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise UiError(f"{path}: {error.strerror or error}", 507) from error
        return path

    def files(self, suffix: str) -> list[Path]:
        """Return the files with a suffix, in order of their names, but for hidden ones and runs."""
        return sorted(
            folder / name
            for folder, names in self._folders()
            for name in names
            if name.endswith(suffix) and not name.startswith(".")
        )

    def folders(self) -> list[Path]:
        """Return the folders that scenarios can stand in, with the workspace itself."""
        return [folder for folder, _ in self._folders()]

    def _folders(self) -> Iterator[tuple[Path, list[str]]]:
        """Give folders with the names of their files, but for hidden folders and runs."""
        seen = 0
        for directory, folders, names in os.walk(self.folder):
            if "run.json" in names or "journal.jsonl" in names:
                folders.clear()
                continue
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith(".") and name not in ("node_modules", "target")
            )
            yield Path(directory), names
            seen += len(names)
            if seen > MOST_FILES:
                break
