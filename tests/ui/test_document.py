# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Scenarios in the page: checks, and changes that keep everything else."""

from __future__ import annotations

import difflib
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from airpath.ui.document import check, edit
from airpath.ui.errors import UiError

if TYPE_CHECKING:
    from pathlib import Path

    from airpath.ui.document import Edit
    from ui.served import Served


def test_a_change_keeps_comments_and_order(link: str) -> None:
    changed = edit(link, [{"path": ["hops", 0, "link", "rate"], "value": "64 kbit/s"}])
    assert changed == link.replace("5 Mbit/s", "64 kbit/s")


def test_a_table_is_written_as_a_scenario_has_it(link: str) -> None:
    queue = {"type": "tail_drop", "limit": "7 packets"}
    changed = edit(link, [{"path": ["hops", 0, "uplink", "queue"], "value": queue}])
    assert tomllib.loads(changed)["hops"][0]["uplink"] == {"queue": queue}
    assert changed.startswith(link.split("[hops.link]")[0])


def test_hops_and_states_are_added_and_taken_away(link: str) -> None:
    state = {"name": "poor", "at": "40 s", "set": {"radio.link.errors.probability": 0.1}}
    changed = edit(
        link,
        [
            {"path": ["hops", 1], "value": {"name": "wire", "link": {"propagation": "1 ms"}}},
            {"path": ["states", 0], "value": state},
        ],
    )
    tree = tomllib.loads(changed)
    assert [hop["name"] for hop in tree["hops"]] == ["radio", "wire"]
    assert tree["states"] == [state]
    back = tomllib.loads(edit(changed, [{"path": ["hops", 1]}, {"path": ["states"]}]))
    assert back == tomllib.loads(link)


@pytest.mark.parametrize(
    "change",
    [
        {"path": []},
        {"path": ["hops", 9, "link"]},
        {"path": ["hops", "radio"], "value": 1},
        {"path": ["name", "deeper"], "value": 1},
        {"path": ["nothing"]},
        {"path": ["x"] * 40, "value": 1},
        {"path": ["hops", 0, "link", "rate"], "value": {"a": None}},
    ],
)
def test_a_change_that_leads_nowhere_is_refused(link: str, change: Any) -> None:
    with pytest.raises(UiError):
        edit(link, [change])


def test_a_text_that_is_no_toml_is_not_changed() -> None:
    with pytest.raises(UiError, match="no TOML"):
        edit("rate = = 5", [{"path": ["rate"], "value": 1}])


def test_problems_have_their_lines_and_nothing_stays(tmp_path: Path, link: str) -> None:
    checked = check(link.replace("Mbit", "Mbot").replace("propagation", "propagatoin"), tmp_path)
    assert not checked["valid"]
    assert [(one["line"], one["key"]) for one in checked["problems"]] == [
        (8, "radio.link.rate"),
        (9, "radio.link.propagatoin"),
    ]
    assert checked["tree"] is not None
    assert not list(tmp_path.iterdir())


def test_files_that_a_scenario_names_are_those_of_its_folder(tmp_path: Path, link: str) -> None:
    traced = link.replace('"5 Mbit/s"', '{ type = "mahimahi", file = "rate.trace" }')
    assert not check(traced, tmp_path)["valid"]
    (tmp_path / "rate.trace").write_text("1\n2\n3\n")
    assert check(traced, tmp_path)["valid"]


def test_the_server_checks_changes_and_saves(served: Served, link: str) -> None:
    edits = [{"path": ["hops", 0, "link", "rate"], "value": "1 Mbit/s"}]
    answer = served.ask("/api/scenario/edit", {"toml": link, "edits": edits}).json
    assert answer["checked"]["valid"]
    assert answer["checked"]["tree"]["hops"][0]["link"]["rate"] == "1 Mbit/s"
    put = {"name": "saved.toml", "text": answer["toml"]}
    assert served.ask("/api/file", put, method="PUT").status == 200
    assert served.ask("/api/file", put, method="PUT").status == 409
    assert served.ask("/api/file", put | {"replace": True}, method="PUT").status == 200
    assert served.ask("/api/file?name=saved.toml").json["text"] == answer["toml"]
    assert "saved.toml" in served.ask("/api/files").json["scenarios"]


