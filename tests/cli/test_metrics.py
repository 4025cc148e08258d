"""gua metrics and /metrics: counters that never go back and add up, readings, identities, formats."""
import os
import re
import shutil
import sqlite3
import stat
import subprocess

import pytest

from conftest import BUILD, ROOT, gua, wait_for
from exposition import read_openmetrics, read_text
from recorded import ONE_CARD, TWO_CARDS, WALL, record, rows  # noqa: F401 (a fixture)
from serving import needs_serve, serve  # noqa: F401 (a fixture)

PROMETHEUS = ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
              "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
VICTORIA = "text/plain;version=0.0.4;q=1"
PROMETHEUS_3 = ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;"
                "version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,"
                "*/*;q=0.2")
PEOPLE = TWO_CARDS + """
process a pid 101 user alice uid 1001 command "python secret-path/train.py"
process b pid 102 user bob uid 1002 command "b"
process c pid 103 user carol uid 1003 command "c"
at 0s hold a card 0 memory 8GiB
at 0s load a card 0 sm 80
at 100s load a card 0 sm 0
at 200s hold b card 0 memory 8GiB
at 400s hold c card 1 memory 4GiB
at 500s load card 1 util 50
at 560s load card 1 util 0
"""


@pytest.fixture
def recorded(tmp_path, record):
    """recorded(TICKS, at=0) records the people, ten seconds a tick; returns the store."""
    scenario = tmp_path / "people.scenario"

    def run(ticks, text=PEOPLE, **options):
        scenario.write_text(text)
        return record(ONE_CARD, "--interval", "10s", "--ticks", ticks, "--source", "sim", "--scenario", scenario,
                      **options).db
    return run


def moment(seconds):
    """--now SECONDS after the scenario's start."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return "--now", f"2026-{11 + (days + 1) // 30}-{(days + 1) % 30 + 1:02d} {8 + hour:02d}:{minute:02d}:{second:02d}"


def scrape(db, *args, at=3600):
    run = gua("metrics", "--db", db, *moment(at), *args)
    assert run.returncode == 0, run.stderr
    read = read_openmetrics if "--openmetrics" in args else read_text
    return read(run.stdout)


def test_counters_are_those_of_the_store_and_add_up(recorded):
    db = recorded(60)
    found = scrape(db)
    names = ["active", "idle_held", "idle", "unobserved", "use_unknown"]
    for state, seconds in rows(db, "SELECT state, ms / 1000 FROM total_gpu JOIN gpu ON gpu.id = gpu WHERE idx = 0"):
        if names[state] != "unobserved":
            assert found.value("gua_gpu_state_seconds_total", gpu="0", uuid="GPU-aaaa", state=names[state]) == seconds
    assert set(found.of("gua_gpu_state_seconds_total", gpu="1", uuid="GPU-bbbb")) == {
        "active", "idle_held", "idle", "use_unknown"}
    assert found.sum("gua_gpu_state_seconds_total") == pytest.approx(1200, abs=12)
    # Card 1 was active for a minute without a process that used it: nobody's share, but not lost.
    for state in ("active", "idle_held"):
        held = found.sum("gua_gpu_state_seconds_total", state=state)
        assert found.sum("gua_identity_gpu_seconds_total", state=state) == pytest.approx(held, abs=6)
    assert set(found.of("gua_identity_gpu_seconds_total", state="active")) == {
        "_other", "_unknown", "alice", "bob", "carol"}
    assert found.sum("gua_gpu_energy_joules_total", gpu="0", uuid="GPU-aaaa") > 30000
    assert found.value("gua_gpus") == 2
    assert found.value("gua_sample_timestamp_seconds") == WALL + 600
    assert all(float(value).is_integer() for (name, _), value in found.items() if name.endswith("_total"))


def test_no_label_names_a_process_or_a_host(recorded):
    text = gua("metrics", "--db", recorded(60)).stdout
    for word in ("secret-path", "train.py", "101", "pid", "host", "instance", "job"):
        assert f'"{word}' not in text and f"{word}=" not in text and "secret" not in text


def test_counters_go_on_after_a_restart(recorded):
    before = scrape(recorded(60))
    after = scrape(recorded(60, at=900))
    falls = [key for key, value in before.items() if key[0].endswith("_total") and after[key] < value]
    assert falls == []
    assert after.sum("gua_gpu_state_seconds_total") >= before.sum("gua_gpu_state_seconds_total") + 1100


def test_a_newborn_identity_is_zero_for_150_seconds(recorded):
    db = recorded(45)
    assert rows(db, f"SELECT first_ms / 1000 - {WALL} FROM identity WHERE user = 'carol'") == [(410,)]
    for at, seconds in ((451, 0), (559, 0), (560, pytest.approx(50, abs=2))):
        found = scrape(db, at=at)
        assert found.value("gua_identity_gpu_seconds_total", identity="carol", state="idle_held") == seconds
        assert found.value("gua_identity_gpu_seconds_total", identity="carol", state="active") == 0
    assert found.value("gua_identity_gpu_seconds_total", identity="alice", state="active") > 50


def test_newcomers_above_the_cap_are_in_other_from_birth(recorded):
    db = recorded(60)
    cap = ("--set", "metrics.identity_max=2")
    found = scrape(db, *cap)
    assert set(found.of("gua_identity_gpu_seconds_total", state="idle_held")) == {"_other", "_unknown", "alice", "bob"}
    all_named = scrape(db)
    assert found.value("gua_identity_gpu_seconds_total", identity="_other", state="idle_held") == all_named.value(
        "gua_identity_gpu_seconds_total", identity="carol", state="idle_held") > 0
    assert found.value("gua_identities_folded") == 1
    # It stays so when the others have gone, and their time is not counted again.
    later = scrape(recorded(6, at=3000, text=ONE_CARD + """
