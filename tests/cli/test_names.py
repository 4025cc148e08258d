"""Names that others choose: users, commands, notebooks, cards, hosts. Whatever a process, a driver or a file calls
itself, no command prints a byte that controls a terminal, and every document can be parsed.

Each name below is put in every place where a name can be: first on a host with such processes, then in a store."""
import csv
import html.parser
import io
import json
import re
import sqlite3
import xml.etree.ElementTree as ET

import pytest

from blocked import add_process, make_root
from conftest import BUILD, gua
from fake import fake_driver
from handmade import IDLE_HELD, Store

NAMES = [
    b"\x1b[31mred\x1b]0;title\x07", b"two\nlines\r\tand a tab", b"\xc2\x9b31m C1, \x7f DEL", b"cut \xff\xfe\xc3( utf-8",
    "bidi \u202eevil \u2066x\u2069".encode(), "zero\u200bwidth\ufeff\u2028\U0001fffe".encode(), b"\xed\xa0\x80 surrogate",
    b"=cmd|'/c calc'!A0", b"+1+1", b"@SUM(A1)", b"-2+3", b'"quo"te\\', b"<script>alert(1)</script>&amp;<!--", b"]]>",
    b"%s%n%1$s", b"'; DROP TABLE run; --", b"$(reboot)`reboot`", b"x" * 5000, b" ", b".", b"../../etc/passwd",
]
# Nothing that moves the cursor, changes the direction of text or hides.
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufffe\uffff]")
CARD_NAMES = [name for name in NAMES if b"\n" not in name and b'"' not in name]
needs_top = pytest.mark.skipif(not (BUILD / "gua-top").exists(), reason="built without gua top")


