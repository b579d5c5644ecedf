# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The interface for notebooks and programs: runs made, found, filtered, measured and drawn."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pandas as pd
import polars as pl
import pytest
from nbclient import NotebookClient

import airpath
from airpath import plots
from airpath.plots.kinds import ALL, SETS

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"
PACKAGE = Path(airpath.__file__).parent

EXPERIMENT: dict[str, Any] = {
    "name": "queues",
    "clock": "virtual",
    "networks": {"gprs": {"profile": "gprs-cs2-3+1", "link": {"loss": "0%,2%"}}},
    "workloads": {"download": {"virtual": ["tcp bytes=10000 from=server cc=reno"]}},
    "sets": [
        {
            "name": "model",
            "network": "gprs",
            "workload": "download",
            "repetitions": 2,
            "sweep": {"grid": {"network.radio.link.queue.limit": ["4 packets", "16 packets"]}},
        }
    ],
}

USER = """\
import airpath

run = airpath.load("results/a")
reveal_type(run)
reveal_type(run.captures["client"])
kept = airpath.runs("results").filter(set="model", verdict="trusted", where="elapsed < 20")
reveal_type(kept)
reveal_type(kept[0].run)
reveal_type(airpath.frame(kept, "goodput"))
reveal_type(airpath.frame(kept, ["goodput"], as_pandas=True))
reveal_type(airpath.compare(airpath.frame(kept), "a", "b").table)
reveal_type(airpath.plot(kept, "cdf"))
results = airpath.run_experiment("e.toml", only="model", progress=lambda done, of: None)
reveal_type(results)
airpath.simulate("lte-good", "tcp", sead=1)
airpath.plott(kept, "cdf")
"""

