# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The airpath command before any subcommand of its own runs."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

from airpath import cli, facts, routing
from airpath.commands import commands
from airpath.declarations import DECLARATIONS, GROUPS

START = "import sys; from airpath.cli import main; sys.exit(main())"

STAND_IN = """\
#!/bin/sh
printf '%s\\n' "$$" "$@"
exit 42
"""


def airpath(
    *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **(environment or {})},
        check=False,
    )


@pytest.mark.parametrize("command", ["plot", "log"])
def test_control_characters_are_shown_as_text(command: str) -> None:
    """Names of files and messages of other hosts give the terminal no commands."""
    result = airpath(command, "no\x1b[2Jwhere\r\x07\x9b")
    assert r"no\u001b[2Jwhere\u000d\u0007\u009b" in result.stderr
    assert not any(ord(character) < 32 and character != "\n" for character in result.stderr)


def test_a_line_of_progress_is_written_over() -> None:
    program = (
        "import sys; from airpath.terminal import show_control_characters as show; show();"
        "print('\\r\\x1b[K1 of 2\\x1b[A', end=''); print('\\r2 of 2', file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, timeout=60
    )
    assert done.stdout == b"\r\x1b[K1 of 2\\u001b[A"
    assert done.stderr == b"\r2 of 2\n"


def test_help_names_every_command_with_an_example() -> None:
    result = airpath("--help")
    assert result.returncode == 0
    for command in commands():
        assert command.summary in result.stdout
        assert command.example in result.stdout
        assert command.example.startswith(f"airpath {command.name}")


def test_the_overview_has_the_commands_of_the_engine_and_of_python() -> None:
    names = [command.name for command in commands()]
    assert len(names) == len(set(names))
    assert set(names) == set(facts.COMMANDS) | routing.OF_PYTHON
    assert not set(facts.COMMANDS) & routing.OF_PYTHON
    assert set(facts.COMMANDS) >= routing.OF_BOTH
    below = {" ".join(words) for words in routing.BELOW_THE_ENGINES}
    below_pythons = {" ".join(words) for words in routing.BELOW_PYTHONS}
    of_python = routing.OF_PYTHON - set(GROUPS)
    assert set(DECLARATIONS) == of_python | routing.OF_BOTH | below | below_pythons
    assert {name.split()[0] for name in below} <= set(facts.COMMANDS)
    assert {name.split()[0] for name in below_pythons} == set(GROUPS) <= routing.OF_PYTHON


def test_no_arguments_show_the_help_and_fail() -> None:
    result = airpath()
    assert result.returncode == 2
    assert "Usage: airpath <COMMAND>" in result.stdout


@pytest.mark.parametrize(("word", "meant"), [("plto", "plot"), ("repor", "report")])
def test_a_mistyped_command_of_python_is_told_with_the_right_one(word: str, meant: str) -> None:
    result = airpath(word, "results")
    assert result.returncode == 2
    assert result.stdout == ""
    assert f"airpath: unrecognized subcommand '{word}'" in result.stderr
    assert f"tip: a similar subcommand exists: '{meant}'" in result.stderr


def test_what_no_command_of_python_resembles_is_left_to_the_engine(stand_in: Path) -> None:
    result = airpath("calibrate", "--x", environment={"AIRPATH_ENGINE": str(stand_in)})
    assert result.returncode == 42
    assert result.stdout.splitlines()[1:] == ["calibrate", "--x"]


def test_version_is_that_of_the_package() -> None:
    result = airpath("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("airpath 0.")


def test_a_tree_that_is_not_installed_says_so_instead_of_a_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setattr(sys, "argv", ["airpath", "--version"])
    assert cli.main() == facts.EXIT_STATUSES["lacking"]
    told = capsys.readouterr()
    assert told.out == ""
    assert "run `make setup`" in told.err


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """Return an executable that tells how it was started, in the engine's place."""
    program = tmp_path / "engine"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    return program


def test_other_commands_become_the_engine(stand_in: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", START, "exec", "--loss", "1%", "--", "plot"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "AIRPATH_ENGINE": str(stand_in)},
    )
    output, _ = process.communicate(timeout=60)
    engine_pid, *arguments = output.splitlines()
    assert arguments == ["exec", "--loss", "1%", "--", "plot"]
    assert process.returncode == 42
    assert engine_pid == str(process.pid), "the engine must be the same process"


def test_the_engine_inherits_no_ignored_signal_of_the_interpreter(tmp_path: Path) -> None:
    program = tmp_path / "engine"
    program.write_text("#!/bin/sh\ngrep SigIgn /proc/self/status\n")
    program.chmod(0o755)
    result = airpath("exec", environment={"AIRPATH_ENGINE": str(program)})
    ignored = int(result.stdout.split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))
    assert not ignored & (1 << (signal.SIGXFSZ - 1))


