"""The report's page in a browser: it fits a phone, a window and a wide screen, and follows light and dark."""
import html
import json
import re
import subprocess

import pytest

from conftest import gua
from handmade import ACTIVE, HOUR, IDLE_HELD, TRULY_IDLE, Store

pytestmark = pytest.mark.other_programs

T = 1793664000  # Tue 2026-11-03 00:00 UTC
WIDTHS = (360, 800, 1400)
MEASURE = """
const found = {};
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, root = page.documentElement, style = e => frame.contentWindow.getComputedStyle(e);
  const lane = page.querySelector(".lane").getBoundingClientRect();
  found[frame.id] = {
    width: root.clientWidth, scroll: root.scrollWidth, paper: style(page.body).backgroundColor,
    lane: lane.width, lanes: page.querySelectorAll(".lane").length,
    beyond: [...page.body.querySelectorAll("*")].filter(e => !e.closest(".wide, svg, .hidden, .skip") &&
      e.getBoundingClientRect().right > root.clientWidth + 1).map(e => e.outerHTML.slice(0, 80)),
    small: [...page.querySelectorAll("p, td, dd, .axis text, .trend text")].map(e => parseFloat(style(e).fontSize))
      .reduce((a, b) => Math.min(a, b)),
  };
}
document.body.textContent = JSON.stringify(found);
"""


def lab(path, name):
    """Two hosts with three cards each for a week; every name is `name`."""
    store = Store(path)
    for number in range(2):
        host = store.host(hostname=f"{name}{number}", machine_id=str(number))
        store.run(host, T - 168 * HOUR, T)
        process = store.process(host, 1, name, command=name)
        for index in range(3):
            card = store.card(host, index, T - 168 * HOUR, T, uuid=f"GPU-{number}{index}", name=name)
            for slot in range(T - 168 * HOUR, T, HOUR):
                state = (ACTIVE, IDLE_HELD, TRULY_IDLE)[(slot // HOUR // (index + 1)) % 3]
                store.usage(slot, card, state, HOUR, width=HOUR)
                if state != TRULY_IDLE:
                    store.holding(slot, card, process, state, HOUR, width=HOUR)
            store.spell(card, process, T - 100 * HOUR, T - 90 * HOUR)
        store.event(host, T - 50 * HOUR, "driver-down")
    store.db.commit()
    run = gua("report", "--db", path, "--now", f"@{T}", "--since", "7d", "--format", "html", "--compare", "--cost", "2")
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """{light or dark: {page and width: what the browser made of it}}"""
    folder = tmp_path_factory.mktemp("pages")
    pages = {"plain": lab(folder / "plain.db", "ann"), "long": lab(folder / "long.db", "x" * 4096)}
    frames = "".join(f'<iframe id="{name}-{width}" width="{width}" height="900" srcdoc="{html.escape(page)}"></iframe>'
                     for name, page in pages.items() for width in WIDTHS)
    (folder / "all.html").write_text(f"<!DOCTYPE html><style>iframe {{ border: 0 }}</style><body>{frames}<script>"
                                     f"addEventListener('load', () => {{ {MEASURE} }})</script></body>")
    found = {}
    for theme, number in (("dark", 0), ("light", 1)):
        run = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                              f"--user-data-dir={folder / theme}", f"--blink-settings=preferredColorScheme={number}",
                              "--dump-dom", f"file://{folder / 'all.html'}"], capture_output=True, text=True, timeout=100)
        found[theme] = json.loads(html.unescape(re.search(r"<body>(.*)</body>", run.stdout, re.S).group(1)))
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", ["plain", "long"])
def test_the_page_fits(measured, page, width):
    """It does not scroll sideways, with names of 4 KB neither; pictures have their room and text can be read."""
    found = measured["light"][f"{page}-{width}"]
    assert found["scroll"] <= found["width"] <= width
    assert found["beyond"] == []
    assert found["lanes"] == 8 and found["lane"] > 0.6 * width - 20
    assert found["small"] >= 10


def test_light_and_dark(measured):
    assert measured["light"]["plain-800"]["paper"] == "rgb(255, 255, 255)"
    assert measured["dark"]["plain-800"]["paper"] == "rgb(20, 24, 28)"
