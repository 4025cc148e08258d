"""The pages of gua serve in Debian's Chromium: what a person sees, clicks, types, prints. test_pages.py reads the same
pages as text, also with sanitizers; here the release build is enough."""
import base64
import re
from urllib.parse import quote

import pytest

from conftest import BUILD, wait_for
from handmade import ACTIVE, Store
from lab_pages import DAY, HOSTILE_USER, NOTEBOOK, NOW, NOW_TEXT, make_lab
from serving import Server, needs_serve

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

pytestmark = [needs_serve, pytest.mark.any_build,
              pytest.mark.skipif("asan" in BUILD.name, reason="the browser looks at the release build")]

CARD = "/card/GPU-00000001-1111-2222-3333-444444444444"
PAGES = ["/", "/audit", "/user/bob", CARD, "/notebook/bob/" + quote(NOTEBOOK, safe=""), "/policy", "/me", "/nix"]
OPTIONS = ("--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
           "--disable-sync --no-first-run --hide-scrollbars").split()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """One Chromium for all tests, which logs what happens in its console."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for option in [*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    yield started
    started.quit()


def start(tmp_path_factory, name, **lab):
    directory = tmp_path_factory.mktemp(name)
    return Server(directory, "--db", make_lab(directory / "gua.db", **lab), "--now", NOW_TEXT, "--utc")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = start(tmp_path_factory, "lab")
    yield started
    started.stop()


@pytest.fixture
def show(browser, server):
    """show(TARGET, WIDTH, dark) opens a page, which refreshes itself only when a test says so; at the end the console must
    be empty."""
    def open_page(target, width=1400, dark=False, port=server.port, scripts=True):
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})
        browser.get(f"http://127.0.0.1:{port}{target}")
        if scripts:
            browser.execute_script("clearTimeout(timer)")
        return browser
    browser.get_log("browser")
    yield open_page
    complaints = [entry for entry in browser.get_log("browser") if "404 (Not Found)" not in entry["message"]]
    assert complaints == []


def is_gone(element):
    try:
        return not element.tag_name
    except StaleElementReferenceException:
        return True


def follow(page, element, *keys):
    """Clicks on the element, or types the keys there, and waits for the page that it leads to."""
    old = page.find_element(By.TAG_NAME, "html")
    if keys:
        element.send_keys(*keys)
    else:
        element.click()
    wait_for(lambda: is_gone(old), lambda: page.current_url)


def users(browser):
    return [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, "table.holders tbody th")]


def test_now_shows_tiles_and_holders(show):
    page = show("/")
    tiles = page.find_elements(By.CSS_SELECTOR, ".tile")
    assert [tile.find_element(By.CSS_SELECTOR, "h3 a").text for tile in tiles] == ["GPU 0", "GPU 1", "GPU 2"]
    assert "idle-held" in tiles[1].text and "bob" in tiles[1].text and "61 W" in tiles[1].text
    assert len({tile.value_of_css_property("border-top-color") for tile in tiles}) == 3
    assert users(page) == ["bob", "ann"]
    # Side by side on a wide screen.
    assert len({tile.location["y"] for tile in tiles}) == 1


def test_sorting_by_click_and_by_keyboard(show):
    page = show("/")
    follow(page, page.find_element(By.ID, "sort-user"))
    assert users(page) == ["ann", "bob"] and "order=user.up" in page.current_url
    follow(page, page.find_element(By.ID, "sort-user"), Keys.ENTER)
    assert users(page) == ["bob", "ann"]
    assert page.find_element(By.CSS_SELECTOR, "th[aria-sort]").get_attribute("aria-sort") == "descending"


def test_the_page_refreshes_and_keeps_the_focus(show, server):
    page = show("/")
    page.execute_script("const e = document.getElementById('sort-memory'); e.dataset.old = 1; e.focus(); refresh();")
    wait_for(lambda: not page.find_elements(By.CSS_SELECTOR, "[data-old]"), lambda: "the content stayed")
    assert page.switch_to.active_element.get_attribute("id") == "sort-memory"
    assert users(page) == ["bob", "ann"]
    assert not page.find_elements(By.CSS_SELECTOR, "#old:not([hidden])")


def test_a_server_that_is_gone_is_said_and_the_content_stays(show, tmp_path_factory, browser):
    away = start(tmp_path_factory, "away")
    page = show("/", port=away.port)
    away.stop()
    page.execute_script("refresh()")
    wait_for(lambda: page.find_elements(By.ID, "old"), lambda: "nothing is said")
    assert "This page is from" in page.find_element(By.ID, "old").text and users(page) == ["bob", "ann"]
    page.get("about:blank")
    browser.get_log("browser")  # that the connection was refused


def test_commands_can_be_copied(show, server, browser):
    page = show("/")
    browser.execute_cdp_cmd("Browser.grantPermissions", {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": f"http://127.0.0.1:{server.port}"})
    button = page.find_element(By.CSS_SELECTOR, "button.copies")
    assert button.get_attribute("aria-label") == "copy kill 200"
    button.click()
    wait_for(lambda: button.text == "copied", lambda: button.text)
    assert page.execute_async_script("navigator.clipboard.readText().then(arguments[0])") == "kill 200"


def test_the_picker(show):
    page = show("/audit")
    assert page.find_element(By.CSS_SELECTOR, ".presets [aria-current]").text == "week"
    follow(page, page.find_element(By.LINK_TEXT, "day"))
    assert "last=24h" in page.current_url
    for name, day in (("since", "2026-10-28"), ("until", "2026-10-30")):
        page.execute_script("document.getElementsByName(arguments[0])[0].value = arguments[1]", name, day)
    page.find_element(By.CSS_SELECTOR, "select[name=by] option:nth-child(4)").click()
    follow(page, page.find_element(By.CSS_SELECTOR, ".picker button"))
    assert "since=2026-10-28&until=2026-10-30&by=notebook" in page.current_url
    text = page.find_element(By.TAG_NAME, "main").text
    assert "Wed 2026-10-28 00:00 UTC to Fri 2026-10-30 00:00 UTC" in text and "By notebook" in text
    follow(page, page.find_element(By.LINK_TEXT, "earlier"))
    assert "UTC to Wed 2026-10-28 00:00 UTC" in page.find_element(By.TAG_NAME, "main").text


def test_a_click_on_a_day_zooms_and_names_lead_on(show):
    page = show("/audit")
    follow(page, page.find_element(By.CSS_SELECTOR, "svg.trend a[href*='since=2026-10-30'] rect"))
    assert "since=2026-10-30&until=2026-10-31" in page.current_url
    assert "Fri 2026-10-30 00:00 UTC to Sat 2026-10-31" in page.find_element(By.TAG_NAME, "main").text
    follow(page, page.find_element(By.LINK_TEXT, "figures.ipynb"))
    assert page.find_element(By.TAG_NAME, "h1").text == "figures.ipynb"
    follow(page, page.find_element(By.CSS_SELECTOR, ".crumbs").find_element(By.LINK_TEXT, "bob"))
    assert page.find_element(By.TAG_NAME, "h1").text == "bob"
    follow(page, page.find_element(By.LINK_TEXT, "GPU 1"))
    assert page.find_element(By.TAG_NAME, "h1").text == "GPU 1 of lab-a100 (A100-SXM4-80GB)"


FOCUS = """
const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
return [e.tagName, e.textContent.slice(0, 30), box.width > 0 && box.height > 0,
	parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== "none"];