def test_every_profile_is_shown_and_has_curves(served: Served) -> None:
    profiles = served.ask("/api/profiles").json
    assert len(profiles) >= 40
    toml = served.ask("/api/profiles/lte-cell-edge").json["toml"]
    assert tomllib.loads(toml)["name"] == "lte-cell-edge"
    curves = served.ask("/api/profiles/lte-cell-edge/thumbnail").json
    rates = curves["downlink"]["throughput"][1]
    # 2.4 Mbit/s, as the profile says; what was held up arrives in bursts.
    assert 0.3 < sum(rates) / len(rates) <= 2.4
    assert served.ask("/api/profiles/nothing").status == 404
    assert served.ask("/api/profiles/nothing/thumbnail").status == 404


COMMENTED = """name = "tried"

[[hops]]
name = "radio"

[hops.link]
rate = "5 Mbit/s"
propagation = "10 ms"
# The end of the first.

# The second hop.
[[hops]]
name = "core"
"""


def test_an_empty_line_stands_before_each_new_table_and_comments_keep_their_tables() -> None:
    queue = {"type": "tail_drop", "limit": "7 packets"}
    changed = edit(
        COMMENTED,
        [
            {"path": ["hops", 0, "uplink", "queue"], "value": queue},
            {"path": ["hops", 2], "value": {"name": "wire", "link": {"propagation": "1 ms"}}},
            {"path": ["states", 0], "value": {"name": "poor", "at": "40 s"}},
        ],
    )
    lines = changed.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("["):
            before = number - 2 if lines[number - 1] == "# The second hop." else number - 1
            assert lines[before] == "", (changed, line)
            assert lines[before - 1] != "", (changed, line)
    assert "# The second hop.\n[[hops]]" in changed
    assert "# The end of the first.\n\n[hops.uplink]" in changed
    assert edit(changed, [{"path": ["name"], "value": "other"}]) == changed.replace(
        '"tried"', '"other"'
    )


def test_words_over_several_lines_that_look_like_a_table_stay() -> None:
    words = "Before:\n[hops.link]\nand after."
    changed = edit(COMMENTED, [{"path": ["description"], "value": words}])
    assert tomllib.loads(changed)["description"] == words
    text = f'description = """\n{words}"""\n{COMMENTED}'
    again = edit(text, [{"path": ["hops", 1, "link", "rate"], "value": "1 Mbit/s"}])
    assert tomllib.loads(again)["description"] == words


def test_line_ends_stay_and_new_lines_have_the_same() -> None:
    text = COMMENTED.replace("\n", "\r\n")
    changes: list[Edit] = [
        {"path": ["hops", 1, "link", "rate"], "value": "1 Mbit/s"},
        {"path": ["states", 0], "value": {"name": "poor", "at": "40 s"}},
    ]
    changed = edit(text, changes)
    assert changed == edit(COMMENTED, changes).replace("\n", "\r\n")
    assert "\r\n\r\n[[states]]\r\n" in changed
    assert edit(text, [{"path": ["name"], "value": "other"}]) == text.replace("tried", "other")


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_characters_that_other_texts_have_at_ends_of_lines_are_usual_ones(mark: str) -> None:
    text = f'# One{mark}two.\ndescription = "three{mark}four"\n{COMMENTED}'
    changed = edit(text, [{"path": ["hops", 0, "uplink", "rate"], "value": "1 Mbit/s"}])
    assert changed.startswith(text.split("# The end")[0])
    assert "\n\n[hops.uplink]\n" in changed
    assert tomllib.loads(changed)["hops"][0]["uplink"] == {"rate": "1 Mbit/s"}


def test_equal_lines_are_compared_only_where_the_text_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []

    class Counted(difflib.SequenceMatcher[str]):
        def __init__(self, junk: None, old: list[str], new: list[str], *, autojunk: bool) -> None:
            compared.append(len(old) + len(new))
            super().__init__(junk, old, new, autojunk=autojunk)

    monkeypatch.setattr("airpath.ui.document.difflib.SequenceMatcher", Counted)
    text = 3000 * "# the same\n" + COMMENTED + 3000 * "# the same\n"
    changed = edit(text, [{"path": ["hops", 0, "uplink", "rate"], "value": "1 Mbit/s"}])
    short = edit(COMMENTED, [{"path": ["hops", 0, "uplink", "rate"], "value": "1 Mbit/s"}])
    assert changed == 3000 * "# the same\n" + short + 3000 * "# the same\n"
    assert compared
    assert max(compared) < 20


def test_of_many_changed_lines_the_text_is_as_it_was_written() -> None:
    many = {f"a{number}": {"link": {"rate": "1 Mbit/s"}} for number in range(400)}
    changed = edit(COMMENTED, [{"path": ["many"], "value": many}])
    assert tomllib.loads(changed)["many"] == many
    assert tomllib.loads(changed)["hops"] == tomllib.loads(COMMENTED)["hops"]
