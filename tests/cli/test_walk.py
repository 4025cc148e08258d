"""tools/walk: the order in which a run enters files, and how often it comes back to a folder."""
import importlib.machinery
import importlib.util
import subprocess

import pytest

from conftest import ROOT

pytestmark = pytest.mark.any_build

FILES = {
    "cmd/main.c": """
        #include <sys/wait.h>
        #include <unistd.h>
        void store_open(void); void render_text(void); void store_close(void); int model_name(void);
        static void own(void) { model_name(); }
        int main(int argc, char **argv)
        {
                own(); store_open(); store_open();
                if (argc == 1) {
                        render_text();
                } else if (fork() == 0) {
                        render_text();
                        _exit(0);
                } else {
                        wait(0);
                }
                store_close();
                return model_name();
        }
    """,
    "store/store.c": "void store_open(void) {}",
    "store/close.c": "int model_name(void); void store_close(void) { model_name(); }",
    "render/text.c": "int model_name(void); int model_other(void); void render_more(void) { model_other(); }\n"
                     "void render_text(void) { model_name(); render_more(); }",
    "model/name.c": "int model_name(void) { return 0; } int model_other(void) { return 0; }",
}
STAYS = ["  cmd/main.c  main", "  model/name.c  model_name", "  store/store.c  store_open",
         "  render/text.c  render_text render_more", "  model/name.c  model_other", "< store/close.c  store_close"]


@pytest.fixture
def walk(tmp_path):
    """The tool, with a tree and a build of its own."""
    loader = importlib.machinery.SourceFileLoader("walk", str(ROOT / "tools" / "walk"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("walk", loader))
    loader.exec_module(module)
    module.ROOT, module.BUILD, module.TRACE = tmp_path, tmp_path / "build", tmp_path / "build" / "trace"
    module.BUILD.mkdir()
    for name, text in FILES.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    library = module.BUILD / "libwalk.so"
    subprocess.run(["cc", "-fPIC", "-shared", f'-DWALK_FILE="{module.TRACE}"', "-o", library, ROOT / "tools" / "walk.c"],
                   check=True)
    subprocess.run(["cc", "-g", "-finstrument-functions", "-o", "gua", *(f"../src/{name}" for name in FILES), library],
                   cwd=module.BUILD, check=True)
    return module


def test_a_walk_of_two_processes(walk, capsys):
    """One prints while the other waits: each is drawn as a whole."""
    walk.make_trace([])
    subprocess.run([walk.BUILD / "gua", "apart"], check=True)
    walk.draw(walk.entries(None), False)
    assert capsys.readouterr().out.splitlines() == [
        "  cmd/main.c", "  model/name.c", "  store/store.c", "  store/close.c", "  render/text.c", "  model/name.c",
        "files: 5, returns to a folder that was left: 0"]


@pytest.mark.parametrize("begin, end, stays, says", [
    (None, None, STAYS, "files: 5, returns to a folder that was left: 1"),
    ("render_text", None, ["  render/text.c  render_text", "  model/name.c  model_name", "  render/text.c  render_more",
                           "  model/name.c  model_other", "  store/close.c  store_close"],
     "files: 3, returns to a folder that was left: 0"),
    (None, "store_open", STAYS[:3], "files: 3, returns to a folder that was left: 0"),
])
def test_a_walk(walk, capsys, begin, end, stays, says):
    walk.make_trace(walk.places_of(begin) if begin else [])
    subprocess.run([walk.BUILD / "gua"], check=True)
    walk.draw(walk.entries(end), True)
    assert capsys.readouterr().out.splitlines() == [*stays, says]
