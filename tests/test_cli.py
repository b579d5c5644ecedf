"""The airpath command before any subcommand of its own runs."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from airpath.commands import COMMANDS

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


def test_help_names_every_command_with_an_example() -> None:
    result = airpath("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        assert command.summary in result.stdout
        assert command.example in result.stdout
        assert command.example.startswith(f"airpath {command.name}")


def test_no_arguments_show_the_help_and_fail() -> None:
    result = airpath()
    assert result.returncode == 2
    assert "usage: airpath COMMAND" in result.stdout


def test_version_is_that_of_the_package() -> None:
    result = airpath("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("airpath 0.")


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
    assert result.returncode == 127
    assert "AIRPATH_ENGINE names" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_engine_that_cannot_run_is_told(tmp_path: Path) -> None:
    program = tmp_path / "engine"
    program.write_bytes(b"\x00not a program\x00")
    program.chmod(0o755)
    result = airpath("exec", environment={"AIRPATH_ENGINE": str(program)})
    assert result.returncode == 127
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
    assert not loaded & {"cyclopts", "polars", "numpy", "matplotlib", "typing_extensions", "rich"}


def test_the_overview_may_be_cut_short() -> None:
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(START)} --help | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