class Page(html.parser.HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.links = set(), set(), set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links |= {value for name, value in attrs if name == "href"}


def check(run, words):
    """What any output must be, and what this one says it is."""
    assert run.returncode in (0, 1), (words, run.returncode, run.stderr)
    for text in (run.stdout, run.stderr):
        text.encode("utf-8")  # a byte that is not UTF-8 would be a surrogate here
        found = CONTROL.search(text.replace("\t", "") if {"-x", "html", "svg"} & set(words) else text)
        assert not found, (words, text[max(0, found.start() - 60):found.end() + 60])
    if "--json" in words or "json" in words or "--format=json" in words:
        json.loads(run.stdout, parse_constant=pytest.fail)
    if "csv" in words or "--format=csv" in words:
        for row in csv.reader(io.StringIO(run.stdout), strict=True, skipinitialspace=True):
            assert not [cell for cell in row if re.match(r"[=+@]|-[^\d.]", cell) and cell != "-"], (words, row)
    if {"-x", "svg"} & set(words):
        ET.fromstring(run.stdout)
    if "html" in words:
        page = Page()
        page.feed(run.stdout)
        assert all(link.startswith("#") for link in page.links)
        assert not page.tags & {"script", "b", "iframe", "img"} and not [a for a in page.attributes if a.startswith("on")]


FIELDS = ("pid,name,gpu_name,gua.user,gua.command,gua.notebook,gua.notebook_path,gua.job,gua.container,gua.job_name,"
          "gua.account,gua.login,gua.session,gua.parents,gua.python_env,gua.tag")
LOOKS = [["who"], ["who", "--json"], ["stat"], ["stat", "-a"], ["stat", "-f"], ["stat", "--json"], ["dmon", "-c", "1"],
         ["dmon", "-p", "-c", "1"], ["dmon", "-p", "-c", "1", "--format", "csv"], ["smi"], ["smi", "-L"], ["smi", "-q"],
         ["smi", "-q", "-x"], ["smi", "pmon", "-c", "1"], ["doctor"], ["doctor", "--json"],
         ["pick", "--hold", "0s", "-n", "30"], ["pick", "--hold", "0s", "--json", "-n", "30"],
         ["query", "--query-gpu=name,uuid,gua.brand,gua.state", "--format=csv"],
         ["query", f"--query-compute-apps={FIELDS}", "--format=csv"],
         ["query", f"--query-compute-apps={FIELDS}", "--format=json"],
         pytest.param(["top", "--once"], marks=needs_top)]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A host on which everything has such names, and a store that was recorded there."""
    where = tmp_path_factory.mktemp("names")
    root = make_root(where / "root")
    (root / "etc/passwd").write_bytes(b"".join(
        name.replace(b"\n", b"").replace(b":", b"") + b":x:%d:%d::/:/bin/sh\n" % (2000 + i, 2000 + i)
        for i, name in enumerate(NAMES)))
    scenario = b"host lab\n"
    for i, name in enumerate(CARD_NAMES):
        scenario += b'card %d uuid "GPU-%d%s" name "%s" memory 80GiB\n' % (i, i, name[:40], name[:60])
    for i, name in enumerate(NAMES):
        pid = 4000 + i
        directory = add_process(root, pid, 2000 + i, [], comm="python", parent=pid - 1 if i else 1)
        comm = name[:15].replace(b"\n", b" ")
        stat = (directory / "stat").read_bytes()
        (directory / "stat").write_bytes(stat.replace(b"(python)", b"(" + comm + b")"))
        (directory / "cmdline").write_bytes(
            [name + b"\0-f\0/run/kernel-" + name + b".json\0", b"python\0" + name + b"\0", b"\0"][i % 3])
        (directory / "environ").write_bytes(b"".join(
            variable + name + b"\0" for variable in (
                b"JPY_SESSION_NAME=/home/", b"GUA_TAG=", b"SLURM_JOB_ACCOUNT=", b"SLURM_JOB_NAME=", b"VIRTUAL_ENV=/x/")))
        (directory / "cgroup").write_bytes(b"0::/system.slice/" + name.replace(b"\n", b"") + b".service\n")
        scenario += b"process p%d pid %d\nat 0s hold p%d card %d memory 1GiB\n" % (i, pid, i, i % 4)
    env = fake_driver(where, "")
    (where / "driver.scenario").write_bytes(scenario)
    run = gua("daemon", "--once", "--verbose", "--db", where / "gua.db", "--root", root, env=env)
    assert run.returncode == 0, run.stderr
    check(run, ["daemon"])
    return where, root, env


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_look(host, words):
    where, root, env = host
    more = ["--lock-dir", where / "locks"] if words[0] == "pick" else []
    check(gua(*words, "--root", root, "--db", where / "gua.db", *more, env=env), words)


def test_what_is_stored(host):
    db = sqlite3.connect(host[0] / "gua.db")
    for table, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        for row in db.execute(f"SELECT * FROM {table}"):
            assert not [cell for cell in row if isinstance(cell, str) and CONTROL.search(cell)], (table, row)


READS = [["report", "--since", "2026-01-01", "--format", form, "--by", by] for form in ("text", "json", "csv", "html", "svg")
         for by in ("user", "process", "card", "notebook,tag")]
READS += [["export", "--what", what, "--format", form] for what in ("usage", "holding", "process", "event")
          for form in ("csv", "json")]
READS += [["events", "--since", "2026-01-01", *more] for more in ([], ["--format", "json"], ["--format", "csv"])]
READS += [["status"], ["status", "--json"], ["doctor", "--json"]]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with a host for each name, and with that name in each of its columns that has text, as another program
    may have written it."""
    made, at = Store(tmp_path_factory.mktemp("store") / "gua.db"), 1793606400
    for i, name in enumerate(NAMES):
        lab = made.host(machine_id=str(i))
        run = made.run(lab, at, at + 3600)
        card = made.card(lab, 0, at, at + 3600, uuid=f"GPU-{i}")
        process = made.process(lab, 4000, "alice", seen=(at, at + 3600))
        made.usage(at, card, IDLE_HELD, 60)
        made.holding(at, card, process, IDLE_HELD, 60, share=60)
        event = made.insert("event", host=lab, at_ms=at * 1000, kind="xid", gpu=card, value=79, text="t")
        for table, row in (("host", lab), ("run", run), ("gpu", card), ("process", process), ("event", event)):
            for _, column, kind, *_ in made.db.execute(f"PRAGMA table_info({table})").fetchall():
                if kind == "TEXT" and column != "kind":
                    made.db.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE rowid = ?", (name, row))
    return made.save()


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_store(store, words):
    run = gua(*words, "--db", store)
    check(run, words)
    assert words[0] in ("status", "doctor") or run.returncode == 0 and len(run.stdout) > 500, run.stderr


@pytest.mark.parametrize("words", [["config"], ["config", "--json"], ["config", "--check"], ["report", "--db", "no.db"]], ids=" ".join)
def test_a_configuration(tmp_path, words):
    path = tmp_path / "gua.conf"
    path.write_bytes(b"".join(b"[record]\ninterval = " + name + b"\n" + name + b" = 1\n[" + name + b"]\nx\n"
                              for name in NAMES))
    run = gua(*words, env={"GUA_CONFIG": str(path)})
    assert run.returncode in (1, 2) and run.stdout + run.stderr, run
    run.returncode = 1
    check(run, words if run.stdout else [])
