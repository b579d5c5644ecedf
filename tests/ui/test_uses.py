# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Uses of the page beyond its first steps, each by clicks."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airpath.run import load_run
from airpath.ui.accounts import add_account
from airpath.ui.routes import page as routes
from live.harness import await_true
from ui.case_study import text_of, until_text
from ui.inpage import AXE, IN_BROWSER, PATIENCE_MS, look_at, violations
from ui.served import PATIENCE_S, started

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from ui.served import Served

PASSWORD = "correct horse battery"
AIRPATH = Path(sys.executable).with_name("airpath")

EXPERIMENT = """name = "many"

[networks.link]
scenario = "tried.toml"

[workloads.download]
virtual = ["tcp bytes=20MB from=server cc=cubic"]

[[sets]]
name = "virtual"
clock = "virtual"
network = "link"
workload = "download"
repetitions = 40
"""


def until_words(page: Page, words: str) -> None:
    """Wait until the scenario's text has some words; the page's policy forbids to poll in it."""
    from playwright.sync_api import expect

    text = page.get_by_role("textbox", name="Scenario (TOML)")
    expect(text).to_have_value(re.compile(re.escape(words)), timeout=PATIENCE_MS)


def dropped(page: Page, name: str, text: str) -> None:
    """Drop a file on the page."""
    page.evaluate(
        """([name, text]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], name));
            const place = document.querySelector(".drop");
            place.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true }));
        }""",
        [name, text],
    )


@IN_BROWSER
def test_a_trace_dropped_on_the_page_becomes_the_rate(page: Page, served: Served) -> None:
    dropped(page, "walk.csv", "time,rate\n0 s,1 Mbit/s\n2 s,3 Mbit/s\n")
    page.get_by_text("walk.csv", exact=False).first.wait_for()
    until_text(page, {})
    until_words(page, "walk.csv")
    rate = text_of(page)["hops"][0]["downlink"]["rate"]
    assert rate == {"type": "trace", "file": "walk.csv"}
    page.get_by_text("The scenario is valid.").wait_for()
    shown = page.get_by_role("img", name="Downlink: walk.csv, 4 s, then again; 3 Mbit/s at most")
    shown.wait_for()
    assert shown.locator("path").get_attribute("d") == "M0.0 40.0H200.0V0.0H400"
    assert (served.folder / "walk.csv").read_text().startswith("time,rate")
    dropped(page, "walk.csv", "time,rate\n0 s,2 Mbit/s\n1 s,5 Mbit/s\n")
    page.get_by_role("img", name="Downlink: walk.csv, 2 s, then again; 5 Mbit/s at most").wait_for()
    (served.folder / "walk.csv").write_text("time,rate\n0 s,6 Mbit/s\n1 s,7 Mbit/s\n")
    page.evaluate("dispatchEvent(new Event('focus'))")
    page.get_by_role("img", name="Downlink: walk.csv, 2 s, then again; 7 Mbit/s at most").wait_for()
    (served.folder / "walk.csv").unlink()


@IN_BROWSER
def test_a_trace_outside_the_workspace_has_words_in_place_of_a_picture(
    page: Page, served: Served
) -> None:
    outside = served.folder.parent / "outside.csv"
    outside.write_text("time,rate\n0 s,1 Mbit/s\n2 s,3 Mbit/s\n")
    text = page.locator("textarea")
    rate = f'rate = {{ type = "trace", file = "{outside}" }}'
    text.fill(text.input_value().replace('rate = "20 Mbit/s"', rate))
    page.get_by_text("outside.csv is outside the workspace", exact=False).wait_for()
    page.get_by_text("The scenario is valid.").wait_for()
    assert page.get_by_role("alert").count() == 0


@IN_BROWSER
def test_a_link_is_found_by_words_and_has_a_thumbnail(page: Page) -> None:
    page.get_by_label("Search profiles").fill("gprs pipeline")
    page.get_by_text("1 profiles").wait_for()
    row = page.locator("li").filter(has_text="gprs-pipeline")
    # Thumbnails are made of what is in sight.
    row.scroll_into_view_if_needed()
    picture = row.get_by_role("img").first
    picture.wait_for()
    shapes = picture.locator("path").evaluate_all("all => all.map(one => one.getAttribute('d'))")
    assert len(shapes) == 4
    assert all(len(shape) > 50 for shape in shapes[:1])


