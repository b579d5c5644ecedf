# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Validity of the documentation: every scenario, every command line, every link."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from airpath.commands import commands
from airpath.engine import find_engine

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "studies/*/*.md")
    for page in ROOT.glob(pattern)
    if page.name != "CHANGELOG.md"
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (f"{page.relative_to(ROOT)}:{page.read_text()[: match.start()].count(chr(10)) + 1}", text)
        for page in PAGES
        for match in FENCE.finditer(page.read_text())
        for text in [match[2]]
        if match[1] == language
    ]


def scenarios() -> list[tuple[str, str]]:
    files = [*ROOT.glob("studies/*/scenario*.toml"), *ROOT.glob("crates/*/profiles/*.toml")]
    written = [(str(file.relative_to(ROOT)), file.read_text()) for file in sorted(files)]
    return written + [(place, text) for place, text in blocks("toml") if "[[hops]]" in text]


def command_lines() -> list[tuple[str, str]]:
    found = []
    for place, text in blocks("sh"):
        for line in text.replace("\\\n", " ").splitlines():
            line = line.removeprefix("$ ")
            if re.match(r"(\.venv/bin/)?airpath (exec|shell|sim) ", line):
                found.append((place, line))
    return found


def run_engine(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(find_engine()), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=False,
    )


def test_pages_with_something_to_try_were_found() -> None:
    names = {page.name for page in PAGES}
    assert {"README.md", "scenario.md"} <= names
    assert len(command_lines()) >= 5
    shown = [place for place, _ in scenarios() if place.startswith("docs/scenario")]
    assert len(shown) >= 6


@pytest.mark.parametrize(("place", "text"), scenarios(), ids=lambda value: str(value)[:40])
def test_every_scenario_shown_is_valid(place: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "shown.toml"
    file.write_text(text)
    result = run_engine("check", str(file))
    assert result.returncode == 0, f"{place}: {result.stderr}"


@pytest.mark.parametrize(("place", "line"), command_lines(), ids=lambda value: str(value)[:60])
def test_every_link_shown_on_a_command_line_is_valid(place: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    if "--scenario" in words and not (ROOT / words[words.index("--scenario") + 1]).exists():
        # A file of the reader's own: its options are checked without it.
        at = words.index("--scenario")
        del words[at : at + 2]
    end = words.index("--") if "--" in words else len(words)
    words = [word for word in words[:end] if word != "--print-scenario"]
    result = run_engine(*words, "--print-scenario")
    assert result.returncode == 0, f"{place}: {line}\n{result.stderr}"


def shown_lines() -> list[tuple[str, list[str]]]:
    """Return every command line in the pages' shell blocks, as words."""
    return [
        (place, shlex.split(line.removeprefix("$ "), comments=True))
        for place, text in blocks("sh")
        for line in text.replace("\\\n", " ").splitlines()
        if line.strip()
    ]


def test_every_command_shown_exists() -> None:
    names = {command.name for command in commands()}
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wrong = []
    counts = {"airpath": 0, "make": 0, "scripts": 0}
    for place, words in shown_lines():
        program, *rest = words or [""]
        if program in ("airpath", ".venv/bin/airpath"):
            counts["airpath"] += 1
            known = rest[0] in names or rest[0].startswith("-")
        elif program == "make":
            counts["make"] += 1
            known = rest[0] in targets
        elif program.startswith("scripts/"):
            counts["scripts"] += 1
            known = (ROOT / program).exists()
        else:
            continue
        if not known:
            wrong.append(f"{place}: {' '.join(words)}")
    assert not wrong, "\n".join(wrong)
    assert counts["airpath"] >= 60
    assert counts["make"] >= 4
    assert counts["scripts"] >= 1


def test_every_file_shown_on_a_command_line_exists() -> None:
    """Files of the project; those that a command writes are under results/."""
    named = [
        (place, word)
        for place, words in shown_lines()
        for word in words
        if re.match(r"(examples|studies)/\S+\.(toml|ipynb)$", word)
    ]
    assert len(named) >= 8
    assert not [(place, word) for place, word in named if not (ROOT / word).exists()]


def test_the_first_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def commands_to_come_from() -> list[str]:
    """Return what stands in place of the commands of other emulators.

    Those that look at a run or draw are carried out by tests of their own.
    """
    page = (ROOT / "docs" / "coming-from.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|")]
    codes = [code for row in rows for code in re.findall(r"`(airpath [^`]+)`", row)]
    elsewhere = (
        "airpath log",
        "airpath plot",
        "airpath trace plot",
        "airpath set",
        "airpath state",
    )
    return [code for code in codes if "…" not in code and not code.startswith(elsewhere)]


@pytest.mark.parametrize("line", commands_to_come_from(), ids=lambda value: str(value)[:60])
def test_every_command_for_those_who_come_from_elsewhere_is_valid(
    line: str, tmp_path: Path
) -> None:
    (tmp_path / "up.trace").write_text("1\n2\n")
    (tmp_path / "down.trace").write_text("1\n1\n3\n")
    (tmp_path / "bandwidth.json").write_text('{"StaticBwConfig": {"bw": "12Mbps"}}')
    (tmp_path / "pareto.dist").write_text("# a table\n-8192 0 8192\n")
    (tmp_path / "delays.txt").write_text("20\n25\n")
    (tmp_path / "losses.txt").write_text("ok 10\nlost\n")
    words = shlex.split(line)[1:]
    if words[0] == "exec":
        words = [*words[: words.index("--")], "--print-scenario"]
    command = [str(find_engine()), *words]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False
    )
    assert result.returncode == 0, f"{line}\n{result.stderr}"


