"""The lints find what they are for: each rule on a tiny tree that breaks it."""
import importlib.machinery
import importlib.util
import subprocess

import pytest

from conftest import ROOT

pytestmark = pytest.mark.any_build

LINT = ROOT / "tools" / "lint-layers"
loader = importlib.machinery.SourceFileLoader("lint_layers", str(LINT))
layers = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint_layers", loader))
loader.exec_module(layers)


def lint(tree, files):
    """What the lint says about a tree with these files."""
    for name, text in files.items():
        path = tree / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return "".join(f"{line}\n" for line in layers.problems(tree))


def test_the_program_prints_problems_and_fails(tmp_path):
    for files, code in (GOOD, 0), ({"base/a.c": '#include "model/state.h"\n'}, 1):
        said = lint(tmp_path, files)
        run = subprocess.run([LINT, tmp_path], capture_output=True, text=True)
        assert (run.returncode, run.stdout) == (code, said)


GOOD = {
    "main.c": '#include "cmd/cmd.h"\nint main(void)\n{\n\treturn 0;\n}\n',
    "base/log.c": '#include "base/log.h"\nstatic void line(void)\n{\n\tfputs("x", stderr);\n}\n',
    "cmd/report.c": '#include "store/store.h"\n#include "version.h"\nvoid report_f(void)\n{\n\texit(getenv("TERM") != 0);\n}\n',
    "driver/nvml.c": "#include <dlfcn.h>\nvoid nvml_f(void)\n{\n\tdlopen(0, 0);\n}\n",
    "store/store.c": "#include <sqlite3.h>\nint x = sqlite3_step(0);\n",
    "proc/proc.c": 'int x = openat(0, "/proc", 0);\n',
    "track/tree.c": '#include "proc/proc.h"\n/* reads "/proc" */\nint x = file_read_at(AT_FDCWD, "x/process");\n',
    "view/five.c": "int five(int a, void (*b)(int, int), int c, int d,\n\tint e)\n{\n\tif (g(1, 2, 3, 4, 5, 6)) {\n\t}\n}\n",
    "render/text.c": '/* stdout, exit() and getenv() in words */\nconst char *t = "dlopen(stderr)";\nint n = snprintf(0, 0, "x");\n',
}


def test_a_good_tree_passes(tmp_path):
    assert lint(tmp_path, GOOD) == ""


def test_what_base_has_is_included_through_it(tmp_path):
    """The headers that it brings in cannot include it, and each .c file begins with its own header."""
    tree = {"base/base.h": '#include <string.h>\n\n#include "base/str.h"\n', "base/str.h": '#include "base/piece.h"\n',
            "base/piece.h": "#include <string.h>\n", "base/str.c": '#include "base/str.h"\n', "base/log.h": '#include "base/base.h"\n'}
    assert lint(tmp_path, tree) == ""
    assert lint(tmp_path, {"base/log.h": "\n#include <string.h>\n", "model/state.c": '#include "base/str.h"\n'}) == (
        "src/base/log.h:2: base/base.h has <string.h>\nsrc/model/state.c:1: base/base.h has \"base/str.h\"\n")


