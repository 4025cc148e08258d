"""A cluster of one node, of Debian's Slurm: munged, slurmctld and slurmd, run by hand in a directory. Needs root, and
namespaces of its own (tools/test-real makes them): its ports are fixed, and it puts users into /etc/passwd.

    with Cluster(where, "gpu1", 7100, cards=4, proctrack="cgroup", prolog=PATH, epilog=PATH) as cluster:
        job = cluster.run("alice", "sbatch", "--parsable", ..., "script").stdout.strip()
        cluster.show(job)["StartTime"]
"""
import os
import pathlib
import re
import socket
import stat
import subprocess
import time

USERS = {"alice": 20001, "bob": 20002}
TERMINAL = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT")

SLURM_CONF = """ClusterName={node}
FirstJobId={port}
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={where}/munge.socket
StateSaveLocation={where}/state
SlurmdSpoolDir={where}/spool
SlurmctldPidFile={where}/slurmctld.pid
SlurmdPidFile={where}/slurmd.pid
SlurmctldPort={port}
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerParameters=batch_sched_delay=0
KillWait=2
Prolog={prolog}
Epilog={epilog}
PrologFlags=Alloc
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs=32 RealMemory=1000 Gres=gpu:{cards}
PartitionName=all Nodes={node} Default=YES MaxTime=60 DefaultTime=10
"""


def add_users(where):
    """In this mount namespace only."""
    for name, form in (("passwd", "{0}:x:{1}:{1}::/nonexistent:/bin/sh\n"), ("group", "{0}:x:{1}:\n")):
        (where / name).write_text(pathlib.Path(f"/etc/{name}").read_text() + "".join(form.format(*user) for user in USERS.items()))
        subprocess.run(["mount", "--bind", where / name, f"/etc/{name}"], check=True)


def add_cards(uuids):
    """The driver's own list of its cards, in which minor numbers are in the order of addresses."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/proc/driver"], check=True)
    for minor, uuid in enumerate(uuids):
        folder = pathlib.Path(f"/proc/driver/nvidia/gpus/0000:{minor + 1:02x}:00.0")
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"GPU UUID: \t {uuid}\nDevice Minor: \t {minor}\nGPU Excluded:\t No\n")


class Cluster:
    def __init__(self, where, node, port, cards, proctrack, prolog, epilog):
        self.where, self.node, self.children = where, node, []
        self.env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC", "SLURM_CONF": str(where / "slurm.conf"),
                    "SLURM_TIME_FORMAT": "%s"}
        for name in ("state", "spool"):
            (where / name).mkdir()
        for i in range(cards):
            os.mknod(where / f"nvidia{i}", 0o600 | stat.S_IFCHR, os.makedev(1, 3))     # as /dev/null: Slurm wants a device
        (where / "slurm.conf").write_text(SLURM_CONF.format(
            where=where, node=node, host=socket.gethostname(), port=port, node_port=port + 1, proctrack=proctrack, cards=cards,
            prolog=prolog, epilog=epilog))
        (where / "gres.conf").write_text(f"NodeName={node} Name=gpu File={where}/nvidia[0-{cards - 1}]\n")
        (where / "cgroup.conf").write_text("CgroupAutomount=no\nIgnoreSystemd=yes\n")
        key = where / "munge.key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o400)

    def start(self, *command):
        log = self.where / f"{pathlib.Path(command[0]).name}.log"
        with open(log, "w") as file:
            self.children.append(subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=file, stderr=file))

    def wait(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            logs = "\n".join(f"{path.name}:\n{path.read_text()[-3000:]}" for path in self.where.glob("*.log"))
            assert time.monotonic() < deadline, f"{what}\n{logs}"
            time.sleep(0.1)

    def __enter__(self):
        where = self.where
        self.start("munged", "-F", "--force", f"--key-file={where}/munge.key", f"--socket={where}/munge.socket",
                   f"--pid-file={where}/munge.pid", f"--log-file={where}/munged.log", f"--seed-file={where}/munge.seed")
        self.wait((where / "munge.socket").exists, "munged does not start")
        self.start("/usr/sbin/slurmctld", "-D")
        self.start("/usr/sbin/slurmd", "-D", "-N", self.node)
        self.wait(lambda: self.run("root", "sinfo", "-h", "-o", "%T").stdout.strip() == "idle", "the node does not come up")
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.terminate()
            child.wait(60)

    def run(self, user, *command, **options):
        uid = USERS.get(user, 0)
        return subprocess.run([str(word) for word in command], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, user=uid, group=uid, extra_groups=[], cwd="/", **options)

    def show(self, job):
        """What Slurm says about a job: its fields, with "cards" as a list of numbers."""
        text = self.run("root", "scontrol", "-d", "show", "job", job).stdout
        fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
        indices = re.search(r"GRES=gpu\S*\(IDX:([0-9,-]+)\)", text)
        fields["cards"] = [] if not indices else [
            number for part in indices[1].split(",") for low, _, high in [part.partition("-")]
            for number in range(int(low), int(high or low) + 1)]
        return fields

    def background(self, user, *command):
        uid = USERS[user]
        self.children.append(subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL, user=uid, group=uid, extra_groups=[], cwd="/"))

    def number(self, name):
        """Waits until the job of this name runs, and returns its number."""
        found = []
        self.wait(lambda: found.extend(self.run("root", "squeue", "-h", "-t", "R", "-n", name, "-o", "%A").stdout.split()) or found,
                  f"job {name} does not run")
        return found[0]

    def submitted(self, user, *command):
        """Submits, waits until it runs, and returns its number."""
        ran = self.run(user, *command)
        number = re.search(r"[0-9]+", ran.stdout + ran.stderr)
        assert ran.returncode == 0 and number, ran.stderr
        self.wait(lambda: self.show(number[0])["JobState"] == "RUNNING", f"job {number[0]} does not run")
        return number[0]

    def end(self, job):
        self.run("root", "scancel", job)
        self.wait(lambda: self.show(job)["JobState"] in TERMINAL, f"job {job} does not end")
