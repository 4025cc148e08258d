"""gua.conf: which file counts, what is in force and from where, errors with file, line and key."""
import json
import os
import re
import signal
import sqlite3
import subprocess

import pytest

from conftest import GUA, ROOT, clean_environment, gua, wait_for
from fake import fake_driver
from recorded import ONE_CARD, WALL, background, recorder_pid, rows, run_has_begun  # noqa: F401 (a fixture)

EXAMPLE = ROOT / "dist" / "gua.conf"
USUAL = {"GUA_CONFIG": ""}  # the usual places


def config(*args, **env):
    return gua("config", *args, env=env)


def values(run):
    """{(section, key): (value, file, line)}"""
    return {(v["section"], v["key"]): (v["value"], v["file"], v["line"]) for v in json.loads(run.stdout)["values"]}


def keys():
    """(section, key, default) of every key that has a default, as the program lists them."""
    return [(section, key) for section, key in values(config("--json"))]


def test_example_is_what_the_program_knows():
    """`gua config --example` writes dist/gua.conf; its keys are commented out."""
    assert EXAMPLE.read_text() == config("--example").stdout
    assert all(line == "" or line[0] in "#[" for line in EXAMPLE.read_text().splitlines())


def test_example_parses_with_and_without_its_keys(tmp_path):
    assert config("--check", EXAMPLE).returncode == 0
    every = tmp_path / "gua.conf"
    every.write_text(re.sub(r"(?m)^#(?! )", "", EXAMPLE.read_text()))
    run = config("--config", every, "--json")
    assert run.returncode == 0, run.stderr
    found = values(run)
    assert set(keys()) <= set(found)
    assert all(file == str(every) and line for _, file, line in found.values())
    defaults = values(config("--json"))
    assert all(found[key][0] == value for key, (value, _, _) in defaults.items())


def test_manual_names_every_key():
    page = (ROOT / "man" / "gua.conf.5.scd").read_text()
    for line in EXAMPLE.read_text().splitlines():
        if line.lstrip("#").startswith("["):
            section = re.escape(line.lstrip("#"))
            assert re.search(rf"(?m)^## {section}", page), line
        match = re.match(r"#(\w+) = ", line)
        if match and section != r"\[groups\]":
            assert re.search(rf"(?m)^\*{match.group(1)}\* = ", page), line


@pytest.mark.same_path
@pytest.mark.parametrize("section, key", keys())
def test_every_key_is_an_option(section, key):
    """With --set in general; `gua config` of the option's own value shows it."""
    value = values(config("--json"))[section, key][0]
    run = config("--set", f"{section}.{key}={value}", "--json")
    assert values(run)[section, key] == (value, "--set", None)


@pytest.mark.same_path
@pytest.mark.parametrize("option", ["interval", "drain", "glance", "count-graphics", "driver-timeout", "retry",
                                    "active-util", "held-mem", "spell", "keep-minutes", "keep-five", "privacy"])
def test_help_names_the_default(option):
    """The help of an option and the table of keys have the same default."""
    text = re.sub(r"\s+", " ", gua("daemon", "--help").stdout)
    said = re.search(rf"--{option} .*?\(default ([^,)]*)", text)
    name = option.replace("-", "_")
    values_of = {key: value for (_, key), (value, _, _) in values(config("--json")).items()}
    if option != "count-graphics":
        assert said.group(1) == values_of.get(name, values_of.get(name + "_pct"))


def test_files_override_key_by_key(tmp_path):
    root, xdg = tmp_path / "root", tmp_path / "xdg"
    for place, text in ((root / "etc", "[record]\ninterval = 20s\ndrain = 2s\n"), (xdg, "[record]\ninterval = 10s\n")):
        (place / "gua").mkdir(parents=True)
        (place / "gua" / "gua.conf").write_text(text)
    run = config("--root", root, "--json", XDG_CONFIG_HOME=str(xdg), **USUAL)
    found = values(run)
    assert found["record", "interval"] == ("10s", f"{xdg}/gua/gua.conf", 2)
    assert found["record", "drain"] == ("2s", f"{root}/etc/gua/gua.conf", 3)
    assert found["record", "glance"] == ("1s", None, None)
    home = tmp_path / "home"
    (home / ".config").mkdir(parents=True)
    os.rename(xdg / "gua", home / ".config" / "gua")
    found = values(config("--root", root, "--json", HOME=str(home), **USUAL))
    assert found["record", "interval"] == ("10s", f"{home}/.config/gua/gua.conf", 2)
    # A named file counts alone.
    found = values(config("--root", root, "--json", HOME=str(home), GUA_CONFIG=f"{root}/etc/gua/gua.conf"))
    assert found["record", "interval"][0] == "20s"
    found = values(config("--root", root, "--json", "--config", "/dev/null", HOME=str(home), **USUAL))
    assert found["record", "drain"] == ("5s", None, None)


