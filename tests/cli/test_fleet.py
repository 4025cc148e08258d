"""gua report --from: a fleet whose truth is known, on real Prometheus and real VictoriaMetrics."""
import collections
import contextlib
import csv
import io
import json

import jsonschema
import pytest

import engines
from conftest import BUILD, ROOT, gua
from fleet_truth import (Cycle, Host, STATES, import_text, label_text, openmetrics, samples, seen_truth, truth, users_truth)
from handmade import Store

pytestmark = [
    pytest.mark.other_programs,
    pytest.mark.skipif(not (BUILD / "gua-fleet").exists(), reason="built without libcurl"),
    pytest.mark.skipif(bool(engines.missing()), reason=f"not installed: {' '.join(engines.missing())}"),
]

SCHEMA = json.loads((ROOT / "man/report.schema.json").read_text())
T = 1730678400  # Mon 2024-11-04 00:00 UTC: an engine refuses samples of the future
S, E, END = T + 5400, T + 5400 + 3 * 3600, T + 6 * 3600
LONG_AGO = T - 3 * 86400
SCRAPE = 60


def cards(seed, n=3):
    return [Cycle(("active", 37 + 11 * seed + 13 * c), ("idle_held", 29 + 3 * seed + 5 * c), ("truly_idle", 23 + seed),
                  shift=17.0 * seed) for c in range(n)]


ALWAYS = [(LONG_AGO, END)]
FLEET = [
    Host("plain0", cards(0), ALWAYS, [(T, END)], phase=1.5,
         users=[("alice", 0, LONG_AGO, END), ("bob", 1, S + 700, S + 1600)]),
    Host("plain1", cards(1), ALWAYS, [(T, END)], phase=17.0, model="NVIDIA H100",
         users=[("alice", 2, LONG_AGO, S + 5000), ("quick", 1, S + 2000, S + 2007), ("eve", 1, S + 4000, S + 4040)]),
    # The recorder was off twice.
    Host("restart", cards(2), [(LONG_AGO, S + 3000), (S + 3060, S + 6000), (S + 6300, END)], [(T, END)], phase=33.0,
         users=[("bob", 0, T, END)]),
    # The engine could not reach it; carol came and went meanwhile.
    Host("away", cards(3), ALWAYS, [(T, S + 3300), (S + 4500, END)], phase=5.0, users=[("carol", 0, S + 3400, S + 4400)]),
    # The same around both edges of the window.
    Host("edge", cards(4), ALWAYS, [(T, S - 100), (S + 1100, E - 300), (E + 500, END)], phase=9.0),
    Host("new", cards(5), [(S + 1800, END)], [(S + 1800, END)], phase=2.0, users=[("dave", 0, S + 1800, END)]),
    # It has a history, and is scraped from now on.
    Host("joined", cards(6), ALWAYS, [(S + 2500, END)], phase=3.0),
    Host("gone", cards(7), [(LONG_AGO, S + 4000)], [(T, S + 4000)], phase=4.0),
    Host("brief", cards(8), [(S + 4000, S + 5800)], [(S + 4000, S + 5800)], phase=6.0),
    # It lost its store.
    Host("lost", cards(9), ALWAYS, [(T, END)], lost=S + 5025.0, phase=15.0, users=[("frank", 2, LONG_AGO, END), ("grace", 1, S + 600, S + 3100)]),
]


@pytest.fixture(scope="module")
def urls(tmp_path_factory):
    """Both engines with the history of the fleet."""
    families = samples(FLEET, SCRAPE)
    with contextlib.ExitStack() as stack:
        yield {"prometheus": stack.enter_context(engines.prometheus(tmp_path_factory.mktemp("p"), openmetrics(families))),
               "victoria": stack.enter_context(engines.victoria(tmp_path_factory.mktemp("v"), import_text(families)))}


def report(url, *args, since=S, until=E, now=E + 1000):
    return gua("report", "--from", url, "--since", f"@{since}", "--until", f"@{until}", "--now", f"@{now}", "--utc", *args)


