"""gua export --openmetrics: the past as counters that go on where a scrape begins, and a real Prometheus that has read
it; and every query of the dashboard, run there."""
import json
import re
import tempfile
from pathlib import Path

import pytest

from conftest import ROOT, gua, wait_for
from engine import Prometheus, fast_folder, fill
from exposition import read_openmetrics, read_text
from handmade import ACTIVE, HOUR, IDLE_HELD, TRULY_IDLE, UNOBSERVED, Store
from recorded import ONE_CARD
from serving import needs_serve, serve  # noqa: F401 (a fixture)

BEGIN = 1793577600  # Mon 2026-11-02 00:00:00 UTC
STATE, SHARE = "gua_gpu_state_seconds_total", "gua_identity_gpu_seconds_total"
DASHBOARD = ROOT / "dist" / "prometheus" / "grafana.json"


def hour_of(store, card, process, slot, width):
    """Fills one slot: 40 % active, 30 % idle-held by alice, 20 % idle, 10 % unobserved."""
    for state, part in ((ACTIVE, 0.4), (IDLE_HELD, 0.3), (TRULY_IDLE, 0.2), (UNOBSERVED, 0.1)):
        store.usage(slot, card, state, part * width, width=width, joules=100 * part * width)
    store.holding(slot, card, process, ACTIVE, 0.3 * width, share=0.3 * width, width=width)
    store.holding(slot, card, process, IDLE_HELD, 0.3 * width, share=0.3 * width, width=width)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Four hours in wide slots, a gap of one, an hour in fives, ten minutes; and 1000 s before all that."""
    made = Store(tmp_path_factory.mktemp("past") / "past.db")
    host = made.host()
    end = BEGIN + 6 * HOUR + 600
    made.run(host, BEGIN, end - 20)
    card = made.card(host, 0, BEGIN, end - 20, uuid="GPU-a")
    process = made.process(host, 100, "alice", seen=(BEGIN, end))
    for hour in range(4):
        hour_of(made, card, process, BEGIN + hour * HOUR, HOUR)
    for five in range(12):
        hour_of(made, card, process, BEGIN + 5 * HOUR + 300 * five, 300)
    for minute in range(10):
        hour_of(made, card, process, BEGIN + 6 * HOUR + 60 * minute, 60)
    total = 5 * HOUR + 600
    for state, part in ((ACTIVE, 0.4), (IDLE_HELD, 0.3), (TRULY_IDLE, 0.2), (UNOBSERVED, 0.1)):
        made.insert("total_gpu", gpu=card, state=state, ms=round(1000 * (part * total + 1000)),
                    energy_mj=round(1000 * 100 * part * total))
    made.insert("identity", host=host, user="alice", place=1, first_ms=0)
    for state in (0, 1):
        made.insert("total_user", host=host, user="alice", state=state, presence_ms=0,
                    share_ms=round(1000 * (0.3 * total + 500)), moved_ms=end * 1000)
    return made.save()


def export(store, *args):
    run = gua("export", "--openmetrics", "--db", store, *args)
    assert run.returncode == 0, run.stderr
    return run.stdout


def at(points, moment):
    return dict(points)[moment]


def test_the_past_ends_where_a_scrape_begins(store):
    past = read_openmetrics(export(store))
    now = read_text(gua("metrics", "--db", store).stdout)
    counters = [key for key in past if key[0].endswith("_total")]
    assert len(counters) == 4 + 1 + 5 + 6 + 3
    for key in counters:
        assert past[key][-1] == (BEGIN + 6 * HOUR + 580, now[key]), key


def test_slots_of_all_widths(store):
    past = read_openmetrics(export(store))
    active = past.value(STATE, state="active")
    assert active[0] == (BEGIN, 1000)
    for hour in range(1, 5):  # evenly within the hour, exact at its end
        assert at(active, BEGIN + hour * HOUR) == 1000 + 1440 * hour
        assert at(active, BEGIN + hour * HOUR - 1800) == 1000 + 1440 * hour - 720
    # Nothing was recorded for an hour: no samples, and no growth.
    inside = [moment for moment, _ in active if BEGIN + 4 * HOUR < moment < BEGIN + 5 * HOUR]
    assert inside == [] and at(active, BEGIN + 5 * HOUR) == 1000 + 4 * 1440
    assert at(active, BEGIN + 5 * HOUR + 300) == 1000 + 4 * 1440 + 120
    assert at(active, BEGIN + 6 * HOUR + 60) == 1000 + 5 * 1440 + 24
    assert {b - a for (a, _), (b, _) in zip(active, active[1:])} == {60, HOUR, 40}
    assert past.value("gua_gpus")[0] == (BEGIN, 1)
    assert past.value("gua_sample_timestamp_seconds")[5] == (BEGIN + 300, BEGIN + 300)


def test_shares_add_up_to_the_cards_at_each_moment(store):
    past = read_openmetrics(export(store))
    for state in ("active", "idle_held"):
        shares = past.of(SHARE, state=state)
        assert set(shares) == {"_other", "_unknown", "alice"}
        for points in zip(past.value(STATE, state=state), *shares.values()):
            card, *parts = (value for _, value in points)
            assert sum(parts) == pytest.approx(card, abs=3)


def test_a_window_has_the_same_values_as_the_whole(store):
    whole = read_openmetrics(export(store)).value(STATE, state="idle_held")
    part = read_openmetrics(export(store, "--utc", "--since", "2026-11-02 02:00", "--until", "2026-11-02 05:30")).value(
        STATE, state="idle_held")
    assert (part[0][0], part[-1][0]) == (BEGIN + 2 * HOUR, BEGIN + 5 * HOUR + 1800)
    assert set(part) <= set(whole)


def test_time_under_a_number_stays_there(tmp_path):
    """Bob's first 400 s were counted as those of uid:1001, before his name was known: no counter has them twice, or
    falls."""
    made = Store(tmp_path / "late.db")
    host = made.host()
    made.run(host, BEGIN, BEGIN + 600)
    card = made.card(host, 0, BEGIN, BEGIN + 600, uuid="GPU-a")
    process = made.process(host, 100, "bob", seen=(BEGIN, BEGIN + 600))
    for minute in range(10):
        made.usage(BEGIN + 60 * minute, card, ACTIVE, 60)
        made.holding(BEGIN + 60 * minute, card, process, ACTIVE, 60, share=60)
    made.insert("total_gpu", gpu=card, state=ACTIVE, ms=600000)
    for place, (user, seconds) in enumerate((("uid:1001", 400), ("bob", 200))):
        made.insert("identity", host=host, user=user, place=place + 1, first_ms=0)
        made.insert("total_user", host=host, user=user, state=0, presence_ms=0, share_ms=1000 * seconds,
                    moved_ms=1000 * (BEGIN + 600))
    late = made.save()
    past, now = read_openmetrics(export(late)).of(SHARE, state="active"), read_text(gua("metrics", "--db", late).stdout)
    assert [past[user][-1][1] for user in ("uid:1001", "bob", "_unknown")] == [400, 200, 0]
    assert now.value(SHARE, identity="bob", state="active") == 200
    for points in past.values():
        assert [value for _, value in points] == sorted(value for _, value in points)


def test_step_and_labels(store):
    past = read_openmetrics(export(store, "--step", "10m", "--label", "instance=gpu01:9848", "--label", 'note=a"b\\c'))
    (_, pairs), points = next((key, points) for key, points in past.items() if key[0] == STATE)
    assert dict(pairs)["instance"] == "gpu01:9848" and dict(pairs)["note"] == 'a"b\\c'
    assert points[1][0] - points[0][0] == 600 and points[-1][0] == BEGIN + 6 * HOUR + 580
    assert "alice" not in export(store, "--identities", "off")


@pytest.mark.parametrize("args, words", [
    (("--openmetrics", "--json"), "exclude each other"),
    (("--openmetrics", "--what", "event"), "--what does not go"),
    (("--json", "--step", "1m"), "for --openmetrics only"),
    (("--openmetrics", "--label", "1x=y"), "is not NAME=VALUE"),
    (("--openmetrics", "--label", "novalue"), "is not NAME=VALUE"),
    (("--openmetrics", "--label", "uuid=y"), "is taken"),
    (("--openmetrics", "--step", "100ms"), "--step"),
])
def test_wrong_usage(store, args, words):
    run = gua("export", "--db", store, *args)
    assert run.returncode == 2 and words in run.stderr and run.stdout == ""


def test_several_stores_are_refused(store, tmp_path):
    run = gua("export", "--openmetrics", "--db", store, "--db", store)
    assert run.returncode == 2 and "one store" in run.stderr


def test_a_store_without_slots_has_an_end(tmp_path):
    made = Store(tmp_path / "empty.db")
    made.run(made.host(), BEGIN, BEGIN)
    assert export(made.save()) == "# EOF\n"


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def test_the_dashboard_has_what_grafana_requires():
    """The required fields of Grafana's dashboard schema (version 38), and that nothing overlaps or refers to nothing."""
    board = json.loads(DASHBOARD.read_text())
    for field, kind in (("uid", str), ("title", str), ("schemaVersion", int), ("version", int), ("editable", bool),
                        ("graphTooltip", int), ("panels", list), ("templating", dict), ("annotations", dict), ("time", dict),
                        ("tags", list), ("timezone", str), ("refresh", str), ("links", list)):
        assert isinstance(board[field], kind), field
    assert "id" not in board and re.fullmatch(r"[\w-]{1,40}", board["uid"])
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert names[0] == "datasource" and board["templating"]["list"][0]["type"] == "datasource"
    source, taken = {"type": "prometheus", "uid": "${datasource}"}, set()
    for variable in board["templating"]["list"][1:]:
        assert variable["type"] == "query" and variable["datasource"] == source and variable["query"]["query"]
    for panel in board["panels"]:
        assert panel["type"] in ("stat", "timeseries", "bargauge", "table") and panel["title"] and panel["description"]
        assert panel["datasource"] == source and panel["fieldConfig"]["defaults"]["unit"]
        assert isinstance(panel["fieldConfig"]["overrides"], list) and isinstance(panel["options"], dict)
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        letters = [target["refId"] for target in panel["targets"]]
        assert letters and len(set(letters)) == len(letters)
        for target in panel["targets"]:
            assert target["datasource"] == source and target["expr"] and isinstance(target["legendFormat"], str)
            for word in re.findall(r"\$(\w+)", target["expr"]):
                assert word in names or word in ("__range", "__range_s", "__rate_interval"), word
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def plain(expression):
    """A query as Grafana sends it: its variables replaced."""
    for name, value in (("$__range_s", "14400"), ("$__range", "4h"), ("$__rate_interval", "5m"), ("$cluster", ".*"),
                        ("$instance", ".*"), ("$namespace", ".*")):
        expression = expression.replace(name, value)
    return expression


