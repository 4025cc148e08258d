"""The manual agrees with the program: options, pages, examples.

An example is run when its block is marked: `; run` on the line before a literal block of a manual page,
`<!-- run -->` before a fenced block of the README. The lines of a block that begin with `$ ` are run one
after the other, all blocks of a file in one empty directory. Other lines are output: they must appear
in this order (a line of three dots stands for lines that are left out)."""
import html.parser
import re
import shlex
import subprocess

import pytest

from conftest import BUILD, GUA, ROOT, clean_environment, gua

MAN = ROOT / "man"
PAGES = sorted(MAN.glob("*.scd"))
DOCUMENTS = [ROOT / "README.md", *PAGES]


def commands():
    """Names in `gua help`, without what main.c answers by itself."""
    listed = re.findall(r"^  ([a-z-]+) ", gua("help").stdout, re.MULTILINE)
    return [name for name in listed if name != "version"]


def shown_options(name):
    return set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", gua(name, "--help").stdout, re.MULTILINE))


def documented_options(text):
    """Options that have a paragraph of their own: *-x*, *--name* at the start of a line."""
    found = set()
    for line in re.findall(r"^\*-.*$", text, re.MULTILINE):
        found.update(re.findall(r"\*--([a-z0-9-]+)\*", line))
    return found


def test_a_state_has_one_name_for_people():
    """The other two names of truly-idle stand in one table; no view has a fourth."""
    assert "|  truly-idle\n:  truly_idle\n:  idle\n" in (MAN / "gua.1.scd").read_text()
    for view in (["stat", "--no-header"], ["top", "--once"], ["who"]):
        text = gua(*view, "--source", "sim", "--no-store").stdout
        assert not re.search(r"\bfree\b|\bheld\b(?<!idle-held)", text), text


@pytest.mark.same_path
def test_pages_fit_on_a_terminal():
    """No table is wider than its words allow: man would say so above the page."""
    pages = [path for path in sorted((BUILD / "man").glob("*.[1-9]")) if "\n.TS" in path.read_text()]
    assert len(pages) > 5
    for path in pages:
        run = subprocess.run(["groff", "-K", "utf8", "-t", "-man", "-T", "utf8", "-rLL=78n", path], capture_output=True, text=True)
        assert (run.returncode, run.stderr) == (0, ""), path.name


def test_every_command_has_a_page():
    assert commands()
    for name in commands():
        assert (MAN / f"gua-{name}.1.scd").exists()


@pytest.mark.same_path
@pytest.mark.parametrize("name", commands())
def test_options_and_page_agree(name):
    documented = documented_options((MAN / f"gua-{name}.1.scd").read_text()) | {"help"}
    assert shown_options(name) - documented == set()
    for hidden in documented - shown_options(name):
        assert "unknown option" not in gua(name, f"--{hidden}", "x", "--help").stderr


def without_date(page):
    """The lines of a page but those of scdoc's version and of the day, which may have changed since the build."""
    return [line for line in page.splitlines()[1:] if not line.startswith(".TH ")]


