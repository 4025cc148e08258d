"""The service on a really booted system, from the packages: run by tools/test-systemd, which names them. It is not
among the tests of `make test`, because it needs root, a mirror of Debian and some minutes.

The tests are the life of one machine, in order: each begins where the one before ended."""
import json
import os
import pathlib
import re
import time

import pytest

from machine import Machine

BASE, OLD, NEW, FAKE = (os.environ[f"GUA_SYSTEMD_{name}"] for name in ("BASE", "OLD", "NEW", "FAKE"))
SCENARIO = """host gpu-test
card 0 uuid GPU-11111111-2222-3333-4444-555555555555 name "NVIDIA A100-SXM4-80GB" memory 80GiB
card 1 uuid GPU-11111111-2222-3333-4444-666666666666 name "NVIDIA A100-SXM4-80GB" memory 80GiB
process work pid file work
process idle pid file idle
at 0s hold work card 0 memory 20GiB
at 0s load work card 0 sm 80
at 0s hold idle card 1 memory 20GiB
"""
# All who ask see one play, whenever they begin to.
VARIABLES = {"FAKENVML_SCENARIO": "/srv/driver.scenario", "FAKENVML_PIDS": "/srv/pids", "FAKENVML_START": str(time.time())}
ENVIRONMENT = "[Service]\n" + "".join(f"Environment={name}={value}\n" for name, value in VARIABLES.items())
DROP_IN = ENVIRONMENT + "WatchdogSec=4s\n"
# systemd-analyze security, from 0 to 10. gua-digest starts sendmail, which needs its privileges: no limit.
EXPOSURE = {"gua": 2.0, "gua-serve": 2.0, "gua-enforce": 2.0, "gua-end@1": 2.0, "gua-metrics": 2.0, "gua-lease@1": 2.0, "gua-lease@kubelet": 2.0,
            "gua-digest": 10.0}
CONFIG = "[record]\ninterval = 2s\ndrain = 1s\n"
# A unit for the Python tool gpu-usage-audit, as its users write it, on a systemd that does not name the main process.
PYTHON_UNIT = """[Unit]
Description=GPU usage audit
[Service]
Type=simple
ExecStart=/usr/bin/gpu-usage-audit daemon --db /var/lib/audit/gua.db --interval 2s
UnsetEnvironment=SYSTEMD_EXEC_PID
Restart=on-failure
[Install]
WantedBy=multi-user.target
"""
RULES = """[thresholds]
spell = 1s
[policy]
mode = enforce
every = 1s
breaker_pct = 100
[notices]
channels = command
command = /bin/true
per_day = 100
[rule idle]
unit = idle.service
level = end
warn = 2s
warn_again = 3s
final_notice = 2s
end = 6s
[end]
confirm = 1s
sample = 200ms
grace = 20s
"""
LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"


def packages(folder):
    return sorted(path for path in pathlib.Path(folder).glob("*.deb") if "dbgsym" not in path.name)


def install(machine, folder, run):
    """Installs the packages of a folder with dpkg, by `run`: before the machine is booted, or inside."""
    names = []
    for path in packages(folder):
        machine.put(path, f"/srv/{path.name}")
        names.append(f"/srv/{path.name}")
    run("dpkg", "--install", *names)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    it = Machine(tmp_path_factory.mktemp("machine"), BASE)
    it.put(FAKE, LIBRARY)
    it.write("/srv/driver.scenario", SCENARIO)
    it.write("/etc/systemd/system/gua.service.d/test.conf", DROP_IN)
    it.write("/etc/systemd/system/gua-enforce.service.d/test.conf", ENVIRONMENT)
    it.environment = VARIABLES
    (it.root / "srv/pids").mkdir()
    for user in ("alice", "mallory"):
        it.chroot("useradd", "--create-home", user)
    install(it, OLD, it.chroot)
    it.chroot("usermod", "-a", "-G", "gua", "alice")
    it.boot()
    try:
        yield it
    finally:
        it.end()


def ticks(machine):
    """How far the store is accounted, in milliseconds; 0: nothing yet."""
    query = "SELECT coalesce(max(last_tick_ms), 0) FROM run"
    return int(machine.run("python3", "-c", f"import sqlite3; print(sqlite3.connect('file:/var/lib/gua/gua.db?mode=ro', "
                           f"uri=True).execute('{query}').fetchone()[0])").stdout)


def wait_for_tick(machine):
    now = ticks(machine)
    machine.wait(lambda: ticks(machine) > now, "no tick was stored")


