"""gua enforce run from end to end: real processes that hold the fake driver's cards are warned, warned again, given a
final notice and ended, or spared. Rules have seconds where an administrator has hours."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import pytest
from asking import ask
from conftest import wait_for
from ender import start_as, start_ticks
from enforcing import IN_ORDER, UID, hosts, kinds, needs_enforce  # noqa: F401

pytestmark = [*needs_enforce, pytest.mark.waits]


def test_from_the_first_warning_to_the_end(hosts):
    """Beside those that are spared; recorder and enforcer are restarted on the way."""
    host = hosts({"idle": (0, "8GiB"), "late": (1, "8GiB"), "exempt": (2, "8GiB"), "kept": (3, "8GiB"),
                  "small": (4, "900MiB"), "video": (5, "8GiB")},
                 more=f"[exempt friends]\nuser = uid:{UID + 1}\nowner = carol\nuntil = 2099-12-31\n")
    idle, late, small = host.start("idle"), host.start("late"), host.start("small")
    exempt, kept = host.start("exempt", uid=UID + 1), host.start("kept", uid=UID + 2)
    video = host.start("video", uid=UID + 3)
    (host.pids / "video.encodes").touch()
    recorder, enforcer = host.record(), None
    host.arm()
    enforcer = host.enforce()
    host.wait_for_step(idle.pid, "warn", "warning")
    run = host.gua("keep", kept.pid, "--for", "1h", "--reason", "waiting for data", "--db", host.db,
                   user=UID + 2, group=UID + 2, extra_groups=[])
    keeps = run.returncode == 0
    host.wait_for_step(idle.pid, "warn", "second warning")
    host.stop(enforcer)
    host.stop(recorder)
    recorder, enforcer = host.record(), host.enforce()
    host.wait_for_step(late.pid, "warn", "final notice")
    (host.pids / "late.busy").touch()
    host.wait_for_step(idle.pid, "ended")
    wait_for(lambda: "ended" in kinds(host, idle), host.log)
    assert idle.wait(60) == -signal.SIGTERM
    # In order, whatever was restarted; the step is on record before the signal.
    steps = host.steps(idle.pid)
    assert kinds(host, idle) == IN_ORDER, steps
    assert [step for step, _, _ in steps] == ["warn", "warn", "warn", "end", "signal", "ended"], steps
    assert [result for step, _, result in steps if step == "signal"] == ["SIGTERM"]
    assert "8.0 GiB given back" in steps[-1][2] and f"ended session {idle.pid} of uid:{UID}: 8.0 GiB freed\n" in host.log()
    row, = [line for line in host.gua("enforce", "log", "--db", host.db).stdout.splitlines() if " signal " in line]
    assert re.search(rf" signal +uid:{UID} +session {idle.pid} +0 +sleep: SIGTERM \(idle in \d+ looks at the driver", row), row
    # Those who were active, exempt, kept or small live.
    for child in (late, exempt, small, video, *([kept] if keeps else [])):
        assert child.poll() is None, host.log()
    assert "ended" not in kinds(host, late) and kinds(host, exempt) == kinds(host, small) == []
    assert keeps, run.stderr
    assert "again" not in kinds(host, kept)
    host.stop(enforcer)
    host.stop(recorder)
    # One that only encodes is not idle, whatever the report calls it; simulate says the same of this recording.
    assert kinds(host, video) == [] and host.steps(video.pid) == []
    said = json.loads(host.gua("enforce", "simulate", "--db", host.db, "--json").stdout)
    assert f"uid:{UID + 3}" not in {session["user"] for session in said["sessions"]} != set()


def test_one_that_is_kept_at_the_last_moment(hosts):
    """Between the decision and the signal."""
    host = hosts({"idle": (0, "8GiB"), "kept": (1, "8GiB")})
    host.config.write_text(host.config.read_text().replace("confirm = 1s", "confirm = 4s"))
    idle, kept = host.start("idle"), host.start("kept")
    host.record()
    host.arm()
    host.enforce()
    host.wait_for_step(kept.pid, "end")
    answer = ask(host.where, UID, ask="keep", pid=kept.pid, start_ticks=start_ticks(kept.pid), for_ms=3600000, reason="data")
    assert answer["ok"], answer
    host.wait_for_step(kept.pid, "spared")
    assert [result for step, _, result in host.steps(kept.pid) if step == "spared"] == ["its user keeps it"]
    assert idle.wait(60) == -signal.SIGTERM
    assert kept.poll() is None and "signal" not in [step for step, _, _ in host.steps(kept.pid)]


IGNORES = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"


@pytest.mark.parametrize("order, why", [
    (None, ""), ("disarm", "ending is no longer allowed"), ("keep", "its user keeps it"),
    ("exempt", "it is exempt: [exempt friends]"), ("use", "it used card 0")])
def test_a_stop_order_between_the_signals(hosts, order, why):
    """Before SIGKILL everything is asked again that was asked before SIGTERM."""
    host = hosts({"stubborn": (0, "8GiB")})
    host.config.write_text(host.config.read_text().replace("level = end", "level = end\nkill_after_term = yes")
                           .replace("grace = 20s", "grace = 6s"))
    stubborn = host.start("stubborn", "/usr/bin/python3", "-c", IGNORES, stdout=subprocess.PIPE)
    stubborn.stdout.readline()
    host.record()
    host.arm()
    enforcer = host.enforce()
    host.wait_for_step(stubborn.pid, "signal")
    if order == "disarm":
        assert host.gua("enforce", "disarm", "--db", host.db).returncode == 0
    elif order == "keep":
        run = host.gua("keep", stubborn.pid, "--for", "1h", "--reason", "it saves its work", "--db", host.db, user=UID,
                       group=UID, extra_groups=[])
        assert run.returncode == 0, run.stderr
    elif order == "exempt":
        host.config.write_text(host.config.read_text() +
                               f"[exempt friends]\nuser = uid:{UID}\nowner = carol\nuntil = 2099-12-31\n")
        enforcer.send_signal(signal.SIGHUP)
    elif order == "use":
        (host.pids / "stubborn.busy").touch()
    if not why:
        assert stubborn.wait(60) == -signal.SIGKILL, host.log()
        host.wait_for_step(stubborn.pid, "ended")
        assert [result for step, _, result in host.steps(stubborn.pid) if step == "signal"] == ["SIGTERM", "SIGKILL"]
        return
    host.wait_for_step(stubborn.pid, "spared")
    assert [result for step, _, result in host.steps(stubborn.pid) if step == "signal"] == ["SIGTERM"]
    said, = [result for step, _, result in host.steps(stubborn.pid) if step == "spared"]
    assert said.startswith(f"SIGTERM was sent, but not SIGKILL: {why}"), said
    time.sleep(1)
    assert stubborn.poll() is None


CROWD = """import os, sys, time
for _ in range(int(sys.argv[1])):
    if not os.fork():
        time.sleep(300)
        os._exit(0)