@IN_BROWSER
def test_comments_outlive_changes_in_forms(page: Page) -> None:
    page.get_by_role("textbox", name="Scenario (TOML)").fill(
        '# Mine.\nname = "kept"  # its name\n\n[[hops]]\nname = "radio"\n\n'
        '[hops.link]\nrate = "5 Mbit/s"  # both ways\npropagation = "20 ms"  # one way\n'
    )
    field = page.locator("#field-hops-0-link-propagation")
    field.wait_for()
    page.get_by_text("The scenario is valid.").wait_for()
    field.fill("30 ms")
    field.press("Tab")
    until_words(page, "30 ms")
    text = page.get_by_role("textbox", name="Scenario (TOML)").input_value()
    assert text.startswith('# Mine.\nname = "kept"  # its name\n')
    assert 'rate = "5 Mbit/s"  # both ways\npropagation = "30 ms"  # one way\n' in text


@IN_BROWSER
def test_a_value_that_does_not_fit_is_answered_with_what_does(page: Page) -> None:
    field = page.locator("#field-hops-0-link-propagation")
    before = page.get_by_role("textbox", name="Scenario (TOML)").input_value()
    field.fill("soon")
    field.press("Tab")
    told = page.get_by_role("alert").inner_text()
    assert told.startswith("This value does not fit. A length of time with its unit: h, min, s,")
    assert told.endswith("For example 200 ms.")
    assert page.get_by_role("textbox", name="Scenario (TOML)").input_value() == before
    field.fill("7 ms")
    field.press("Tab")
    until_words(page, "7 ms")
    assert page.get_by_role("alert").count() == 0


@IN_BROWSER
def test_states_stand_on_their_line_with_their_times(page: Page) -> None:
    text = page.get_by_role("textbox", name="Scenario (TOML)")
    text.fill(
        f"{text.input_value()}\n"
        '[[states]]\nname = "tunnel"\nat = "40 s"\nduration = "5 s"\n\n'
        '[[states]]\nname = "later"\nat = "1 min"\n\n[[states]]\nname = "asked"\n'
    )
    line = page.get_by_role("group", name="States")
    line.get_by_role("button", name="tunnel 40 to 45 s").wait_for()
    line.get_by_role("button", name="later from 60 s").wait_for()
    line.get_by_role("button", name="asked on command").wait_for()
    ticks = page.locator(".axis span").all_inner_texts()
    assert ticks[:3] == ["0 s", "20 s", "40 s"]


@IN_BROWSER
def test_a_reload_keeps_the_file_and_what_is_not_saved(page: Page, served: Served) -> None:
    text = page.get_by_role("textbox", name="Scenario (TOML)")
    name = page.get_by_label("File name")
    name.fill("reloaded.toml")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Saved as reloaded.toml.").wait_for()
    page.reload()
    page.get_by_text("The scenario is valid.").wait_for()
    assert name.input_value() == "reloaded.toml"
    text.fill(text.input_value().replace("5 Mbit/s", "7 Mbit/s"))
    page.get_by_text("The scenario is valid.").wait_for()
    page.on("dialog", lambda asked: asked.accept())
    page.reload()
    page.get_by_text("The scenario is valid.").wait_for()
    assert name.input_value() == "reloaded.toml"
    assert "7 Mbit/s" in text.input_value()
    asked: list[str] = []
    page.on("dialog", lambda one: asked.append(one.message))
    page.get_by_role("button", name="New scenario").click()
    page.wait_for_function("!document.querySelector('textarea').value.includes('7 Mbit/s')")
    assert asked == ["There are changes that are not saved. Discard them?"]
    assert name.input_value() == ""
    (served.folder / "reloaded.toml").unlink()