def runs(machine):
    program = ("import json, sqlite3; print(json.dumps(sqlite3.connect('file:/var/lib/gua/gua.db?mode=ro', uri=True)"
               ".execute('SELECT started_ms, ended_ms, how_ended FROM run ORDER BY id').fetchall()))")
    return json.loads(machine.run("python3", "-c", program).stdout)


def unobserved_ms(machine):
    """Time between the first and the last reading for which there is none."""
    program = ("import sqlite3; d = sqlite3.connect('file:/var/lib/gua/gua.db?mode=ro', uri=True); "
               "print(d.execute('SELECT coalesce(sum(ms), 0) FROM total_gpu WHERE state = 3').fetchone()[0])")
    return int(machine.run("python3", "-c", program).stdout)


def most_lost_ms(machine):
    """What the last restart may lose on both cards: the driver keeps samples of use, but who held an idle card is known
    only up to the last list of the old run, and again with the first one of the new run, a drain after its start."""
    *_, last, now = runs(machine)
    return 2 * (now[0] - last[1] + 1000)


def test_it_is_not_started_by_its_package(machine):
    assert machine.run("systemctl", "is-enabled", "gua", check=False).stdout.strip() == "disabled"
    assert machine.run("systemctl", "is-active", "gua", check=False).stdout.strip() == "inactive"


def test_enable_starts_it_and_it_reports_that_it_is_ready(machine):
    machine.write("/etc/gua/gua.conf", CONFIG)
    machine.run("systemctl", "enable", "--now", "gua")
    assert machine.show("ActiveState") == "active"
    assert machine.show("StatusText") or machine.show("SubState") == "running"
    wait_for_tick(machine)


def test_a_holder_is_seen_and_named(machine):
    machine.run("sh", "-c", "systemd-run --quiet --uid=alice --unit=work sleep 100000")
    pid = machine.show("MainPID", "work")
    machine.write("/srv/pids/work", pid)
    machine.wait(lambda: "alice" in machine.run("gua", "who", as_user="alice").stdout, "the holder is not shown")
    shown = machine.run("gua", "who", as_user="alice").stdout
    assert len(re.findall(rf"\b{pid}\b", shown)) == 1
    machine.wait(lambda: "alice" in machine.run("gua", "report", "--since", "1h", as_user="alice").stdout, "not recorded")


def test_members_of_the_group_read_without_naming_a_path(machine):
    for command in (["status"], ["report"], ["report", "--format", "json"], ["who"], ["events"], ["stat"], ["export"],
                    ["doctor"], ["config"], ["metrics"], ["top", "--once"], ["dmon", "-c", "1"], ["smi"], ["smi", "-L"],
                    ["query", "--query-gpu=name,gua.state", "--format=csv"],
                    ["enforce", "simulate"]):
        done = machine.run("gua", *command, as_user="alice", check=False)
        assert done.returncode == 0, (command, done.stderr)


def test_others_are_told_which_group_to_ask_for(machine):
    mode = (machine.root / "var/lib/gua").stat().st_mode & 0o7777
    assert mode == 0o750
    for path in (machine.root / "var/lib/gua").glob("gua.db"):
        assert path.stat().st_mode & 0o777 == 0o640
    for command in (["report"], ["status"], ["export"], ["events"], ["metrics"], ["enforce", "simulate"]):
        done = machine.run("gua", *command, as_user="mallory", check=False)
        assert done.returncode == 1 and re.search(r"\bgroup '?gua\b", done.stderr), (command, done.stderr)


def test_it_needs_no_privilege(machine):
    units = {path.name.replace("@.", "@1.").rsplit(".", 1)[0] for path in (machine.root / "lib/systemd/system").glob("gua*.service")}
    assert units == set(EXPOSURE)
    for unit, most in EXPOSURE.items():
        exposure = machine.run("systemd-analyze", "security", "--no-pager", f"{unit}.service").stdout.splitlines()[-1]
        assert float(re.search(r"(\d+\.\d+)", exposure).group(1)) <= most, exposure
    main = machine.show("MainPID")
    shown = machine.run("cat", f"/proc/{main}/status").stdout
    assert re.search(r"^CapEff:\s+0+$", shown, re.MULTILINE) and re.search(r"^NoNewPrivs:\s+1$", shown, re.MULTILINE)