def test_a_missing_engine_is_told_with_a_remedy(tmp_path: Path) -> None:
    result = airpath("exec", environment={"AIRPATH_ENGINE": str(tmp_path / "nowhere")})
    assert result.returncode == facts.EXIT_STATUSES["lacking"]
    assert "AIRPATH_ENGINE names" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_engine_that_cannot_run_is_told(tmp_path: Path) -> None:
    program = tmp_path / "engine"
    program.write_bytes(b"\x00not a program\x00")
    program.chmod(0o755)
    result = airpath("exec", environment={"AIRPATH_ENGINE": str(program)})
    assert result.returncode == facts.EXIT_STATUSES["lacking"]
    assert str(program) in result.stderr
    assert "Traceback" not in result.stderr


def test_becoming_the_engine_imports_no_heavy_module(stand_in: Path) -> None:
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, os\n"
            "os.execv = lambda *_: sys.exit(','.join(sys.modules))\n"
            "sys.argv[1:] = ['exec', '--', 'true']\n"
            "from airpath.cli import main\nmain()",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "AIRPATH_ENGINE": str(stand_in)},
        check=False,
    )
    loaded = set(result.stderr.strip().split(","))
    assert "airpath.engine" in loaded
    assert not loaded & {"polars", "numpy", "matplotlib", "argparse", "airpath.declarations"}


def test_the_overview_may_be_cut_short() -> None:
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(START)} --help | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


COMMANDS_TO_INTERRUPT = (
    "exec --delay 20ms -- sleep 5",
    "run examples/queue-length.toml --only model",
    "sim --profile gsm-data-9.6k --workload 'tcp bytes=102400000 from=server cc=reno'",
    "analyse .",
    "report .",
    "plot .",
    "replay .",
    "recv --port 0",
    "timing clocks",
)
"""Commands of the engine and of Python. Those that find nothing to do end by themselves."""

MARKED_START = """\
import sys
import time
from airpath.cli import main
print("begun", file=sys.stderr, flush=True)
sys.exit(main())
"""
"""Says when the interpreter has handed over: before that nothing of the command's own runs."""

INSTANTS = 30


@pytest.mark.parametrize("instant", range(INSTANTS))
def test_an_interrupt_is_silent_at_any_instant(instant: int, tmp_path: Path) -> None:
    words = shlex.split(COMMANDS_TO_INTERRUPT[instant % len(COMMANDS_TO_INTERRUPT)])
    root = Path(__file__).resolve().parents[1]
    words = [str(root / word) if word.startswith("examples/") else word for word in words]
    process = subprocess.Popen(
        [sys.executable, "-c", MARKED_START, *words],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "begun\n"
    # Over the first one and a half seconds, most of them where Python imports.
    time.sleep(1.5 * (instant / INSTANTS) ** 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    told = f"{words}: {process.returncode}\n{out}\n{err}"
    assert "Traceback" not in err, told
    assert "KeyboardInterrupt" not in err, told
    ended_by_itself = process.returncode in (0, 1, 2)
    assert ended_by_itself or process.returncode in (-signal.SIGINT, 128 + signal.SIGINT), told


def test_an_interrupt_that_was_ignored_stays_so() -> None:
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import airpath.cli;"
        " assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("command", ["plot", "analyse", "report", "log", "replay", "timing table"])
def test_folders_without_a_run_are_a_mistake_in_every_command(command: str, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        result = airpath(*command.split(), str(folder))
        assert result.returncode == facts.EXIT_STATUSES["usage"]
        assert str(folder) in result.stderr
