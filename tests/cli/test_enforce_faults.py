"""gua enforce run when something goes wrong: the driver, the delivery of notices, the disk, the data itself."""
import json
import pathlib
import socket
import subprocess
import time

import pytest
from conftest import wait_for
from enforcing import IN_ORDER, TOMORROW, hosts, kinds, needs_enforce  # noqa: F401

pytestmark = [*needs_enforce, pytest.mark.waits]

# Ends some time after SIGTERM: when there is a file `end` in its directory.
SLOW_TO_END = """import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: None)
while not os.path.exists("end"):
    time.sleep(0.1)
"""


def test_the_service_manager_hears_when_it_can_be_armed(hosts):
    host = hosts({})
    host.record()
    wait_for(host.db.exists)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(host.where / "notify"))
        manager.settimeout(60)
        host.env["NOTIFY_SOCKET"] = str(host.where / "notify")
        host.enforce()
        assert manager.recv(100) == b"READY=1"
    assert (host.where / "policy.db").exists(), host.log()


def test_a_silent_driver_stops_the_clock(hosts):
    """Eight seconds in which nobody can see the card are not idle time."""
    host = hosts({"idle": (0, "8GiB")}, scenario="at 4s lost card 0 until 12s\n")
    idle, began = host.start("idle"), time.time()
    host.record()
    host.arm()
    host.enforce()
    host.wait_for_step(idle.pid, "end")
    assert time.time() - began > 12
    host.wait_for_step(idle.pid, "ended")
    wait_for(lambda: "ended" in kinds(host, idle), host.log)
    assert kinds(host, idle)[-3:] == IN_ORDER[-3:]


def test_a_warning_that_does_not_arrive_delays_the_end(hosts):
    """Mail is down: the first warning is not delivered, so there is no second one."""
    host = hosts({"idle": (0, "8GiB")}, notices="channels = mail\nsendmail = /bin/false")
    idle = host.start("idle", uid=65534)    # it has a name, so it has an address
    host.record()
    host.arm()
    host.enforce()
    host.wait_for_step(idle.pid, "warn", "warning")
    wait_for(lambda: "/bin/false ended with status 1" in host.log(), host.log)
    time.sleep(8)
    assert [step for step, _, _ in host.steps(idle.pid)] == ["warn"]
    assert idle.poll() is None


def test_a_login_notice_is_removed_when_it_is_over(hosts):
    host = hosts({"idle": (0, "8GiB")}, notices="channels = login\nlogin_directory = {where}/motd.d")
    (host.where / "motd.d").mkdir()
    notice = host.where / "motd.d" / "nobody"
    idle = host.start("idle", uid=65534)
    host.record()
    wait_for(host.db.exists)
    host.enforce()
    wait_for(notice.exists, host.log)
    assert "holds 8.0 GiB on card 0" in notice.read_text()
    idle.kill()
    idle.wait()
    wait_for(lambda: not notice.exists(), host.log)


def test_a_small_host_has_no_deadlock(hosts):
    """With the usual limits, three of four sessions are due at once: two are ended one after the other, the third waits for
    the limit of an hour."""
    host = hosts({key: (0, "4GiB") for key in ("a", "b", "c")}, policy="")
    children = [host.start(key) for key in ("a", "b", "c")]
    host.record()
    host.arm()
    host.enforce()
    wait_for(lambda: [step for step, _, _ in host.steps()].count("ended") == 2, host.log)
    assert sorted(child.poll() is None for child in children) == [False, False, True]
    assert not any(step == "breaker" for step, _, _ in host.steps())


def test_no_record_no_action(hosts):
    """The disk is full when the session is to be ended; once there is room, it is. It is full again when the result is to
    be recorded: that is done later."""
    host = hosts({"idle": (0, "8GiB")})
    idle, disk = host.start("idle", "/usr/bin/python3", "-c", SLOW_TO_END, cwd=host.where), host.where / "disk"
    disk.mkdir()
    mount = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=2m none {disk} && exec "$0" "$@"']
    if subprocess.run([*mount, "true"], capture_output=True).returncode != 0:
        pytest.skip("may not mount")
    host.record()
    wait_for(host.db.exists)
    enforcer = host.enforce("--policy-db", disk / "policy.db", before=mount)
    inside = pathlib.Path(f"/proc/{enforcer.pid}/root{disk}")
    wait_for(lambda: (inside / "policy.db").exists(), host.log)
    enter = ["nsenter", "-t", str(enforcer.pid), "-m"]
    run = host.gua("enforce", "arm", "--until", TOMORROW, "--db", host.db, "--policy-db", disk / "policy.db", before=enter)
    assert run.returncode == 0, run.stderr
    wait_for(lambda: "final" in kinds(host, idle), host.log)

    def fill():
        with open(inside / "fill", "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass

    def steps():
        run = host.gua("enforce", "log", "--db", host.db, "--policy-db", disk / "policy.db", "--json", before=enter)
        return [row["step"] for row in json.loads(run.stdout)["actions"]] if run.returncode == 0 else []
    fill()
    wait_for(lambda: "full" in host.log(), host.log)
    time.sleep(2)
    assert idle.poll() is None
    (inside / "fill").unlink()
    wait_for(lambda: "signal" in steps(), host.log)
    fill()
    (host.where / "end").touch()
    assert idle.wait(90) == 0
    wait_for(lambda: "cannot record the result" in host.log(), host.log)
    assert "ended" not in steps()
    (inside / "fill").unlink()
    wait_for(lambda: "ended" in steps() and "recorded again" in host.log(), host.log)


# Uses a third of a processor, of which 5 % are enough, until there is a file `stop` in its directory.
COMPUTES = """import os, time
while not os.path.exists("stop"):
    began = time.process_time()
    while time.process_time() < began + 0.005:
        sum(range(1000))
    time.sleep(0.01)
time.sleep(300)
"""


def test_one_that_computes_on_the_cpu_is_told_once(hosts):
    """It is spared for as long as it computes, and told so once. Then it begins again, with the first warning."""
    host = hosts({"one": (0, "8GiB")})
    host.config.write_text(host.config.read_text().replace("warn_again = 4s\n", "warn_again = never\n").replace("end = 7s", "end = 4s")
                           .replace("confirm = 1s", "confirm = 4s"))
    one = host.start("one", "/usr/bin/python3", "-c", COMPUTES, cwd=host.where)
    host.record()
    host.arm()
    host.enforce()
    host.wait_for_step(one.pid, "spared")
    assert host.steps(one.pid)[-1][:2] == ("spared", "spared")
    assert "it computes on the CPU, with " in host.steps(one.pid)[-1][2]
    time.sleep(8)    # longer than from the first warning to the end
    assert kinds(host, one) == ["warning", "final", "not-ended"], host.steps(one.pid)
    assert [step for step, _, _ in host.steps(one.pid)] == ["warn", "warn", "end", "spared"]
    said = host.gua("enforce", "explain", one.pid, "--db", host.db).stdout
    assert "nothing happens now: it computes on the CPU\n  next: the first warning, once its processes stop computing" in said, said
    (host.where / "stop").touch()
    host.wait_for_step(one.pid, "ended")
    wait_for(lambda: "ended" in kinds(host, one), host.log)
    assert kinds(host, one) == ["warning", "final", "not-ended", "warning", "final", "ended"]