@pytest.mark.waits
@needs_serve
def test_a_prometheus_with_the_past_and_a_host_that_it_scrapes(store, tmp_path, serve):
    """Back-filled as an administrator would do it, it has the store's own sums. It also scrapes a gua serve, for the
    queries of the dashboard that are about the present; each query has an answer in the one or the other."""
    scenario, live = tmp_path / "held.scenario", tmp_path / "live.db"
    scenario.write_text(ONE_CARD.replace("start 2026-11-02T08:00:00Z", "") + """
process a pid 101 user alice uid 1001 command "a"
process b pid 102 user bob uid 1002 command "b"
at 0s hold a card 0 memory 8GiB
at 0s hold b card 0 memory 8GiB
""")
    run = gua("start", "--db", live, "--interval", "1s", "--drain", "500ms", "--source", "sim", "--scenario", scenario)
    assert run.returncode == 0, run.stderr
    try:
        with tempfile.TemporaryDirectory(dir=fast_folder()) as data:
            fill(export(store, "--label", "instance=past:9848", "--label", "job=gua", "--label", "cluster=lab"),
                 Path(data), tmp_path)
            server = serve("--db", live)
            prometheus = Prometheus(tmp_path, Path(data), [f"127.0.0.1:{server.port}"])
            try:
                check_past(prometheus)
                check_dashboard(prometheus)
            finally:
                prometheus.stop()
    finally:
        gua("stop", "--db", live)


