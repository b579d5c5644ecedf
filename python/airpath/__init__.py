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
    from airpath.experiment.load import ExperimentError
    from airpath.run import Run, RunError

__all__ = [
    "AirpathWarning",
    "CompareError",
    "EngineError",
    "ExperimentError",
    "FilterError",
    "FolderError",
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
        "airpath.analysis.folders": ("Replication",),
        "airpath.analysis.statistics": ("CompareError",),
        "airpath.analysis.metric": ("UnknownMetricError",),
        "airpath.api.collection": ("AirpathWarning", "Runs", "load", "runs"),
        "airpath.api.experiments": ("Results", "results", "run_experiment"),
        "airpath.api.figures": ("PlotError", "pictures", "plot"),
        "airpath.api.simulation": ("SimulationError", "simulate"),
        "airpath.api.tables": ("compare", "frame", "summarise"),
        "airpath.engine": ("EngineError",),
        "airpath.experiment.catalogue": ("FilterError",),
        "airpath.experiment.folder": ("FolderError",),
        "airpath.experiment.load": ("ExperimentError",),
        "airpath.run": ("Run", "RunError"),
    }
    _HOME = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name):
        # Not imported before it is asked for: the command starts without polars.
        if name in _HOME:
            import importlib

            return getattr(importlib.import_module(_HOME[name]), name)
        message = f"module airpath has no attribute {name}"
        raise AttributeError(message)

    def __dir__():
        return sorted({*globals(), *__all__})
