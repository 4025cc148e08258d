"""What others rely on, frozen: the ABI of libgua, the schemas of the store and of policy.db, JSON documents, the API of
gua serve, names and labels of metrics. tests/frozen has each as it was recorded, with its version in the name of the file.

A change needs another version, and then `pytest tests/cli/test_frozen.py --update` records it in a new file. Once a
version is released (CHANGELOG.md has a heading with a number), --update does not rewrite the file of a version,
but for those that may grow: there it may add lines."""
import json
import re
import shlex
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BUILD, ROOT, clean_environment, gua, wait_for
from test_metrics import background_store  # noqa: F401 (a fixture)

FROZEN = ROOT / "tests" / "frozen"
RELEASED = re.search(r"^## \[\d", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
SQL = {"store": ROOT / "src/store/schema.sql", "policy": ROOT / "src/store/policy/policy.sql"}


@pytest.fixture
def frozen(request):
    """frozen(NAME, LINES, grows=False): compares with tests/frozen/NAME."""
    def check(name, lines, grows=False):
        path, text = FROZEN / name, "".join(f"{line}\n" for line in lines)
        old = path.read_text() if path.exists() else None
        if request.config.getoption("--update") and text != old:
            kept = old is None or not RELEASED or (grows and set(old.splitlines()) <= set(lines))
            assert kept, f"{name} is released: give what you changed another version"
            path.write_text(text)
            return
        assert old is not None, f"a new version: record tests/frozen/{name} with --update"
        gone, new = set(old.splitlines()) - set(lines), set(lines) - set(old.splitlines())
        assert text == old, f"tests/frozen/{name}: without another version, these are gone: {sorted(gone)}; these came: {sorted(new)}"
    return check


def paths(value, before=""):
    """Every key of a JSON value as a path; elements of lists and their keys are one."""
    if isinstance(value, dict):
        return {path for key, inner in value.items() for path in {f"{before}.{key}"} | paths(inner, f"{before}.{key}")}
    if isinstance(value, list):
        return {path for inner in value for path in paths(inner, f"{before}[]")}
    return set()


def leaves(value, before=""):
    """Every leaf of a JSON value with its path, without sentences for people."""
    if isinstance(value, dict):
        return [line for key, inner in value.items() if not (key in ("description", "summary", "title") and isinstance(inner, str))
                for line in leaves(inner, f"{before}/{key}")]
    if isinstance(value, list):
        if all(isinstance(inner, str) for inner in value):  # the order of names means nothing
            return [f"{before}[] {inner}" for inner in value]
        return [line for at, inner in enumerate(value) for line in leaves(inner, f"{before}/{at}")]
    return [f"{before} {json.dumps(value)}"]


@pytest.mark.any_build
@pytest.mark.parametrize("name", SQL)
def test_schema(name, frozen):
    """As SQLite keeps it, without comments and blanks; views are for people, and are not frozen."""
    db = sqlite3.connect(":memory:")
    db.executescript(SQL[name].read_text())
    version, = db.execute("PRAGMA user_version").fetchone()
    made = db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND type != 'view' ORDER BY name").fetchall()
    named = {"store": f"_PRAGMA user_version_, {version} in this release", "policy": f"_policy.db_: {version} in this release"}
    assert named[name] in (ROOT / "man" / "gua.1.scd").read_text()
    frozen(f"{name}-{version}.sql", [" ".join(re.sub(r"--[^\n]*", "", sql).split()) + ";" for sql, in made])


@pytest.mark.any_build
def test_the_document_of_a_report(frozen):
    schema = json.loads((ROOT / "man/report.schema.json").read_text())
    version = schema["properties"]["schema"]["const"].removeprefix("gua-report-")
    frozen(f"report-{version}.txt", sorted(leaves(schema)), grows=True)


@pytest.mark.any_build
def test_the_api(frozen):
    document = json.loads((ROOT / "src/serve/openapi.json").read_text())
    frozen(f"openapi-{document['info']['version']}.txt", sorted(leaves(document)), grows=True)


DOCUMENTS = {
    "config": "config --json",
    "doctor": "doctor --json --source sim",
    "enforce-status": "enforce status --json --db DB",
    "events": "events --json --db DB --since 2026-10-26",
    "export": "export --format json --db DB",
    "lease-list": "lease list --json --leases LEASES",
    "pick": "pick --json --source sim --clock virtual --no-store --hold 0s --lock-dir LEASES",
    "query": "query --source sim --clock virtual --no-store --query-gpu=index,uuid,gua.state --format=json",
    "report": "report --json --db DB --since 2026-10-26 --compare --by user,process",
    "simulate": "enforce simulate --json --db DB --since 2026-10-26",
    "stat": "stat --json --source sim --clock virtual --no-store",
    "status": "status --json --db DB",
    "track": "track -f json --source sim -- true",
    "who": "who --json --source sim --clock virtual --no-store",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents(name, frozen, demo, tmp_path):
    """The keys of what commands print."""
    leases = tmp_path / "leases"
    run = gua("lease", "add", "--leases", leases, "--id", "4", "--user", "alice", "--cards", "0")
    assert run.returncode == 0, run.stderr
    words = [{"DB": demo.db, "LEASES": leases}.get(word, word) for word in shlex.split(DOCUMENTS[name])]
    run = gua(*words)
    document = json.loads(run.stdout or run.stderr)
    title, _, version = document.get("schema", document.get("gua.schema")).rpartition("-")
    assert title == f"gua-{name}"
    frozen(f"{name}-{version}.keys", sorted(paths(document)), grows=True)


# Families without a series in those two stores: nobody was warned.
UNSHOWN = {"gua_policy_actions"}


def test_metrics(frozen, demo, background_store):  # noqa: F811
    """Families with their types and units, as the source has them, and the labels of what a recorder at work and one that
    ended show."""
    source = (ROOT / "src/export/exposition.c").read_text()
    families = [(name, kind, unit) for kind, name, unit in re.findall(
        r'FAMILY\(([A-Z]+),[^"]*"((?:gua|DCGM)_\w+)",\s*(?:"(\w+)"|NULL)', source)]
    labels = {}

    def missing():
        """A reading that the last tick did not have comes with a later one."""
        for db in (demo.db, background_store):
            text = gua("metrics", "--openmetrics", "--db", db, "--compat", "dcgm").stdout
            for name, inner in re.findall(r"^([a-zA-Z_:]\w*)(?:\{(.*)\})? ", text, re.MULTILINE):
                labels.setdefault(name, set()).update(re.findall(r'(\w+)="', inner))
        shown = {re.sub("_(total|info)$", "", name) for name in labels}
        return {name for name, _, _ in families} - shown - UNSHOWN
    wait_for(lambda: not missing(), missing)
    frozen("metrics-1.txt", sorted({f"{name} {kind.lower()} {unit}".strip() for name, kind, unit in families} |
                                   {f"{name}{{{','.join(sorted(found))}}}" for name, found in labels.items()}), grows=True)


@pytest.mark.any_build
def test_the_abi_of_the_library(request, tmp_path):
    """The files with the public functions are compiled once more, with debug information."""
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        if "libgua.so" in entry["output"] and "src_lib_" in entry["output"]:
            words = shlex.split(entry["command"])
            words[words.index("-o") + 1] = str(tmp_path / entry["output"].rsplit("/", 1)[-1])
            words = [word for word in words if word not in ("-MD", "-MQ", "-MF") and not word.endswith((".d", entry["output"]))]
            subprocess.run([*words, "-g", "-O0", "-U_FORTIFY_SOURCE"], cwd=entry["directory"], check=True, timeout=120)
    objects = sorted(tmp_path.glob("*.o"))
    assert len(objects) == 3
    made = tmp_path / "libgua.so.0"
    subprocess.run(["cc", "-shared", "-g", "-Wl,-soname,libgua.so.0", f"-Wl,--version-script={ROOT}/src/lib/libgua.map",
                    "-o", made, *objects], check=True, timeout=60)
    recorded, now = FROZEN / "libgua-0.abi", tmp_path / "now.abi"
    # Dumps are compared with dumps: for the library itself, abidiff would leave out changes within a struct, because the
    # recorded dump does not say which file a type is from.
    subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--headers-dir", ROOT / "include",
                    "--drop-private-types", "--out-file", now, made], check=True, timeout=60)
    done = subprocess.run(["abidiff", recorded, now], capture_output=True, text=True, timeout=60, env=clean_environment())
    if request.config.getoption("--update"):
        broken = re.findall(r"^.*(?: changed:| offset changed | deletion|[1-9]\d* Removed).*$", done.stdout, re.MULTILINE)
        assert not (RELEASED and broken), f"programs that were built with the released library would break: it needs another soname: {broken}"
        shutil.copy(now, recorded)
        return
    assert done.returncode == 0, f"the ABI of libgua changed:\n{done.stdout}{done.stderr}"


@pytest.mark.any_build
def test_the_constants_of_the_library(frozen):
    """Functions take and give them as int, so that the dump of the ABI does not have them."""
    constants = re.findall(r"\b(GUA_[A-Z_]+) = (-?\d+)", (ROOT / "include/gua.h").read_text())
    frozen("libgua-0.constants", sorted(f"{name} {value}" for name, value in constants), grows=True)
