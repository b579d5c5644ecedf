# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The commands that Python carries out: parsers, help, errors, and the packages they need."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airpath.commandline import HelpAsked, UsageError, help_text, key, parse
from airpath.declarations import DECLARATIONS
from airpath.engine import find_engine
from airpath.extras import EXTRAS, MissingExtraError, missing, packages, require
from airpath.facts import COMMANDS, EXIT_STATUSES
from experiments import SMALL
from synthetic import write_run
from timing_folder import write_timing

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent
START = "import sys; from airpath.cli import main; sys.exit(main())"

NAMES = sorted(DECLARATIONS)
EXAMPLES = [
    (name, example)
    for name, declaration in DECLARATIONS.items()
    for example in declaration.examples
]
MODULES = {package.module for extra in EXTRAS for package in packages(extra)}

REFUSAL = """\
import sys

REFUSED = frozenset({refused!r})


class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


sys.meta_path.insert(0, Refusal())
"""
"""A sitecustomize.py by which an interpreter, and those that it starts, lack some packages."""


def words_of(example: str) -> list[str]:
    """Return the words of an example behind ``airpath``, up to where the shell's own begin."""
    words = shlex.split(example)
    assert words[0] == "airpath"
    ends = [place for place, word in enumerate(words) if word in (">", "|")]
    return words[1 : ends[0] if ends else None]


def behind(name: str, words: list[str]) -> list[str]:
    """Return the words behind a command's name."""
    count = len(name.split())
    assert words[:count] == name.split()
    return words[count:]


def without(
    refused: Iterable[str], *words: str | Path, cwd: Path, code: str = START
) -> subprocess.CompletedProcess[str]:
    """Run the command where some packages cannot be imported."""
    folder = cwd / "refusal"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(REFUSAL.format(refused=sorted(refused)))
    path = os.pathsep.join([str(folder), str(ROOT / "python")])
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "AIRPATH_ENGINE": find_engine()},
        stdin=subprocess.DEVNULL,
        check=False,
    )


# Declarations


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_every_example_is_parsed(name: str, example: str) -> None:
    declaration = DECLARATIONS[name]
    values = parse(declaration, behind(name, words_of(example)))
    assert any(values.values()) or not (declaration.arguments or declaration.options)


@pytest.mark.parametrize("name", NAMES)
def test_the_function_takes_what_is_declared(name: str) -> None:
    declaration = DECLARATIONS[name]
    module, _, function = declaration.runs.partition(":")
    takes = inspect.signature(getattr(importlib.import_module(module), function)).parameters
    keys = [one.key for one in declaration.arguments] + [key(one) for one in declaration.options]
    assert len(keys) == len(set(keys))
    assert set(takes) == set(keys)


@pytest.mark.parametrize("name", NAMES)
def test_help_has_the_sections_of_the_engines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    declaration = DECLARATIONS[name]
    with pytest.raises(HelpAsked) as asked:
        parse(declaration, ["--help"])
    text = str(asked.value)
    sections = re.findall(r"^(Usage|Arguments|Options|Examples?):", text, re.MULTILINE)
    plural = "Examples" if len(declaration.examples) > 1 else "Example"
    arguments = ["Arguments"] if declaration.arguments else []
    assert sections == ["Usage", *arguments, "Options", plural]
    examples = [f"  {example}" for example in declaration.examples]
    lines = [line for line in text.splitlines() if line not in examples]
    assert max(map(len, lines)) <= 70
    for option in declaration.options:
        values = "".join(f" <{metavar}>" for metavar in option.metavars)
        assert re.search(rf"^      {re.escape(option.flag + values)}(  |$)", text, re.MULTILINE)
    assert re.search(r"^  -h, --help +Print help$", text, re.MULTILINE)
    assert not declaration.summary.endswith(".")
    assert declaration.summary[0].isupper()


def test_help_looks_as_the_engines_does() -> None:
    """Compared where both have the same things to say: the help of airpath check."""
    shown = subprocess.run(
        [find_engine(), "check", "--help"], capture_output=True, text=True, check=True
    ).stdout
    engines = [line for line in shown.splitlines() if line.startswith("  ")]
    declaration = DECLARATIONS["check"]
    twin = declaration._replace(
        summary=shown.splitlines()[0],
        examples=(COMMANDS["check"].example,),
        notes="",
        arguments=tuple(
            one._replace(metavar=metavar, help=said)
            for one in declaration.arguments
            for metavar, said in [re.findall(r"<(\w+)>\.\.\.  (.*)", engines[0])[0]]
        ),
        options=tuple(
            one._replace(help=re.findall(r"--json  (.*)", shown)[0]) for one in declaration.options
        ),
    )
    assert help_text(twin) == shown.rstrip("\n")