@pytest.mark.parametrize("name, text, says", [
    ("base/a.c", '#include "model/state.h"\n', "src/base/a.c:1: base includes model"),
    ("audit/a.c", '\n#include "render/text.h"\n', "src/audit/a.c:2: audit includes render"),
    ("present/a.c", '#include "render/text.h"\n', "src/present/a.c:1: present includes render"),
    ("view/a.c", '#include "top/top.h"\n', "src/view/a.c:1: view includes top"),
    ("policy/a.c", '#include "render/json.h"\n#include "export/rows.h"\n', "src/policy/a.c:2: policy includes export"),
    ("fleet/a.c", '#include "view/stat.h"\n', "src/fleet/a.c:1: fleet includes view"),
    ("lib/a.c", '#include "store/store.h"\n', "src/lib/a.c:1: lib includes store"),
    ("main.c", '#include "store/store.h"\n', "src/main.c:1: main.c includes store"),
    ("extra/a.c", "int x;\n", "src/extra/a.c:1: the folder extra has no place"),
    ("render/a.c", "static void f(void)\n{\n\tfputs(0, stdout);\n}\n", "src/render/a.c:3: standard output"),
    ("store/a.c", 'int x = printf("x");\n', "src/store/a.c:1: standard output"),
    ("base/a.c", "int x = fileno(stderr);\n", "src/base/a.c:1: standard output"),
    ("record/a.c", "static void f(void)\n{\n\texit(1);\n}\n", "src/record/a.c:3: exit"),
    ("driver/a.c", 'char *x = getenv("TERM");\n', "src/driver/a.c:1: the environment"),
    ("cmd/a.c", 'char *x = getenv("HOME");\n', "src/cmd/a.c:1: a variable that is read without secure_getenv()"),
    ("cmd/a.c", "void *x = dlopen(0, 0);\n", "src/cmd/a.c:1: dlopen"),
    ("cmd/a.c", "int x = sqlite3_step(0);\n", "src/cmd/a.c:1: SQLite"),
    ("present/a.c", '\nconst char *p = "%s/proc/%u/stat";\n', "src/present/a.c:2: a file of /proc"),
    ("cmd/a.c", 'int x = open("/proc", 0);\n', "src/cmd/a.c:1: a file of /proc"),
    ("track/a.c", 'int x = openat(proc, "1/stat", 0);\n', "src/track/a.c:1: openat"),
    ("classify/a.c", 'int x = file_read_at(dirfd, "stat");\n', "src/classify/a.c:1: openat"),
    ("record/a.c", 'const char *p = "/sys/fs/cgroup/x";\n', "src/record/a.c:1: a file of the cgroup tree"),
    ("base/a.c", "/* TO" "DO: later */\n", "src/base/a.c:1: a note to do it later"),
    ("base/a.c", "int x; // FIX" "ME\n", "src/base/a.c:1: a note to do it later"),
    ("base/a.c", "#ifdef TEST\n#endif\n", "src/base/a.c:1: a test switch"),
    ("base/a.c", "int x;\n" * 901, "src/base/a.c:900: 901 lines; at most 900"),
    ("base/a.h", "int x;\n" * 301, "src/base/a.h:300: 301 lines; at most 300"),
    ("base/a.c", "static void f(void)\n{\n" + "\tx++;\n" * 51 + "}\n", "src/base/a.c:2: a function of 51 lines"),
    ("base/a.c", "int a;\nstatic int *\nf(int a, int b, int c,\n\tint d, int e, ...)\n{\n}\n",
     "src/base/a.c:3: f has 6 parameters; at most 5"),
    ("base/a.c", "static void f(int a, void (*b)(int, int), int c, int d, int e, int f)\n{\n}\n",
     "src/base/a.c:1: f has 6 parameters; at most 5"),
    ("base/a.c", "int x;\nint ab(void)\n{\n}\nint a_b(void)\n{\n}\nint a(void)\n{\n}\n",
     "src/base/a.c:2: ab does not begin with the name of its file"),
    ("view/store.h", "int x;\n", "src/view/store.h:1: store also has a file store"),
    ("base/a.c", "int x;\n/* See store/gone.h. */\n", "src/base/a.c:2: there is no file store/gone.h"),
])
def test_each_rule_finds_what_breaks_it(tmp_path, name, text, says):
    said = lint(tmp_path, {**GOOD, name: text})
    assert said.startswith(says) and said.count("\n") == 1


def test_a_header_declares_what_others_use(tmp_path):
    files = {**GOOD, "base/a.h": "int a_shared(int x);\nint\na_own(void);\nint a_by_macro(void);\n#define M() a_by_macro()\n",
             "base/a.c": "int a_shared(int x)\n{\n}\nint a_own(void)\n{\n}\nint a_by_macro(void)\n{\n}\n",
             "model/b.c": "int x = a_shared(1);\n"}
    assert lint(tmp_path, files) == "src/base/a.h:3: only one file uses a_own: make it static there\n"
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.c").write_text("int y = a_own();\n")
    assert lint(tmp_path, files) == ""