process d pid 104 user dora uid 1004 command "d"
at 0s hold d card 0 memory 8GiB
"""), *cap, at=3200)
    assert set(later.of("gua_identity_gpu_seconds_total", state="idle_held")) == {"_other", "_unknown", "alice", "bob"}
    assert later.value("gua_identities_folded") == 2


def test_a_place_is_free_after_35_days(recorded, tmp_path):
    db = recorded(3)
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE identity SET first_ms = first_ms - 36 * 86400000")
        connection.execute("UPDATE total_user SET moved_ms = moved_ms - 36 * 86400000")
    recorded(3, at=300, text=ONE_CARD + """
process d pid 104 user dora uid 1004 command "d"
at 0s hold d card 0 memory 8GiB
""")
    assert rows(db, "SELECT user, place FROM identity ORDER BY 1") == [("alice", 1), ("dora", 1)]


def test_what_moved_in_the_last_35_days_is_not_withdrawn(recorded):
    db, day = recorded(60), 86400
    for at, there in ((34 * day, True), (36 * day, False)):
        run = gua("metrics", "--db", db, "--now", "2026-12-06 08:00:00" if there else "2026-12-09 08:00:00")
        found = read_text(run.stdout)
        assert ("alice" in found.of("gua_identity_gpu_seconds_total", state="active")) == there
        # The cards of the last tick stay whatever their age: no recorder has said that they are gone.
        assert len(found.of("gua_gpu_unobserved_seconds_total")) == 2


def test_readings_are_shown_while_the_recorder_is_alive(background_store):
    found = scrape_now(background_store)
    assert found.value("gua_up") == 1 and found.value("gua_recorder_faults") == 0
    assert found.value("gua_gpu_memory_used_bytes") >= 8 << 30
    assert found.value("gua_gpu_memory_total_bytes") == 80 << 30
    assert 0 <= found.value("gua_gpu_utilization_ratio") <= 1
    assert found.value("gua_gpu_power_limit_watts") == 400 and found.value("gua_gpu_temperature_celsius") >= 20
    assert found.value("gua_gpu_processes") == 1
    assert found.value("gua_gpu_idle_held_since_timestamp_seconds") > 1.7e9
    # The same by dcgm-exporter's names, if that is asked for: the readings of one scrape, because the recorder goes on.
    assert not any(name.startswith("DCGM") for name, _ in found)
    run = gua("metrics", "--db", background_store, "--compat", "dcgm")
    found, gpu = read_text(run.stdout), {"gpu": "0", "UUID": "GPU-aaaa"}
    for name, own, scale in (("GPU_UTIL", "utilization_ratio", 100), ("FB_USED", "memory_used_bytes", 1 / (1 << 20)),
                             ("POWER_USAGE", "power_watts", 1), ("GPU_TEMP", "temperature_celsius", 1)):
        theirs, ours = found.of(f"DCGM_FI_DEV_{name}", **gpu), found.of(f"gua_gpu_{own}")
        assert list(theirs.values()) == pytest.approx([scale * value for value in ours.values()], abs=0.5), name
    assert found.value("DCGM_FI_DEV_FB_USED", **gpu) + found.value("DCGM_FI_DEV_FB_FREE", **gpu) == 80 << 10


def test_readings_of_a_recorder_that_ended_are_not_the_present(recorded):
    found = scrape(recorded(60), at=601)
    assert found.value("gua_up") == 0
    for name in ("gua_gpu_utilization_ratio", "gua_gpu_memory_used_bytes", "gua_gpu_processes",
                 "gua_gpu_idle_held_since_timestamp_seconds"):
        assert found.of(name) == {}


@pytest.fixture
def background_store(tmp_path):
    """A store that a recorder on the simulated source writes now."""
    scenario = tmp_path / "held.scenario"
    scenario.write_text(ONE_CARD.replace("start 2026-11-02T08:00:00Z", "") + """