def test_a_hung_recorder_is_started_again(machine):
    first, before = machine.show("MainPID"), int(machine.show("NRestarts"))
    machine.run("sh", "-c", f"kill -STOP {first}")
    machine.wait(lambda: int(machine.show("NRestarts")) > before, "the watchdog did not fire")
    machine.wait(lambda: machine.show("ActiveState") == "active", "it did not come back")
    assert machine.show("MainPID") != first
    wait_for_tick(machine)


def test_a_killed_recorder_is_back_within_the_drivers_ring(machine):
    """No use of the time between is lost: the driver keeps the samples of about ten seconds."""
    lost, first = unobserved_ms(machine), machine.show("MainPID")
    machine.run("sh", "-c", f"kill -KILL {first}")
    machine.wait(lambda: machine.show("MainPID") not in ("0", first), "it did not come back")
    wait_for_tick(machine)
    assert unobserved_ms(machine) - lost <= most_lost_ms(machine)


def test_an_upgrade_loses_no_more_than_the_restart_takes(machine):
    before, lost = len(runs(machine)), unobserved_ms(machine)
    install(machine, NEW, machine.run)
    machine.wait(lambda: len(runs(machine)) > before, "the upgrade did not start it again")
    wait_for_tick(machine)
    *_, last, now = runs(machine)
    assert (last[2], now[1]) == ("stopped", None)
    assert unobserved_ms(machine) - lost <= most_lost_ms(machine)


def test_a_reload_reads_the_configuration_again(machine):
    first = machine.show("MainPID")
    machine.run("systemctl", "reload", "gua")
    wait_for_tick(machine)
    assert machine.show("MainPID") == first


def test_two_recorders_do_not_confuse_the_views(machine):
    """A user's own beside the service."""
    machine.run("gua", "start", "--db", "/home/alice/own.db", "--interval", "2s", as_user="alice")
    pid = machine.show("MainPID", "work")
    assert len(re.findall(rf"\b{pid}\b", machine.run("gua", "who", as_user="alice").stdout)) == 1
    assert len(re.findall("A100", machine.run("gua", "stat", as_user="alice").stdout)) == 2
    assert "/var/lib/gua/gua.db" in machine.run("gua", "status", as_user="alice").stdout
    examined = " ".join(machine.run("gua", "doctor", as_user="alice", check=False).stdout.split())
    assert "/var/lib/gua/gua.db is a store of gua, and a recorder is running on it" in examined
    machine.run("gua", "stop", "--db", "/home/alice/own.db", as_user="alice")
    assert machine.show("ActiveState") == "active"


def test_gua_stop_leaves_a_service_to_systemd(machine):
    pid = machine.show("MainPID")
    done = machine.run("gua", "stop", check=False)
    assert done.returncode == 1 and "run: systemctl stop gua.service" in done.stderr
    assert machine.show("MainPID") == pid


def test_a_unit_of_the_python_tool_works(machine):
    machine.write("/etc/systemd/system/gpu-usage-audit.service", PYTHON_UNIT)
    machine.write("/etc/systemd/system/gpu-usage-audit.service.d/test.conf", ENVIRONMENT)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", "--now", "gpu-usage-audit")
    machine.wait(lambda: "tick 2: 2 of 2 cards read" in machine.journal("gpu-usage-audit"), "no line for a tick")
    assert (machine.show("ActiveState", "gpu-usage-audit"), machine.show("NRestarts", "gpu-usage-audit")) == ("active", "0")
    assert machine.run("gua", "status", "--db", "/var/lib/audit/gua.db").returncode == 0
    machine.run("systemctl", "disable", "--now", "gpu-usage-audit")
    assert machine.show("Result", "gpu-usage-audit") == "success"
    assert "stopped" in machine.run("gua", "status", "--db", "/var/lib/audit/gua.db", check=False).stdout


def ask(machine, path):
    program = f"import urllib.request as r; a = r.urlopen('http://127.0.0.1:9848{path}', timeout=60); print(a.status, a.read())"
    return machine.run("python3", "-c", program, as_user="mallory").stdout


def test_the_first_request_starts_the_web_server(machine):
    machine.run("systemctl", "start", "gua-serve.socket")
    assert machine.show("ActiveState", "gua-serve.service") == "inactive"
    assert re.match("200 .*A100", ask(machine, "/api/v1/now"))
    assert machine.show("ActiveState", "gua-serve.service") == "active"
    status = machine.run("cat", f"/proc/{machine.show('MainPID', 'gua-serve.service')}/status").stdout
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE) and not re.search(r"^Uid:\s+0\b", status, re.MULTILINE)
    machine.run("systemctl", "reload", "gua-serve.service")
    assert ask(machine, "/").startswith("200 ")
    machine.run("systemctl", "stop", "gua-serve.socket", "gua-serve.service")
    assert machine.show("Result", "gua-serve.service") == "success"


