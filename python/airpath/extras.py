# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Extras of the package: what parts of Airpath need beside the standard library.

The engine's commands need none of it, so `pip install airpath` installs none. `pyproject.toml` says
the same to installers; a test compares them.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import NamedTuple


class Package(NamedTuple):
    """A package that an extra installs."""

    name: str
    """As installers call it."""
    module: str
    """As Python imports it."""


class Extra(NamedTuple):
    """An extra: ``pip install 'airpath[NAME]'``."""

    packages: tuple[Package, ...]
    includes: tuple[str, ...] = ()
    """Other extras that it needs."""


EXTRAS = {
    "analysis": Extra(
        (Package("numpy", "numpy"), Package("polars", "polars"), Package("scipy", "scipy"))
    ),
    "plots": Extra((Package("matplotlib", "matplotlib"),), ("analysis",)),
    "experiments": Extra(
        (
            Package("pydantic", "pydantic"),
            Package("tree-sitter", "tree_sitter"),
            Package("tree-sitter-toml", "tree_sitter_toml"),
        ),
        ("analysis",),
    ),
    "report": Extra(
        (Package("jinja2", "jinja2"), Package("markdown-it-py", "markdown_it")),
        ("plots", "experiments"),
    ),
    "pandas": Extra((Package("pandas", "pandas"), Package("pyarrow", "pyarrow")), ("analysis",)),
    "distributed": Extra((Package("distributed", "distributed"),), ("experiments",)),
    "ui": Extra(
        (
            Package("starlette", "starlette"),
            Package("uvicorn", "uvicorn"),
            Package("tomlkit", "tomlkit"),
        ),
        ("report",),
    ),
    "s3": Extra((Package("s3fs", "s3fs"),), ("experiments",)),
    "all": Extra((), ("ui", "pandas", "distributed", "s3")),
}
"""Every extra, by name."""


class MissingExtraError(ModuleNotFoundError):
    """Packages that something needs are not installed; the message says how to get them."""


def packages(extra: str) -> tuple[Package, ...]:
    """Return what an extra installs, with the extras that it includes."""
    found = [package for inner in EXTRAS[extra].includes for package in packages(inner)]
    return tuple(dict.fromkeys([*found, *EXTRAS[extra].packages]))


def missing(extra: str) -> tuple[Package, ...]:
    """Return the packages of an extra that are not installed."""
    return tuple(package for package in packages(extra) if not _is_installed(package.module))


def require(extra: str, what: str) -> None:
    """Do nothing if the packages of an extra are installed.

    Args:
        extra: its name; nothing is needed if that is empty.
        what: what needs it, such as ``airpath plot``.

    Raises:
        MissingExtraError: some are not.

    """
    lacking = missing(extra) if extra else ()
    if lacking:
        names = [package.name for package in lacking]
        said = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        verb = "is" if len(names) == 1 else "are"
        raise MissingExtraError(
            f"{what} needs {said}, which {verb} not installed: pip install 'airpath[{extra}]'",
            name=lacking[0].module,
        )


def _is_installed(module: str) -> bool:
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        return False