process a pid 101 user alice uid 1001 command "a"
at 0s hold a card 0 memory 8GiB
""")
    db = tmp_path / "live.db"
    run = gua("start", "--db", db, "--interval", "200ms", "--drain", "100ms", "--source", "sim", "--scenario", scenario)
    assert run.returncode == 0, run.stderr
    yield db
    gua("stop", "--db", db)


def scrape_now(db):
    """Waits for a tick that had a look and a drain before it: with ticks as short as these not every one has."""
    found = None

    def complete():
        nonlocal found
        run = gua("metrics", "--db", db)
        assert run.returncode == 0, run.stderr
        found = read_text(run.stdout)
        return all(found.of(name) for name in ("gua_gpu_utilization_ratio", "gua_gpu_memory_used_bytes",
                                               "gua_gpu_power_watts")) and found.value(
            "gua_gpu_idle_held_since_timestamp_seconds") > 0
    wait_for(complete)
    return found


def test_openmetrics_has_the_same_values(recorded):
    db = recorded(60)
    text, om = scrape(db), scrape(db, "--openmetrics")
    assert om == text
    assert "# UNIT gua_gpu_state_seconds seconds\n" in gua("metrics", "--openmetrics", "--db", db).stdout
    assert "_created" not in gua("metrics", "--openmetrics", "--db", db).stdout


def test_promtool_finds_nothing(recorded, background_store):
    for db in (recorded(60), background_store):
        run = gua("metrics", "--db", db)
        check = subprocess.run(["promtool", "check", "metrics"], input=run.stdout, capture_output=True, text=True)
        assert (check.returncode, check.stdout + check.stderr) == (0, "")


def test_names_are_escaped(recorded):
    db = recorded(6)
    strange = 'a"b\\c\nd\x1be'
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE identity SET user = ?", (strange,))
        connection.execute("UPDATE total_user SET user = ?", (strange,))
        connection.execute("UPDATE gpu SET name = ?", ('"} 1\ngua_gpus 99\n',))
    found = scrape(db)
    assert 'a"b\\c\\x0Ad\\x1Be' in found.of("gua_identity_gpu_seconds_total", state="active")
    assert found.value("gua_gpus") == 2
    run = gua("metrics", "--db", db)
    check = subprocess.run(["promtool", "check", "metrics"], input=run.stdout, capture_output=True, text=True)
    assert check.returncode == 0, check.stderr


def test_identities_by_group(recorded, tmp_path):
    conf = tmp_path / "gua.conf"
    conf.write_text("[groups]\nvision = alice bob\nspeech = nobody\n[metrics]\nidentities = group\n")
    db = recorded(60)
    named, grouped = scrape(db), scrape(db, "--config", conf)
    share = "gua_identity_gpu_seconds_total"
    assert set(grouped.of(share, state="active")) == {"_other", "_unknown", "vision", "speech"}
    assert grouped.value(share, identity="vision", state="idle_held") == pytest.approx(
        named.value(share, identity="alice", state="idle_held") + named.value(share, identity="bob", state="idle_held"), abs=1)
    assert grouped.value(share, identity="_other", state="idle_held") == named.value(
        share, identity="carol", state="idle_held")
    run = gua("metrics", "--db", db, "--identities", "group")
    assert run.returncode == 2 and "add to gua.conf a section [groups] with a line for each, such as: vision = alice bob" in run.stderr


def test_identities_by_namespace(recorded):
    """A namespace is whose pods the store knows, by a process or by a lease; all others are in _other."""
    db = recorded(60)
    named = scrape(db)
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE process SET pod = 'alice/web-0' WHERE user = 'alice'")
        connection.execute("UPDATE process SET pod = 'bobby/x' WHERE user = 'bob'")  # not of the namespace bob
        connection.execute(
            "INSERT INTO lease (id, host, kind, name, owner, share, since_ms, first_seen_ms, last_seen_ms, ended_ms) "
            "SELECT 1, host, 1, 'carol/x', 'carol', 1, 0, 0, 0, 1 FROM run")
    share = "gua_identity_gpu_seconds_total"
    found = scrape(db, "--identities", "namespace")
    assert set(found.of(share, state="active")) == {"_other", "_unknown", "alice", "carol"}
    for name, user in (("alice", "alice"), ("carol", "carol"), ("_other", "bob")):
        assert found.value(share, identity=name, state="idle_held") == named.value(share, identity=user, state="idle_held")
    assert found.value("gua_identities_folded") == 1
    past = gua("export", "--openmetrics", "--db", db, "--since", "2026-11-02", "--identities", "namespace").stdout
    assert 'identity="carol"' in past and 'identity="bob"' not in past
    plan = sqlite3.connect(db).execute("EXPLAIN QUERY PLAN SELECT 1 FROM process WHERE pod > 'a/' AND pod < 'a0'").fetchall()
    assert "process_pod" in str(plan)
    run = gua("metrics", "--db", db, "--identities", "namespace", "--set", "kubernetes.user=uid")
    assert run.returncode == 2 and "set user = namespace in [kubernetes]" in run.stderr


def test_hashed_identities(recorded, tmp_path):
    key = tmp_path / "key"
    key.write_text("0123456789abcdef0123456789abcdef\n")
    key.chmod(0o600)
    db = recorded(60)
    args = ("--identities", "hashed", "--set", f"metrics.key_file={key}")
    found = scrape(db, *args)
    hashed = set(found.of("gua_identity_gpu_seconds_total", state="active"))
    # HMAC-SHA256, as openssl prints it: another host with the same key says the same.
    check = subprocess.run(["openssl", "dgst", "-sha256", "-hmac", "0123456789abcdef0123456789abcdef"], input=b"alice",
                           capture_output=True) if shutil.which("openssl") else None
    if check:
        assert check.stdout.decode().split()[-1][:16] in hashed
    assert len(hashed) == 5 and {"_other", "_unknown"} < hashed
    assert "alice" not in gua("metrics", "--db", db, *args).stdout
    assert scrape(db, *args) == found
    key.chmod(0o644)
    run = gua("metrics", "--db", db, *args)
    assert run.returncode == 1 and "can be read by others" in run.stderr
    key.chmod(0o600)
    key.write_text("short\n")
    run = gua("metrics", "--db", db, *args)
    assert run.returncode == 1 and "must be a key of 16" in run.stderr
    run = gua("metrics", "--db", db, "--identities", "hashed")
    assert run.returncode == 2 and "set key_file in [metrics]" in run.stderr


def test_identities_can_be_off(recorded):
    text = gua("metrics", "--db", recorded(60), "--identities", "off").stdout
    assert "gua_identit" not in text and "alice" not in text and "gua_gpu_state_seconds_total" in text


def test_textfile_is_replaced_whole(recorded, tmp_path):
    db, file = recorded(60), tmp_path / "gua.prom"
    file.write_text("old")
    file.chmod(0o644)
    before = file.stat().st_ino
    run = gua("metrics", "--db", db, "--textfile", file)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert read_text(file.read_text()).value("gua_gpus") == 2
    assert file.stat().st_ino != before and stat.S_IMODE(file.stat().st_mode) == 0o644
    assert sorted(os.listdir(tmp_path)) == sorted({*os.listdir(tmp_path)} - {"gua.prom.tmp"})
    for args, words in ((("--textfile", tmp_path / "gua.txt"), "must end in .prom"),
                        (("--textfile", file, "--openmetrics"), "exclude each other")):
        run = gua("metrics", "--db", db, *args)
        assert run.returncode == 2 and words in run.stderr
    run = gua("metrics", "--db", db, "--textfile", tmp_path / "no" / "gua.prom")
    assert run.returncode == 1 and "no/gua.prom" in run.stderr
    run = gua("metrics", "--db", tmp_path / "missing.db", "--textfile", file)
    assert run.returncode == 1 and read_text(file.read_text()).value("gua_gpus") == 2


def test_a_store_of_an_older_version(tmp_path):
    db = tmp_path / "old.db"
    with sqlite3.connect(db) as connection:
        connection.executescript((ROOT / "tests/stores/version-4.sql").read_text())
    before = db.read_bytes()
    found = scrape(db)
    assert "alice" in found.of("gua_identity_gpu_seconds_total", state="active")
    assert found.sum("gua_gpu_state_seconds_total") > 0
    assert db.read_bytes() == before


@needs_serve
def test_the_server_answers_in_the_format_that_is_asked_for(serve, recorded):
    db = recorded(60)
    server = serve("--db", db)
    for accept, openmetrics in ((None, False), (VICTORIA, False), ("*/*", False), (PROMETHEUS, True), (PROMETHEUS_3, True),
                                ("application/openmetrics-text; version=1.0.0; q=0.2, text/plain;q=0.9", False),
                                ("application/openmetrics-text;version=0.0.1", False),
                                ("application/openmetrics-text;version=1.0.0;q=0", False)):
        status, headers, body = server.get("/metrics", **({"Accept": accept} if accept else {}))
        assert status == 200
        assert headers["Content-Type"] == ("application/openmetrics-text; version=1.0.0; charset=utf-8" if openmetrics else
                                           "text/plain; version=0.0.4; charset=utf-8")
        found = (read_openmetrics if openmetrics else read_text)(body)
        assert found.value("gua_gpus") == 2
    assert server.get("/metrics?x=1")[0] == 400


@needs_serve
def test_the_server_replaces_dcgm_exporter(serve, background_store):
    """With the names that dashboards and autoscalers expect, each once, beside gua's own."""
    server = serve("--db", background_store, "--compat", "dcgm")
    names, found = ("GPU_UTIL", "FB_USED", "FB_FREE", "POWER_USAGE", "GPU_TEMP"), []

    def complete():
        found[:] = re.findall(r'^DCGM_FI_DEV_(\w+)\{gpu="0",UUID="GPU-aaaa",modelName="[^"]+"\} (\d+(?:\.\d+)?)$', server.get("/metrics")[2], re.M)
        return len(found) >= len(names)
    wait_for(complete)
    assert sorted(name for name, _ in found) == sorted(names)
    assert float(dict(found)["FB_USED"]) >= 8 << 10 and float(dict(found)["FB_USED"]) + float(dict(found)["FB_FREE"]) == 80 << 10


