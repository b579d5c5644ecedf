# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Airpath: a wireless link of your choice between real programs.

``load(path)`` opens a run and ``runs(path)`` finds many; ``simulate(…)`` and ``run_experiment(…)``
make some. ``frame``, ``summarise`` and ``compare`` measure them, ``plot`` draws them.
docs/python.md shows how.
"""

from __future__ import annotations

# Not imported from typing: that is most of the time in which the command has only begun to start,
# and cannot yet end silently at Ctrl-C.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from airpath.analysis.folders import Replication
    from airpath.analysis.metric import UnknownMetricError
    from airpath.analysis.statistics import CompareError
    from airpath.api.collection import AirpathWarning, Runs, load, runs
    from airpath.api.experiments import Results, results, run_experiment
    from airpath.api.figures import PlotError, pictures, plot
    from airpath.api.simulation import SimulationError, simulate
    from airpath.api.tables import compare, frame, summarise
    from airpath.engine import EngineError
    from airpath.experiment.catalogue import FilterError
    from airpath.experiment.folder import FolderError
    from airpath.experiment.loaded import ExperimentError
    from airpath.extras import MissingExtraError
    from airpath.run import Run, RunError

__all__ = [
    "AirpathWarning",
    "CompareError",
    "EngineError",
    "ExperimentError",
    "FilterError",
    "FolderError",
    "MissingExtraError",
    "PlotError",
    "Replication",
    "Results",
    "Run",
    "RunError",
    "Runs",
    "SimulationError",
    "UnknownMetricError",
    "compare",
    "frame",
    "load",
    "pictures",
    "plot",
    "results",
    "run_experiment",
    "runs",
    "simulate",
    "summarise",
]

if not TYPE_CHECKING:  # a type checker would let every name pass
    _MODULES = {
        "airpath.analysis.folders": ("analysis", ("Replication",)),
        "airpath.analysis.statistics": ("analysis", ("CompareError",)),
        "airpath.analysis.metric": ("analysis", ("UnknownMetricError",)),
        "airpath.api.collection": ("analysis", ("AirpathWarning", "Runs", "load", "runs")),
        "airpath.api.experiments": ("experiments", ("Results", "results", "run_experiment")),
        "airpath.api.figures": ("plots", ("PlotError", "pictures", "plot")),
        "airpath.api.simulation": ("analysis", ("SimulationError", "simulate")),
        "airpath.api.tables": ("analysis", ("compare", "frame", "summarise")),
        "airpath.engine": ("", ("EngineError",)),
        "airpath.experiment.catalogue": ("analysis", ("FilterError",)),
        "airpath.experiment.folder": ("", ("FolderError",)),
        "airpath.experiment.loaded": ("experiments", ("ExperimentError",)),
        "airpath.extras": ("", ("MissingExtraError",)),
        "airpath.run": ("analysis", ("Run", "RunError")),
    }
    """Of each module the extra of the package that it needs, and what it gives."""
    _HOME = {name: (module, extra) for module, (extra, names) in _MODULES.items() for name in names}

    def __getattr__(name):
        # Not imported before it is asked for: the command starts without polars, and what a part
        # of this needs may not be installed.
        if name in _HOME:
            import importlib

            module, extra = _HOME[name]
            if extra:
                from airpath.extras import require

                require(extra, f"airpath.{name}")
            return getattr(importlib.import_module(module), name)
        message = f"module airpath has no attribute {name}"
        raise AttributeError(message)

    def __dir__():
        return sorted({*globals(), *__all__})
