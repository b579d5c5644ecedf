# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of keys in docs/scenario.md and docs/scenario/, made from the scenario's schema.

``python -m airpath.key_tables`` writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airpath.schema_tables import SchemaTables, Words

WORDS = Words(
    definitions={
        "Address": "IPv4 or IPv6 address",
        "Background": "tables",
        "Bits": "length",
        "BlackoutConfig": "word or table",
        "BufferLimit": 'packets, frames, bytes, or `"unlimited"`',
        "ClassConfig": "tables, 1 … 64",
        "DuplicateConfig": "table",
        "ErrorsConfig": "table",
        "Fragmentation": "table",
        "Hop": "tables, 1 … 64",
        "LengthPart": "tables `{ weight, mean }`",
        "LinkConfig": "table",
        "LinkRate": "rate",
        "MatchConfig": "table",
        "Medium": "tables",
        "MediumChoice": "table, or name of a medium",
        "Next": "name, or table of names and probabilities",
        "Part": "tables `{ weight, value }`",
        "Path": "tables",
        "Ports": 'port, range, or several: `"5000-5010, 6000"`',
        "PositionList": 'text such as `"3, 7, 10-19"`',
        "Probability": "probability",
        "Protocol": "name or number",
        "QueueConfig": "table",
        "QueueLimit": "packets, bytes, time, or several of them",
        "Random": "time or distribution",
        "Random2": "length or distribution",
        "Rate": "rate",
        "RateConfig": "rate or table",
        "RateStep": '`"TIME: RATE"`',
        "Ratio": "factor or percentage",
        "ReorderConfig": "table",
        "RunLengths": "lengths of runs",
        "Span": "time",
        "State": "tables",
    },
    keys={
        "alpha": "number (hertz)",
        "beta": "number (hertz)",
        "file": "file name",
        "heavy": "file name",
        "hop": "name of a hop",
        "light": "file name",
        "name": "name",
        "set": "table of parameters",
        "until": "name of a hop",
    },
    absent={
        ".mtu": "1500",
        "Background.flow": "one made of the name",
        "Background.stop": "never",
        "Background.until": "`hop`",
        "Bearer.allocation_delay": "that of the link",
        "Bearer.compression": "that of the link",
        "Bearer.entity": "that of the link",
        "Bearer.errors": "that of the link",
        "Bearer.fragmentation": "that of the link",
        "Bearer.match": "all that is left",
        "Bearer.overhead": "that of the link",
        "Bearer.queue": "that of the link",
        "Bearer.receive_buffer": "that of the link",
        "Bearer.send_buffer": "that of the link",
        "ClassConfig.match": "all packets",
        "ClassConfig.quantum": '`"1500 bytes"`',
        "ClassConfig.weight": "`1`",
        "ClassesConfig.limit": '`"unlimited"`',
        "EmpiricalLengths.counts": "all alike",
        "EnvironmentConfig.bad_mean": "that of the environment",
        "EnvironmentConfig.bit_error_rate": "that of the environment, or `0`",
        "EnvironmentConfig.corruption": "that of the environment, or `0`",
        "EnvironmentConfig.environment": "none",
        "EnvironmentConfig.good_mean": "that of the environment",
        "EnvironmentConfig.good_severity": "that of the environment, or `1`",
        "EnvironmentConfig.loss": "that of the environment, or `0`",
        "EnvironmentConfig.truncated_corruption": "that of the environment, or `corruption`",
        "EnvironmentConfig.truncation": "that of the environment, or `0`",
        "ErrorsConfig.kept": "any shorter length",
        "FourStateConfig.burst_to_gap": "`1 - gap_to_burst`",
        "LinkConfig.bearers": "one for all packets",
        "LinkConfig.duplicate": "no packet is duplicated",
        "LinkConfig.fragmentation": "a packet is one frame",
        "LinkConfig.reorder": "order is kept",
        "PositionsConfig.file": "this or `positions`",
        "PositionsConfig.positions": "this or `file`",
        "PositionsConfig.repeat": "never",
        "PoissonConfig.mean_interval": "this or `rate`",
        "PoissonConfig.rate": "this or `mean_interval`",
        "ReorderConfig.delay": '`"1 s"` with `distance`, otherwise needed',
        "SlottedConfig.period": "`slot`",
        "SharedContinuousConfig.downlink": "nothing of the downlink is on the medium",
        "SharedContinuousConfig.uplink": "nothing of the uplink is on the medium",
        "State.at": "never by itself",
        "State.duration": "until another state begins",
        "State.next": "the beginning",
        "StepsConfig.period": "the last rate stays",
        "TraceConfig.repeat": "as the file says, or `true`",
        "UsersConfig.most_users": "any number",
        "UsersConfig.rate": "all at once",
    },
)


def in_bytes(value: object) -> object:
    """Return a schema with every default length that is whole bytes written in bytes."""
    if isinstance(value, list):
        return [in_bytes(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    changed = {key: in_bytes(one) for key, one in value.items()}
    match = re.fullmatch(r"([1-9]\d*) bit", str(changed.get("default")))
    if match and int(match[1]) % 8 == 0:
        changed["default"] = f"{int(match[1]) // 8} bytes"
    return changed


def tables(schema: Mapping[str, Any]) -> SchemaTables:
    """Return the tables of the scenario's schema."""
    converted = in_bytes(schema)
    assert isinstance(converted, Mapping)
    return SchemaTables(converted, WORDS)


def pages(root: Path) -> list[Path]:
    """Return the pages about scenarios of a source tree."""
    return [root / "docs/scenario.md", *sorted((root / "docs/scenario").glob("*.md"))]


def of_tree(root: Path) -> SchemaTables:
    """Return the tables of a source tree's scenario schema."""
    return tables(json.loads((root / "schema/scenario.schema.json").read_text()))
