"""The diagrams of the report page in a browser: drawn, zoomed, moved, asked."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from airpath.app import run as run_app

if TYPE_CHECKING:
    from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")

PROBE = """<script>
const out = [];
const plot = document.querySelector("figure.diagram .plot");
const say = (name) => out.push(name + "=" + plot.dataset.view);
const box = plot.getBoundingClientRect();
const send = (kind, x, y, more) => plot.dispatchEvent(
  new (kind === "wheel" ? WheelEvent : PointerEvent)(kind, Object.assign(
    { clientX: box.left + x, clientY: box.top + y, pointerId: 1, deltaY: -100 }, more)));
plot.setPointerCapture = () => {};
say("whole");
document.querySelector(".buttons button").click(); say("button");
plot.dispatchEvent(new MouseEvent("dblclick")); say("again");
send("wheel", 300, 200, {}); say("scrolled");
send("wheel", 300, 200, { ctrlKey: true }); say("wheel");
plot.dispatchEvent(new KeyboardEvent("keydown", { key: "0" }));
send("pointerdown", 100, 100, { shiftKey: true });
send("pointermove", 300, 300, { shiftKey: true });
send("pointerup", 300, 300, {}); say("box");
plot.dispatchEvent(new KeyboardEvent("keydown", { key: "0" }));
const told = document.querySelector(".told");
for (let x = 60; x < box.width; x += 3) for (let y = 20; y < box.height; y += 5) {
  send("pointermove", x, y, {});
  if (told.textContent) out.push("told=" + told.textContent.replace(/[0-9.]+/g, "#"));
}
document.body.innerHTML = "<pre id=probe></pre>";
document.getElementById("probe").textContent = [...new Set(out)].join("\\n");
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="neither chromium nor google-chrome is installed")
def test_diagrams_can_be_zoomed_and_asked(download: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run_app(["report", str(download), "--pictures", "0", "--out", str(page)]) == 0
    page.write_text(page.read_text().replace("</body>", PROBE + "</body>"))
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'browser'}", "--window-size=1300,1200"]
    result = subprocess.run(
        [*command, page.as_uri()], capture_output=True, text=True, timeout=300, check=True
    )
    found = re.search(r'<pre id="probe">(.*?)</pre>', result.stdout, re.DOTALL)
    assert found, result.stdout[-2000:] + result.stderr[-2000:]
    lines = html.unescape(found[1]).splitlines()
    views = {
        name: [float(edge) for edge in view.split(",")]
        for name, _, view in (line.partition("=") for line in lines)
        if name != "told"
    }
    whole = views["whole"]
    assert views["again"] == whole
    assert views["scrolled"] == whole, "a plain wheel belongs to the page"
    for name in ("button", "wheel", "box"):
        t0, t1, y0, y1 = views[name]
        assert whole[0] <= t0 < t1 <= whole[1]
        assert whole[2] <= y0 < y1 <= whole[3]
        assert t1 - t0 < 0.9 * (whole[1] - whole[0])
    told = "\n".join(line for line in lines if line.startswith("told="))
    for words in (
        "segment, bytes",
        "retransmission, bytes",
        "acknowledged up to",
        "SACK, bytes",
        "dropped: channel error",
        "dropped: queue full",
    ):
        assert words in told
