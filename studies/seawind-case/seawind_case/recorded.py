"""The figures that are kept beside the study, and the tables of README.md made from them."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from seawind_case.report import comparison_table, table
from seawind_case.variants import CLOCKS, HERE, Clock, Kernel, variants

if TYPE_CHECKING:
    from pathlib import Path

README = HERE / "README.md"


def expected_path(kind: str) -> Path:
    """Return the file of a clock's figures, or that of the comparison ("compare")."""
    return HERE / ("expected.toml" if kind == "live" else f"expected-{kind}.toml")


def expected(kind: str = "live") -> dict[str, Any]:
    """Return the figures that are kept."""
    with expected_path(kind).open("rb") as file:
        return tomllib.load(file)


def kernel_table(figures: dict[str, Any], clock: Clock = "live") -> str:
    """Return the table of the variants for which there are figures."""
    rows = []
    for variant in variants(clock):
        if variant.name in figures:
            text = variant.ends.text
            if isinstance(variant.ends, Kernel) and variant.ends.congestion_control is None:
                text += f" ({figures[variant.name]['congestion_control']})"
            rows.append((text, variant.acknowledgements, figures[variant.name]))
    return table(rows)


def table_of(kind: str, figures: dict[str, Any]) -> str:
    """Return the table of a clock, or that of the comparison."""
    for clock in CLOCKS:
        if kind == clock:
            return kernel_table(figures, clock)
    return comparison_table(figures)


def record(kind: str, results: Path) -> None:
    """Keep figures, and put their table into README.md in place of the old one.

    Raises:
        ValueError: README.md does not hold the table of the figures kept so far.

    """
    old = table_of(kind, expected(kind))
    text = README.read_text()
    if text.count(old) != 1:
        message = f"{README} does not hold the table of {expected_path(kind)} once: mend it by hand"
        raise ValueError(message)
    content = results.read_text()
    README.write_text(text.replace(old, table_of(kind, tomllib.loads(content))))
    expected_path(kind).write_text(content)
    print(f"recorded in {expected_path(kind)} and {README}; the text around the table is yours")