@IN_BROWSER
def test_a_file_that_was_changed_elsewhere_is_read_again_and_not_overwritten(
    page: Page, served: Served
) -> None:
    file = served.folder / "elsewhere.toml"
    save = page.get_by_role("button", name="Save", exact=True)
    text = page.get_by_role("textbox", name="Scenario (TOML)")
    valid = page.get_by_text("The scenario is valid.")
    page.get_by_label("File name").fill(file.name)
    save.click()
    page.get_by_text("Saved as elsewhere.toml.").wait_for()
    # What was saved is that of the file, also behind a reload.
    file.write_text(file.read_text().replace("5 Mbit/s", "6 Mbit/s"))
    page.reload()
    until_words(page, "6 Mbit/s")
    valid.wait_for()
    # What was not saved stays, and does not replace what came from elsewhere.
    text.fill(text.input_value().replace("6 Mbit/s", "7 Mbit/s"))
    valid.wait_for()
    page.on("dialog", lambda asked: asked.accept())
    file.write_text(other := file.read_text().replace("6 Mbit/s", "8 Mbit/s"))
    page.reload()
    until_words(page, "7 Mbit/s")
    save.click()
    page.get_by_text("elsewhere.toml was changed elsewhere. Save again to replace it.").wait_for()
    assert file.read_text() == other
    save.click()
    page.get_by_text("Saved as elsewhere.toml.").wait_for()
    assert "7 Mbit/s" in file.read_text()
    # A further change is saved without a question.
    text.fill(text.input_value().replace("7 Mbit/s", "9 Mbit/s"))
    save.click()
    await_true(lambda: "9 Mbit/s" in file.read_text(), seconds=PATIENCE_S)
    file.unlink()


@IN_BROWSER
def test_the_line_for_a_program_of_ones_own_is_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("link", name="Drive", exact=True).click()
    page.get_by_role("button", name="Copy the command line").click()
    page.get_by_text("Copied.", exact=True).wait_for()
    line = "airpath exec --scenario SCENARIO.toml --out results/NAME -- YOUR-COMMAND"
    assert page.evaluate("navigator.clipboard.readText()") == line
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error()) }")
    page.get_by_role("button", name="Copy the command line").click()
    page.get_by_text(f"does not let this page copy. The line is: {line}").wait_for()


@IN_BROWSER
def test_a_blackout_cuts_the_link_for_its_time(page: Page, served: Served, link: str) -> None:
    run = started(served, "cut", link, "ping -i 0.05 -w 300 server")
    page.get_by_role("link", name="Drive", exact=True).click()
    page.get_by_role("button", name=f"Follow Run {run['run']}").click()
    page.get_by_text("One-way delay").wait_for()
    page.get_by_label("Cut the link for").fill("1")
    page.get_by_role("button", name="Blackout").click()
    page.get_by_text(re.compile("Drops by cause: .*[1-9]")).wait_for()
    page.wait_for_timeout(2500)
    page.get_by_role("button", name="End the run").click()
    look_at(page, "cut")
    events = load_run(served.folder / "results/cut").events
    dropped = events.filter(events["kind"] == "dropped")["time_ns"].to_list()
    delivered = events.filter(events["kind"] == "delivered")["time_ns"].to_list()
    assert dropped
    # A second of the link's time, give or take what the page takes to end it.
    assert max(dropped) - min(dropped) < 20e9
    assert max(delivered) > max(dropped), "the link comes back"


@IN_BROWSER
def test_two_runs_share_a_time_axis_and_one_file(page: Page, served: Served) -> None:
    for name, rate in (("one", "1 Mbit/s"), ("two", "2 Mbit/s")):
        words = ["sim", "--rate", rate, "--delay", "10 ms", "--seed", "1", "--quiet"]
        words += ["--workload", "tcp bytes=200kB from=server"]
        words += ["--out", str(served.folder / "results" / name)]
        subprocess.run([AIRPATH, *words], check=True, timeout=PATIENCE_S)
    page.get_by_role("link", name="Look", exact=True).click()
    page.get_by_role("link", name="results/one").click()
    page.get_by_role("button", name="Show results/two beside the open run").click()
    page.get_by_role("heading", name="results/two").wait_for()
    delay = page.get_by_role("figure").filter(has_text="One-way delay")
    assert "(two)" in delay.inner_text()
    assert not AXE.exists() or not violations(page)
    with page.expect_download(timeout=PATIENCE_MS) as waiting:
        page.get_by_role("button", name="Save as one HTML file").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert "<html" in text
    assert not re.search(r'(src|href)="https?://', text), "the file loads nothing"
    for name in ("one", "two"):
        shutil.rmtree(served.folder / "results" / name)


