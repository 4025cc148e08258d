"""gua report --format html: one page, complete in itself, right for a browser, a keyboard and a screen reader."""
import html.parser
import os
import re
import stat
import xml.etree.ElementTree

import pytest

from conftest import gua
from handmade import ACTIVE, HOUR, IDLE_HELD, TRULY_IDLE, Store

T = 1793620800  # Mon 2026-11-02 12:00 UTC
VOID = {"meta", "br", "link", "img", "input", "hr"}
HOSTILE = "<script>alert(1)</script>\"'&amp;"


class Page(html.parser.HTMLParser):
    """A page as a list of (tag, attributes), with its text; tags that do not match are an error."""

    def __init__(self, source):
        super().__init__()
        self.source, self.stack, self.tags, self.text = source, [], [], ""
        self.feed(source)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] != "style":
            self.text += data

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def db(tmp_path):
    """Two days of two cards, and a user with a name that is markup."""
    store = Store(tmp_path / "lab.db")
    host = store.host(hostname="lab")
    store.run(host, T - 48 * HOUR, T)
    for index in range(2):
        card = store.card(host, index, T - 48 * HOUR, T, name=f"Card {HOSTILE}")
        process = store.process(host, 100 + index, HOSTILE if index else "alice", command=HOSTILE)
        for hour in range(48):
            slot = T - 48 * HOUR + hour * HOUR
            state = [ACTIVE, IDLE_HELD, TRULY_IDLE][hour % 3]
            store.usage(slot, card, state, HOUR, width=HOUR)
            if state != TRULY_IDLE:
                store.holding(slot, card, process, state, HOUR, width=HOUR)
    store.db.commit()
    return store.path


def page(db, *args):
    run = gua("report", "--db", db, "--now", f"@{T}", "--since", "1d", "--utc", "--format", "html", *args)
    assert run.returncode == 0, run.stderr
    return Page(run.stdout)


def test_the_page_is_complete_in_itself(db):
    """Nothing is loaded, nothing runs, and no style is in an attribute, so that a strict policy can forbid it."""
    found = page(db, "--compare")
    assert not found.of("script") and not found.of("link") and not found.of("img") and not found.of("iframe")
    for tag, attributes in found.tags:
        assert not {"src", "style", "onclick", "onload"} & set(attributes), (tag, attributes)
        assert attributes.get("href", "#").startswith("#"), (tag, attributes)
    assert "http" not in found.source and "@import" not in found.source and "url(" in found.source
    assert {"#held", "#unseen"} <= set(re.findall(r"url\(([^)]*)\)", found.source))
    assert all(place.startswith("#") for place in re.findall(r"url\(([^)]*)\)", found.source))
    assert ("html", {"lang": "en"}) in found.tags and {"charset": "utf-8"} in found.of("meta")


def test_names_are_text(db):
    """A user, a command and a card that are called like markup."""
    found = page(db, "--by", "user,process")
    assert "<script>" in found.text and not found.of("script")
    assert "&amp;" in found.text  # as the name is, not as the page is written


@pytest.mark.parametrize("name", ["</title><script>alert(1)</script>", "]]></style><svg onload=alert(1)>", "\"' onload='x", "\u202eevil",
                                  "\U0001f680" * 60, "x" * 4096, "a\x1b[31m\x07\x00b", "\ufffe\uffff", "\udcff", "--><!--"])
def test_hostile_names_are_harmless(tmp_path, name):
    """Of a host, a user, a card, a process and an event: the page and the picture are well-formed, and nothing becomes a tag."""
    raw = name.encode("utf-8", "surrogateescape")
    store = Store(tmp_path / "lab.db")
    host = store.host()
    store.run(host, T - 2 * HOUR, T)
    card = store.card(host, 0, T - 2 * HOUR, T)
    process = store.process(host, 1, "user")
    store.event(host, T - HOUR, "xid", card=card, value=79)
    for slot in (T - 2 * HOUR, T - HOUR):
        store.usage(slot, card, IDLE_HELD, HOUR, width=HOUR)
        store.holding(slot, card, process, IDLE_HELD, HOUR, width=HOUR)
    for table, column in (("host", "hostname"), ("gpu", "name"), ("process", "user"), ("process", "command"), ("event", "text")):
        store.db.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT)", (raw,))
    store.db.commit()
    found = page(store.path, "--by", "user,process", "--longest", "3")
    allowed = {"html", "head", "meta", "title", "style", "body", "a", "main", "article", "svg", "defs", "pattern", "rect", "circle",
               "path", "header", "h1", "h2", "p", "ul", "li", "section", "dl", "dt", "dd", "div", "strong", "span", "br", "table", "caption", "thead",
               "tbody", "tfoot", "tr", "th", "td", "details", "summary", "footer", "desc", "clippath", "line", "text", "use", "g"}
    assert {tag for tag, _ in found.tags} <= allowed
    assert not [a for _, attributes in found.tags for a in attributes if a.startswith("on") or a == "style"]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", found.source)
    run = gua("report", "--db", store.path, "--now", f"@{T}", "--since", "1d", "--format", "svg")
    root = xml.etree.ElementTree.fromstring(run.stdout)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg", "title", "desc", "style", "defs", "pattern", "rect", "circle", "path", "text", "g", "line", "use"}
    assert not [a for element in root.iter() for a in element.attrib if a.startswith("on") or a == "style"]


