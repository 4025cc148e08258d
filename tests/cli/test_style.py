"""The stylesheet of pages: colours that can be told apart and read, and names that exist.

Contrast as WCAG 2.2 defines it: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""
import re

import pytest

from conftest import ROOT

pytestmark = pytest.mark.any_build

RENDER = ROOT / "src/render"
SHEETS = {name: (RENDER / f"{name}.css").read_text() for name in ("tokens", "states", "page", "report")}
TEXT, DRAWN = 4.5, 3


def properties(block):
    return dict(re.findall(r"--([\w-]+): ([^;]+);", block))


def themes():
    """Light, dark and paper: the properties of each."""
    light, dark = SHEETS["tokens"].split("@media (prefers-color-scheme: dark)")
    dark, paper = dark.split("@media print")
    light = properties(light)
    return {"light": light, "dark": light | properties(dark), "paper": light | properties(paper)}


def channels(color):
    return [int(color[i:i + 2], 16) for i in (1, 3, 5)]


def luminance(color):
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels(color)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def mixed(color, into, share):
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in zip(channels(color), channels(into)))


def test_contrast_is_computed_as_defined():
    assert contrast("#000000", "#ffffff") == pytest.approx(21) and contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


STATES = ("active", "idle-held", "reserved", "use-unknown", "squatting")


@pytest.mark.parametrize("theme", ["light", "dark", "paper"])
def test_text_can_be_read(theme):
    colors = themes()[theme]
    for ink in ("ink", "dim", "warn", "link"):
        for ground in ("paper", "soft"):
            assert contrast(colors[ink], colors[ground]) >= TEXT, (ink, ground)


@pytest.mark.parametrize("theme", ["light", "dark", "paper"])
def test_what_is_drawn_can_be_seen(theme):
    """The light fill of truly-idle time has an outline of its own, --edge; what stands on it differs from it."""
    colors = themes()[theme]
    for mark in (*STATES, "mark", "edge", "dot", "link"):
        assert contrast(colors[mark], colors["paper"]) >= DRAWN, mark
    for mark in (*STATES, "mark"):
        assert contrast(colors[mark], colors["truly-idle"]) >= DRAWN, mark
    assert len({colors[state] for state in STATES}) == len(STATES)
    assert contrast(colors["stripe"], colors["idle-held"]) >= DRAWN  # the pattern of idle-held


@pytest.mark.parametrize("theme", ["light", "dark", "paper"])
def test_numbers_on_the_hours_of_the_week_can_be_read(theme):
    colors = themes()[theme]
    step = float(colors["step"].rstrip("%")) / 100
    levels = [int(n) for n in re.findall(r"\.h\d \{ --mix: calc\((\d) \* var\(--step\)\)", SHEETS["report"])]
    assert levels == list(range(1, 10))
    for color in ("active", "idle-held"):
        for level in levels:
            assert contrast(colors["ink"], mixed(colors[color], colors["soft"], level * step)) >= TEXT, (color, level)


def test_every_theme_sets_every_colour():
    """A colour that dark or paper forgets would be that of the other."""
    light, dark = SHEETS["tokens"].split("@media (prefers-color-scheme: dark)")
    dark, paper = dark.split("@media print")
    colors = {name for name, value in properties(light).items() if value.startswith("#")} | {"step"}
    assert set(properties(dark)) == set(properties(paper)) == colors


def test_parts_use_the_tokens_alone():
    """No colour of its own, and no property that does not exist."""
    known = set(properties(SHEETS["tokens"])) | {"mix"}
    for name in ("states", "page", "report"):
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b|\brgb|\bhsl", re.sub(r"url\(#\w+\)|/\*.*?\*/", "", SHEETS[name], flags=re.S)), name
        assert set(re.findall(r"var\(--([\w-]+)", SHEETS[name])) <= known


def test_every_class_is_used():
    """A class that no page has is left over."""
    sources = "".join(path.read_text() for folder in ("render", "serve") for path in (ROOT / "src" / folder).glob("*.c"))
    sources += " ".join(re.findall(r'"(\w+)"', (ROOT / "src/model/state.c").read_text()))
    for name in ("states", "page", "report"):
        rules = re.sub(r"/\*.*?\*/|\{[^{}]*\}", " ", SHEETS[name], flags=re.S)
        for word in set(re.findall(r"\.([a-z][\w-]*)", rules)):
            assert re.search(rf"\b{word}\b", sources) or re.fullmatch(r"h\d", word), word


def test_every_state_is_drawn():
    """A state that is a row of state_looks and has no fill would be black."""
    keys = re.findall(r"^\t\[(CARD|STATE)_\w+\] = \{ \"(\w+)\",", (ROOT / "src/model/state.c").read_text(), flags=re.M)
    assert {"active", "idle_held", "use_unknown", "squatting"} <= {key for _, key in keys}
    for _, key in keys:
        assert key == "suspect" or re.search(rf"\.{key}\b[^{{]*\{{ fill:", SHEETS["states"]), key  # suspect time is never summed