def test_the_page_for_those_who_come_from_elsewhere_was_read() -> None:
    assert len(commands_to_come_from()) >= 25


def test_every_page_has_a_place_on_the_site() -> None:
    """In a list of docs/site/index.md, or in the folder of a page that has one."""
    index = ROOT / "docs/site/index.md"
    listed = re.findall(r"^(?:.* <)?/([\w./-]+)>?$", index.read_text(), re.MULTILINE)
    missing = [
        str(page)
        for file in sorted(ROOT.glob("docs/**/*.md"))
        for page in [file.relative_to(ROOT)]
        if page.parent != Path("docs/site")
        if str(page.with_suffix("")) not in listed and f"{page.parent}" not in listed
    ]
    assert not missing, f"add to a list of docs/site/index.md: {missing}"
    assert len(listed) >= 40
    files = [[ROOT / f"{one}{suffix}" for suffix in (".md", ".ipynb")] for one in listed]
    assert all(any(file.is_file() for file in of_one) for of_one in files)


def test_every_study_and_example_is_in_the_gallery() -> None:
    gallery = (ROOT / "docs/gallery.md").read_text()
    linked = set(re.findall(r"\]\(\.\./([^)#]+)\)", gallery))
    wanted = {str(file.relative_to(ROOT)) for file in ROOT.glob("studies/*/README.md")}
    for file in ROOT.glob("examples/*"):
        readme = file / "README.md"
        inner = sorted(file.glob("*"))[0] if file.is_dir() else file
        one = readme if readme.exists() else inner
        name = str(one.relative_to(ROOT))
        if not file.is_dir() or readme.exists():
            wanted.add(name)
        else:
            assert any(link.startswith(f"examples/{file.name}/") for link in linked), file.name
    assert not wanted - linked, f"add to docs/gallery.md: {sorted(wanted - linked)}"


def check_links(*pages: Path) -> subprocess.CompletedProcess[str]:
    command = [ROOT / "scripts" / "check-links", *pages]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_links_between_pages_lead_somewhere() -> None:
    result = check_links()
    assert result.returncode == 0, result.stdout


GOOD_LINKS = """# A page
[file](other.md), [heading](other.md#the-laws-of-run), [again](other.md#twice-1), [own](#a-page)
[web](https://example.org/none#none), `[code](none.md)`, [picture](picture.png)

```
[fenced](none.md)
```

[by reference]: other.md#twice
"""
OTHER_PAGE = "# Other\n\n## The *laws* of `run`\n\n## Twice\n\n## Twice\n\n```\n# no heading\n```\n"


@pytest.mark.parametrize(
    "broken",
    [
        "[a](none.md)",
        "![a](none.png)",
        "[a](other.md#none)",
        "[a](other.md#no-heading)",
        "[a](other.md#twice-2)",
        "[a](#none)",
        "[a]: none.md",
    ],
)
def test_broken_links_are_told_with_their_line(broken: str, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(OTHER_PAGE)
    (tmp_path / "picture.png").touch()
    page = tmp_path / "page.md"
    page.write_text(GOOD_LINKS)
    good = check_links(page)
    assert (good.returncode, good.stdout) == (0, "")
    page.write_text(f"{GOOD_LINKS}\n{broken}\n")
    bad = check_links(page)
    assert bad.returncode == 1
    assert f"page.md:{GOOD_LINKS.count(chr(10)) + 2}: " in bad.stdout


def test_every_option_named_in_the_text_exists() -> None:
    known = set()
    for command in ("exec", "shell", "sim", "check", "profiles", "log", "send", "recv", "replay"):
        known |= set(OPTION.findall(run_engine(command, "--help").stdout))
    for page in (
        ROOT / "README.md",
        *(ROOT / "docs" / f"{name}.md" for name in ("running", "scenario", "load", "virtual")),
        *(ROOT / "docs" / "scenario").glob("*.md"),
    ):
        prose = FENCE.sub("", page.read_text())
        named = {
            option
            for code in re.findall(r"`([^`]+)`", prose)
            for option in OPTION.findall(code)
            # Options of other programs stand behind their names.
            if not code.startswith(
                ("airpath plot", "tc ", "mm-", "sysctl", "scripts/", "--security-opt ")
            )
        }
        assert named <= known, f"{page.name}: {named - known}"


SEAWIND = ROOT / "docs/seawind.md"
NAMED_TEST = re.compile(r"`([\w/.-]+\.(?:rs|py))::(\w+)`")


def seawind_rows() -> list[list[str]]:
    """Return the cells of every row of Seawind's features."""
    rows = [line for line in SEAWIND.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [row for row in cells if row[2] != "test"]


def has_test(file: str, name: str) -> bool:
    crate, _, rest = file.partition("/")
    places = [ROOT / file] + [ROOT / "crates" / crate / inner / rest for inner in ("tests", "src")]
    defined = re.compile(rf"^\s*(?:fn|def) {name}\b", re.MULTILINE)
    return any(place.is_file() and defined.search(place.read_text()) for place in places)


def test_every_feature_of_seawind_has_a_test_that_exists_or_is_not_there_yet() -> None:
    rows = seawind_rows()
    assert len(rows) > 80
    wrong = []
    for feature, key, test in rows:
        named = NAMED_TEST.findall(test)
        if test == "not yet":
            continue
        if not named or not key or not all(has_test(*one) for one in named):
            wrong.append(f"{feature}: {test}")
    assert not wrong, "\n".join(wrong)