def test_exceptions_of_names_only_shrink(tmp_path):
    files = {**GOOD, "base/a.c": "int b(void)\n{\n}\n", "view/store.h": "int x;\n", "model/text.h": "int x;\n"}
    (tmp_path / "tools").mkdir()
    exceptions = tmp_path / "tools" / "lint-names.exceptions"
    exceptions.write_text("file store\nfunction b\n")
    assert lint(tmp_path, files) == ""
    exceptions.write_text("file store\nfunction b\nfunction c\n")
    assert lint(tmp_path, files) == (
        "tools/lint-names.exceptions:3: 'function c' is no exception any more: remove the line\n")


MAP = "/* A map:\n *\n *   base/  lines of\n *          text\n *   cmd/   commands\n */\n"


def write_map(tree, *options):
    run = subprocess.run([ROOT / "tools" / "map", *options, tree], capture_output=True, text=True)
    return run.returncode, run.stdout


def test_the_map_is_made_of_the_heads_of_files(tmp_path):
    files = {"main.c": MAP, "base/log.c": "/* Writes. */\n", "base/log.h": "/* The log: lines\n * on stderr. More. */\n",
             "cmd/report.c": "/* gua report: prints. */\n"}
    for name, text in files.items():
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text(text)
    assert write_map(tmp_path, "--check")[1].splitlines() == [
        f"src/{folder}/README:1: out of date; run tools/map" for folder in ("base", "cmd")]
    assert write_map(tmp_path) == (0, "")
    assert (tmp_path / "src/base/README").read_text() == "Lines of text\n\nlog  The log: lines on stderr.\n"
    assert write_map(tmp_path, "--check") == (0, "")
    (tmp_path / "src/cmd/stop.c").write_text("int x;\n")
    assert write_map(tmp_path, "--check")[1].startswith("src/cmd/stop.c:1: the file does not open with a comment")
    (tmp_path / "src/extra").mkdir()
    (tmp_path / "src/extra/a.c").write_text("/* More. */\n")
    assert "the map does not name extra" in write_map(tmp_path, "--check")[1]


def test_an_empty_tree_is_not_good(tmp_path):
    assert lint(tmp_path, {}).endswith("src: no source files\n")


PRINTS = '#include <stdio.h>\nvoid gua_x(void) { fputs("x", stderr); }'
TOUCHES_SIGNALS = "int sigaction(void); void gua_x(void) { sigaction(); }"
ASKS_THE_NETWORK = "int getaddrinfo(void); int x(void) { return getaddrinfo(); }"


@pytest.mark.parametrize("program, library, says", [
    ("", "void gua_x(void) {}", ""),
    ("#links libz", "", "gua links libz.so.1"),
    (ASKS_THE_NETWORK, "", "gua imports getaddrinfo"),
    ("", PRINTS, "libgua.so.0 imports stderr"),
    ("", TOUCHES_SIGNALS, "libgua.so.0 imports sigaction"),
    ("", "void other(void) {}", "libgua.so.0 exports other"),
])
def test_links_are_read_from_the_linkers_tables(tmp_path, program, library, says):
    def cc(output, text, *flags):
        (tmp_path / f"{output}.c").write_text(text)
        subprocess.run(["cc", "-o", output, f"{output}.c", *flags], cwd=tmp_path, check=True)
    shared = ["-shared", "-fPIC"]
    links = []
    if program.startswith("#links"):
        cc("libz.so", "int z;\n", *shared, "-Wl,-soname,libz.so.1")
        program, links = "", ["-Wl,--no-as-needed", "./libz.so"]
    (tmp_path / "map").write_text("GUA_0 { global: gua_x; other; local: *; };\n")
    cc("gua", f"{program}\nint main(void) {{ return 0; }}\n", *links)
    cc("gua-end", "int main(void) { return 0; }\n")
    cc("libgua.so.0", f"{library}\n", *shared, "-Wl,-soname,libgua.so.0", "-Wl,--version-script=map")
    run = subprocess.run([ROOT / "tools" / "lint-links", tmp_path], capture_output=True, text=True)
    assert run.returncode == (1 if says else 0), run.stdout + run.stderr
    assert run.stdout.startswith(says) and run.stdout.count("\n") == (1 if says else 0)