def test_text_shows_what_is_in_force(tmp_path, expect):
    (tmp_path / "gua.conf").write_text('[groups]\n"team = a" = alice "x # y"\n[money]\ncurrency = "EUR" # ours\n')
    run = gua("config", "--config", "gua.conf", "--set", "record.interval=10s", cwd=tmp_path)
    expect("config.txt", run.stdout)
    again = tmp_path / "again.conf"
    again.write_text(run.stdout)
    printed = [re.sub(r" +# .*", "", line) for line in run.stdout.splitlines()]
    second = config("--config", again).stdout.splitlines()
    assert [re.sub(r" +# .*", "", line) for line in second][1:] == printed[1:]


WRONG = """\
[record]
drian = 3s
glance = 20s
interval = 10s
interval = 20s
count_graphics = maybe
[retension]
keep = 1d
[thresholds]
held_mem = 5
interval = 4s
currency
[money
[groups]
a = x
b = x
\x1b]0;gotcha\x07 = 1
"""


def test_check_names_every_error(tmp_path, expect):
    (tmp_path / "gua.conf").write_text(WRONG)
    run = gua("config", "--check", "gua.conf", cwd=tmp_path)
    assert run.returncode == 1 and run.stderr == ""
    expect("config-check.txt", run.stdout)
    other = gua("config", "--check", env={"GUA_CONFIG": "gua.conf"}, cwd=tmp_path)
    assert (other.returncode, other.stdout) == (1, run.stdout)
    document = json.loads(gua("config", "--check", "gua.conf", "--json", cwd=tmp_path).stdout)
    assert [error["line"] for error in document["errors"]] == [2, 3, 5, 6, 7, 10, 11, 12, 13, 16, 17]
    # The configuration without its wrong lines is shown, and what is wrong on standard error.
    run = gua("config", "--config", "gua.conf", cwd=tmp_path)
    assert run.returncode == 1
    assert "interval = 10s" in run.stdout and "gua.conf:2: drian" in run.stderr


def test_check_says_that_there_is_no_error(tmp_path):
    (tmp_path / "gua.conf").write_text("[record]\ninterval = 10s\n")
    run = gua("config", "--check", "gua.conf", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "gua.conf: no errors\n")
    run = config("--check", XDG_CONFIG_HOME=str(tmp_path), **USUAL)
    assert run.returncode == 0 and f"{tmp_path}/gua/gua.conf: not there" in run.stdout


@pytest.mark.parametrize("channels, sentence", [
    ("mail pigeon", "channels: 'pigeon' is not one of terminal, mail, webhook, command, login"),
    ("webhook", "channels: webhook needs webhook_url in the section [notices]")])
def test_check_names_what_gua_enforce_would_refuse(tmp_path, channels, sentence):
    (tmp_path / "gua.conf").write_text(f"[policy]\nevery = 30s\n[notices]\nchannels = {channels}\n")
    run = gua("config", "--check", "gua.conf", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, f"gua.conf:4: {sentence}\n")


@pytest.mark.parametrize("kind, sentence", [("fifo", "not a regular file"), ("directory", "it is a directory"),
                                            ("missing", "No such file or directory"), ("large", "is larger than")])
def test_strange_files_get_a_sentence(tmp_path, kind, sentence):
    path = tmp_path / "gua.conf"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "large":
        path.write_text("#" * 300000)
    run = config("--check", path)
    assert run.returncode == 1 and sentence in run.stdout
    run = gua("report", "--config", path)
    assert run.returncode == 2 and sentence in run.stderr and "usage" not in run.stderr