print(*[path for path in os.popen("ps -o pid= --ppid %d" % os.getpid()).read().split()], flush=True)
time.sleep(300)
"""


def test_a_session_of_very_many_processes(hosts):
    """It is ended in batches, takes no place of anybody else, and makes no flood of messages."""
    n = 300
    host = hosts({"other-idle": (1, "8GiB"), **{f"crowd{i}": (0, "100MiB") for i in range(n)}})
    other = host.start("other-idle", uid=UID + 1)
    crowd = start_as(UID, "/usr/bin/python3", "-c", CROWD, str(n), start_new_session=True, stdout=subprocess.PIPE, text=True)
    host.children.append(crowd)
    pids = []
    while len(pids) < n:
        pids += [int(word) for word in crowd.stdout.readline().split()]
    for i in range(n):
        host.hold(f"crowd{i}", pids[i])
    host.record()
    host.arm()
    host.enforce()
    host.wait_for_step(other.pid, "ended")
    host.wait_for_step(pids[0], "ended")
    signals = [result for step, _, result in host.steps(pids[0]) if step == "signal"]
    assert signals[0] == "SIGTERM, processes 1 to 64 of 300" and len(signals) == 5, signals
    assert crowd.poll() is None     # it holds no card
    assert host.log().count("cannot be held") == 0


def test_nothing_is_ended_unarmed(hosts):
    """People are asked, and no notice speaks of an end."""
    host = hosts({"idle": (0, "8GiB")})
    idle = host.start("idle")
    host.record()
    wait_for(host.db.exists)
    host.enforce()
    host.wait_for_step(idle.pid, "warn", "second warning")
    time.sleep(6)
    assert idle.poll() is None
    assert kinds(host, idle) == ["warning", "again"]
    assert "the session is ended" not in host.told_path.read_text()


JUPYTER = """import os, sys
os.environ.update(HOME=sys.argv[1], JUPYTER_RUNTIME_DIR=sys.argv[1] + "/run", JUPYTER_ALLOW_INSECURE_WRITES="1")
os.chdir(sys.argv[1])
os.execvp("jupyter-notebook", ["jupyter-notebook", "--no-browser", "--ip=127.0.0.1", "--port=" + sys.argv[2], "--port-retries=50",
                               "--NotebookApp.token=gua", "--NotebookApp.disable_check_xsrf=True"])
