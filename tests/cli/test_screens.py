"""The pictures of the README that show a terminal: they are what the program shows today."""
import importlib.machinery
import importlib.util
import pathlib
import re
import sys
import xml.etree.ElementTree

import pytest

from conftest import BUILD, GUA, ROOT
from serving import needs_serve

pytestmark = [pytest.mark.any_build, pytest.mark.skipif("asan" in BUILD.name, reason="the same pictures, and slow"),
              pytest.mark.skipif(not (BUILD / "gua-top").exists(), reason="built without gua top")]
NAMES = ["demo", "top", "who"]


def load(name):
    """A program of tools/, which has not the name of a module."""
    sys.path.insert(0, str(ROOT / "tools"))
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    sys.path.remove(str(ROOT / "tools"))
    return module


@pytest.fixture(scope="module")
def tool():
    return load("screens")


@pytest.fixture(scope="module")
def drawn(tool, tmp_path_factory):
    return dict(tool.screens(GUA, pathlib.Path(tmp_path_factory.mktemp("screens"))))


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_is_what_the_program_shows(drawn, request, name):
    path = ROOT / "docs" / f"{name}.svg"
    if request.config.getoption("--update"):
        path.write_text(drawn[name], encoding="utf-8")
    assert drawn[name] == path.read_text(encoding="utf-8"), "tools/screens draws it again"


@needs_serve
def test_the_photograph_is_of_todays_page(tmp_path):
    """The bytes of a photograph depend on the browser; those of the page do not, and their digest is in the picture."""
    pictures = load("pictures")
    with pictures.scene.recorded(GUA, tmp_path) as now:
        server, port = pictures.serve(now.gua, now.db, now.now_s)
        found = pictures.digest(port)
        server.terminate()
        server.communicate(timeout=60)
    assert f"tEXtpage\0{found}".encode() in (ROOT / "docs" / "now.png").read_bytes(), "run tools/pictures build docs"


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_says_that_its_data_is_simulated(name):
    svg = "{http://www.w3.org/2000/svg}"
    root = xml.etree.ElementTree.parse(ROOT / "docs" / f"{name}.svg").getroot()
    assert root.find(svg + "title").text == root.find(svg + "text").text == f"gua {name}: simulated data"


def test_colours_and_blocks(tool):
    """Sequences of SGR become colours, blocks become rectangles, and the cells of a line stay where they are."""
    line = "a \x1b[1;33mb<c\x1b[0m \x1b[38;5;196;44md\x1b[39;49m \x1b[7m▃▃░\x1b[0m"
    source = tool.draw([line], "t", 20)
    marks = re.findall(r"<(rect|text) (?:x|y)[^>]*>", source.split("<g ")[1])
    assert marks.count("text") == 3 and 'fill="#ff0000">d</text>' in source
    assert f'x="{2 * tool.CELL_W:.1f}"' in source and 'font-weight="bold">b&lt;c</text>' in source
    assert f'<rect x="{8 * tool.CELL_W:.1f}" y="12" width="{2 * tool.CELL_W:.1f}" height="6" fill="{tool.BACK}"/>' in source