@needs_serve
def test_the_server_has_metrics_of_one_store_only(serve, recorded, tmp_path):
    db = recorded(3)
    shutil.copy(db, tmp_path / "other.db")
    status, _, body = serve("--db", db, "--db", tmp_path / "other.db").get("/metrics")
    assert status == 404 and "/metrics is about one store" in body


def test_the_units_write_the_file_without_privileges():
    service = (BUILD / "dist" / "gua-metrics.service").read_text()
    timer = (ROOT / "dist" / "gua-metrics.timer").read_text()
    command, = re.findall(r"ExecStart=(\S+)/gua (metrics .*)", service)
    assert command[1] == "metrics --db /var/lib/gua/gua.db --textfile /var/lib/prometheus/node-exporter/gua.prom"
    for line in ("CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateNetwork=yes",
                 "SupplementaryGroups=gua", "ReadWritePaths=/var/lib/prometheus/node-exporter"):
        assert line in service.splitlines()
    assert "OnUnitActiveSec=30s" in timer and "WantedBy=timers.target" in timer


def test_steps_of_enforcement_come_from_policy_db(recorded):
    """Counted by step and mode; a sentence never becomes a label."""
    db = recorded(30)
    assert not scrape(db).of("gua_policy_actions_total")
    policy = sqlite3.connect(db.parent / "policy.db")
    policy.executescript((ROOT / "src/store/policy/policy.sql").read_text())
    columns = "at_ms, step, stage, mode, rule, session, kind, user, pids, cards, evidence, result, config, actor"
    for step, mode, times in (("warn", "enforce", 3), ("warn", "observe", 1), ("ended", "enforce", 1)):
        for _ in range(times):
            policy.execute(f"INSERT INTO action ({columns}) VALUES (1, ?, 'x', ?, 'r', 's', 'job', 'u', '1', 'c', 'evidence "
                           "sentence', 'result sentence', '0', 'gua-enforce')", (step, mode))
    policy.commit()
    policy.close()
    counted = scrape(db).of("gua_policy_actions_total")
    assert counted == {("warn", "enforce"): 3, ("warn", "observe"): 1, ("ended", "enforce"): 1}
    assert "sentence" not in gua("metrics", "--db", db, *moment(3600)).stdout
