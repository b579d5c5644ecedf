# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Experiment files: what is wrong with them, and the cells that they stand for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from airpath.experiment.expand import cells
from airpath.experiment.links import inline_toml
from airpath.experiment.load import load
from airpath.experiment.loaded import ExperimentError
from airpath.experiment.model import schema
from airpath.experiment.plan import make_plan
from airpath.experiment.planned import plan_of
from airpath.status import UNWRITABLE
from experiments import ROOT, SMALL, START, airpath, problems, written


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("seed = 5", "sead = 5", r"^2: sead: unknown key; did you mean `seed`\?"),
        ("repetitions = 3", "repetitons = 3", r"^14: sets\.0\.repetitons: .*`repetitions`"),
        (
            "repetitions = 3",
            'repetitions = "3"',
            r"^14: sets\.0\.repetitions: must be a whole number",
        ),
        ("repetitions = 3", "repetitions = 0", r"^14: sets\.0\.repetitions: must be 1 or more"),
        ('network = "gprs"', "network = []", r"^12: sets\.0\.network: must not be empty"),
        ("[1500, 1400]", '[1500, "big"]', r"^21: set `sizes`: mtu big: must be a whole number"),
        ("[1500, 1400]", "[1500, 20]", r"^21: set `sizes`: mtu 20: must be 68 or more"),
        ('"8 packets"', '"4 packets"', r"^15: set `queues`: .*`limit=4packets` are there twice"),
        ('"mtu" = [1500, 1400]', 'congestion_control = ["reno", "cubic"]', r"^21: .*live and warp"),
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
        ("seed = 5", 'lateness_bound = "2 ms"', r"^2: lateness_bound is for the clock live, which"),
        ("seed = 5", 'economy = "on"', r"^2: economy is for the clock live, which"),
        (
            "repetitions = 3",
            'repetitions = 3\nlateness_bound = "2 ms"',
            r"^15: set `queues`: lateness_bound is for the clock live, and its clock is virtual",
        ),
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


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            '[[workloads.bulk.programs]]\ntemplate = "ffmpeg"\npicture = "big"\n',
            r"programs\.0\.picture: `big` does not match",
        ),
        (
            '[[references]]\nname = "paper"\nmetrics = { elapsed = "long" }\n',
            r"references\.0\.metrics\.elapsed: must be a number, or a table with `median`",
        ),
        (
            'sweep.grid."network.radio.link.queue" = [{ type = "codel" }]\n',
            r"""queue\.0: a table is written as text here: '{ type = "codel" }'$""",
        ),
    ],
)
def test_what_a_value_must_be_is_told_in_plain_words(tmp_path: Path, more: str, said: str) -> None:
    found = problems(tmp_path, SMALL + more)
    assert len(found) == 1
    assert re.search(said, found[0]), found


def test_a_sweep_whose_values_make_no_difference_is_refused(tmp_path: Path) -> None:
    text = SMALL.replace("bytes = 20000 }", "bytes = 20000, port = 1 }")
    swept = 'sweep.grid."network.radio.link.queue.limit"'
    assert swept in text
    idle = text.replace(swept, f'sweep.grid."workload.port" = [1, 2]\n{swept}')
    assert problems(tmp_path, idle) == [
        "15: set `queues`: sweep: the values of `workload.port` make no difference: "
        "nothing that runs takes them"
    ]


def test_a_sweep_that_one_of_two_workloads_takes_is_right(tmp_path: Path) -> None:
    other = '[workloads.other]\nlike = "bulk"\nvirtual = ["tcp bytes={{size}}000"]\n'
    text = SMALL.replace("bytes = 20000 }", "bytes = 20000, size = 1 }")
    text = text.replace("[[sets]]", f"{other}[[sets]]", 1)
    text = text.replace('workload = "bulk"', 'workload = ["bulk", "other"]', 1)
    swept = 'sweep.grid."network.radio.link.queue.limit" = ["4 packets", "8 packets"]'
    text = text.replace(swept, 'sweep.grid."workload.size" = [1, 2]')
    assert len(make_plan(load(written(tmp_path, text)), ["queues"]).cells) == 4


def test_a_number_or_a_text_that_is_neither_is_told_once(tmp_path: Path) -> None:
    program = '[[workloads.bulk.programs]]\ntemplate = "send"\nbytes = "100 KiB"\n'
    text = SMALL.replace("[[sets]]", f"{program}[[sets]]", 1)
    (problem,) = problems(tmp_path, text)
    assert "workloads.bulk.programs.0.bytes: `100 KiB` is not a length such as" in problem


def test_every_problem_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    text = SMALL.replace("seed = 5", "sead = 5").replace("repetitions = 2", 'repetitions = "two"')
    assert len(problems(tmp_path, text)) == 2


BROKEN = """\
name = "broken"
[networks.used]
rate = "1 Mbit/s"
[networks.unused]
profile = "lte-egde"
[networks.sound]
link = { rate = "1 Mbit/s" }
[workloads.typo]
virtul = ["tcp bytes=100"]
[workloads.wrong]
virtual = ["tcp byts=100"]
[[sets]]
name = "one"
clock = "virtul"
network = "used"
workload = "typo"
repetitions = 1
[[sets]]
name = "two"
clock = "virtual"
network = "nowhere"
workload = "wrong"
repetitions = 1
[[sets]]
name = "three"
clock = "virtual"
network = "sound"
workload = "wrong"
repetitions = 1
sweep.grid."network.radio.link.qeue" = ["3 packets"]
"""


