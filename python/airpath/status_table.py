# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0
"""Table of exit statuses in ``docs/running.md``, from the engine's declaration.

``python -m airpath.key_tables`` writes it anew, with the tables of keys.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

PAGE = Path("docs/running.md")

_MARKED = re.compile(r"<!-- exit statuses -->\n.*?<!-- end of exit statuses -->", re.DOTALL)


def renewed(page: str) -> str:
    """Return a page with the table between its marks written anew."""
    facts = json.loads(Path(__file__).with_name("facts.json").read_text(encoding="utf-8"))
    rows = [
        "| status | name | meaning |",
        "|---|---|---|",
        *(
            f"| {one['status']} | `{one['name']}` | {one['meaning']} |"
            for one in facts["exit_statuses"]
        ),
    ]
    table = "\n".join(rows)
    return _MARKED.sub(
        lambda _: f"<!-- exit statuses -->\n\n{table}\n\n<!-- end of exit statuses -->", page
    )