def check_past(prometheus):
    """The exact formula of gua-metrics(1) for windows of an hour, which add up to that of four."""
    def exact(state, end, hours):
        window = f'{STATE}{{instance="past:9848", state="{state}"}}'
        return prometheus.value(f"last_over_time({window}[{hours}h]) - (last_over_time({window}[10m] offset {hours}h) or "
                                f"min_over_time({window}[{hours}h]))", end)
    hours = [exact("idle_held", BEGIN + hour * HOUR, 1) for hour in range(1, 5)]
    assert hours == [1080] * 4 and exact("idle_held", BEGIN + 4 * HOUR, 4) == 4320
    identities = prometheus.query(f'sum by (identity) (last_over_time({SHARE}{{instance="past:9848"}}[1h]))',
                                  BEGIN + 6 * HOUR + 580)
    assert sum(identities.values()) == pytest.approx(
        prometheus.value(f'sum(last_over_time({STATE}{{instance="past:9848", state=~"active|idle_held"}}[1h]))',
                         BEGIN + 6 * HOUR + 580), abs=3)
    assert identities[("identity", "alice"),] == pytest.approx(0.6 * (5 * HOUR + 600) + 1000, abs=12)


def check_dashboard(prometheus):
    wait_for(lambda: prometheus.query('count_over_time(gua_gpu_utilization_ratio[5m]) > 1'),
             lambda: "the live host was not scraped")

    def empty():
        asked = [(panel["title"], plain(target["expr"])) for panel in panels() for target in panel["targets"]]
        return {title for title, expression in asked
                if not prometheus.query(expression, BEGIN + 4 * HOUR) and not prometheus.query(expression)}
    # Nobody squats and nothing was enforced in these stores; the queries are valid all the same.
    wait_for(lambda: empty() <= {"Squatting", "Enforcement"}, empty)