def test_mistakes_in_keys_hide_no_mistakes_in_links_and_workloads(tmp_path: Path) -> None:
    """The engine judges what is sound in spite of them, and nothing that follows from them."""
    (tmp_path / "e.toml").write_text(BROKEN)
    with pytest.raises(ExperimentError) as error:
        plan_of(tmp_path / "e.toml", None)
    found = [f"{one.line}: {one.what}".split("\n")[0] for one in error.value.problems]
    starts = [
        "3: networks.used.rate: unknown key",
        "4: network `unused`: --profile: there is no profile `lte-egde`",
        "9: workloads.typo.virtul: unknown key; did you mean `virtual`?",
        "10: workload `wrong`: --workload, word 2: `tcp` has no key `byts`",
        "14: sets.0.clock: `virtul` is none of the values",
        "21: set `two`: there is no network `nowhere`",
        "30: set `three`, network `sound`: ",
    ]
    assert len(found) == len(starts), found
    for one, start in zip(found, starts, strict=True):
        assert one.startswith(start), found


def test_a_problem_beside_the_tables_leaves_links_to_be_checked(tmp_path: Path) -> None:
    text = BROKEN.replace('name = "broken"', 'clok = "virtual"')
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(ExperimentError) as error:
        plan_of(tmp_path / "e.toml", None)
    lines = [one.line for one in error.value.problems]
    assert lines == [1, 3, 4, 9, 10, 14, 21]


def test_sets_behind_one_with_mistakes_keep_their_own(tmp_path: Path) -> None:
    head = '[networks.n]\nlink = { rate = "1 Mbit/s" }\n[workloads.w]\nvirtual = ["tcp bytes=9"]\n'
    one = '[[sets]]\nname = "{}"\nclock = "{}"\nnetwork = "n"\nworkload = "w"\nrepetitions = 1\n'
    zipped = (
        'sweep.zip."network.radio.link.rate" = ["1 Mbit/s", "2 Mbit/s"]\nsweep.zip.mtu = [1500]\n'
    )
    text = head + one.format("one", "virtul") + one.format("two", "virtual") + zipped
    (tmp_path / "e.toml").write_text(text + one.format("three", "virtual"))
    with pytest.raises(ExperimentError) as error:
        plan_of(tmp_path / "e.toml", None)
    found = [(one.line, one.what) for one in error.value.problems]
    assert [line for line, _ in found] == [7, 17], found
    assert "sets.0.clock" in found[0][1]
    assert "zip" in found[1][1]


def test_a_wrong_link_of_no_set_is_told(tmp_path: Path) -> None:
    found = problems(tmp_path, f'{SMALL}\n[networks.other]\nlink = {{ rate = "5 Mbits" }}\n')
    assert len(found) == 1
    assert 'network `other`: --rate "5 Mbits": radio.link.rate: `Mbits` is not a unit' in found[0]


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
    checked = airpath("check", tmp_path / "nowhere.toml")
    assert checked.returncode == 2
    assert checked.stderr == f"{tmp_path}/nowhere.toml: cannot be read: No such file or directory\n"
    result = airpath("run", tmp_path / "nowhere.toml")
    assert result.returncode == 2
    assert "nowhere.toml: cannot be read: No such file" in result.stderr


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


def test_sweeps_make_cells_with_readable_names(small: Path) -> None:
    loaded = load(small)
    queues, sizes = loaded.experiment.sets
    assert [cell.name for cell in cells(loaded, queues)] == ["limit=4packets", "limit=8packets"]
    zipped = cells(loaded, sizes)
    assert [cell.name for cell in zipped] == ["bytes=5000,mtu=1500", "bytes=10000,mtu=1400"]
    assert zipped[1].workload.virtual == ["tcp bytes=10000 from=server cc=reno"]
    assert zipped[1].mtu == 1400


def test_a_table_as_text_makes_cells_with_its_values(tmp_path: Path) -> None:
    queues = """['{ type = "codel" }', '{ type = "tail_drop", limit = "300 ms" }']"""
    text = SMALL.replace('queue.limit" = ["4 packets", "8 packets"]', f'queue" = {queues}')
    loaded = load(written(tmp_path, text))
    names = [cell.name for cell in cells(loaded, loaded.experiment.sets[0])]
    assert names == ["queue=codel", "queue=tail_drop-300ms"]


def test_random_numbers_are_common_unless_asked_otherwise(tmp_path: Path) -> None:
    text = SMALL.replace(
        "repetitions = 2", 'repetitions = 2\nrandom_numbers = "independent"\nseed = 9'
    )
    loaded = load(written(tmp_path, text))
    queues, sizes = (cells(loaded, one) for one in loaded.experiment.sets)
    assert {cell.seed(3) for cell in queues} == {7}
    assert len({cell.seed(1) for cell in sizes}) == 2


@pytest.mark.parametrize(
    "words", [("analyse", "--list"), ("plan", "FILE")], ids=["analyse", "plan"]
)
def test_output_that_cannot_be_written_is_told(small: Path, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", START, *(str(small) if w == "FILE" else w for w in words)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert done.returncode == UNWRITABLE
    assert done.stderr.splitlines() == [
        f"airpath {words[0]}: output cannot be written: No space left on device"
    ]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_scenario_in_the_file_is_written_with_every_kind_of_value() -> None:
    text = (
        "a = 1979-05-27T07:32:00Z\nb = 07:32:00\nc = 1979-05-27\nd = [inf, 1e300, 0.1, true, 7]\n"
    )
    text += 'e = { "x y" = "ü\\u007f" }\n'
    table = tomllib.loads(text)
    assert tomllib.loads(inline_toml(table)) == table