@pytest.mark.any_build
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_page_builds_and_is_installed(page, installed):
    made = subprocess.run(["scdoc"], stdin=page.open(), capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    name, section = page.name[:-4].rsplit(".", 1)
    assert page.read_text().splitlines()[0].split(" ")[0] == f"{name}({section})"
    target = installed / "share" / "man" / f"man{section}" / f"{name}.{section}"
    assert without_date(target.read_text()) == without_date(made.stdout)


@pytest.mark.any_build
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_page_has_the_usual_sections(page):
    headings = re.findall(r"^# (.*)$", page.read_text(), re.MULTILINE)
    assert headings[0] == "NAME"
    if page.name.startswith("gua") and page.name.endswith(".1.scd"):
        assert {"SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES"} <= set(headings)


@pytest.mark.any_build
def test_underscores_that_belong_to_a_name_are_escaped():
    """scdoc prints __other_ as other_; it is written _\\_other_."""
    for page in PAGES:
        assert not re.findall(r"(?<![\w\\])__\w+", page.read_text()), page.name


@pytest.mark.any_build
def test_references_lead_somewhere():
    names = {path.name[:-4].rsplit(".", 1)[0] for path in PAGES}
    for page in PAGES:
        for name, _ in re.findall(r"\*((?:lib)?gua[a-z-]*)\*\((\d)\)", page.read_text()):
            assert name in names, f"{page.name} refers to {name}"


@pytest.mark.any_build
def test_named_sections_exist():
    """As in: see gua(1), PRIVILEGES, also over the end of a line."""
    for document in DOCUMENTS:
        named = re.findall(r"((?:lib)?gua[a-z.-]*)\*?\((\d)\),\s([A-Z]{3,}(?:[ '\n][A-Z']+)*)", document.read_text())
        assert named or document.suffix == ".scd"
        for name, section, heading in named:
            page = (MAN / f"{name}.{section}.scd").read_text()
            assert f"\n# {' '.join(heading.split())}\n" in page, f"{document.name}: {name}({section}), {heading}"


def test_every_command_is_in_the_map_of_commands():
    page = (MAN / "gua.1.scd").read_text()
    for name in commands():
        assert f"*{name}*" in page and f"*gua-{name}*(1)" in page


def marked_blocks(text):
    """The literal blocks that are to be run, without their fences."""
    return re.findall(r"^(?:; run|<!-- run -->)\n```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def check_output(expected, output):
    """Each expected line must come, in order; without dots between them, one right after the other."""
    lines = iter(line.rstrip() for line in output.splitlines())
    may_skip = True
    for wanted in (line.rstrip() for line in expected):
        if wanted == "...":
            may_skip = True
            continue
        got = next(lines, None)
        while may_skip and got is not None and got != wanted:
            got = next(lines, None)
        assert got == wanted
        may_skip = False


@pytest.mark.any_build
@pytest.mark.parametrize("document", [path for path in DOCUMENTS if marked_blocks(path.read_text())],
                         ids=lambda path: path.name)
def test_marked_examples_run(document, tmp_path):
    environment = clean_environment(HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path / "state"))
    environment["PATH"] = f"{GUA.parent}:{environment['PATH']}"
    for block in marked_blocks(document.read_text()):
        steps = re.split(r"^\$ ", block, flags=re.MULTILINE)
        assert steps[0].strip() in ("", "..."), "output before a command"
        for step in steps[1:]:
            command, *expected = step.rstrip("\n").split("\n")
            command = command.replace("/usr/share/doc/gua/views.sql", f"{ROOT}/dist/views.sql")
            run = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, text=True,
                                 stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
            assert run.returncode == 0, f"{command}: {run.stderr}"
            check_output(expected, run.stdout)


def readme_commands():
    """The lines of the README's shell blocks that run gua: without sudo."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    found = [re.match(r'(?:sudo )?(?:eval "\$\()?gua (.*?)(?:\)"|$)', line) for line in lines]
    return [match.group(1) for match in found if match]


@pytest.mark.same_path
@pytest.mark.parametrize("line", readme_commands())
def test_the_options_in_the_readme_exist(line):
    """Each is asked for help in the end: before that, wrong options are found."""
    words = shlex.split(line.split(" -- ")[0], comments=True)
    run = gua(*words, "--help")
    assert (run.returncode, run.stderr) == (0, "") and run.stdout.startswith(f"usage: gua {words[0]} ")


@pytest.mark.any_build
def test_what_the_readme_links_to_is_there():
    text = (ROOT / "README.md").read_text()
    headings = {re.sub(r"[^a-z -]", "", line.lower()).replace(" ", "-")
                for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]*)\)", text):
        assert target[1:] in headings if target.startswith("#") else (ROOT / target).exists(), target
    for page, section in re.findall(r"\b((?:lib)?gua[a-z-]*)\((\d)\)", text):
        assert (MAN / f"{page}.{section}.scd").exists(), page


def test_the_lines_of_gua_track_in_the_readme():
    """The numbers are an example; the lines are those of the program."""
    def labels(text):
        return re.findall(r"^([A-Z][A-Za-z ]*?)  +\S", text, re.MULTILINE)
    block = re.search(r"^```\n(Time .*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL).group(1)
    assert labels(block) == labels(gua("track", "--source", "sim", "--", "true").stderr)


@pytest.mark.any_build
def test_the_installed_readme_has_its_pictures(installed):
    where = installed / "share" / "doc" / "gua"
    pictures = re.findall(r"!\[[^]]*\]\(([^)]*)\)", (where / "README.md").read_text())
    assert len(pictures) >= 5
    for picture in pictures:
        assert (where / picture).exists(), picture


@pytest.mark.any_build
def test_definitions_are_in_the_manual():
    page = (MAN / "gua.1.scd").read_text()
    for word in ("sample drain tick holder active idle-held truly-idle unobserved GPU-seconds identity presence "
                 "share squatter context").split() + ["orphan memory", "The 20 % rule"]:
        assert f"\n*{word}" in page, word


class Links(html.parser.HTMLParser):
    """The references of a page, and that every element is closed."""
    VOID = {"meta", "link", "br", "col", "img", "hr"}

    def __init__(self, text):
        super().__init__()
        self.targets, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.targets += [value for name, value in attrs if name == "href"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in self.VOID or self.open.pop() == tag, tag


@pytest.mark.any_build
def test_the_site_leads_everywhere():
    """README, texts and manual as HTML: every link and picture is there, every anchor, and nothing is loaded from elsewhere."""
    done = subprocess.run([ROOT / "tools" / "html", BUILD], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{BUILD}/html/index.html\n"), done.stderr
    pages = {f"{path.stem}.html" for path in (ROOT / "man").glob("*.scd")}
    texts = {path.name: path.read_text() for path in (BUILD / "html").glob("*.html")}
    shown = {name: Links(text) for name, text in texts.items()}
    assert pages <= set(shown["manual.html"].targets) and {"manual.html", "compare.html"} <= set(shown["index.html"].targets)
    for name, page in shown.items():
        assert not page.open, name
        for target in page.targets:
            path, _, anchor = target.partition("#")
            assert re.match("https?:", target) or not path or (BUILD / "html" / path).exists(), (name, target)
            if anchor and not name[-6].isdigit():  # those of the manual are mandoc's
                assert f'id="{anchor}"' in texts[path or name], (name, target)
        assert all((BUILD / "html" / picture).exists() for picture in re.findall(r'src="([^"]*)"', texts[name])), name
    assert texts["index.html"].count("<img ") >= 5 and "gua.1.html" in shown["gua-stop.1.html"].targets