def document(*args, **window):
    run = report(*args, "--json", **window)
    assert run.returncode == 0 and run.stderr == "", run.stderr
    found = json.loads(run.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


def check(found, since, until, hosts):
    """Totals are exact (whole seconds are exposed), and each state is within 0.3 %."""
    expected = seen_truth(hosts, SCRAPE, since, until)
    total = sum(expected.values())
    n_series = 3 * sum(len(host.cards) for host in hosts)
    assert abs(sum(found[state] for state in STATES) - total) < 0.5 * n_series
    for state in STATES:
        assert abs(found[state] - expected[state]) < 0.003 * total, state


@pytest.mark.same_path
@pytest.mark.parametrize("engine", ["prometheus", "victoria"])
def test_a_fleet_in_trouble_adds_up(urls, engine):
    found = document(urls[engine])
    check(found["gpu_seconds"], S, E, FLEET)
    for state in STATES:
        assert sum(hour[state] for hour in found["heatmap"]) == pytest.approx(found["gpu_seconds"][state], abs=0.01)
        assert sum(card["gpu_seconds"][state] for card in found["gpus"]) == \
            pytest.approx(found["gpu_seconds"][state], abs=0.05)
    assert found["fleet"]["counter_resets"] == 1 and found["fleet"]["hosts_seen"] == len(FLEET)
    assert found["fleet"]["hosts_first_seen"] == 3 and found["fleet"]["hosts_not_seen_at_end"] == 2
    idle = [sum(card["gpu_seconds"]["idle_held"] for card in found["gpus"] if card["host"] == host["host"])
            for host in found["hosts"]]
    assert idle == sorted(idle, reverse=True)  # the worst host first
    assert found["gpus"][0]["mean_util_pct"] is None and found["headline"]["idle_held_uncertainty"] is None


@pytest.mark.parametrize("engine", ["prometheus", "victoria"])
def test_no_newborn_user_is_lost(urls, engine):
    found = {user["identity"]: user for user in document(urls[engine])["identities"]}
    expected = users_truth(FLEET, S, E)
    assert set(found) == set(expected)
    for name, states in expected.items():
        whole = sum(states.values())
        slack = 45 * sum(name in [user[0] for user in host.users] for host in FLEET) * (whole > 1000) + 1.5
        # frank's store was lost: what no scrape saw is gone.
        slack += SCRAPE if name in ("frank", "grace") else 0
        assert abs(found[name]["gpu_seconds"] - whole) <= slack, name
        assert found[name]["share_gpu_seconds"] == found[name]["gpu_seconds"]
    for name in ("quick", "eve", "carol"):
        for state in ("active", "idle_held"):
            assert found[name][f"{state}_gpu_seconds"] == pytest.approx(expected[name][state], abs=1)


@pytest.mark.parametrize("since,until", [(S + 1234, S + 1234 + 3600), (T + 4000, T + 4000 + 4 * 3600), (S + 1815, S + 1815 + 3600)])
def test_other_windows(urls, since, until):
    for engine in urls.values():
        hosts = [host for host in FLEET if any(since < t < until for t in host.scrapes(SCRAPE))]
        found = document(engine, since=since, until=until, now=until + 1000)
        check(found["gpu_seconds"], since, until, hosts)
        for state in STATES:
            assert sum(hour[state] for hour in found["heatmap"]) == pytest.approx(found["gpu_seconds"][state], abs=0.01)


def test_a_window_that_ends_while_a_host_is_out_of_reach(urls):
    """What the host accounted until then is known from the first scrape afterwards, twenty minutes later."""
    away = [host for host in FLEET if host.name == "away"]
    for url in urls.values():
        found = document(url, "--host", "away", since=T + 4000, until=S + 3400, now=END)
        check(found["gpu_seconds"], T + 4000, S + 3400, away)
        assert found["gpu_seconds"]["unobserved"] < 1 and found["fleet"]["hosts_not_seen_at_end"] == 0


def test_a_window_up_to_now_ends_with_the_last_tick(urls):
    """Nothing is known of the time after the last scrape: it is not called unobserved."""
    found = document(urls["victoria"], "--host", "plain0,plain1", since=S, until=END - 5, now=END - 5)
    assert found["window"]["observed"] == 1 and found["gpu_seconds"]["unobserved"] == 0
    total = sum(found["gpu_seconds"][state] for state in STATES)
    assert 6 * (END - S - 150) < total < 6 * (END - S)


def test_by_host_and_the_other_breakdowns(urls):
    url = urls["victoria"]
    rows = {row["host"]: row for row in document(url, "--by", "host")["breakdown"]["rows"]}
    for host in FLEET:
        found = {state: rows[host.name][f"{state}_gpu_seconds"] for state in STATES}
        expected = seen_truth([host], SCRAPE, S, E)
        assert abs(sum(found.values()) - sum(expected.values())) < 6, host.name
    assert rows["restart"]["observed"] == pytest.approx(1 - 360 / 10800, abs=0.001)
    assert rows["gone"]["observed"] < 0.4
    two = document(url, "--by", "user,host")["breakdown"]
    assert two["measures"] == ["share", "share"]
    alice = next(row for row in two["rows"] if row["user"] == "alice")
    assert {row["host"] for row in alice["rows"]} == {"plain0", "plain1"}
    assert alice["gpu_seconds"] == pytest.approx(sum(row["gpu_seconds"] for row in alice["rows"]), abs=0.01)
    assert alice["truly_idle_gpu_seconds"] is None
    assert [row["model"] for row in document(url, "--by", "model")["breakdown"]["rows"]] == ["NVIDIA A100", "NVIDIA H100"]
    one = document(url, "--host", "plain0")
    assert [host["host"] for host in one["hosts"]] == ["plain0"]
    check(one["gpu_seconds"], S, E, FLEET[:1])


@pytest.mark.same_path
@pytest.mark.parametrize("engine", ["prometheus", "victoria"])
def test_some_cards(urls, engine):
    url = urls[engine]
    every = document(url)
    one = document(url, "--card", "1")
    assert len(one["gpus"]) == len(FLEET) and {card["index"] for card in one["gpus"]} == {1}
    for state in STATES:
        own = sum(card["gpu_seconds"][state] for card in every["gpus"] if card["index"] == 1)
        assert one["gpu_seconds"][state] == pytest.approx(own, abs=0.01)
        assert sum(hour[state] for hour in one["heatmap"]) == pytest.approx(own, abs=0.01)
    assert one["identities"] == [] and one["unattributed_share_gpu_seconds"] is None
    assert one["fleet"]["hosts_in_part"] == len(FLEET) and one["fleet"]["counter_resets"] == 1
    text = " ".join(report(url, "--card", "1").stdout.split())
    assert "Users are left out: 10 of these hosts have other GPUs too" in text and "Nobody held" not in text
    # All cards of a host: its users are known.
    model, host = document(url, "--model", "h100"), document(url, "--host", "plain1")
    for part in ("gpu_seconds", "gpus", "identities", "heatmap", "unattributed_share_gpu_seconds"):
        assert model[part] == host[part]


@pytest.mark.same_path
@pytest.mark.parametrize("engine", ["prometheus", "victoria"])
def test_some_users(urls, engine):
    url = urls[engine]
    every = {user["identity"]: user for user in document(url)["identities"]}
    for name in ("alice", "carol", "frank", "grace"):
        one = document(url, "--user", name)
        assert one["identities"] == [every[name]] and one["headline"]["of"] == "held"
        for state in ("active", "idle_held"):
            assert sum(hour[state] for hour in one["heatmap"]) == pytest.approx(every[name][f"{state}_gpu_seconds"], abs=0.01)
            assert sum(day[f"{state}_gpu_seconds"] for day in one["trend"]["periods"]) == \
                pytest.approx(every[name][f"{state}_gpu_seconds"], abs=0.01)
    two = document(url, "--user", "alice,bob", "--by", "host")
    assert {user["identity"] for user in two["identities"]} == {"alice", "bob"}
    assert {row["host"] for row in two["breakdown"]["rows"]} == {"plain0", "plain1", "restart"}
    text = " ".join(report(url, "--user", "alice").stdout.split())
    assert "GPU-hours that alice held (shares of the GPUs' time)" in text


def test_all_formats_come_from_the_same_report(urls, tmp_path):
    url = urls["prometheus"]
    text = report(url).stdout
    for part in ("10 hosts", "of 30 GPUs", "Hours: shares of the GPUs' time", "From http://127.0.0.1:", "2.42",
                 "Hosts: 10 seen, 3 first seen within the window, 2 not seen at its end.", "Window covered:",
                 "Counter resets: 1 host lost its store.", "Metrics have no processes"):
        assert part in " ".join(text.split()), part
    assert "largest part" not in text  # nobody has a tenth
    assert "--by user,host" in report(url, "--host", "plain0").stdout
    table = list(csv.DictReader(io.StringIO(report(url, "--format", "csv", "--by", "card").stdout)))
    assert len(table) == 30
    page = report(url, "--format", "html").stdout
    assert "Counter resets" in page and "plain0" in page
    assert report(url, "--format", "svg").stdout.startswith("<svg")
    priced = document(url, "--cost", "2")
    total = next(line for line in priced["bill"]["lines"] if line["line"] == "total")
    hours = sum(filter(None, priced["gpu_seconds"].values())) / 3600
    assert total["cost"]["total"] == pytest.approx(2 * hours, abs=0.01)
    compared = document(url, "--compare", f"@{T + 600}", since=S, until=S + 3600)
    assert compared["compare"]["window"]["empty"] is False
    expected = tmp_path / "hosts"
    expected.write_text("plain0\nplain1:9400\nmissing1\n")
    text = report(url, "--expect", expected).stdout
    assert "10 seen of 3 expected" in text and "Expected and not seen: missing1." in text


def test_a_host_that_lost_its_store_twice(tmp_path):
    host = Host("twice", cards(2), ALWAYS, [(T, END)], lost=[S + 2025.0, S + 7025.0], phase=15.0,
                users=[("heidi", 0, LONG_AGO, END)])
    with engines.victoria(tmp_path, import_text(samples([host], SCRAPE))) as url:
        found = document(url)
    check(found["gpu_seconds"], S, E, [host])
    assert all(hour[state] >= 0 for hour in found["heatmap"] for state in STATES)
    whole = sum(users_truth([host], S, E)["heidi"].values())
    assert found["identities"][0]["gpu_seconds"] == pytest.approx(whole, abs=3 * SCRAPE)


def test_a_bill_says_where_users_pay_a_mean_price(tmp_path):
    """Counters do not say which card a user was on, so that the bill of a host with different cards is not exact."""
    hosts = [Host(name, cards(0, 2), ALWAYS, [(T, END)], model=model, users=[("alice", 0, LONG_AGO, END)])
             for name, model in (("same", "NVIDIA A"), ("mixed", "NVIDIA A"), ("other", "NVIDIA B"))]
    lines = import_text(samples(hosts, SCRAPE)).splitlines(keepends=True)
    text = "".join(line.replace('model="NVIDIA A"', 'model="NVIDIA B"') if 'gpu="1"' in line and "mixed" in line else line
                   for line in lines)
    prices = ["--set", "price.NVIDIA A=2", "--set", "price.NVIDIA B=1"]
    with engines.victoria(tmp_path, text) as url:
        def says(*args):
            return "users pay the mean" in " ".join(report(url, *args).stdout.split())
        assert says(*prices) and says(*prices, "--host", "mixed") and says(*prices[:2])
        assert not says(*prices, "--host", "same,other") and not says("--cost", "2") and not says()


def test_hosts_that_differ_in_the_port_alone_stay_apart(tmp_path):
    hosts = [Host(f"127.0.0.1:{port}", cards(port), ALWAYS, [(T, END)], phase=port) for port in (1, 2)]
    with engines.victoria(tmp_path, import_text(samples(hosts, SCRAPE))) as url:
        found = document(url, "--by", "host")
        one = document(url, "--host", "127.0.0.1:2")
    assert {row["host"] for row in found["breakdown"]["rows"]} == {"127.0.0.1:1", "127.0.0.1:2"}
    check(found["gpu_seconds"], S, E, hosts)
    check(one["gpu_seconds"], S, E, hosts[1:])


def test_what_metrics_cannot_answer_is_refused(urls):
    for args, sentence in ((["--by", "process"], "have no processes"), (["--by", "notebook"], "have no processes"),
                           (["--notebook", "x"], "have no notebooks"), (["--by", "user,card"], "not on which card"),
                           (["--card", "0", "--user", "alice"], "not on which card"),
                           (["--card", "0", "--by", "user,host"], "not on which card"),
                           (["--digest", "--user", "alice"], "what a user holds now"), (["--db", "x"], "exclude each other")):
        run = report(urls["victoria"], *args)
        assert run.returncode == 2 and sentence in run.stderr, args
    for args, sentence in ((["--user", "zoe"], "no user of this window matches --user"),
                           (["--model", "b200"], "no GPU of this window matches --model"),
                           (["--host", "nope"], "no metrics of gua that match --host between")):
        run = report(urls["victoria"], *args)
        assert run.returncode == 1 and sentence in run.stderr, args
    run = report(urls["victoria"], since=T - 86400, until=T - 80000)
    assert run.returncode == 1 and "no metrics of gua or of another exporter between" in run.stderr


def store_of(host, path):
    """The host's own store: what it accounted in each minute, and the running totals."""
    made = Store(path)
    row = made.host(hostname=host.name, machine_id=host.name)
    for begin, end in host.runs:
        made.run(row, begin, end, ended=end)
    gpus = [made.card(row, card, host.runs[0][0], host.runs[-1][1], uuid=host.uuid(card)) for card in range(len(host.cards))]
    lives = [made.process(row, 100 + index, user[0], seen=user[2:]) for index, user in enumerate(host.users)]
    totals = collections.Counter()
    for slot in range(int(host.runs[0][0]) // 60 * 60, int(host.runs[-1][1]), 60):
        for card, gpu in enumerate(gpus):
            for number, state in enumerate(STATES):
                seconds = host.accounted(card, state, slot, slot + 60)
                totals[gpu, number] += seconds
                if seconds:
                    made.usage(slot, gpu, number, seconds)
        for index, user in enumerate(host.users):
            for number, state in enumerate(STATES[:2]):
                seconds = host.of_user(index, state, slot, slot + 60)
                totals[user[0], number] += seconds
                if seconds:
                    made.holding(slot, gpus[user[1]], lives[index], number, seconds, share=seconds)
    for (who, state), seconds in totals.items():
        if who in gpus:
            made.insert("total_gpu", gpu=who, state=state, ms=round(1000 * seconds))
        else:
            made.insert("total_user", host=row, user=who, state=state, presence_ms=round(1000 * seconds),
                        share_ms=round(1000 * seconds), moved_ms=1000 * int(host.runs[-1][1]))
    for place, user in enumerate(host.users):
        made.insert("identity", host=row, user=user[0], place=place + 1, first_ms=1000 * int(user[2]))
    return made.save()


@pytest.mark.same_path
@pytest.mark.parametrize("engine", ["prometheus", "victoria"])
def test_a_host_that_is_back_filled_from_its_own_store(engine, tmp_path):
    """gua export --openmetrics of one host, in an engine that knows it from there alone: the truth, and its own report."""
    host = Host("own", cards(3), [(T, S + 3000), (S + 3060, S + 6000), (S + 6300, END)], [(T, END)],
                users=[("alice", 0, T, END), ("bob", 1, S + 690, S + 1620), ("eve", 2, S + 4000, S + 4040)])
    store = store_of(host, tmp_path / "own.db")
    past = gua("export", "--openmetrics", "--db", store, "--label", "instance=own:9848", "--label", "job=gua").stdout
    with getattr(engines, engine)(tmp_path, past) as url:
        for since, until in ((S, E), (S + 1234, S + 1234 + 3600), (T + 601, END - 601)):
            found = document(url, since=since, until=until, now=END + 1000)
            expected = truth([host], since, until)
            total = sum(expected.values())
            assert abs(sum(found["gpu_seconds"][state] for state in STATES) - total) < 4.5 + total / 1e4
            for state in STATES:
                assert abs(found["gpu_seconds"][state] - expected[state]) < 0.003 * total, (since, state)
        of_engine = {user["identity"]: user["gpu_seconds"] for user in document(url)["identities"]}
    own = json.loads(gua("report", "--db", store, "--since", f"@{S}", "--until", f"@{E}", "--now", f"@{E + 1000}", "--json").stdout)
    assert of_engine == {user["identity"]: pytest.approx(user["gpu_seconds"], abs=2) for user in own["identities"]}
    assert {name: sum(states.values()) for name, states in users_truth([host], S, E).items()} == \
        {name: pytest.approx(seconds, abs=2) for name, seconds in of_engine.items()}


def test_replicas_count_once_and_recorded_sums_give_the_same_hours(tmp_path):
    """Two scrapers of the same hosts, and the sums of a recording rule: nothing is counted twice."""
    hosts = FLEET[:2] + FLEET[9:]
    families = samples(hosts, SCRAPE)
    lines = import_text(families)
    twice = lines.replace("} ", ',replica="a"} ') + lines.replace("} ", ',replica="b"} ')
    sums = []
    for host in hosts:
        for t in host.scrapes(SCRAPE):
            states = dict.fromkeys(STATES, 0)
            for family, labels, value in host.page(t):
                if family == "gua_gpu_state_seconds_total":
                    states[labels["state"]] += value
            sums += [f"instance_state:gua_gpu_state_seconds:sum"
                     f"{label_text({'instance': host.name + ':9400', 'job': 'gua', 'state': state})} {value} {int(t * 1000)}"
                     for state, value in states.items()]
    with engines.victoria(tmp_path, twice) as url:
        plain = document(url)
        check(plain["gpu_seconds"], S, E, hosts)
        engines.give(url, "\n".join(sums) + "\n")
        recorded = document(url)
    assert recorded["gpu_seconds"] == plain["gpu_seconds"]
    for one, other in zip(plain["heatmap"], recorded["heatmap"]):
        assert one == other


@pytest.mark.parametrize("engine", ["prometheus", "victoria"])
def test_silence_is_noticed(engine, tmp_path):
    """Two hosts, one killed ten minutes before now, and a window of a week over an hour of data."""
    begin, killed, now = S, S + 3000, S + 3600
    hosts = [Host("up", cards(0), [(begin, END)], [(begin, now)]),
             Host("down", cards(1), [(begin, killed)], [(begin, killed)])]
    families = samples(hosts, SCRAPE)
    text = openmetrics(families) if engine == "prometheus" else import_text(families)
    with getattr(engines, engine)(tmp_path, text) as url:
        for since in (now - 7 * 86400, begin - 1000):
            found = document(url, "--by", "host", since=since, until=now, now=now)
            rows = {row["host"]: row for row in found["breakdown"]["rows"]}
            assert rows["up"]["observed"] == pytest.approx(1, abs=0.03)
            # What it told last is up to a scrape and a tick before its end.
            assert 3 * (now - killed) <= rows["down"]["unobserved_gpu_seconds"] <= 3 * (now - killed + SCRAPE + 30)
            assert found["window"]["clipped"] and found["window"]["seconds"] <= now - begin + 150 + SCRAPE
            assert found["gpu_seconds"]["unobserved"] >= 3 * (now - killed)
        text = " ".join(report(url, since=now - 7 * 86400, until=now, now=now).stdout.split())
        assert "Clipped: from" in text and "1 not seen at its end" in text

        # The same, of a verdict: 118 hosts of which nothing is known weigh more than two.
        verdict = document(url, "--expect", "120", since=begin, until=now, now=now)
        assert verdict["waste"]["verdict"] == "too_little_observed" and verdict["fleet"]["hosts_missing"] == 118
        text = " ".join(report(url, "--expect", "120", since=begin, until=now, now=now).stdout.split())
        assert "Expected and not seen: 118 hosts. Their time is in no figure below." in text
        assert "118 expected hosts reported nothing" in text
        assert document(url, "--expect", "120", "--host", "up", since=begin, until=now,
                        now=now)["fleet"]["hosts_missing"] == 0

        def status(*args):
            return gua("fleet", "status", "--from", url, "--now", f"@{now}", *args)
        assert "2 hosts seen of 120 expected: 1 ok, 1 silent, 118 missing" in status("--expect", "120").stdout
        assert json.loads(status("--expect", "3", "--json").stdout)["missing"] == 1
        assert status("--expect", "2").returncode == 0 and status("--check").returncode == 1
        early = gua("fleet", "status", "--from", url, "--now", f"@{killed - 60}", "--expect", "2", "--check")
        assert early.returncode == 0, early.stdout
        assert gua("fleet", "status", "--from", url, "--now", f"@{killed - 60}", "--expect", "3", "--check").returncode == 1


@pytest.mark.parametrize("engine", ["prometheus", "victoria"])
def test_an_expected_host_that_is_late_is_unobserved(engine, tmp_path):
    """A host that comes late is new, unless it was expected: then it was missing."""
    begin, came, now = S, S + 1800, S + 3600
    hosts = [Host("early", cards(0), [(begin - 600, END)], [(begin - 600, now)]),
             Host("late", cards(1), [(came, END)], [(came, now)])]
    families = samples(hosts, SCRAPE)
    text = openmetrics(families) if engine == "prometheus" else import_text(families)
    names = tmp_path / "names"
    names.write_text("early\nlate:9400\n")
    with getattr(engines, engine)(tmp_path, text) as url:
        def ask(*args):
            found = document(url, "--by", "host", *args, since=begin, until=now, now=now)
            return found, {row["host"]: row for row in found["breakdown"]["rows"]}
        new, rows = ask()
        assert rows["late"]["unobserved_gpu_seconds"] < 3 * (SCRAPE + 60)
        known = rows["late"]["known_since"]
        missed, rows = ask("--expect", names)
        grown = missed["gpu_seconds"]["unobserved"] - new["gpu_seconds"]["unobserved"]
        assert grown == pytest.approx(3 * (came - begin), abs=3 * (SCRAPE + 60))
        assert rows["late"]["unobserved_gpu_seconds"] == pytest.approx(3 * (came - begin), abs=3 * (SCRAPE + 60))
        assert rows["late"]["known_since"] == known and rows["early"]["unobserved_gpu_seconds"] < 3 * (SCRAPE + 60)
        assert missed["window"]["observed"] == pytest.approx(0.75, abs=0.03)
        assert missed["fleet"]["hosts_missing"] == 0


def test_every_key_of_a_user_has_one_meaning(tmp_path):
    """A user who squats: the times by state add up to gpu_seconds, and unused_fraction is what the schema says."""
    host = Host("n1", cards(0), ALWAYS, [(T, END)], users=[("alice", 0, LONG_AGO, END)])
    squatting = [f'gua_identity_squatting_seconds_total{{instance="n1:9400",job="gua",identity="alice"}} {t - T} {t * 1000}'
                 for t in range(T, END, SCRAPE)]
    with engines.victoria(tmp_path, import_text(samples([host], SCRAPE)) + "\n".join(squatting) + "\n") as url:
        user, = document(url)["identities"]
    parts = [user[f"{state}_gpu_seconds"] for state in ("active", "idle_held", "squatting")]
    assert parts[2] > 3600 and user["gpu_seconds"] == pytest.approx(sum(parts), abs=0.01)
    assert user["unused_fraction"] == pytest.approx((parts[1] + parts[2]) / user["gpu_seconds"], abs=1e-4)
    assert user["share_gpu_seconds"] == pytest.approx(parts[0] + parts[1], abs=0.01)