# Values and mistakes


def values(name: str, *words: str) -> dict[str, Any]:
    return parse(DECLARATIONS[name], words)


def test_values_have_the_types_that_are_declared() -> None:
    words = "--jobs 3 results --from=-1 --only queue --only=delay --to 2.5"
    found = values("plot", *words.split())
    assert found == {
        "place": Path("results"),
        "out": None,
        "file_format": "png",
        "only": ["queue", "delay"],
        "metrics": None,
        "include_untrusted": False,
        "jobs": 3,
        "begin": -1.0,
        "end": 2.5,
        "user": None,
    }
    assert values("trace plot", "up")["out"] == Path("rate.png")
    assert values("analyse")["directories"] is None
    assert values("analyse", "a", "--json", "b", "--compare", "x", "y", "c") == {
        **values("analyse"),
        "directories": [Path("a"), Path("b"), Path("c")],
        "json": True,
        "compare": ("x", "y"),
    }
    assert values("plot", "--", "--odd")["place"] == Path("--odd")
    assert values("results", "--where", "-5 < elapsed")["where"] == ["-5 < elapsed"]


MISTAKES = [
    ("plot", [], "the following required arguments were not provided:\n  <DIR>"),
    ("report", [], "the following required arguments were not provided:\n  <DIR>..."),
    (
        "plot",
        ["x", "--formt", "svg"],
        "unexpected argument '--formt' found\n\n  tip: a similar argument exists: '--format'\n"
        "\nUsage: airpath plot",
    ),
    ("plot", ["x", "--form=svg"], "unexpected argument '--form' found"),
    ("plot", ["x", "-o", "y"], "unexpected argument '-o' found"),
    ("plot", ["x", "y"], "unexpected argument 'y' found"),
    ("schema", ["--experiment", "x"], "unexpected argument 'x' found"),
    ("plot", ["x", "--out"], "a value is required for '--out <DIR>' but none was supplied"),
    (
        "plot",
        ["x", "--only"],
        "a value is required for '--only <KIND>' but none was supplied\n  [possible values: time-",
    ),
    (
        "plot",
        ["x", "--format", "pgn"],
        "invalid value 'pgn' for '--format <FORMAT>'\n"
        "  [possible values: png, svg, pdf, xplot, multitracer]\n\n"
        "  tip: a similar value exists: 'png'\n\nFor more",
    ),
    (
        "plot",
        ["x", "--jobs", "two"],
        "invalid value 'two' for '--jobs <N>': not a whole number of 1 or more",
    ),
    (
        "plot",
        ["x", "--jobs", "0"],
        "invalid value '0' for '--jobs <N>': not a whole number of 1 or more",
    ),
    ("plot", ["x", "--from", "y"], "invalid value 'y' for '--from <TIME>': not a time; write"),
    (
        "plot",
        ["x", "--jobs", "1", "--jobs=2"],
        "the argument '--jobs <N>' cannot be used multiple times",
    ),
    ("plan", ["x", "--json", "--json"], "the argument '--json' cannot be used multiple times"),
    ("plan", ["x", "--json=y"], "unexpected value 'y' for '--json' found; no more were expected"),
    ("analyse", ["x", "--compare", "y"], "2 values are required for '--compare <SET> <SET>'"),
]