"""


def test_a_jupyter_kernel(hosts):
    """Its server stays, and starts an empty kernel in its place."""
    if not shutil.which("jupyter-notebook"):
        pytest.skip("needs jupyter-notebook and python3-ipykernel")
    host = hosts({"kernel": (0, "8GiB")})
    home = host.where / "home"
    (home / "run").mkdir(parents=True)
    for path in home, home / "run":
        os.chown(path, UID, UID)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with open(host.where / "jupyter.log", "w") as log:
        server = start_as(UID, "/usr/bin/python3", "-c", JUPYTER, home, str(port), start_new_session=True, stdout=log, stderr=log)
    host.children.append(server)

    def info():
        files = list((home / "run").glob("nbserver-*.json"))
        return json.loads(files[0].read_text()) if files and files[0].read_text().rstrip().endswith("}") else None
    wait_for(info, lambda: (host.where / "jupyter.log").read_text())
    port = info()["port"]

    def call(path, data=None):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/api/{path}", data, {"Authorization": "token gua"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.loads(reply.read())

    def kernel_pid():
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if f"kernel-{kernel}.json".encode() in path.read_bytes():
                    return int(path.parent.name)
            except OSError:
                continue
        return 0

    def ready():
        try:
            return call("kernels") is not None
        except OSError:
            return False
    wait_for(ready)
    kernel = call("kernels", b"{}")["id"]
    wait_for(kernel_pid)
    pid = kernel_pid()
    host.record()
    host.arm()
    host.hold("kernel", pid)
    host.enforce()
    host.wait_for_step(pid, "ended")
    wait_for(lambda: ("ended", pid) in host.told(), host.log)
    assert [kind for kind, told in host.told() if told == pid] == IN_ORDER
    notices = [json.loads(line) for line in host.told_path.read_text().splitlines()]
    assert all(notice["what"].endswith(f" (kernel {kernel[:8]})") and notice["what"][0] == "/" for notice in notices if notice["pid"] == pid)
    assert not pathlib.Path(f"/proc/{pid}").exists() or kernel_pid() != pid
    assert server.poll() is None
    wait_for(lambda: [k["id"] for k in call("kernels")] == [kernel])


def make_podman(where):
    """Podman with files of its own. Where a host has both kinds of cgroups at once, which crun refuses, it does not see
    the second kind: in a name space of its own, so that nothing changes for others."""
    podman = where / "podman"
    command = f"podman --root {where}/store --runroot {where}/run --cgroup-manager cgroupfs"
    hide = "umount /sys/fs/cgroup/unified"
    text = f'exec {command} "$@"\n'
    if pathlib.Path("/sys/fs/cgroup/unified").is_mount():
        text = f"exec unshare -m sh -c '{hide} && exec {command} \"$@\"' podman \"$@\"\n"
    podman.write_text("#!/bin/sh\n" + text)
    podman.chmod(0o755)
    return podman


def make_root(where):
    """A root file system with one program."""
    libraries = subprocess.run(["ldd", "/bin/sleep"], check=True, capture_output=True, text=True).stdout.split()
    for path in ["/bin/sleep", *(word for word in libraries if word.startswith("/"))]:
        (where / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, where / path[1:])
    for name in "proc", "sys", "dev", "etc", "run", "tmp":
        (where / name).mkdir(exist_ok=True)


def pids_of(arguments):
    """The processes with these arguments."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [int(path.parent.name)] * (path.read_bytes() == arguments)
    return found


def test_a_container(hosts):
    """Podman ends it, because a signal to its first process would be ignored; but not while somebody else works in it."""
    if not shutil.which("podman"):
        pytest.skip("needs podman")
    host = hosts({"container": (0, "8GiB"), "bob": (1, "4GiB")}, scenario="at 0s load bob card 1 sm 50")
    podman = [str(make_podman(host.where))]
    make_root(host.where / "root")
    run = subprocess.run([*podman, "run", "-d", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit",
                          "nproc=1024:1024", "--user", str(UID), "--rootfs", host.where / "root", "/bin/sleep", "300"],
                         capture_output=True, text=True, timeout=120)
    try:
        if run.returncode != 0:
            pytest.skip(f"this machine runs no container: {run.stderr.strip()[-100:]}")
        pid = int(subprocess.run([*podman, "inspect", "-f", "{{.State.Pid}}", run.stdout.strip()], check=True,
                                 capture_output=True, text=True).stdout)
        host.config.write_text(host.config.read_text().replace("[end]\n", f"[end]\npodman = {' '.join(podman)} stop -t 1\n")
                               .replace("[rule all]", "[rule all]\ncontainer = podman:*")
                               .replace("warn_again = 4s\nfinal_notice = 2s\nend = 7s",
                                        "warn_again = never\nfinal_notice = 1s\nend = 4s"))
        subprocess.run([*podman, "exec", "-d", "--user", str(UID + 1), run.stdout.strip(), "/bin/sleep", f"300.{os.getpid()}"],
                       check=True, capture_output=True, timeout=120)
        arguments = b"/bin/sleep\x00300.%d\x00" % os.getpid()
        wait_for(lambda: pids_of(arguments))
        bob, = pids_of(arguments)
        host.hold("container", pid)
        host.hold("bob", bob)
        host.record()
        host.arm()
        host.enforce()
        host.wait_for_step(pid, "spared")
        assert (f"process {bob} of uid:{UID + 1} is in the same container and would be ended as well" in
                [result for _, _, result in host.steps(pid)])
        os.kill(bob, signal.SIGKILL)
        host.wait_for_step(pid, "ended")
        signal_row, = [result for step, _, result in host.steps(pid) if step == "signal"]
        assert signal_row.endswith(f" stop -t 1 {run.stdout[:12]}")
    finally:
        subprocess.run([*podman, "rm", "-f", "-t", "0", "-a"], capture_output=True, timeout=120)
        subprocess.run(["umount", "-l", host.where / "store" / "overlay"], capture_output=True)