def test_wrong_set_is_wrong_usage(tmp_path):
    for command in "config", "report", "daemon":
        run = gua(command, "--set", "interval=5s")
        assert run.returncode == 2 and "--set takes SECTION.KEY=VALUE" in run.stderr
    run = gua("daemon", "--source", "sim", "--db", tmp_path / "gua.db", "--set", "record.intervall=5s")
    assert run.returncode == 2 and "did you mean 'interval'?" in run.stderr
    assert not (tmp_path / "gua.db").exists()


def test_report_refuses_a_wrong_configuration(tmp_path):
    """Half a configuration would be money in the wrong currency."""
    (tmp_path / "gua.conf").write_text("[money]\ncurency = EUR\nx = 1\n")
    run = gua("report", "--config", "gua.conf", cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr == ("gua report: gua.conf:2: curency: [money] has no such key; did you mean 'currency'?\n"
                          "gua report: gua.conf:3: x: [money] has no such key; see man gua.conf\n")


def recorded(tmp_path, clock_file, *args, text=None, mode=0o644):
    """Records two ticks with a configuration; the run, and the row that it stored."""
    clock, db, file = clock_file(WALL), tmp_path / "gua.db", tmp_path / "gua.conf"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    env = fake_driver(tmp_path, ONE_CARD, clock=clock)
    run = gua("daemon", "--db", db, "--clock", clock, "--root", "/", "--ticks", 2, "--config", file, *args, env=env)
    assert run.returncode == 0, run.stderr
    with sqlite3.connect(db) as store:
        store.row_factory = sqlite3.Row
        return run, store.execute("SELECT * FROM run").fetchone()


def test_recorder_follows_the_configuration(tmp_path, clock_file):
    text = ("[record]\ninterval = 10s\ndrain = 2s\nglance = 500ms\ncount_graphics = yes\n"
            "[thresholds]\nactive_util_pct = 25\nheld_mem = 1GB\n")
    run, row = recorded(tmp_path, clock_file, "--drain", "3s", "--set", "record.glance=2s", text=text)
    assert run.stderr == ""
    assert (row["interval_ms"], row["drain_ms"], row["glance_ms"]) == (10000, 3000, 2000)
    assert (row["active_util_pct"], row["held_mem_bytes"], row["count_graphics"]) == (25, 10**9, 1)


@pytest.mark.parametrize("text, mode, sentence", [
    ("[record]\ninterval = 10s\ndrain = 5\n", 0o644, "gua.conf:3: drain: '5' has no unit"),
    ("[record]\ninterval = 10s\n", 0o646, "other users can write to it"),
    (None, 0, "No such file or directory"),
])
def test_recorder_records_with_a_broken_configuration(tmp_path, clock_file, text, mode, sentence):
    """A broken file at boot must not cost the audit: what is right in it counts, the rest is said."""
    run, row = recorded(tmp_path, clock_file, text=text, mode=mode)
    assert sentence in run.stderr and "the configuration has 1 error;" in run.stderr
    assert row["interval_ms"] == (10000 if mode == 0o644 else 30000)


@pytest.mark.parametrize("text, mode, args, privacy", [
    ("[record]\nprivacy = strict\n", 0o644, [], "strict"),
    ("[record]\nprivacy = strict\n", 0o644, ["--privacy", "normal"], "normal"),
    ("[record]\ninterval = 1\n", 0o644, [], "normal"),
    ("[record]\nprivacy = strct\n", 0o644, [], "strict"),
    ("[record]\nprivacy =\n", 0o644, [], "strict"),
    ("[record]\ninterval = 10s\n", 0o646, [], "strict"),
    ("[record]\ninterval = 10s\n", 0o646, ["--privacy", "normal"], "normal"),
    (None, 0, [], "strict"),
])
def test_privacy_fails_closed(tmp_path, clock_file, text, mode, args, privacy):
    """Where a broken configuration may have asked for strict privacy, it is strict, and the recorder says so."""
    run, row = recorded(tmp_path, clock_file, *args, text=text, mode=mode)
    assert row["privacy"] == privacy
    guessed = privacy == "strict" and text != "[record]\nprivacy = strict\n"
    assert ("privacy is strict until the configuration is right" in run.stderr) == guessed


def test_status_shows_that_the_configuration_is_broken(tmp_path, background):
    (tmp_path / "gua.conf").write_text("[record]\nintervall = 10s\n")
    run = background(ONE_CARD, "--config", tmp_path / "gua.conf")
    assert "did you mean 'interval'?" in run.stderr
    faults = json.loads(gua("status", "--db", run.db, "--json").stdout)["faults"]
    assert len(faults) == 1 and "the configuration has 1 error" in faults[0]["text"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_recorder_ignores_a_file_of_another_user(tmp_path, clock_file):
    text = "[record]\ninterval = 10s\n"
    (tmp_path / "gua.conf").write_text(text)
    os.chown(tmp_path / "gua.conf", 12345, -1)
    run, row = recorded(tmp_path, clock_file)
    assert "belongs to the uid 12345" in run.stderr and row["interval_ms"] == 30000
    os.chown(tmp_path / "gua.conf", 0, 12345)
    run, row = recorded(tmp_path, clock_file, text=text, mode=0o664)
    assert "other users can write to it" in run.stderr
    assert gua("config", "--config", tmp_path / "gua.conf").returncode == 0


def test_sighup_reads_the_configuration_again(tmp_path, background):
    """A changed configuration begins a new run after the next tick; options still beat it; all time is accounted."""
    file = tmp_path / "gua.conf"
    file.write_text("[record]\ninterval = 1h\n[thresholds]\nactive_util_pct = 20\n")
    run = background(ONE_CARD, "--config", file)
    pid = recorder_pid(run.db)

    def read_again(text):
        file.write_text(text)
        os.kill(pid, signal.SIGHUP)

    def runs():
        return rows(run.db, "SELECT active_util_pct, held_mem_bytes, interval_ms FROM run ORDER BY id")

    assert runs() == [(20, 10**8, 200)]
    read_again("[record]\ninterval = 2h\n[thresholds]\nheld_mem = 2GB\n[money]\ncurrency = EUR\n")
    wait_for(lambda: len(runs()) == 2, runs)
    assert runs()[1] == (10, 2 * 10**9, 200)
    log = (tmp_path / "gua.db.log").read_text()
    assert "active_util_pct is 10 after the next tick" in log and "held_mem is 2000000000" in log
    assert "interval is" not in log and "currency is" not in log
    # With an error, what was read before stays in force.
    read_again("[thresholds]\nheld_mem = 3GB\nactive_util = 30\n")
    wait_for(lambda: "the one read before is still in force" in gua("status", "--db", run.db).stdout)
    read_again("[thresholds]\nheld_mem = 2GB\n")
    wait_for(lambda: gua("status", "--db", run.db).stdout.endswith("faults     none\n"))
    assert recorder_pid(run.db) == pid and len(runs()) == 2
    assert gua("stop", "--db", run.db).returncode == 0
    assert rows(run.db, "SELECT how_ended FROM run") == [("stopped",), ("stopped",)]
    (begin,), = rows(run.db, "SELECT min(first_seen_ms) FROM gpu")  # the first list of processes
    (end,), = rows(run.db, "SELECT max(last_tick_ms) FROM run")
    (accounted,), = rows(run.db, "SELECT sum(ms) FROM usage_1m")
    assert accounted >= end - begin - 10


def test_stop_soon_after_a_changed_configuration(tmp_path):
    """The new run, which would begin after the next tick, does not begin."""
    file, db = tmp_path / "gua.conf", tmp_path / "gua.db"
    file.write_text("[thresholds]\nheld_mem = 1GB\n")
    env = clean_environment(**fake_driver(tmp_path, ONE_CARD))
    with subprocess.Popen([GUA, "daemon", "--foreground", "--interval", "1h", "--db", db, "--config", file], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        wait_for(lambda: run_has_begun(db))
        file.write_text("[thresholds]\nheld_mem = 2GB\n")
        child.send_signal(signal.SIGHUP)
        assert any("held_mem is 2000000000 after the next tick" in line for line in child.stdout)
        child.send_signal(signal.SIGTERM)
        try:
            assert child.wait(60) == 0
        finally:
            child.kill()
    assert rows(db, "SELECT how_ended, held_mem_bytes FROM run") == [("stopped", 10**9)]