@pytest.mark.parametrize(("name", "words", "said"), MISTAKES)
def test_mistakes_are_told_as_the_engine_does(name: str, words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(DECLARATIONS[name], words)
    text = str(raised.value)
    assert text.startswith(f"airpath: {said}")
    assert text.endswith("\n\nFor more information, try '--help'.")


def test_a_mistake_ends_with_the_status_of_usage(tmp_path: Path) -> None:
    result = without(MODULES, "plot", "--losss", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (EXIT_STATUSES["usage"], "")
    assert result.stderr.startswith("airpath: unexpected argument '--losss' found")


# Packages


def test_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == []
    declared = project["optional-dependencies"]
    assert list(declared) == list(EXTRAS)
    for name, extra in EXTRAS.items():
        own, included = set(), set()
        for requirement in declared[name]:
            if found := re.fullmatch(r"airpath\[([\w,]+)\]", requirement):
                included |= set(found[1].split(","))
            else:
                own.add(re.split(r"[<>=!~ ]", requirement)[0])
        assert own == {package.name for package in extra.packages}, name
        assert included == set(extra.includes), name
    assert set(packages("all")) == {each for extra in EXTRAS.values() for each in extra.packages}


def test_every_package_is_installed_here_and_found() -> None:
    lacking = missing("all")
    if lacking and lacking == missing("s3"):
        pytest.skip("s3fs is not installed: the environment is older than requirements.lock")
    assert lacking == ()
    require("all", "this test")
    require("", "nothing")


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    require("plots", "airpath plot")
    with pytest.raises(MissingExtraError) as raised:
        require("report", "airpath report")
    assert raised.value.name == "markdown_it"
    assert str(raised.value) == (
        "airpath report needs markdown-it-py, which is not installed: pip install 'airpath[report]'"
    )


NEEDY = [name for name in NAMES if DECLARATIONS[name].extra]


@pytest.mark.parametrize("name", NEEDY)
def test_a_command_without_its_packages_says_how_to_get_them(name: str, tmp_path: Path) -> None:
    declaration = DECLARATIONS[name]
    result = without(MODULES, *words_of(declaration.examples[0]), cwd=tmp_path)
    assert result.returncode == EXIT_STATUSES["lacking"]
    assert result.stdout == ""
    assert re.fullmatch(
        rf"airpath {name} needs [\w, -]+ and [\w-]+, which are not installed: "
        rf"pip install 'airpath\[{declaration.extra}\]'\n",
        result.stderr,
    )
    assert not [path for path in tmp_path.iterdir() if path.name != "refusal"]


@pytest.mark.parametrize("name", NAMES)
def test_help_needs_no_package(name: str, tmp_path: Path) -> None:
    words = [*name.split(), "--help"]
    if name in ("check", "schema"):  # the engine's, unless of an experiment
        (tmp_path / "small.toml").write_text(SMALL)
        words.insert(1, "small.toml" if name == "check" else "--experiment")
    result = without(MODULES, *words, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"Usage: airpath {name}" in result.stdout
    assert DECLARATIONS[name].examples[0] in result.stdout


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["plot", "--help"], ["report", "--nothing"], ["run"]]
)
def test_the_front_imports_nothing_heavy(words: list[str]) -> None:
    """Not even where it could: whoever asks for help waits for no package."""
    code = (
        "import sys, airpath, airpath.cli\n"
        "import atexit\n"
        "atexit.register(lambda: print(','.join(sys.modules), file=sys.stderr))\n"
        "sys.exit(airpath.cli.main())"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    loaded = {name.partition(".")[0] for name in result.stderr.splitlines()[-1].split(",")}
    assert "airpath" in loaded
    assert not loaded & MODULES


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run, a set of runs, a measurement, an experiment and a trace."""
    folder = tmp_path_factory.mktemp("things")
    write_run(folder / "gprs", size=2_560)
    for number in range(2):
        write_run(folder / "sets" / "reno" / f"replication-{number}", size=2_560, seed=number)
    write_timing(folder / "quiet")
    # The engine measures the rest of an experiment: one cell is enough here.
    (folder / "small.toml").write_text(SMALL[: SMALL.rindex("[[sets]]")])
    (folder / "up.trace").write_text("1\n2\n5\n")
    return folder


CARRIED_OUT = [
    ("", ["timing", "table", "quiet"]),
    ("", ["profiles"]),
    ("", ["sim", "--profile", "lte-good", "--workload", "tcp bytes=10000", "--json"]),
    ("analysis", ["analyse", "gprs"]),
    ("analysis", ["analyse", "sets", "--json"]),
    ("analysis", ["analyse", "--list"]),
    ("plots", ["plot", "gprs", "--out", "pictures"]),
    ("plots", ["plot", "gprs", "--format", "xplot", "--out", "pictures"]),
    ("plots", ["plot", "sets", "--out", "pictures"]),
    ("plots", ["trace", "plot", "up.trace"]),
    ("plots", ["timing", "plot", "quiet", "--out", "pictures"]),
    ("experiments", ["check", "small.toml"]),
    ("experiments", ["schema", "--experiment"]),
    ("experiments", ["plan", "small.toml", "--pilot"]),
    ("experiments", ["run", "small.toml", "--jobs", "1", "--out", "OUT"]),
    ("report", ["report", "gprs", "--out", "page.html"]),
    ("report", ["report", "sets", "--out", "page.html", "--figures", "figures", "--csv", "csv"]),
]


@pytest.mark.parametrize(
    ("extra", "words"), CARRIED_OUT, ids=[" ".join(words) for _, words in CARRIED_OUT]
)
def test_an_extra_is_enough_for_its_commands(
    extra: str, words: list[str], things: Path, tmp_path: Path
) -> None:
    given = {package.module for package in packages(extra)} if extra else set()
    words = [str(things / word) if (things / word).exists() else word for word in words]
    if "OUT" in words:
        words[words.index("OUT")] = str(tmp_path / "results")
    result = without(MODULES - given, *words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout
    if words[0] == "run":
        result = without(MODULES - given, "results", tmp_path / "results", "--json", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        runs = [json.loads(line) for line in result.stdout.splitlines()]
        assert len(runs) == 6


def test_checking_a_scenario_needs_no_package(tmp_path: Path) -> None:
    shown = subprocess.run(
        [find_engine(), "profiles", "show", "lte-good"], capture_output=True, text=True, check=True
    )
    (tmp_path / "link.toml").write_text(shown.stdout)
    (tmp_path / "small.toml").write_text(SMALL)
    assert without(MODULES, "check", "link.toml", cwd=tmp_path).returncode == 0
    result = without(MODULES, "check", "link.toml", "small.toml", cwd=tmp_path)
    assert result.returncode == EXIT_STATUSES["lacking"]
    assert "airpath check of the experiment small.toml needs" in result.stderr
    assert "pip install 'airpath[experiments]'" in result.stderr
    result = without(MODULES, "check", "nowhere.toml", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "nowhere.toml: cannot be read: No such file or directory\n"


def test_the_package_is_imported_without_any_extra(tmp_path: Path) -> None:
    code = """
import airpath
assert issubclass(airpath.EngineError, Exception)
assert issubclass(airpath.FolderError, Exception)
for name in airpath.__all__:
    try:
        getattr(airpath, name)
    except airpath.MissingExtraError as error:
        print(error)
"""
    result = without(MODULES, cwd=tmp_path, code=code)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    found = [re.search(r"airpath\.(\w+) needs .* 'airpath\[(\w+)\]'", line) for line in lines]
    extras = {one[1]: one[2] for one in found if one}
    assert len(extras) == len(lines)
    assert extras["simulate"] == extras["runs"] == extras["frame"] == "analysis"
    assert extras["plot"] == "plots"
    assert extras["run_experiment"] == extras["results"] == "experiments"
    assert not {"EngineError", "FolderError", "MissingExtraError"} & set(extras)


API = {
    "analysis": """
runs = airpath.runs("sets")
table = airpath.frame(runs, "transfer_time")
assert table.height == 2
airpath.summarise(table)
airpath.load("gprs").events
assert len(airpath.simulate("lte-good", "tcp bytes=10000", seed=1, replications=2)) == 2
""",
    "plots": """
assert airpath.plot(airpath.load("gprs"), "queue").axes
assert airpath.plot(airpath.runs("sets"), "distribution").axes
""",
    "experiments": """
done = airpath.run_experiment("small.toml", jobs=1, out="OUT")
assert len(airpath.results("OUT").runs) == 6
assert airpath.frame(done.runs, "elapsed").height == 6
""",
    "pandas": """
assert len(airpath.frame(airpath.runs("sets"), "transfer_time", as_pandas=True)) == 2
""",
}
"""Use of each extra by programs."""


@pytest.mark.parametrize("extra", API)
def test_an_extra_is_enough_for_its_functions(extra: str, things: Path, tmp_path: Path) -> None:
    code = API[extra]
    for name in ("sets", "gprs", "small.toml"):
        code = code.replace(f'"{name}"', repr(str(things / name)))
    code = code.replace('"OUT"', repr(str(tmp_path / "results")))
    given = {package.module for package in packages(extra)}
    result = without(MODULES - given, cwd=tmp_path, code=f"import airpath\n{code}")
    assert result.returncode == 0, result.stderr


def test_every_extra_is_tried() -> None:
    # Those of options, URLs and the page are tried in test_distributed.py, test_store.py and ui/.
    others = {"all", "distributed", "s3", "ui"}
    tried = {extra for extra, _ in CARRIED_OUT if extra} | set(API) | others
    assert tried == set(EXTRAS)
    declared = {declaration.extra for declaration in DECLARATIONS.values()}
    assert declared == {extra for extra, _ in CARRIED_OUT} | {"ui"}
