# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""The link of Seawind's case study, built on the page by clicks."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page


def text_of(page: Page) -> dict[str, Any]:
    """Return the scenario of the text field."""
    return tomllib.loads(page.get_by_role("textbox", name="Scenario (TOML)").input_value())


def until_text(page: Page, wanted: dict[str, Any]) -> None:
    """Wait until the text holds values."""
    for _ in range(600):
        if wanted.items() <= text_of(page).items():
            return
        page.wait_for_timeout(100)
    assert wanted.items() <= text_of(page).items()


def fill(page: Page, label: str, value: str) -> None:
    """Fill a field, and leave it."""
    field = page.get_by_label(label, exact=True).first
    field.fill(value)
    field.press("Tab")


def build(page: Page) -> None:
    """Build the link, check its text, and save it as case.toml.

    9.6 kbit/s, 200 ms, queues of 7 packets, buffers of 4 packets, 1 % losses, and 10 % from 40 s on
    (Kojo et al. 2001, Table 1).
    """
    page.get_by_role("button", name="New scenario").click()
    fill(page, "MTU in bytes", "296")
    page.get_by_role("button", name="Both directions").click()
    page.locator("#field-hops-0-link-rate-kind").select_option(label="one value")
    fill(page, "rate: one value", "9600 bit/s")
    page.get_by_text("More parameters").first.click()
    for key, value in (
        ("propagation", "200 ms"),
        ("send_buffer", "4 packets"),
        ("receive_buffer", "4 packets"),
    ):
        page.locator(f"#field-hops-0-link-{key}").fill(value)
        page.locator(f"#field-hops-0-link-{key}").press("Tab")
    page.locator("#field-hops-0-link-errors-kind").select_option("bernoulli")
    page.locator("#field-hops-0-link-errors-probability").fill("0.01")
    page.locator("#field-hops-0-link-errors-probability").press("Tab")
    for side, limit in (("Uplink", "7 packets"), ("Downlink", "7 packets")):
        page.get_by_role("button", name=side, exact=True).click()
        key = side.lower()
        page.locator(f"#field-hops-0-{key}-rate-kind").select_option(value="")
        page.locator(f"#field-hops-0-{key}-queue-limit").fill(limit)
        page.locator(f"#field-hops-0-{key}-queue-limit").press("Tab")
    page.get_by_role("button", name="Add a state").click()
    fill(page, "Begins at", "40 s")
    fill(page, "Lasts", "")
    page.get_by_label("Parameter", exact=True).fill("radio.link.errors.probability")
    page.get_by_label("Value", exact=True).fill("0.1")
    page.get_by_role("button", name="Add a parameter").click()
    state = {"name": "state1", "at": "40 s", "set": {"radio.link.errors.probability": 0.1}}
    until_text(page, {"mtu": 296, "states": [state]})
    page.get_by_text("The scenario is valid.").wait_for()
    hop = text_of(page)["hops"][0]
    assert hop["link"]["rate"] == "9600 bit/s"
    assert hop["link"]["propagation"] == "200 ms"
    assert (hop["link"]["send_buffer"], hop["link"]["receive_buffer"]) == ("4 packets", "4 packets")
    assert hop["link"]["errors"] == {"type": "bernoulli", "probability": 0.01}
    assert hop["uplink"] == {"queue": {"type": "tail_drop", "limit": "7 packets"}}
    fill(page, "File name", "case.toml")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved as case.toml.").wait_for()


def compose(page: Page, name: str, clock: str, bytes_: str, replications: int) -> None:
    """Compose and run an experiment over the link, by Reno and with two lengths of its queue."""
    page.get_by_role("link", name="Experiment", exact=True).click()
    page.get_by_label("Networks").select_option("case.toml")
    form = page.locator("form").filter(has=page.get_by_label("Networks"))
    form.get_by_label("Name", exact=True).fill(name)
    form.get_by_label("Clock").select_option(clock)
    form.get_by_label("Bytes to transfer").fill(bytes_)
    form.get_by_label("Congestion control").select_option("reno")
    form.get_by_label("Replications").fill(str(replications))
    form.get_by_label("Swept parameter").fill("radio.link.queue.limit")
    form.get_by_label("Its values").fill("7 packets\n3 packets")
    page.get_by_role("button", name="Write the experiment").click()
    page.get_by_text(f"2 cells, {2 * replications} runs").wait_for()
    page.get_by_role("button", name="Run it").click()
    page.get_by_text(f"finished, {2 * replications} runs complete").wait_for(timeout=300_000)


def table_of(page: Page, name: str, clock: str) -> dict[str, dict[str, str]]:
    """Return the table of results that the page shows: by cell and column."""
    page.get_by_role("link", name="Look", exact=True).click()
    page.get_by_label("Open results").select_option(f"results/{name}")
    table = page.get_by_role("region", name="Results of experiments").get_by_role("table").first
    table.get_by_role("cell", name=f"{clock}/limit=3packets").wait_for()
    head, *lines = [row.split("\t") for row in table.inner_text().splitlines() if row.strip()]
    return {line[0]: dict(zip(head, line, strict=True)) for line in lines}
