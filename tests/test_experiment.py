"""Experiments: files, plans, unattended runs, resuming after anything, the catalogue."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airpath.analysis.statistics import mean_with_half_width
from airpath.experiment.expand import cells
from airpath.experiment.folder import FolderError, Results
from airpath.experiment.jobs import Jobs
from airpath.experiment.load import ExperimentError, load
from airpath.experiment.metrics import of_programs
from airpath.experiment.model import schema
from airpath.experiment.plan import make_plan
from airpath.experiment.replicate import Outcome, Task
from airpath.experiment.runner import Runner
from airpath.experiment.statistics import checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
START = "import sys; from airpath.cli import main; sys.exit(main())"

SMALL = """\
name = "small"
seed = 5
clock = "virtual"
[networks.gprs]
profile = "gprs-cs2-3+1"
link = { loss = "0%,2%" }
[workloads.bulk]
parameters = { bytes = 20000 }
virtual = ["tcp bytes={{bytes}} from=server cc=reno"]
[[sets]]
name = "queues"
network = "gprs"
workload = "bulk"
repetitions = 3
sweep.grid."network.radio.link.queue.limit" = ["4 packets", "8 packets"]
[[sets]]
name = "sizes"
network = "gprs"
workload = "bulk"
repetitions = 2
sweep.zip = { "workload.bytes" = [5000, 10000], "mtu" = [1500, 1400] }
"""


def airpath(*words: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the file of an experiment in virtual time."""
    return written(tmp_path, SMALL)


def written(folder: Path, text: str) -> Path:
    file = folder / "experiment.toml"
    file.write_text(text)
    return file


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ExperimentError) as caught:
        make_plan(load(written(folder, text)), [])
    return [f"{one.line}: {one.what}" for one in caught.value.problems]


def journal(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "journal").read_text().splitlines()]


def run_folders(root: Path) -> set[str]:
    return {str(path.relative_to(root / "runs")) for path in root.glob("runs/*/*/*")}