"""


def test_the_keyboard_reaches_everything_and_shows_where_it_is(show):
    page = show("/")
    wanted = page.execute_script("return document.querySelectorAll('a, button, input, select, [tabindex=\"0\"]').length")
    seen = []
    for _ in range(wanted):
        page.switch_to.active_element.send_keys(Keys.TAB)
        tag, text, visible, outlined = page.execute_script(FOCUS)
        assert visible and outlined, (tag, text)
        seen.append(text)
    assert seen[0] == "Skip to the content" and "GPU 2" in seen and "idle for ▾" in seen and "copy" in seen
    page.find_element(By.CSS_SELECTOR, ".skip").send_keys(Keys.ENTER)
    assert page.switch_to.active_element.get_attribute("id") == "main"


# The text of each element that has text of its own, with its colour and the colour behind it.
COLOURS = """
const found = new Map();
const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
	if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(255, 255, 255)"; };
for (const e of document.querySelectorAll("body *")) {
	if (e.closest("svg") || !e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
		continue;
	found.set(getComputedStyle(e).color + " on " + behind(e), e.tagName + "." + e.className);
}
return [...found];
"""


def luminance(colour):
    """Of "rgb(r, g, b)" or "color(srgb r g b)", as WCAG defines it."""
    numbers = [float(n) for n in re.findall(r"[\d.]+", colour)][:3]
    parts = [n if colour.startswith("color") else n / 255 for n in numbers]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# What every page must have: names for what can be used, headings in order, one of each id.
CHECKS = """
const wrong = [], name = (e) => (e.getAttribute("aria-label") || e.textContent || "").trim();
for (const e of document.querySelectorAll("a, button")) if (!name(e) && !e.querySelector("title")) wrong.push("no name: " + e.outerHTML);
for (const e of document.querySelectorAll("input, select")) if (!e.labels.length) wrong.push("no label: " + e.outerHTML);
for (const e of document.querySelectorAll("svg")) {
	const hidden = e.closest("[aria-hidden=true]"), named = e.getAttribute("aria-label") || e.getAttribute("aria-labelledby");
	if (!hidden && !named && !e.parentElement.closest("svg")) wrong.push("a picture without a text: " + e.outerHTML.slice(0, 200));
}
for (const e of document.querySelectorAll("table")) {
	if (!e.caption && !e.closest("[aria-labelledby], [aria-label]")) wrong.push("a table without a name");
	if (!e.querySelector("thead th[scope=col]")) wrong.push("a table without heads");
}
for (const e of document.querySelectorAll("[aria-labelledby]")) for (const id of e.getAttribute("aria-labelledby").split(" "))
	if (!document.getElementById(id)) wrong.push("labelled by nothing: " + id);
let level = 0;
for (const e of document.querySelectorAll("h1, h2, h3, h4")) {
	const now = +e.tagName[1];
	if (now > level + 1) wrong.push("a heading out of order: " + e.outerHTML);
	level = now;
}
if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
if (document.querySelectorAll("main").length !== 1) wrong.push("not one main");
const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push("twice: " + id);
if (document.documentElement.lang !== "en" || !document.title) wrong.push("no language or title");
if (document.documentElement.scrollWidth > innerWidth) wrong.push("wider than the screen: " + document.documentElement.scrollWidth);
return wrong;
"""


@pytest.mark.parametrize("target", PAGES)
def test_pages_are_accessible_at_all_widths_and_in_both_themes(show, target):
    for width, dark in ((360, False), (800, True), (1400, False)):
        page = show(target, width, dark)
        assert page.execute_script(CHECKS) == [], (target, width)
        for pair, where in page.execute_script(COLOURS) if width != 1400 else []:
            light = sorted(map(luminance, pair.split(" on ")))
            assert (light[1] + 0.05) / (light[0] + 0.05) >= 4.5, (target, dark, pair, where)


def test_hostile_names_are_harmless(show, tmp_path_factory):
    evil = start(tmp_path_factory, "evil", hostile=True)
    for target in ("/", "/audit?by=process", "/audit?by=notebook", "/user/" + quote(HOSTILE_USER, safe="")):
        page = show(target, 800, port=evil.port)
        assert page.execute_script("return window.hacked") is None
        assert not page.find_elements(By.CSS_SELECTOR, "main script, main img, svg[onload]")
        assert page.execute_script(CHECKS) == [], target
    assert page.find_element(By.TAG_NAME, "h1").text == HOSTILE_USER
    evil.stop()


def test_without_scripts(show, browser):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page = show("/", scripts=False)
        assert users(page) == ["bob", "ann"] and not page.find_elements(By.CSS_SELECTOR, "button.copies")
        follow(page, page.find_element(By.ID, "sort-user"))
        assert users(page) == ["ann", "bob"]
        follow(page, page.find_element(By.LINK_TEXT, "print"))
        assert not page.find_elements(By.TAG_NAME, "nav")
        page = show("/audit", scripts=False)
        follow(page, page.find_element(By.CSS_SELECTOR, ".picker button"))
        assert "Longest idle spells" in page.find_element(By.TAG_NAME, "main").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_paper(show, browser):
    """A4 without its margins is 182 mm wide, which is 688 px."""
    for target, most in (("/", 1), ("/audit", 5), ("/user/bob", 4)):
        page = show(target, width=688)
        pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {
            "preferCSSPageSize": True, "printBackground": True})["data"])
        assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= most, target
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        try:
            cut = page.execute_script(
                "return [...document.querySelectorAll('main *')].filter((e) => e.checkVisibility() && "
                "e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 120))")
            assert cut == [], target
            assert not page.find_element(By.CSS_SELECTOR, "header.top").is_displayed()
        finally:
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_nothing_from_elsewhere_is_loaded(show, server):
    for target in PAGES:
        page = show(target)
        names = page.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)")
        assert all(name.startswith(f"http://127.0.0.1:{server.port}/assets/") for name in names), names


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A server of 200 cards, which were active all the week."""
    directory = tmp_path_factory.mktemp("full")
    made = Store(directory / "gua.db")
    host = made.host()
    made.run(host, NOW - 8 * DAY, NOW)
    for i in range(200):
        card = made.card(host, i, NOW - 8 * DAY, NOW)
        process = made.process(host, 1000 + i, f"user{i % 37}", f"python train_{i}.py", seen=(NOW - 3600, NOW))
        for slot in range(NOW - 7 * DAY, NOW, 3600) if i == 0 else ():
            made.usage(slot, card, ACTIVE, 3600, util=90, width=3600)
        made.usage(NOW - 60, card, ACTIVE, 60, util=90)
        made.insert("reading", gpu=card, at_ms=NOW * 1000, util_pct=90 * (i % 2), mem_used_bytes=4 << 30)
        made.insert("holder", gpu=card, process=process, kind=1, mem_bytes=4 << 30, since_ms=(NOW - 3600) * 1000,
                    last_active_ms=(NOW - 5) * 1000 if i % 2 else None)
    started = Server(directory, "--db", made.save(), "--now", NOW_TEXT, "--utc")
    yield started
    started.stop()


def test_hours_of_a_full_week_fit_a_small_window(show, full):
    """"100" in every hour does not push the last one off the map."""
    page = show("/audit?card=0", 1024, port=full.port)
    assert "100" in page.find_element(By.CSS_SELECTOR, ".week td:last-child").text
    assert page.execute_script("""return [...document.querySelectorAll(".week")].map(e =>
        e.getBoundingClientRect().right - e.parentElement.getBoundingClientRect().right)
        .filter(over => over > 1)""") == []


def test_a_phone_shows_how_to_release_it(show):
    page = show("/", 390)
    code, = page.find_elements(By.CSS_SELECTOR, ".holders code.copy")
    cell = code.find_element(By.XPATH, "..")
    assert code.text == "kill 200" and code.rect["x"] + code.rect["width"] <= 390
    assert cell.get_attribute("data-title") == "to release it" and cell.rect["x"] >= 0
    assert page.execute_script("return document.querySelector('.wide').scrollWidth") <= 390


def test_200_cards_are_small_tiles(show, full):
    """All of them fit three and a half windows, and the holders are a click away."""
    page = show("/", 1024, port=full.port)
    tiles = page.find_element(By.CSS_SELECTOR, ".tiles.many")
    assert len(tiles.find_elements(By.CSS_SELECTOR, ".tile")) == 200 and tiles.rect["height"] < 3500
    page.find_element(By.LINK_TEXT, "To the holders").click()
    wait_for(lambda: page.execute_script("return document.getElementById('holding').getBoundingClientRect().top") < 900)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 1024
