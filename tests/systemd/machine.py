"""A small Debian that is really booted: systemd is its first process, in namespaces of its own. The fake driver library
takes the place of NVIDIA's; gua comes from its packages."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent


def cgroup2():
    """Where the cgroup2 hierarchy is mounted: as the only one, or beside the older ones."""
    for line in open("/proc/self/mounts", encoding="ascii"):
        _, where, kind = line.split()[:3]
        if kind == "cgroup2":
            return pathlib.Path(where)
    return None


class Machine:
    """machine.run("systemctl", ...) runs a command inside; as_user="alice" as that user."""

    def __init__(self, where, base):
        self.root = where / "root"
        self.group = cgroup2() / f"gua-test-{os.getpid()}"
        self.console = where / "console"
        self.process = self.pid = None
        self.environment = {}  # of the commands that users run
        self.root.mkdir()
        subprocess.run(["tar", "-xf", base, "-C", self.root], check=True)

    def chroot(self, *command):
        subprocess.run(["chroot", self.root, *map(str, command)], check=True, capture_output=True, text=True,
                       env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"})

    def put(self, source, target):
        """Copies a file into the machine."""
        path = self.root / target.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)

    def write(self, target, text):
        path = self.root / target.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def boot(self):
        self.group.mkdir(exist_ok=True)

        def enter():
            (self.group / "cgroup.procs").write_text(str(os.getpid()))
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--cgroup", "--uts", "--ipc", "--net", "--kill-child", HERE / "boot",
             self.root],
            stdin=subprocess.DEVNULL, stdout=open(self.console, "a", encoding="utf-8"), stderr=subprocess.STDOUT,
            preexec_fn=enter)
        self.pid = self.wait(self.child, "the machine did not start")
        self.wait(lambda: self.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded"),
                  "the machine did not finish booting")

    def child(self):
        """The machine's first process, once it is systemd."""
        task = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in task.read_text().split():
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "systemd":
                return int(pid)
        return None

    def wait(self, what, message, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = what()
            if found:
                return found
            time.sleep(0.1)
        message = message() if callable(message) else message
        raise AssertionError(f"{message}\n{self.console.read_text(errors='replace')[-3000:]}")

    def run(self, *command, as_user=None, check=True, **options):
        if as_user:
            command = ["setpriv", "--reuid", as_user, "--regid", as_user, "--init-groups", "--reset-env", "env",
                       *(f"{name}={value}" for name, value in self.environment.items()), *command]
        done = subprocess.run(["nsenter", "--target", str(self.pid), "--all", *map(str, command)], capture_output=True,
                              text=True, timeout=120, stdin=subprocess.DEVNULL, **options)
        assert not check or done.returncode == 0, (command, done.stdout, done.stderr, self.journal())
        return done

    def journal(self, unit="gua"):
        return subprocess.run(["nsenter", "--target", str(self.pid), "--all", "journalctl", "--no-pager", "-n", "60", "-u",
                               unit], capture_output=True, text=True, timeout=60, check=False).stdout

    def show(self, what, unit="gua"):
        return self.run("systemctl", "show", "--value", "-p", what, unit).stdout.strip()

    def power_off(self):
        self.run("systemctl", "poweroff", check=False)
        self.process.wait(timeout=60)

    def reboot(self):
        self.power_off()
        self.boot()

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.wait(self.is_gone, "processes of the machine are left")

    def is_gone(self):
        """Removes its control groups, which is possible once its last process has ended."""
        with contextlib.suppress(OSError):
            for group, _, _ in os.walk(self.group, topdown=False):
                os.rmdir(group)
        return not self.group.exists()