REVEALED = [
    "airpath.run.Run",
    "DataFrame",
    "airpath.api.collection.Runs",
    "airpath.run.Run",
    "polars.dataframe.frame.DataFrame",
    "pandas.core.frame.DataFrame",
    "polars.dataframe.frame.DataFrame",
    "matplotlib.figure.Figure",
    "airpath.api.experiments.Results",
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> airpath.Results:
    """Return the results of a small experiment in virtual time."""
    told: list[tuple[int, int]] = []
    found = airpath.run_experiment(
        EXPERIMENT,
        out=tmp_path_factory.mktemp("results") / "queues",
        jobs=2,
        progress=lambda done, of: told.append((done, of)),
    )
    assert told[-1] == (4, 4)
    return found


@pytest.fixture(scope="module")
def reno(tmp_path_factory: pytest.TempPathFactory) -> airpath.Runs:
    """Return two replications of a download."""
    return airpath.simulate(
        "gsm-data-9.6k",
        "tcp bytes=20000 from=server cc=reno",
        name="reno",
        seed=3,
        replications=2,
        out=tmp_path_factory.mktemp("reno") / "runs",
    )


def test_a_simulation_returns_its_runs_by_name_and_seed(reno: airpath.Runs) -> None:
    assert [one.run.manifest["seed"] for one in reno] == [3, 4]
    assert reno.sets == ["reno"]
    assert not reno[0].run.captures["client"].is_empty()


def test_a_scenario_may_be_a_mapping_and_a_failed_workload_is_told() -> None:
    hop = {"name": "line", "link": {"rate": "10 kbit/s", "propagation": "10 ms"}}
    with pytest.warns(airpath.AirpathWarning, match="replication 1: tcp-1: incomplete"):
        runs = airpath.simulate({"hops": [hop]}, "tcp bytes=100000 from=server", duration="2 s")
    assert runs[0].run.duration_ns == 2_000_000_000


def test_an_experiment_that_is_done_is_not_run_again(results: airpath.Results) -> None:
    before = results.catalogue()["wall_s"].to_list()
    again = airpath.run_experiment(EXPERIMENT, out=results.folder)
    assert again.catalogue()["wall_s"].to_list() == before
    with pytest.raises(airpath.FolderError, match="4 replications already"):
        airpath.run_experiment(EXPERIMENT, out=results.folder, resume=False)


def test_the_catalogue_and_parameters_are_frames(results: airpath.Results) -> None:
    table = results.catalogue(where="elapsed > 0")
    assert table.height == 4
    assert set(table["network.radio.link.queue.limit"]) == {"4 packets", "16 packets"}
    assert isinstance(results.catalogue(as_pandas=True), pd.DataFrame)
    values = results.frame("transfer_time").join(results.parameters(), on="set")
    assert values.height > 0
    assert values["network.radio.link.queue.limit"].null_count() == 0


def test_runs_are_filtered(results: airpath.Results) -> None:
    runs = airpath.runs(results.folder)
    assert len(runs) == 4
    assert len(runs.filter(set="model", verdict="trusted")) == 4
    assert runs.filter(set="*limit=4packets").sets == ["model/limit=4packets"]
    assert len(runs.filter(where="replication == 1")) == 2
    assert len(runs.filter(where=lambda run: run.manifest["seed"] == 1)) == 2
    assert len(runs.filter(status="failed")) == 0


def test_both_kinds_of_frame_have_the_same_values(reno: airpath.Runs) -> None:
    table = airpath.frame(reno, "goodput, transfer_time")
    frame = airpath.frame(reno, "goodput, transfer_time", as_pandas=True)
    assert isinstance(frame, pd.DataFrame)
    assert frame["value"].to_list() == table["value"].to_list()
    assert frame.columns.to_list() == table.columns


def test_untrusted_replications_are_left_out_with_a_warning(reno: airpath.Runs) -> None:
    table = airpath.frame(reno, "transfer_time").with_columns(
        verdict=pl.when(pl.col("seed") == 3).then(pl.lit("suspect")).otherwise(pl.lit("trusted"))
    )
    with pytest.warns(airpath.AirpathWarning, match="replication-0001 is suspect, and left out"):
        summary = airpath.summarise(table)
    assert summary["n"].unique().to_list() == [1]


@pytest.fixture(scope="module")
def rivals() -> airpath.Runs:
    """Return a run of two downloads side by side."""
    workloads = [f"tcp bytes=200000 from=server cc={cc}" for cc in ("reno", "cubic")]
    return airpath.simulate("umts-384", workloads, seed=1)


@pytest.mark.parametrize(
    "kind", [kind for kind in plots.KINDS if kind not in {"tcp-state", "link", "hops"}]
)
def test_every_picture_of_a_run_is_a_figure(rivals: airpath.Runs, kind: str) -> None:
    figure: Any = airpath.plot(rivals[0], kind)
    content, size = figure._repr_png_()
    assert content.startswith(b"\x89PNG")
    assert size["width"] == 720


# No run in virtual time has the kernel's congestion window.
@pytest.mark.parametrize("kind", [*(kind for kind in SETS if kind != "cwnd-course"), "sweep"])
def test_every_picture_of_sets_is_a_figure(results: airpath.Results, kind: str) -> None:
    assert airpath.plot(results, kind).get_axes()


def test_a_picture_is_chosen_by_name(reno: airpath.Runs) -> None:
    assert list(airpath.pictures(reno[0], "queue")) == ["queue-packets", "queue-bytes"]
    assert airpath.plot(reno[0], "queue", which="queue-bytes").get_axes()
    with pytest.raises(airpath.PlotError, match="did you mean `queue-bytes`"):
        airpath.plot(reno[0], "queue", which="queue-byte")


WRONG: list[tuple[Callable[[airpath.Runs], object], type[Exception], str]] = [
    (lambda _: airpath.load("nowhere"), airpath.RunError, "nowhere: no such folder"),
    (lambda _: airpath.runs("nowhere"), airpath.RunError, "nowhere: no such folder"),
    (lambda _: airpath.results("nowhere"), airpath.FolderError, "no results folder"),
    (lambda r: airpath.frame(r, "godput"), airpath.UnknownMetricError, "nearest is goodput"),
    (lambda r: airpath.plot(r[0], "quue"), airpath.PlotError, "did you mean `queue`"),
    (lambda r: airpath.plot(r, "queue"), airpath.PlotError, "picture of one run"),
    (lambda r: airpath.plot(r[0], "cdf"), airpath.PlotError, "picture of sets"),
    (lambda r: airpath.plot(r[0], "tcp-state"), airpath.PlotError, "nothing to draw"),
    (lambda r: airpath.plot(r, "sweep"), airpath.PlotError, "no parameter was swept"),
    (lambda r: r.filter(set="ren"), airpath.FilterError, "did you mean `reno`"),
    (lambda r: r.filter(verdict="trustd"), airpath.FilterError, "did you mean `trusted`"),
    (lambda r: r.filter(where="elapsed < 2"), airpath.FilterError, "not of an experiment"),
    (lambda r: airpath.frame(r[:0]), airpath.RunError, "no runs"),
    (lambda _: airpath.simulate("gsm", "tcp"), airpath.SimulationError, "no profile `gsm`"),
    (
        lambda _: airpath.run_experiment(EXPERIMENT | {"sead": 1}),
        airpath.ExperimentError,
        "did you mean `seed`",
    ),
]


@pytest.mark.parametrize(("call", "error", "said"), WRONG, ids=[said for _, _, said in WRONG])
def test_errors_say_what_would_be_right(
    reno: airpath.Runs,
    call: Callable[[airpath.Runs], object],
    error: type[Exception],
    said: str,
) -> None:
    with pytest.raises(error, match=re.escape(said)):
        call(reno)


def test_without_pandas_the_extra_is_named(
    reno: airpath.Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'airpath\[pandas\]'"):
        airpath.frame(reno, "goodput", as_pandas=True)


def test_notebooks_show_tables_with_names_escaped(
    reno: airpath.Runs, results: airpath.Results
) -> None:
    shown: Any = airpath.Runs([airpath.Replication("<b>", "one", reno[0].directory)])
    assert "&lt;b&gt;" in shown._repr_html_()
    whole: Any = results
    assert "model/limit=4packets" in whole._repr_html_()
    assert "trusted" in reno[0].run._repr_html_()


def test_every_public_name_is_there_and_none_is_imported_at_first() -> None:
    for name in airpath.__all__:
        assert getattr(airpath, name).__doc__, name
    loaded = "import sys, airpath; print('polars' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "False\n"


def test_what_users_write_is_checked_strictly(tmp_path: Path) -> None:
    assert (PACKAGE / "py.typed").is_file()
    (tmp_path / "user.py").write_text(USER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "MYPYPATH": str(PACKAGE.parent)},
    )
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert len(revealed) == len(REVEALED), done.stdout + done.stderr
    assert all(found.endswith(known) for found, known in zip(revealed, REVEALED, strict=True))
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 2, done.stdout
    assert 'Unexpected keyword argument "sead"' in errors[0]
    assert 'has no attribute "plott"' in errors[1]


def test_the_example_notebook_runs_and_its_stored_outputs_are_of_these_cells() -> None:
    # On a new machine Matplotlib says that it builds its list of fonts: here, not in a cell.
    importlib.import_module("matplotlib.font_manager")
    read: Any = nbformat.read  # without types
    stored, fresh = read(NOTEBOOK, as_version=4), read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(fresh, timeout=600, kernel_name="python3", resources=resources).execute()
    assert kinds(fresh) == kinds(stored), "run .venv/bin/python scripts/notebook examples/*.ipynb"
    assert sum("image/png" in kind for cell in kinds(fresh) for kind in cell) == 3


def kinds(notebook: Any) -> list[list[tuple[str, ...]]]:
    """Return of each cell with code what kinds of output it has."""
    return [
        [tuple(sorted(output.get("data", {output.output_type: None}))) for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_page_names_every_kind_of_picture_and_every_error() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    errors = [name for name in airpath.__all__ if name.endswith("Error")]
    missing = [name for name in (*ALL, *errors) if f"`{name}`" not in page]
    assert not missing