def test_everybody_can_read_it(db):
    """Tables have captions and headed rows and columns, pictures have texts, sections have headings."""
    found = page(db, "--compare", "--cost", "2")
    assert not re.search(r"<th[^>]*>\s*</th>", found.source)
    tables = found.source.split("<table")[1:]
    assert len(tables) >= 6
    for table in tables:
        table = table.partition("</table>")[0]
        assert "<caption>" in table and 'scope="col"' in table and 'scope="row"' in table
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    pictures = [svg for svg in found.of("svg") if "aria-hidden" not in svg and svg.get("role") == "img"]
    assert len(pictures) == 4  # headline, two GPUs, trend
    for picture in pictures:
        assert len(picture["aria-labelledby"].split()) == 2 and set(picture["aria-labelledby"].split()) <= set(ids)
    assert found.tags.index(("a", {"class": "skip", "href": "#report"})) < found.tags.index(("main", {"id": "report"}))
    for section in found.of("section"):
        assert section["aria-labelledby"] in ids


def test_the_page_says_what_the_text_says(db):
    """The same sentences and cells, made once."""
    found = page(db, "--compare")
    squeezed = " ".join(found.text.split())
    text = gua("report", "--db", db, "--now", f"@{T}", "--since", "1d", "--utc", "--compare").stdout
    for line in ("active", "idle-held", "truly-idle"):
        share = re.search(rf"^  {line} +\S +([\d.]+%)", text, re.M).group(1)
        assert f"{line}{share}" in squeezed.replace(" ", "")
    for cell in re.findall(r"\d+\.\d\d?%?", text.partition("Per-GPU")[2].partition("§")[0]):
        assert cell in found.text
    verdict = " ".join(text.partition("20% rule")[2].partition("§3")[0].split())
    assert verdict in squeezed


def test_the_file_is_replaced_whole(db, tmp_path):
    out = tmp_path / "report.html"
    out.write_text("old")
    run = gua("report", "--db", db, "--now", f"@{T}", "--since", "1d", "--format", "html", "-o", out)
    assert run.returncode == 0 and run.stdout == ""
    assert out.read_text().startswith("<!DOCTYPE html>") and out.read_text().endswith("</html>\n")
    assert os.listdir(tmp_path).count("report.html") == 1 and not list(tmp_path.glob("report.html.*"))
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(out.stat().st_mode) == 0o666 & ~umask


def test_the_name_of_the_file_chooses_the_format(db, tmp_path):
    begins = {"html": "<!DOCTYPE html>", "svg": "<svg", "json": "{", "csv": "identity,", "txt": "gua "}
    for end, begin in begins.items():
        out = tmp_path / f"week.{end}"
        assert gua("report", "--db", db, "--now", f"@{T}", "--since", "1d", "-o", out).returncode == 0
        assert out.read_text().startswith(begin), end
    text = tmp_path / "week.html"
    for words, begin in ((("--format", "text"), "gua "), (("--json",), "{"), (("--digest",), "GPU use")):
        assert gua("report", "--db", db, "--now", f"@{T}", "--since", "1d", *words, "-o", text).returncode == 0
        assert text.read_text().startswith(begin), words


def test_a_file_that_is_replaced_is_open_to_nobody_else(db, tmp_path):
    out = tmp_path / "report.html"
    out.write_text("old")
    out.chmod(0o600)
    assert gua("report", "--db", db, "--now", f"@{T}", "--since", "1d", "-o", out).returncode == 0
    assert out.read_text() != "old" and stat.S_IMODE(out.stat().st_mode) == 0o600


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(db, tmp_path, there):
    """For root, /dev/stdout is one that must not be replaced."""
    link, out = tmp_path / "link", tmp_path / "report.txt"
    link.symlink_to(out)
    if there:
        out.write_text("old" * 10000)
    assert gua("report", "--db", db, "--now", f"@{T}", "--since", "1d", "-o", link).returncode == 0
    printed = gua("report", "--db", db, "--now", f"@{T}", "--since", "1d").stdout
    assert link.is_symlink() and out.read_text() == printed


@pytest.mark.parametrize("where", ["missing/report.html", "."])
def test_a_file_that_cannot_be_written(db, tmp_path, where):
    run = gua("report", "--db", db, "--now", f"@{T}", "--since", "1d", "-o", tmp_path / where)
    assert run.returncode == 1 and "cannot write" in run.stderr and run.stdout == ""
    assert not list(tmp_path.glob("*.??????"))


def test_a_full_disk_keeps_what_was_there(db):
    run = gua("report", "--db", db, "--now", f"@{T}", "--since", "1d", "--format", "html", "-o", "/dev/full")
    assert run.returncode == 1 and "No space left" in run.stderr