@IN_BROWSER
@pytest.mark.parametrize(("damaged", "sound"), [("client", "server"), ("server", "client")])
def test_a_damaged_capture_is_named_beside_the_bytes_of_the_other_end(
    page: Page, served: Served, damaged: str, sound: str
) -> None:
    out = served.folder / "results" / f"damaged-{damaged}"
    words = ["sim", "--rate", "1 Mbit/s", "--duration", "1 s", "--seed", "1", "--quiet"]
    words += ["--workload", "tcp bytes=20kB from=server", "--out", str(out)]
    subprocess.run([AIRPATH, *words], check=True, timeout=PATIENCE_S)
    (out / f"{damaged}.pcapng").write_bytes(b"no capture")
    page.get_by_role("link", name="Look", exact=True).click()
    page.get_by_role("link", name=f"results/damaged-{damaged}").click()
    page.get_by_role("button", name="Packet 1", exact=True).click()
    packet = page.get_by_role("region", name="Packet 1")
    packet.get_by_text(f"{damaged}.pcapng cannot be read", exact=False).wait_for()
    assert packet.get_by_role("heading", name=f"at the {sound}").count() == 1
    assert packet.get_by_role("heading", name=f"at the {damaged}").count() == 0
    shutil.rmtree(out)


@IN_BROWSER
def test_an_experiment_is_timed_paused_and_resumed(page: Page, served: Served) -> None:
    (served.folder / "many.toml").write_text(EXPERIMENT)
    page.get_by_role("link", name="Experiment", exact=True).click()
    page.get_by_label("Experiment file").select_option("many.toml")
    page.get_by_text("1 cells, 40 runs").wait_for()
    page.get_by_text("by their time limits").wait_for()
    page.get_by_role("button", name="Try each cell once").click()
    page.get_by_text(re.compile(r"About [\d.]+ (s|min) one after the other")).wait_for()
    page.get_by_role("button", name="Run it").click()
    page.get_by_text(re.compile(r"running, [1-9]\d* of 40 runs complete, about .* left")).wait_for()
    page.get_by_role("button", name="Pause").click()
    page.get_by_text(re.compile(r"paused, \d+ of 40 runs complete")).wait_for()
    done = len(list(served.folder.glob("results/many/runs/*/*/*/replication.json")))
    assert 0 < done < 40
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("finished, 40 runs complete").wait_for()
    entry = page.get_by_role("listitem").filter(has_text="many.toml")
    entry.get_by_role("button", name="Remove").click()
    entry.wait_for(state="detached")
    (served.folder / "many.toml").unlink()
    shutil.rmtree(served.folder / "results/many")


@IN_BROWSER
def test_accounts_open_the_page_over_tls(browser: Browser, tmp_path: Path) -> None:
    certificate, key, accounts = (tmp_path / name for name in ("cert", "key", "accounts"))
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    make += ["-subj", "/CN=127.0.0.1", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(make, check=True, capture_output=True)
    add_account(accounts, "alice", PASSWORD)
    # An address of loopback that does not look like one.
    words = ["--certificate", str(certificate), "--key", str(key), "--accounts", str(accounts)]
    process = subprocess.Popen(
        [AIRPATH, "ui", str(tmp_path), "--no-browser", "--host", "127.1", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / ".cache")},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"https://127\.1:\d+/", process.stdout.readline())
        assert found, "no address without a token"
        context = browser.new_context(ignore_https_errors=True)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(found[0])
        page.get_by_label("Name").fill("alice")
        page.get_by_label("Password").fill("a wrong password")
        page.get_by_role("button", name="Enter").click()
        page.get_by_text("the name or the password is wrong").wait_for()
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Enter").click()
        page.get_by_text("The scenario is valid.").wait_for()
        context.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()


def test_a_tree_without_node_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "STATIC", tmp_path)
    last = routes.routes()[-1]
    assert getattr(last, "endpoint", None) is routes.not_built
    with pytest.raises(StopIteration) as ended:
        routes.not_built(None).send(None)
    answer = ended.value.value
    assert answer.status_code == 503
    assert b"Install Node" in bytes(answer.body)
