# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""One run on the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airpath.analysis.folders import Replication
from airpath.report.facts import Facts, facts_of
from airpath.report.opener import Opener
from airpath.report.reduce import delays_of
from airpath.report.values import values_of

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from airpath.plots.courses import Courses
    from airpath.run import Run


@dataclass
class Entry:
    """One run on the page."""

    number: int
    """From 1; the run's elements on the page have the id ``run-N``."""
    label: str
    """Its folder, as short as tells it apart."""
    run: Run
    set_name: str = ""
    """The set of replications that it belongs to: SET/CELL of an experiment, or the folder's."""
    about: dict[str, Any] = field(default_factory=dict)
    """Its replication.json, written by an experiment; empty for other runs."""
    courses: Courses | None = None
    """Its courses over time, for the runs of sets that are drawn side by side."""
    also_measured: tuple[str, ...] = ()
    """Metrics beyond those that every page has."""
    opener: Opener = field(default_factory=Opener, repr=False)
    """Opener of the run for parts of the page."""

    @property
    def name(self) -> str:
        """Its own folder's name, which is unique in its set."""
        return self.run.directory.resolve().name

    @property
    def cell_key(self) -> str:
        """SET/CELL of the experiment that it is of; only where ``about`` says so."""
        return f"{self.about['set_name']}/{self.about['cell']}"

    @property
    def results_folder(self) -> Path:
        """The results folder of its experiment: DIR of DIR/runs/SET/CELL/NNNN."""
        return self.run.directory.resolve().parents[3]

    @property
    def place(self) -> Replication:
        """The run as the analysis takes it: opened anew, and let go afterwards."""
        return Replication(self.set_name, self.name, self.run.directory)

    @cached_property
    def facts(self) -> Facts:
        """Its facts, as the tables print them."""
        return facts_of(self.run, self.values)

    @cached_property
    def values(self) -> pl.DataFrame:
        """Its values, as the analysis measures them."""
        return values_of(self.run, self.also_measured)

    @cached_property
    def delays(self) -> dict[str, NDArray[np.float64]]:
        """The distribution of its delays, as ``airpath.report.reduce.delays_of`` returns it."""
        return delays_of(self.run)

    def open(self) -> Run:
        """Open the run for a part of the page: ``run`` itself keeps no packets and events."""
        return self.opener.open(self.run.directory)