# The file.


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("seed = 5", "sead = 5", r"^2: sead: there is no such key; did you mean `seed`\?"),
        ("repetitions = 3", "repetitons = 3", r"^14: sets\.0\.repetitons: .*`repetitions`"),
        ("repetitions = 3", 'repetitions = "3"', r"^14: sets\.0\.repetitions: .*valid integer"),
        ('network = "gprs"', 'network = "gsm"', r"^12: set `queues`: there is no network `gsm`"),
        ("bytes={{bytes}}", "bytes={{byts}}", r"^7: `{{byts}}` is no parameter.*`bytes`"),
        ('"workload.bytes"', '"workload.byte"', r"^21: .*no parameter `byte`; did you mean"),
        ('"mtu" =', '"mtv" =', r"^21: .*`mtv` cannot be swept; did you mean `mtu`"),
        ("[1500, 1400]", "[1500]", r"^21: .*differ in length"),
        ('"virtual"', '"warped"', r"^3: clock: `warped` is none of the values"),
        ("gprs-cs2-3+1", "gprs-cs9", r"^4: .*there is no profile `gprs-cs9`"),
        ("link.queue.limit", "link.queue.limt", r"^15: .*did you mean"),
        ("from=server", "form=server", r"^7: workload `bulk`: .*`tcp` has no key `form`"),
        ("{ loss", "{{ loss", r"^6: not TOML"),
        ('name = "sizes"', 'name = "queues"', r"^17: sets: two are called `queues`"),
        (
            "[workloads.bulk]",
            '[workloads.bulk]\nlike = "bulkk"',
            r"^8: .*like: .*no workload `bulkk`",
        ),
        ("[workloads.bulk]", '[workloads.bulk]\nlike = "bulk"', r"^8: .*`bulk` like `bulk`"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_the_nearest_that_is_right(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    assert right in SMALL
    found = problems(tmp_path, SMALL.replace(right, wrong, 1))
    assert any(re.search(said, one, re.DOTALL) for one in found), found


def test_every_problem_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    text = SMALL.replace("seed = 5", "sead = 5").replace("repetitions = 2", 'repetitions = "two"')
    assert len(problems(tmp_path, text)) == 2


def test_a_workload_takes_what_it_does_not_say_from_another(tmp_path: Path) -> None:
    more = '[workloads.long]\nlike = "short"\nparameters = { bytes = 90000 }\n'
    more += '[workloads.short]\nlike = "bulk"\nduration = "30 s"\n'
    more += '[[sets]]\nname = "more"\nnetwork = "gprs"\nworkload = ["short", "long", "bulk"]\n'
    loaded = load(written(tmp_path, SMALL + more + "repetitions = 1\n"))
    short, long, bulk = cells(loaded, loaded.experiment.sets[-1])
    assert short.workload.virtual == ["tcp bytes=20000 from=server cc=reno"]
    assert long.workload.virtual == ["tcp bytes=90000 from=server cc=reno"]
    assert (short.workload.duration, long.workload.duration) == ("30 s", "30 s")
    assert bulk.workload.duration is None


def test_an_unreadable_file_is_told(tmp_path: Path) -> None:
    result = airpath("run", tmp_path / "nowhere.toml")
    assert result.returncode == 2
    assert "nowhere.toml:1: cannot be read: No such file" in result.stderr


def test_check_tells_experiments_from_scenarios(small: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "link.toml"
    scenario.write_text('[[hops]]\nname = "radio"\n[hops.link]\nrate = "1 Mbit/s"\n')
    both = airpath("check", small, scenario)
    assert both.returncode == 0, both.stderr
    assert "2 sets, 4 cells" in both.stdout
    scenario.write_text('[[hops]]\nname = "radio"\n[hops.link]\nrat = "1 Mbit/s"\n')
    wrong = airpath("check", small, scenario)
    assert wrong.returncode == 1
    assert "rate" in wrong.stderr
    small.write_text(SMALL.replace("seed", "sead"))
    assert airpath("check", small).returncode == 1


def test_the_schema_in_the_repository_is_fresh() -> None:
    kept = json.loads((ROOT / "schema/experiment.schema.json").read_text())
    assert kept == schema()
    assert json.loads(airpath("schema", "--experiment").stdout) == kept


def test_examples_are_right() -> None:
    files = sorted((ROOT / "examples").glob("*.toml"))
    assert files
    for file in files:
        result = airpath("check", file)
        assert result.returncode == 0, result.stderr


# Cells and seeds.


def test_sweeps_make_cells_with_readable_names(small: Path) -> None:
    loaded = load(small)
    queues, sizes = loaded.experiment.sets
    assert [cell.name for cell in cells(loaded, queues)] == ["limit=4packets", "limit=8packets"]
    zipped = cells(loaded, sizes)
    assert [cell.name for cell in zipped] == ["bytes=5000,mtu=1500", "bytes=10000,mtu=1400"]
    assert zipped[1].workload.virtual == ["tcp bytes=10000 from=server cc=reno"]
    assert zipped[1].mtu == 1400


def test_random_numbers_are_common_unless_asked_otherwise(tmp_path: Path) -> None:
    text = SMALL.replace(
        "repetitions = 2", 'repetitions = 2\nrandom_numbers = "independent"\nseed = 9'
    )
    loaded = load(written(tmp_path, text))
    queues, sizes = (cells(loaded, one) for one in loaded.experiment.sets)
    assert {cell.seed(3) for cell in queues} == {7}
    assert len({cell.seed(1) for cell in sizes}) == 2


# Statistics: values of Student's t from printed tables.


def test_an_interval_is_the_textbooks() -> None:
    found = mean_with_half_width([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.mean, found.count) == (3.0, 5)
    assert found.half_width == pytest.approx(2.7764 * (2.5 / 5) ** 0.5, abs=1e-4)
    assert mean_with_half_width([1.0]).half_width == float("inf")
    assert checkpoints(4, 10) == [4, 5, 7, 9, 10]


# Unattended runs.


def test_a_run_does_all_and_its_results_are_listed(small: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    done = airpath("run", small, "--out", root, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("10 succeeded")
    assert len(run_folders(root)) == 10
    assert all((root / "runs" / one / "run.json").is_file() for one in run_folders(root))
    seeds = {e["replication"]: e["seed"] for e in journal(root) if e["set"] == "queues"}
    assert seeds == {1: 5, 2: 6, 3: 7}
    listed = airpath("results", root, "--json")
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    assert len(rows) == 10
    assert all(row["verdict"] == "trusted" and row["metrics"]["elapsed"] > 0 for row in rows)
    # Compared by hand from the rows: pairs of the same seed.
    by_cell: dict[str, list[float]] = {}
    for row in rows:
        by_cell.setdefault(row["cell"], []).append(row["metrics"]["elapsed"])
    first, second = by_cell["limit=4packets"], by_cell["limit=8packets"]
    compared = airpath(
        *("results", root, "--json", "--metric", "elapsed"),
        *("--compare", "queues/limit=4packets", "queues/limit=8packets"),
    )
    found = json.loads(compared.stdout)["metrics"][0]
    difference = sum(b - a for a, b in zip(first, second, strict=True)) / 3
    assert found["difference"] == pytest.approx(difference)
    assert found["pairs"] == 3


def test_results_are_filtered_tagged_removed_and_run_again(small: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    assert airpath("run", small, "--out", root).returncode == 0
    some = ("results", root, "--set", "queues", "--where", "replication <= 2")
    assert airpath(*some, "--add-tag", "early").returncode == 0
    rebuilt = airpath("results", root, "--rebuild", "--tag", "early", "--json")
    assert len(rebuilt.stdout.splitlines()) == 4
    assert airpath(*some, "--remove").returncode == 2, "must not delete unasked"
    assert len(run_folders(root)) == 10
    assert airpath(*some, "--remove", "--yes").returncode == 0
    assert len(run_folders(root)) == 6
    unknown = airpath("results", root, "--where", "elapsd < 2")
    assert unknown.returncode == 2
    assert "did you mean `elapsed`?" in unknown.stderr
    again = airpath("run", small, "--out", root, "--resume")
    assert again.returncode == 0, again.stderr
    assert len(run_folders(root)) == 10


def test_a_folder_with_results_is_not_run_into_unasked(small: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    assert airpath("run", small, "--out", root, "--only", "sizes").returncode == 0
    refused = airpath("run", small, "--out", root)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    small.write_text(SMALL.replace("gprs-cs2-3+1", "gprs-cs1-3+1"))
    changed = airpath("run", small, "--out", root, "--resume")
    assert changed.returncode == 2
    assert "sizes/bytes=10000,mtu=1400" in changed.stderr
    plan = json.loads((root / "plan.json").read_text())
    (root / "plan.json").write_text(json.dumps({**plan, "format_version": 99}))
    newer = airpath("run", small, "--out", root, "--resume")
    assert newer.returncode == 2
    assert "format 99" in newer.stderr


def test_two_runs_cannot_work_in_one_folder(small: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    root.mkdir()
    first = Results(root)
    first.lock()
    refused = airpath("run", small, "--out", root)
    assert refused.returncode == 2
    assert f"in use by another airpath run (process {os.getpid()})" in refused.stderr
    first.close()
    assert airpath("run", small, "--out", root).returncode == 0


LONG = SMALL.replace("repetitions = 3", "repetitions = 20").replace("20000", "200000")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_after_being_broken_off_nothing_is_lost_and_nothing_is_run_twice(
    tmp_path: Path, number: signal.Signals
) -> None:
    file, root = written(tmp_path, LONG), tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", START, "run", str(file), "--out", str(root), "--jobs", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        if (root / "journal").exists() and len((root / "journal").read_text().splitlines()) >= 6:
            break
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number), said
    before = {
        (e["set"], e["cell"], e["replication"]): e["unix_s"]
        for line in (root / "journal").read_text().splitlines(keepends=True)
        if line.endswith("\n")
        for e in [json.loads(line)]
    }
    assert 6 <= len(before) < 44
    # What a crash may leave besides: a torn line, folders that are not in the journal.
    with (root / "journal").open("a") as file_:
        file_.write('{"kind": "done", "set": "que')
    (root / "runs/queues/limit=4packets/0020.part").mkdir(parents=True, exist_ok=True)
    orphan = root / "runs/queues/limit=8packets/0020"
    orphan.mkdir(parents=True, exist_ok=True)
    (orphan / "run.json").write_text("{}")
    resumed = airpath("run", file, "--out", root, "--resume", "--jobs", "2")
    assert resumed.returncode == 0, resumed.stderr
    entries = journal(root)
    keys = [(e["set"], e["cell"], e["replication"]) for e in entries if e["kind"] == "done"]
    assert len(keys) == len(set(keys)) == 44
    kept = {(e["set"], e["cell"], e["replication"]): e["unix_s"] for e in entries}
    assert before.items() <= kept.items()
    folders = run_folders(root)
    assert folders == {f"{s}/{c}/{n:04}" for s, c, n in keys}
    assert (orphan / "replication.json").is_file()


def test_a_stopping_rule_ends_at_the_same_count_however_many_run_beside(tmp_path: Path) -> None:
    rule = 'until = { metric = "elapsed", half_width = "20 %", least = 3, most = 40 }'
    text = SMALL.replace("repetitions = 3", rule)
    counts = []
    for jobs in ("1", "3"):
        root = tmp_path / jobs
        done = airpath(
            "run", written(tmp_path, text), "--only", "queues", "--out", root, "--jobs", jobs
        )
        assert done.returncode == 0, done.stderr
        by_cell: dict[str, list[float]] = {}
        for entry in sorted(journal(root), key=lambda e: e["replication"]):
            by_cell.setdefault(entry["cell"], []).append(entry["metrics"]["elapsed"])
        for values in by_cell.values():
            assert len(values) in checkpoints(3, 40)
            assert mean_with_half_width(values).relative <= 0.2
            earlier = [n for n in checkpoints(3, 40) if n < len(values)]
            assert all(mean_with_half_width(values[:n]).relative > 0.2 for n in earlier)
        counts.append({cell: len(values) for cell, values in by_cell.items()})
    assert counts[0] == counts[1]


class AtOnce(Executor):
    """Carries everything out when it is handed in: another engine in place of threads."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


LIVE = """\
name = "live"
reruns = 1
[networks.link]
link = { rate = "5 Mbit/s", delay = "5 ms" }
[workloads.work]
programs = [{ name = "one", end = "client", command = "true" }]
[[sets]]
name = "set"
network = "link"
workload = "work"
repetitions = 3
"""


def runner_of(
    tmp_path: Path, text: str, carry_out: Callable[[Task], Outcome], jobs: Jobs, told: list[str]
) -> tuple[Runner, Results]:
    results = Results(tmp_path / "out")
    results.root.mkdir()
    results.lock()
    plan = make_plan(load(written(tmp_path, text)), [])
    return Runner(plan, results, jobs, told.append, AtOnce, carry_out), results


def test_suspect_runs_are_run_again_so_often_and_no_more(tmp_path: Path) -> None:
    tried: list[tuple[int, int]] = []

    def carry_out(task: Task) -> Outcome:
        tried.append((task.replication, task.attempt))
        bad = task.replication == 2 or (task.replication == 3 and task.attempt == 1)
        return Outcome("succeeded", "suspect" if bad else "trusted", "", {"elapsed": 1.0})

    told: list[str] = []
    runner, results = runner_of(tmp_path, LIVE, carry_out, Jobs.of("1"), told)
    report = runner.run()
    results.close()
    assert sorted(tried) == [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)]
    assert (report.succeeded, report.not_trusted) == (3, 1)
    assert any("set/all/0003: suspect; run again (1 of 1 times)" in line for line in told)


def test_automatic_jobs_step_down_once_for_runs_that_disturbed_one_another() -> None:
    jobs = Jobs(4, automatic=True)
    assert jobs.judged("trusted", 4) == ""
    assert "3 at a time" in jobs.judged("suspect", 4)
    assert jobs.judged("suspect", 4) == "", "it ran among the same four"
    assert "2 at a time" in jobs.judged("invalid", 3)
    assert jobs.judged("suspect", 1) == ""
    assert jobs.now == 2
    fixed = Jobs.of("4")
    fixed.judged("suspect", 4)
    assert fixed.now == 4
    with pytest.raises(ValueError, match="--jobs many"):
        Jobs.of("many")


def test_a_full_disk_stops_before_anything_is_written(tmp_path: Path) -> None:
    def carry_out(_task: Task) -> Outcome:
        pytest.fail("nothing may run")

    text = LIVE.replace("reruns = 1", 'keep_free = "1000000 TB"')
    runner, results = runner_of(tmp_path, text, carry_out, Jobs.of("2"), [])
    report = runner.run()
    results.close()
    assert "disk space" in report.stopped
    assert "--resume" in report.stopped


def test_a_damaged_journal_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text('{"kind": "done"}\nnonsense\n{"kind": "done"}\n')
    with pytest.raises(FolderError, match="journal:2"):
        Results(tmp_path).read()


def test_a_relative_folder_of_results_is_the_users_and_not_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of-the-file").mkdir()
    file = written(tmp_path / "of-the-file", SMALL)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done = airpath("run", file, "--only", "sizes", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    manifests = list(Path("out").glob("runs/sizes/*/*/run.json"))
    assert len(manifests) == 4
    # A run whose record was damaged is run again; a deleted index is built anew.
    record = manifests[0].with_name("replication.json")
    record.write_text("{")
    Path("out/catalogue.sqlite").unlink()
    listed = airpath("results", "out", "--runs", "--json")
    assert len(listed.stdout.splitlines()) == 3, listed.stderr
    assert "1 runs of the journal" in airpath("results", "out", "--rebuild").stderr
    again = airpath("run", file, "--only", "sizes", "--out", "out", "--resume")
    assert again.returncode == 0, again.stderr
    assert json.loads(record.read_text())["status"] == "succeeded"


@pytest.mark.parametrize(
    "words", [("analyse", "--list"), ("plan", "FILE")], ids=["analyse", "plan"]
)
def test_output_that_cannot_be_written_is_told(small: Path, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", START, *(str(small) if w == "FILE" else w for w in words)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"airpath {words[0]}: output cannot be written: No space left on device"
    ]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


# Programs, live.

PROGRAMS = """\
name = "programs"
log = "counters"
[networks.link]
inline = { hops = [{ name = "radio", link = { rate = "5 Mbit/s", propagation = "5 ms" } }] }
[workloads.work]
congestion_control = "reno"
output_limit = "10 kB"
time_limit = "1 min"
[[workloads.work.programs]]
name = "web"
end = "server"
command = "echo warming up; sleep 0.2; echo ready; exec python3 -m http.server 7001"
ready = { output = "^ready$" }
environment = { PYTHONUNBUFFERED = "1" }
[[workloads.work.programs]]
template = "send"
name = "transfer"
bytes = "20 kB"
start = "200 ms"
[[workloads.work.programs]]
template = "curl"
name = "page"
size = 4000
parts = 2
part_size = 1000
[[workloads.work.programs]]
template = "interactive"
name = "typing"
count = 3
port = 6000
[[workloads.work.programs]]
name = "flood"
end = "server"
command = "yes | head -c 2000000; echo kept > left.txt; echo gone > left.tmp"
keep = ["*.txt"]
[[workloads.work.programs]]
name = "settings"
end = "client"
start = "500 ms"
command = ["./ask.py"]
[[sets]]
name = "good"
network = "link"
workload = "work"
repetitions = 1
"""


def test_programs_at_both_ends_run_at_their_times_and_are_recorded(tmp_path: Path) -> None:
    root = tmp_path / "out"
    done = airpath("run", with_program(tmp_path, PROGRAMS), "--out", root, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    run = root / "runs/good/all/0001"
    workload = json.loads((run / "workload.json").read_text())
    programs = {program["name"]: program for program in workload["programs"]}
    assert all(program["succeeded"] for program in programs.values())
    assert workload["congestion_control"] == "reno"
    assert (run / "programs/settings.stdout").read_text() == "b'reno'\n"
    assert programs["transfer"]["start_ns"] >= 200_000_000
    assert programs["web"]["start_ns"] < 0
    assert programs["web"]["stopped"]
    flood = programs["flood"]["output"]["stdout"]
    assert flood == {"bytes": 2_000_000, "cut_off": True}
    kept = (run / "programs/flood.stdout").read_bytes()
    assert kept.startswith(b"y\n" * 5000)
    assert b"cut off here, of 2000000 bytes" in kept
    assert len(kept) < 10_100
    assert [path.name for path in (run / "programs/flood").iterdir()] == ["left.txt"]
    metrics = json.loads((run / "replication.json").read_text())["metrics"]
    assert metrics["transfer.goodput"] > 0
    assert metrics["typing.response_p50_seconds"] >= 0.010
    assert metrics["page.transfers"] == 3
    assert metrics["page.bytes"] == 6000
    assert metrics["elapsed"] > 0.2


FAILING = PROGRAMS.replace("echo kept > left.txt", "exit 7").replace(
    'name = "good"\nnetwork = "link"',
    'name = "bad"\nnetwork = "link"\nworkload = "late"\nrepetitions = 1\n'
    '[[sets]]\nname = "good"\nnetwork = "link"',
)
ASK = """\
#!/usr/bin/env python3
import socket
with socket.create_connection(("server", 7001)) as connection:
    print(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).strip(bytes(1)))
"""


def with_program(folder: Path, text: str) -> Path:
    """Write an experiment, and beside it the program that it names."""
    program = folder / "ask.py"
    program.write_text(ASK)
    program.chmod(0o755)
    return written(folder, text)


LATE = """\
[[workloads.late.programs]]
name = "never"
end = "server"
command = "sleep 100"
ready = { port = 7000, within = "300 ms" }
[[workloads.late.programs]]
name = "client"
end = "client"
command = "true"
"""


def test_a_workload_that_fails_marks_its_replication_and_the_rest_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "out"
    file = with_program(tmp_path, FAILING + LATE)
    done = airpath("run", file, "--out", root, "--jobs", "1")
    assert done.returncode == 1
    entries = {entry["set"]: entry for entry in journal(root) if entry["kind"] == "done"}
    assert entries["good"]["status"] == "failed"
    assert entries["good"]["message"] == "flood: exit status 7"
    assert "never was not ready within 0.3 s" in entries["bad"]["message"]
    assert "bad/all/0001: failed" in done.stderr


def test_a_program_that_is_not_there_is_told_before_anything_runs(tmp_path: Path) -> None:
    text = LIVE.replace('command = "true"', 'command = ["no-such-program", "-x"]')
    root = tmp_path / "out"
    done = airpath("run", written(tmp_path, text), "--out", root)
    assert done.returncode == 2
    assert "`no-such-program`, which is not there: install it" in done.stderr
    assert not root.exists()


def test_a_replication_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    text = LIVE.replace('"true"', '"sleep 100"').replace("repetitions = 3", "repetitions = 1")
    text = text.replace("[[sets]]", 'time_limit = "2 s"\n[[sets]]')
    text = text.replace("programs = [", "programs = [ ")
    root = tmp_path / "out"
    done = airpath("run", written(tmp_path, text), "--out", root, "--jobs", "1")
    assert done.returncode == 1
    assert journal(root)[-1]["message"] == "took longer than 2 s"
    assert run_folders(root) == {"set/all/0001"}


def test_the_network_stands_for_commands_by_hand(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", START, "run", str(written(tmp_path, PROGRAMS)), "--manual"],
        input="start transfer-server\nserver echo I am at the server\nfalse\nstart nobody\n\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "I am at the server" in process.stdout + process.stderr
    assert "exit status 1" in process.stdout
    assert "there is no program `nobody`" in process.stdout


def test_curls_lines_become_figures(tmp_path: Path) -> None:
    line = '{"time_total": 0.5, "size_download": 1000}'
    (tmp_path / "page.stdout").write_text(f"{line}\n{line}\n")
    record = {"name": "page", "service": False, "elapsed_ns": 10**9, "end_ns": 2 * 10**9}
    found = of_programs([record], tmp_path)
    assert found["page.transfers"] == 2
    assert found["page.transfer_time"] == 0.5
    assert found["page.bytes"] == 2000
    assert found["elapsed"] == 2.0
    with contextlib.suppress(OSError):
        (tmp_path / "page.stdout").unlink()
    assert "page.transfers" not in of_programs([record], tmp_path)
