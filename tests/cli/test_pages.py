"""The pages of gua serve as text: what they say, where they lead, what they survive. A browser looks at them in
test_browser.py."""
import csv
import html
import io
import json
import os
import pwd
import re
import time
from urllib.parse import quote

import pytest

from conftest import BUILD, gua, wait_for
from handmade import ACTIVE, IDLE_HELD, USE_UNKNOWN, Store
from lab_pages import DAY, HOSTILE_PATH, HOSTILE_USER, NOTEBOOK, NOW, NOW_TEXT, make_lab, make_policy
from serving import BROWSER, Server, needs_serve, serve  # noqa: F401 (a fixture)

pytestmark = needs_serve
CARD = "GPU-00000001-1111-2222-3333-444444444444"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return make_lab(tmp_path_factory.mktemp("lab") / "gua.db")


@pytest.fixture(scope="module")
def server(tmp_path_factory, lab):
    """One server for all tests: they only read."""
    started = Server(tmp_path_factory.mktemp("server"), "--db", lab, "--now", NOW_TEXT, "--utc")
    yield started
    assert started.stop() == 0, started.log.read_text()


def page(server, target):
    """The page, whose status must be 200."""
    status, headers, body = server.get(target, Accept=BROWSER)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8"), body
    return body


def words(body):
    """What a reader sees, in one line."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)))


def rows(body, table="holders"):
    """The texts of the cells of a table's body, row by row."""
    found = re.search(rf'<table class="{table}">.*?<tbody>(.*?)</tbody>', body, re.DOTALL).group(1)
    return [[words(cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
            for row in found.split("<tr")[1:]]


def test_now(server):
    body = page(server, "/")
    text = words(body)
    assert "3 GPUs: 1 active, 1 idle-held, 1 truly-idle" in text
    assert "Read 4 s ago (Mon 2026-11-02 08:00 UTC); the recorder reads every 30 s" in text
    assert "idle-held for > 7 d" in text
    assert "9.0 GiB of 80.0 GiB" in text and "310 W" in text and "71 °C" in text and "90 %" in text
    assert [row[0] for row in rows(body)] == ["bob", "ann"]
    assert rows(body)[0][-1] == "kill 200" and rows(body)[1][-1] == "-"  # ann computes
    assert "SIMULATED" not in text
    assert '<a href="/api/v1/who.csv">as CSV</a>' in body


@pytest.mark.parametrize("order, users, sort", [
    ("user.up", ["ann", "bob"], "ascending"), ("user.down", ["bob", "ann"], "descending"),
    ("memory", ["bob", "ann"], "descending"), ("memory.up", ["ann", "bob"], "ascending"),
    ("card", ["ann", "bob"], "ascending"), ("idle.up", ["ann", "bob"], "ascending"),
    ("nonsense", ["bob", "ann"], "descending"),
])
def test_holders_are_sorted_by_a_link(server, order, users, sort):
    body = page(server, "/?order=" + order)
    assert [row[0] for row in rows(body)] == users
    assert f'aria-sort="{sort}"' in body


def test_a_recorder_that_is_silent(serve, tmp_path):  # noqa: F811
    old = make_lab(tmp_path / "old.db", age=3600)
    text = words(page(serve("--db", old, "--now", NOW_TEXT, "--utc"), "/"))
    assert "The recorder of lab-a100 wrote last 1 h 0 min ago (Mon 2026-11-02 07:00 UTC)" in text
    assert "was idle-held for > 6 d 23 h" in text
    ended = make_lab(tmp_path / "ended.db", ended=1793606400)
    text = words(page(serve("--db", ended, "--now", NOW_TEXT, "--utc"), "/"))
    assert "The recorder of lab-a100 is not running. This is what it saw last" in text


def test_a_recorder_that_left_no_minutes(serve, tmp_path):  # noqa: F811
    """Its holders are not known, and a clock that is behind makes no age."""
    made = Store(tmp_path / "old.db")
    host = made.host()
    made.run(host, NOW - 3600, NOW + 60, ended=NOW + 60)
    card = made.card(host, 0, NOW - 3600, NOW + 60)
    made.usage(NOW - 300, card, IDLE_HELD, 300, width=300)
    text = words(page(serve("--db", made.save(), "--now", NOW_TEXT, "--utc"), "/"))
    assert "This is what it saw last (Mon 2026-11-02 08:01 UTC)" in text
    assert "was idle-held" in text and "holders are not known" in text and "nobody" not in text
    assert "Holders Not known: the recorder is not running." in text


def test_a_process_that_ended_and_an_instance_whose_use_is_not_known(serve, tmp_path):  # noqa: F811
    made = Store(tmp_path / "mig.db")
    host = made.host()
    made.run(host, NOW - 3600, NOW)
    card = made.card(host, 1, NOW - 3600, NOW, uuid="MIG-1", mig=0, parent="GPU-1")
    made.card(host, 2, NOW - 3600, NOW, uuid="GPU-2", status="lost")
    made.card(host, 3, NOW - 9 * DAY, NOW - 8 * DAY, uuid="GPU-3")
    ended = made.process(host, 5, "_dead", seen=(NOW - 3600, NOW))
    made.usage(NOW - 60, card, USE_UNKNOWN, 60)
    made.insert("holder", gpu=card, process=ended, kind=1, mem_bytes=None, since_ms=(NOW - 3600) * 1000)
    body = page(serve("--db", made.save(), "--now", NOW_TEXT, "--utc"), "/")
    assert "2 GPUs: 1 use unknown, 1 unobserved" in words(body)  # card 3 is not there any more
    assert "GPU 1:0" in body and "<strong>lost</strong>" in body
    row = rows(body)[0]
    assert row[0] == "(ended)" and row[2:4] == ["-", "use unknown"] and row[-1] == "-"


def shared(tmp_path, *holders, util, slots=(), started=NOW - 3600):
    """A store with one card per number in `util` (its use at the last tick, None: unknown), the states of `slots` in
    the last minute, and holders (card, pid, user, seconds since it was active or None, labels)."""
    made = Store(tmp_path / "shared.db")
    host = made.host()
    made.run(host, started, NOW)
    cards = [made.card(host, i, started, NOW) for i in range(len(util))]
    for card, pct in zip(cards, util):
        made.insert("reading", gpu=card, at_ms=NOW * 1000, util_pct=pct, mem_used_bytes=9 << 30)
        for state, seconds in slots:
            made.usage(NOW - 60, card, state, seconds)
    for card, pid, user, active, labels in holders:
        process = made.process(host, pid, user, seen=(started, NOW), started=started - 60, **labels)
        made.insert("holder", gpu=cards[card], process=process, kind=1, mem_bytes=9 << 30, since_ms=started * 1000,
                    last_active_ms=None if active is None else (NOW - active) * 1000)
    return made.save()


def test_before_the_first_readings_of_use_nobody_is_called_idle(serve, tmp_path):  # noqa: F811
    db = shared(tmp_path, (0, 7, "ann", None, {"job": "slurm:7"}), util=[None], started=NOW - 1)
    server = serve("--db", db, "--now", NOW_TEXT, "--utc")
    body = page(server, "/")
    assert "1 GPU: 1 unobserved" in words(body) and 'class="idle"' not in body and "scancel" not in body
    assert rows(body)[0][3] == "-" and rows(body)[0][-1] == "-"
    found, = csv.DictReader(io.StringIO(server.get("/api/v1/who.csv")[2]))
    assert (found["active"], found["idle_since"], found["idle_seconds"]) == ("", "", "")
    assert json.loads(server.get("/api/v1/now")[2])["holders"][0]["active"] is None


def test_who_computes_on_a_shared_card_is_named_first(serve, tmp_path):  # noqa: F811
    db = shared(tmp_path, (0, 7, "ann", 5, {}), (0, 3, "bob", None, {}), util=[80], slots=[(ACTIVE, 60)])
    body = page(serve("--db", db, "--now", NOW_TEXT, "--utc"), "/")
    assert "ann and 1 more" in words(body) and "bob and" not in words(body)
    assert {row[0]: row[-1] for row in rows(body)} == {"ann": "-", "bob": "kill 3"}


@pytest.mark.parametrize("util, active, state, idle", [(34, 12, "active", "active"), (3, 12, "active", "active"),
                                                       (0, 40, "idle-held", "44 s")])
def test_one_instant_has_one_state(serve, tmp_path, util, active, state, idle):  # noqa: F811
    """Use, the state of the card and its holder are of the last tick, whatever fills the slot around it."""
    for slots in ([(IDLE_HELD, 40), (ACTIVE, 20)], [(ACTIVE, 40), (IDLE_HELD, 20)]):
        (tmp_path / "shared.db").unlink(missing_ok=True)
        db = shared(tmp_path, (0, 7, "ann", active, {}), util=[util], slots=slots)
        body = page(serve("--db", db, "--now", NOW_TEXT, "--utc"), "/")
        assert f"1 GPU: 1 {state}" in words(body) and rows(body)[0][3] == idle


def test_no_command_ends_a_process_that_computes(serve, tmp_path):  # noqa: F811
    """An idle process of a job, a container or on a second card is not offered while the rest computes."""
    db = shared(tmp_path, (0, 7, "ann", 5, {"job": "slurm:7"}), (1, 8, "ann", None, {"job": "slurm:7"}),
                (0, 9, "bob", 5, {"container": "docker:abc"}), (1, 10, "bob", None, {"container": "docker:abc"}),
                (1, 11, "eve", None, {"job": "slurm:8"}), util=[80, 0])
    body = page(serve("--db", db, "--now", NOW_TEXT, "--utc"), "/")
    assert {row[6]: row[-1] for row in rows(body)} == {"7": "-", "8": "-", "9": "-", "10": "-", "11": "scancel 8"}


def test_invented_data_is_marked(serve, tmp_path):  # noqa: F811
    server = serve("--db", make_lab(tmp_path / "sim.db", source="sim"), "--now", NOW_TEXT)
    for target in ("/", "/audit", "/user/bob", "/card/" + CARD):
        assert "SIMULATED DATA" in page(server, target), target


def test_audit_has_the_report_of_a_week(server):
    body = page(server, "/audit")
    text = words(body)
    assert "Longest idle spells" in text and "Trend, by day" in text and "Time line" in text
    assert 'aria-current="true">week</a>' in body
    assert body.count("<h1>") == 1 and body.count('id="held"') == 1
    for link in (f"/card/{CARD}", "/user/ann", "/user/bob", "/notebook/bob/" + quote(NOTEBOOK, safe="")):
        assert f'href="{link}"' in body, link
    assert f'<th scope="row"><a href="/card/{CARD}">GPU 1</a></th>' in body  # in the time line


@pytest.mark.parametrize("query, says", [
    ("last=1h", "Window: hour"), ("since=2026-10-30&until=2026-10-31", "Fri 2026-10-30 00:00 UTC to Sat 2026-10-31"),
    ("since=2026-10-30&until=", "Fri 2026-10-30 00:00 UTC to Mon 2026-11-02"), ("by=notebook", "By notebook"),
    ("last=24h&compare=", "Compared with"),
])
def test_the_form_chooses_the_window(server, query, says):
    body = page(server, "/audit?" + query)
    if says == "Window: hour":
        assert 'aria-current="true">hour</a>' in body
    else:
        assert says in words(body)


def test_another_window_keeps_the_rest_of_the_question(server):
    body = page(server, "/audit?last=24h&user=bob&by=process")
    assert 'href="?last=7d&amp;user=bob&amp;by=process"' in body
    assert re.search(r'href="\?since=%40\d+&amp;until=%40\d+&amp;user=bob&amp;by=process">earlier', body)
    assert '<input type="hidden" name="user" value="bob">' in body
    assert 'type="hidden" name="by"' not in body and 'type="hidden" name="last"' not in body
    for link in re.findall(r'href="(\?[^"]*)', body):
        assert server.get("/audit" + html.unescape(link))[0] == 200, link


def test_the_form_keeps_two_kinds(server):
    for by in ("process", "user,process"):
        assert re.findall("<option selected>(.*?)</option>", page(server, f"/audit?last=24h&by={by}")) == [by]


def test_a_page_about_one_user_cannot_be_made_one_about_two(server):
    for target in ("/user/bob?user=ann", f"/card/{CARD}?card=0", "/notebook/bob/x?user=ann"):
        assert server.get(target)[0] == 400, target


def test_the_number_of_spells_on_a_page_can_be_chosen(server):
    assert 'id="longest"' in page(server, "/user/bob") and 'id="longest"' not in page(server, "/user/bob?longest=0")


def test_more_spells_are_a_link(serve, tmp_path):  # noqa: F811
    made = Store(tmp_path / "gua.db")
    host = made.host()
    made.run(host, NOW - DAY, NOW)
    card = made.card(host, 0, NOW - DAY, NOW)
    bob = made.process(host, 200, "bob", seen=(NOW - DAY, NOW))
    for begin in range(NOW - 9 * 3600, NOW, 3600):
        made.spell(card, bob, begin, begin + 1800)
        made.usage(begin - begin % 300, card, IDLE_HELD, 300, width=300)
        made.holding(begin - begin % 300, card, bob, IDLE_HELD, 300, share=300, width=300)
    started = serve("--db", made.save(), "--now", NOW_TEXT, "--utc")
    body = page(started, "/audit?longest=2&last=24h")
    assert '<a href="?last=24h&amp;longest=9#longest">7 more idle spells</a>' in body and "--longest" not in body
    assert "more idle spells" not in page(started, "/audit?last=24h&longest=9")


def test_a_day_leads_to_its_own_report(server):
    body = page(server, "/audit")
    assert 'href="?since=2026-10-30&amp;until=2026-10-31"' in body
    body = page(server, "/audit?user=bob&by=process")
    assert 'href="?since=2026-10-30&amp;until=2026-10-31&amp;user=bob&amp;by=process"' in body
    assert 'href="?since=2026-10-30&amp;until=2026-10-31"' not in body


@pytest.mark.parametrize("target, title, users", [
    ("/user/bob", "bob", ["bob"]), ("/notebook/bob/" + quote(NOTEBOOK, safe=""), "figures.ipynb", ["bob"]),
    ("/card/" + CARD, "GPU 1 of lab-a100 (A100-SXM4-80GB)", ["bob"]),
])
def test_a_page_of_its_own(server, target, title, users):
    body = page(server, target)
    assert f"<h1>{title}</h1>" in body
    assert '<nav class="crumbs"' in body
    assert [row[0] for row in rows(body)] == users
    assert "Longest idle spells" in body
    assert f'href="{target}?print=1"' in body


def test_links_to_other_formats_work(server):
    body = page(server, "/user/bob?last=24h")
    formats = re.findall(r'<a href="([^"]*)">as (?:JSON|CSV)', body)
    assert len(formats) == 2
    for link in formats:
        assert server.get(html.unescape(link))[0] == 200, link


@pytest.mark.parametrize("target", ["/", "/audit", "/user/bob", "/policy", "/me"])
def test_every_link_leads_somewhere(server, target):
    for link in set(re.findall(r'href="([^"#]*)', page(server, target))):
        to = html.unescape(link)
        to = target.split("?")[0] + to if to.startswith("?") else to
        status, _, body = server.get(to, Accept=BROWSER)
        assert status == 200, (to, body[:400])


def test_print_has_no_navigation(server):
    for target in ("/?print=1", "/audit?print=1"):
        body = page(server, target)
        assert "<nav" not in body and "<form" not in body and "<h1>" in body


def test_pages_that_are_not_there(server):
    for target, status, says in [("/nix", 404, "no such page"), ("/user/nobody", 404, "no user"),
                                 ("/card/GPU-9", 404, "no card"), ("/notebook/ann/x", 404, "no notebook"), ("/audit?since=x", 400, "since"),
                                 ("/audit?nix=1", 400, "no parameter"),
                                 ("/audit?since=2020-01-01&until=2020-01-02", 404, "no data between")]:
        answer = server.get(target, Accept=BROWSER)
        assert answer[0] == status and says in words(answer[2]), (target, answer[2])
        assert '<nav aria-label="Pages">' in answer[2]
        assert "--" not in words(answer[2]), target


def test_the_page_of_an_unknown_user_leads_to_the_audit(server):
    body = server.get("/user/nobody", Accept=BROWSER)[2]
    assert "the store has no user 'nobody'" in words(body) and '<a href="/audit">The audit of' in body
    assert "Nothing is held now" not in body and "All of the data" not in body
    assert "All of the data" in server.get("/user/bob?since=2020-01-01&until=2020-01-02", Accept=BROWSER)[2]


def test_a_store_that_cannot_be_read(server, lab):
    moved = lab.with_suffix(".away")
    lab.rename(moved)
    try:
        wait_for(lambda: server.get("/", Accept=BROWSER)[0] == 503)  # what was read a moment ago is shown again
        status, headers, body = server.get("/", Accept=BROWSER)
        assert (status, headers["Retry-After"]) == (503, "5") and "there is no store" in words(body)
    finally:
        moved.rename(lab)
    wait_for(lambda: server.get("/", Accept=BROWSER)[0] == 200)


def test_me(server):
    """The kernel says whose the connection is: a user who has held nothing has a page, too."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert f"<h1>For me: {me}</h1>" in page(server, "/me")


def test_a_name_service_that_hangs_holds_up_nothing(serve, lab):  # noqa: F811
    """The page For me has a number instead of the name then, and goes on doing so."""
    slow = BUILD / "tests" / "libslow_names.so"
    server = serve("--db", lab, "--now", NOW_TEXT, "--utc", env={
        "LD_PRELOAD": str(slow), "SLOW_NAMES": "30",
        "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:detect_leaks=0"})
    began = time.monotonic()
    for _ in range(20):
        assert f"<h1>For me: uid:{os.geteuid()}</h1>" in page(server, "/me")
    assert time.monotonic() - began < 15


def test_me_of_another_host(serve, lab, tmp_path):  # noqa: F811
    """With secrets the name comes from them, and /healthz needs none; who has none is nobody."""
    auth = tmp_path / "auth"
    auth.write_text("bob:0123456789abcdef0123456789\n")
    auth.chmod(0o600)
    server = serve("--db", lab, "--now", NOW_TEXT, "--utc", "--auth-file", auth)
    assert server.get("/me", Accept=BROWSER)[0] == 401
    body = server.get("/me", Accept=BROWSER, Authorization="Bearer 0123456789abcdef0123456789")[2]
    assert "<h1>For me: bob</h1>" in body


def test_me_behind_a_proxy(serve, lab):  # noqa: F811
    """Each gets their own page, also when both ask at the same time, and nobody else's header counts."""
    proxied = serve("--db", lab, "--now", NOW_TEXT, "--utc", "--trust-proxy", "127.0.0.1")
    for user in ("bob", "ann", "bob"):
        status, _, body = proxied.get("/me", Accept=BROWSER, **{"X-Forwarded-User": user})
        assert status == 200 and f"<h1>For me: {user}</h1>" in body
        assert [row[0] for row in rows(body)] == [user]
    direct = serve("--db", lab, "--now", NOW_TEXT)
    assert "<h1>For me: bob</h1>" not in direct.get("/me", Accept=BROWSER, **{"X-Forwarded-User": "bob"})[2]
    other = serve("--db", lab, "--now", NOW_TEXT, "--trust-proxy", "127.0.0.1", "--proxy-user", str(os.geteuid() + 1))
    assert "<h1>For me: bob</h1>" not in other.get("/me", Accept=BROWSER, **{"X-Forwarded-User": "bob"})[2]


def test_assets(server):
    for path, kind, part in [("gua.css", "text/css; charset=utf-8", "--idle-held"), ("gua.svg", "image/svg+xml", "<svg"),
                             ("gua.js", "text/javascript; charset=utf-8", "use strict")]:
        status, headers, body = server.get("/assets/" + path)
        assert (status, headers["Content-Type"]) == (200, kind) and part in body
        assert "http://" not in body.replace("http://www.w3.org/2000/svg", "") and "https://" not in body


def test_nothing_comes_from_elsewhere_or_runs_inline(server):
    for target in ("/", "/audit", "/user/bob", "/policy", "/me", "/nix"):
        body = server.get(target, Accept=BROWSER)[2]
        assert not re.search(r"<style|<script(?! src=\"/assets/gua.js\" defer>)|\sstyle=|\son\w+=|(src|href)=\"(https?:)?//",
                             body), target


def test_hostile_names_stay_text(serve, tmp_path):  # noqa: F811
    server = serve("--db", make_lab(tmp_path / "evil.db", hostile=True), "--now", NOW_TEXT, "--utc")
    targets = ["/", "/audit", "/audit?by=process", "/audit?by=notebook", "/user/" + quote(HOSTILE_USER, safe="")]
    for target in targets:
        body = page(server, target)
        assert "<script>window" not in body and "<svg onload" not in body and "<img" not in body, target
        assert "\u202e" not in body, target
    assert "/user/" + quote(HOSTILE_USER, safe="") in page(server, "/")
    assert quote(HOSTILE_PATH, safe="") in page(server, "/")
    assert "kill 666" in page(server, "/")
    assert '<td class="what" data-title="what"><div class="clip">' in page(server, "/")  # 4 KB must not fill the screen


def test_report_of_a_notebook(lab):
    options = ("report", "--json", "--db", lab, "--now", NOW_TEXT, "--last", "7d", "--user", "bob")
    whole, alone = (json.loads(gua(*options, *more).stdout) for more in ([], ["--notebook", NOTEBOOK]))
    assert alone["only"] == {"user": ["bob"], "notebook": [NOTEBOOK]}
    assert alone["identities"] == whole["identities"] and alone["longest"] == whole["longest"]
    unknown = gua(*options, "--notebook", "/a,b.ipynb")
    assert unknown.returncode == 1 and "the store has no notebook '/a,b.ipynb' of these users" in unknown.stderr


RULES = """[policy]
mode = observe
[rule notebooks]
kind = interactive
user = b* <i>
level = warn
warn = 2h
end = never
[exempt server]
user = erin
owner = admin
until = 2026-12-31
"""


def test_policy(serve, tmp_path):  # noqa: F811
    conf = tmp_path / "gua.conf"
    conf.write_text(RULES)
    lab = make_lab(tmp_path / "gua.db")
    server = serve("--db", lab, "--now", NOW_TEXT, "--utc", "--config", conf)
    text = words(page(server, "/policy"))
    assert "Mode observe : what rules would do is written down" in text
    assert "notebooks warns sessions that hold a GPU idle (interactive; user b*, <i>; at least 1.0 GiB)" in text
    assert "A warning after 2 h 0 min" in text and "never the end" in text
    assert "server exempts sessions (user erin). Owner: admin; until 2026-12-31." in text
    assert "gua enforce has not run beside this store" in text
    assert "gua keep 200 --for 4h --reason 'still needed'" in words(page(server, "/"))
    make_policy(tmp_path / "policy.db")
    body = page(server, "/policy?print=1")
    text = words(body)
    assert "It is not armed: no session is ended. Last applied Mon 2026-11-02 08:00 UTC: 2 sessions held a GPU" in text
    assert "notebook jupyter:1 notebooks" in text and "in 2 h 0 min" in text
    assert "would end" in text and "idle for 2 h <b>" in text and "<b>" not in body
    assert "of 9 sessions that were idle, 4 would have been warned and 2 ended, 1 of them" in text
    assert "given back 2.0 GPU-hours" in text
    assert 'href="/user/bob"' in body

def test_the_log_as_a_document(serve, tmp_path):  # noqa: F811
    """It is that of gua enforce log; stores beside which gua enforce has not run are passed over, and steps count once
    beside several stores."""
    lab = make_lab(tmp_path / "gua.db")
    (tmp_path / "other").mkdir()
    make_lab(tmp_path / "other" / "gua.db")
    make_lab(tmp_path / "beside.db")
    server = serve("--db", tmp_path / "other", "--db", lab, "--db", tmp_path / "beside.db", "--now", NOW_TEXT, "--utc")
    status, _, body = server.get("/api/v1/policy?last=7d")
    assert status == 404 and "gua enforce has not run here" in json.loads(body)["error"]
    make_policy(tmp_path / "policy.db")
    body = page(server, "/policy")
    assert '<a href="/api/v1/policy">as JSON</a>' in body and '<a href="/api/v1/policy.csv">as CSV</a>' in body
    command = gua("enforce", "log", "--json", "--db", lab, "--now", NOW_TEXT, "--utc")
    assert json.loads(server.get("/api/v1/policy")[2]) == json.loads(command.stdout)
    log = list(csv.DictReader(io.StringIO(server.get("/api/v1/policy.csv?last=2h")[2])))
    assert [row["step"] for row in log] == ["warn", "end"] and log[0]["evidence"] == "idle for 2 h <b>"
    assert json.loads(server.get("/api/v1/policy?last=30m")[2])["actions"] == []


def test_no_policy(server):
    assert "gua keep" not in page(server, "/")
    body = page(server, "/policy")
    assert "/api/v1/policy" not in body
    text = words(body)
    assert "No policy is configured" in text and "man gua-policy" in text
