# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""One page for all tests that change nothing in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ui.served import Served

if TYPE_CHECKING:
    from collections.abc import Iterator

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
