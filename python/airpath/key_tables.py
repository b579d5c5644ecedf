# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of keys on the pages about scenarios and experiments, and of exit statuses.

``python -m airpath.key_tables``, in the root of the source tree, writes all of them anew between
their marks, from the schemas in ``schema/``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from airpath import experiment_tables, scenario_tables, status_table
from airpath.schema_tables import SchemaTables

COMMAND = "python -m airpath.key_tables"


def pages(root: Path) -> Iterator[tuple[Path, SchemaTables]]:
    """Yield each page of a source tree that may have tables of keys, with their maker."""
    for source in (scenario_tables, experiment_tables):
        tables = source.of_tree(root)
        for page in source.pages(root):
            yield page, tables


if __name__ == "__main__":
    status_table.PAGE.write_text(status_table.renewed(status_table.PAGE.read_text()))
    for page, tables in pages(Path()):
        page.write_text(tables.renewed(page.read_text()))
