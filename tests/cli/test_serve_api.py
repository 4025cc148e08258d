"""The JSON API of gua serve: the documents of the commands, from the same store."""
import csv
import io
import json

import pytest

from conftest import gua
from handmade import ACTIVE, IDLE_HELD, Store
from serving import needs_serve, serve  # noqa: F401 (a fixture)

pytestmark = needs_serve

NOW = 1793606400  # Mon 2026-11-02 08:00:00 UTC
NOW_TEXT = "2026-11-02 08:00"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Two cards, two users, an hour."""
    made = Store(tmp_path_factory.mktemp("lab") / "gua.db")
    host = made.host()
    made.run(host, NOW - 3600, NOW - 10)
    cards = [made.card(host, i, NOW - 3600, NOW - 10) for i in range(2)]
    ann = made.process(host, 100, "ann", started=NOW - 3700, seen=(NOW - 3600, NOW - 10), last_active=NOW - 20)
    bob = made.process(host, 200, "bob", "python idle.py", seen=(NOW - 3600, NOW - 10))
    for slot in range(NOW - 3600, NOW, 60):
        made.usage(slot, cards[0], ACTIVE, 60, util=90)
        made.usage(slot, cards[1], IDLE_HELD, 60)
        made.holding(slot, cards[0], ann, ACTIVE, 60, share=60, mem_mb=4000)
        made.holding(slot, cards[1], bob, IDLE_HELD, 60, share=60, mem_mb=9000)
    made.event(host, NOW - 1800, "xid", card=cards[0], value=79, text="GPU has fallen off the bus")
    for card, process, mem, active in ((cards[0], ann, 4000, NOW - 20), (cards[1], bob, 9000, None)):
        made.insert("holder", gpu=card, process=process, kind=1, mem_bytes=mem * 1000000, since_ms=(NOW - 3600) * 1000,
                    last_active_ms=active and active * 1000)
    return made.save()


@pytest.fixture
def server(serve, lab):  # noqa: F811
    return serve("--db", lab, "--now", NOW_TEXT)


@pytest.mark.parametrize("query, options", [
    ("", []), ("?since=30m&by=card", ["--since", "30m", "--by", "card"]),
    ("?last=1h&user=bob", ["--last", "1h", "--user", "bob"]),
    ("?user=ann&user=bob&sort=name&top=1", ["--user", "ann", "--user", "bob", "--sort", "name", "--top", "1"]),
    ("?compare&longest=3&utc=1", ["--compare", "--longest", "3", "--utc"]),
    ("?since=&until=&by=&user=", []),
], ids=str)
def test_report_is_the_document_of_the_command(server, lab, query, options):
    command = gua("report", "--json", "--db", lab, "--now", NOW_TEXT, *options)
    status, headers, body = server.get("/api/v1/report" + query)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(body) == json.loads(command.stdout)


@pytest.mark.parametrize("query, options", [
    ("", []), ("?by=card", ["--by", "card"]), ("?table=events", ["--table", "events"]),
    ("?table=compare&compare=", ["--table", "compare", "--compare"]), ("?table=timeline", ["--table", "timeline"]),
], ids=str)
def test_report_as_csv(server, lab, query, options):
    command = gua("report", "--format", "csv", "--db", lab, "--now", NOW_TEXT, *options)
    status, headers, body = server.get("/api/v1/report.csv" + query)
    assert (status, headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert body.replace("\r\n", "\n") == command.stdout


@pytest.mark.parametrize("target, status, says", [
    ("/api/v1/report?since=yesteryear", 400, "since"), ("/api/v1/report?by=shoe", 400, "shoe"),
    ("/api/v1/report?group=none", 404, "there is no group 'none'"), ("/api/v1/report?card=7", 404, "7"),
    ("/api/v1/report?since=1h&last=1h", 400, "since and last exclude each other"),
    ("/api/v1/events?until=x", 400, "until"), ("/api/v1/report?top=-1", 400, "top"), ("/api/v1/report?utc=maybe", 400, "utc takes one of 1|0, not 'maybe'"),
    ("/api/v1/report?sinse=1h", 400, "there is no parameter 'sinse'"),
    ("/api/v1/report?since=2020-01-01&until=2020-01-02", 404, "no data between"),
    ("/api/v1/report.csv?table=compare", 400, "table=compare needs compare"),
])
def test_wrong_questions(server, target, status, says):
    got, _, body = server.get(target)
    assert got == status and says in json.loads(body)["error"]
    assert "--" not in json.loads(body)["error"]


@pytest.mark.parametrize("query, options", [
    ("", []), ("?kind=gap", ["--kind", "gap"]), ("?since=1d&card=0&utc=1", ["--since", "1d", "--card", "0", "--utc"]),
], ids=str)
def test_events_are_the_document_of_the_command(server, lab, query, options):
    command = gua("events", "--db", lab, "--now", NOW_TEXT, "--json", *options)
    assert json.loads(server.get("/api/v1/events" + query)[2]) == json.loads(command.stdout)
    command = gua("events", "--db", lab, "--now", NOW_TEXT, "--csv", *options)
    assert server.get("/api/v1/events.csv" + query)[2].replace("\r\n", "\n") == command.stdout


def test_status_is_the_document_of_the_command(server, lab):
    ours, command = json.loads(server.get("/api/v1/status")[2]), json.loads(gua("status", "--json", "--db", lab).stdout)
    assert ours.pop("time") != command.pop("time")
    assert ours == command
    assert server.get("/api/v1/status?host=lab-a100")[0] == 200
    assert server.get("/api/v1/status?host=other")[0] == 404


def test_now_has_cards_and_holders(server):
    document = json.loads(server.get("/api/v1/now")[2])
    assert [(host["host"], host["fresh"]) for host in document["hosts"]] == [("lab-a100", True)]
    assert [(card["card"], card["state"], card["holders"]) for card in document["cards"]] == [
        (0, "active", 1), (1, "idle_held", 1)]
    assert [(holder["user"], holder["active"], holder["mem_bytes"]) for holder in document["holders"]] == [
        ("ann", True, 4_000_000_000), ("bob", False, 9_000_000_000)]


def test_who_has_the_members_of_the_command(server):
    """The command asks the driver; what only the driver knows is null."""
    command = gua("who", "--json", "--no-store", "--source", "sim", "--clock", "virtual")
    theirs = json.loads(command.stdout)
    ours = json.loads(server.get("/api/v1/who")[2])
    assert set(ours) == set(theirs) and ours["schema"] == theirs["schema"]
    assert set(ours["holders"][0]) == set(theirs["holders"][0]) | {"host"}
    ann, bob = ours["holders"]
    assert (ann["uid"], ann["sm_pct"], ann["started"]) == (1000, None, "2026-11-02T06:58:20Z")
    assert (ann["last_active"], bob["last_active"]) == ("2026-11-02T07:59:40Z", None)
    assert (bob["idle_since"], bob["was_idle_since"], bob["was_idle_is_lower_bound"]) == (
        "2026-11-02T07:00:00Z", None, False)


def test_who_of_a_silent_recorder_says_what_was(serve, lab):  # noqa: F811
    document = json.loads(serve("--db", lab, "--now", "2026-11-03 08:00").get("/api/v1/who")[2])
    assert "these were the holders" in document["note"]
    bob = document["holders"][1]
    assert (bob["idle_since"], bob["idle_seconds"], bob["was_idle_since"]) == (None, None, "2026-11-02T07:00:00Z")


def test_who_as_csv(server):
    status, headers, body = server.get("/api/v1/who.csv?user=bob")
    assert (status, headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    (row,) = csv.DictReader(io.StringIO(body))
    (holder,) = json.loads(server.get("/api/v1/who?user=bob")[2])["holders"]
    assert list(row) == list(holder)
    assert {key: value for key, value in row.items() if holder[key] is None and value} == {}
    assert (row["mem_bytes"], row["active"], row["idle_since"]) == ("9000000000", "0", holder["idle_since"])
    assert server.get("/api/v1/who.csv?idle=long")[0] == 400


def test_a_command_is_no_formula_in_csv(serve, tmp_path):  # noqa: F811
    made = Store(tmp_path / "gua.db")
    host = made.host()
    made.run(host, NOW - 3600, NOW - 10)
    card = made.card(host, 0, NOW - 3600, NOW - 10)
    process = made.process(host, 100, "@ann", "=1+1,2", seen=(NOW - 3600, NOW - 10))
    made.usage(NOW - 60, card, IDLE_HELD, 60)
    made.insert("holder", gpu=card, process=process, kind=1, mem_bytes=1 << 30, since_ms=(NOW - 3600) * 1000)
    (row,) = csv.DictReader(io.StringIO(serve("--db", made.save(), "--now", NOW_TEXT).get("/api/v1/who.csv")[2]))
    assert (row["user"], row["command"]) == ("'@ann", "'=1+1,2")


@pytest.mark.parametrize("query, users", [
    ("?user=bob", ["bob"]), ("?user=ann,bob", ["ann", "bob"]), ("?card=0", ["ann"]), ("?idle=10m", ["bob"]),
    ("?idle=2h", []), ("?user=nobody", [])])
def test_who_can_be_restricted(server, query, users):
    assert [holder["user"] for holder in json.loads(server.get("/api/v1/who" + query)[2])["holders"]] == users


def test_several_stores(serve, lab, tmp_path):  # noqa: F811
    made = Store(tmp_path / "other.db")
    host = made.host("lab-b", "m2")
    made.run(host, NOW - 3600, NOW - 10)
    made.card(host, 0, NOW - 3600, NOW - 10, uuid="GPU-other")
    server = serve("--db", lab, "--db", made.save(), "--now", NOW_TEXT)
    document = json.loads(server.get("/api/v1/now")[2])
    assert [host["host"] for host in document["hosts"]] == ["lab-a100", "lab-b"]
    assert len(document["cards"]) == 3
    assert json.loads(server.get("/api/v1/status?host=lab-b")[2])["host"] == "lab-b"