def test_a_session_is_ended_by_the_program_that_may(machine):
    """gua enforce has no privilege: gua-end, which its socket starts, signals another user's process."""
    machine.write("/etc/gua/gua.conf", CONFIG + RULES)
    machine.run("systemctl", "reload", "gua")
    # Services of the system are exempt: this is one of a login.
    machine.run("sh", "-c", "systemd-run --quiet --uid=alice --slice=user-$(id -u alice).slice --unit=idle "
                "--property=RemainAfterExit=yes sleep 100000")
    machine.write("/srv/pids/idle", machine.show("MainPID", "idle"))
    machine.run("systemctl", "start", "gua-enforce")
    assert machine.show("ActiveState", "gua-end.socket") == "active"
    machine.run("gua", "enforce", "arm", "--until", "1d")
    machine.wait(lambda: machine.show("SubState", "idle") != "running",
                 lambda: f"the idle session was not ended\n{machine.journal('gua-enforce')}\n{machine.journal('gua-end*')}")
    assert machine.show("SubState", "work") == "running"
    status = machine.run("cat", f"/proc/{machine.show('MainPID', 'gua-enforce')}/status").stdout
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    logged = machine.run("gua", "enforce", "log", as_user="alice").stdout
    assert re.search("end.*idle", logged), logged
    refused = machine.run("gua", "enforce", "disarm", as_user="alice", check=False)
    assert refused.returncode == 1 and "policy.db: Permission denied; run this as root" in refused.stderr
    # Nobody else may ask gua-end.
    done = machine.run("python3", "-c", "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)"
                       ".connect('/run/gua-end/socket')", as_user="alice", check=False)
    assert "PermissionError" in done.stderr
    machine.run("systemctl", "stop", "gua-enforce")
    assert machine.show("Result", "gua-enforce") == "success"
    machine.write("/etc/gua/gua.conf", CONFIG)
    machine.run("systemctl", "reload", "gua")


def test_it_comes_back_after_a_reboot(machine):
    machine.reboot()
    assert machine.show("ActiveState") == "active"
    wait_for_tick(machine)
    *_, last, now = runs(machine)
    assert (last[2], now[1]) == ("stopped", None)


def test_hidden_processes_are_said_to_be_hidden(machine):
    """With hidepid the recorder cannot know whose a process is."""
    machine.run("mount", "-o", "remount,hidepid=2", "/proc")
    done = machine.run("gua", "doctor", as_user="alice", check=False)
    machine.run("mount", "-o", "remount,hidepid=0", "/proc")
    assert "hidepid" in done.stdout


def test_a_stop_is_quick_and_writes_the_end(machine):
    begun = time.monotonic()
    machine.run("systemctl", "stop", "gua")
    assert time.monotonic() - begun < 60
    assert runs(machine)[-1][2] == "stopped"


def test_purging_the_packages_stops_all_and_keeps_the_data(machine):
    enabled = ("gua.service", "gua-serve.socket", "gua-enforce.service", "gua-digest.timer", "gua-metrics.timer",
               "gua-lease@slurm.service")
    machine.run("systemctl", "enable", "--now", *enabled)
    machine.run("systemctl", "start", "gua-serve.service")
    assert machine.show("ActiveState", "gua-end.socket") == "active"
    names = [path.name.split("_")[0] for path in packages(NEW)]
    said = machine.run("dpkg", "--purge", *names).stdout
    assert "Kept, with the users who own it: /var/lib/gua\n" in said
    assert not re.search(r"^.[^n]\s+gua\b", machine.run("dpkg", "--list").stdout, re.MULTILINE)
    assert machine.run("systemctl", "cat", "gua", check=False).returncode != 0
    left = machine.run("systemctl", "list-units", "--plain", "--no-legend", "--state=active,activating", "gua*").stdout
    assert not left, left
    machine.wait(lambda: "gua" not in machine.run("sh", "-c", "cat /proc/[0-9]*/comm", check=False).stdout,
                 "processes of gua are left")
    assert (machine.root / "var/lib/gua/gua.db").exists()
    kept = (machine.root / "etc/systemd/system").rglob("*")
    assert {path.name for path in kept if re.match("gua[.@-]", path.name)} == {"gua.service.d", "gua-enforce.service.d"}
    assert not (machine.root / "usr/bin/gua").exists() and not (machine.root / "usr/libexec/gua").exists()
