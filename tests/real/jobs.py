"""Real jobs of Debian's Slurm on the fake driver, recorded and compared with the truth: run by tools/test-real. It is not
among the tests of `make test`, because it needs root, Slurm and two minutes.

Two clusters run at the same time: in one, cgroups name the jobs; in the other (linuxproc) there are none. Each has two
recorders: one, of an unprivileged user, is told of leases by the prolog and the epilog, the other, of root, by the watcher.
What is true is worked out here, from what the jobs were told to do and from Slurm's own times."""
import concurrent.futures
import os
import signal
import sqlite3
import subprocess
import time
from dataclasses import dataclass, field

import pytest

from cluster import Cluster, add_cards, add_users
from conftest import GUA, ROOT, clean_environment
from fake import fake_driver

STATES = ["active", "idle_held", "truly_idle", "unobserved", "use_unknown", "reserved"]
UUIDS = [f"GPU-{i}0000000-0000-0000-0000-000000000000" for i in range(7)]
SUBMIT_S, PLAY_S = 4, 80
STEP_S = 0.05
DRAIN_S = 2         # how often the recorder looks for leases
ROUGH_S = 2         # Slurm's times are whole seconds, and the watcher asks once a second
CGROUP_S = 5        # how often the recorder looks for cgroups
NOBODY = 65534


@dataclass
class Job:
    """What a job does; seconds of the play. It gets the card of its number, and holds and computes well within its life."""
    name: str
    user: str
    card: int
    end: float
    hold: tuple = None
    load: tuple = None
    task: int = None        # of an array
    epilog: bool = True     # gua is told that it ends
    id: str = ""
    facts: dict = field(default_factory=dict)   # Slurm's own
    since: float = 0        # of the play, as Slurm says
    until: float = 0

    @property
    def key(self):
        return self.name if self.task is None else f"{self.name}.{self.task}"


def plan():
    return [Job("computes", "alice", 0, end=56, hold=(26, 52), load=(30, 46)),
            Job("holds", "bob", 1, end=60, hold=(26, 54)),
            Job("never", "alice", 2, end=64),
            Job("array", "bob", 3, end=50, hold=(26, 46), load=(28, 40), task=1),
            Job("array", "bob", 4, end=52, task=2),
            Job("lost", "alice", 5, end=44, hold=(28, 36), epilog=False),
            Job("stepless", "bob", 6, end=48)]


def scenario(jobs):
    lines = [f'card {i} uuid {uuid} name "NVIDIA A100" memory 80GiB' for i, uuid in enumerate(UUIDS)]
    lines += [f"process {job.key} pid file {job.key}" for job in jobs if job.hold]
    events = []
    for job in jobs:
        where = f"{job.key} card {job.card}"
        if job.hold:
            events += [(job.hold[0], f"hold {where} memory 20GiB"), (job.hold[1], f"release {where}")]
        if job.load:
            events += [(job.load[0], f"load {where} sm 90"), (job.load[1], f"load {where} sm 0")]
    return "\n".join([*lines, *(f"at {at}s {what}" for at, what in sorted(events))]) + "\n"


class Recording:
    """A recorder, and what it is told."""

    def __init__(self, where, told_by, play):
        self.told_by, self.play = told_by, play
        self.where = where / f"by-{told_by}"
        self.where.mkdir()
        self.leases = self.where / "leases"
        (self.leases / "slurm").mkdir(parents=True)
        self.db = self.where / "gua.db"
        if told_by == "prolog":
            os.chown(self.where, NOBODY, NOBODY)

    def __str__(self):
        return f"{self.play.proctrack}, {self.told_by}"

    def start(self, *command, **options):
        with open(self.where / "log", "a") as log:
            return subprocess.Popen([str(word) for word in command], env=clean_environment(**self.env()), stderr=log, **options)

    def env(self):
        env = fake_driver(self.where, scenario(self.play.jobs), FAKENVML_START=repr(self.play.start), FAKENVML_PIDS=self.play.pids)
        return {**env, "SLURM_CONF": str(self.play.where / "slurm.conf")}

    def begin(self):
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self.told_by == "prolog" else {}
        self.children = [self.start(GUA, "daemon", "--foreground", "--db", self.db, "--interval", "5s", "--drain", f"{DRAIN_S}s",
                                    "--leases", self.leases, **nobody)]
        if self.told_by == "watcher":
            self.children.append(self.start(GUA, "lease", "watch", "slurm", "--leases", self.leases, "--set", "leases.every=1s",
                                            "--set", f"leases.node={self.play.node}"))

    def end(self):
        for child in self.children:
            child.send_signal(signal.SIGTERM)
        assert [child.wait(60) for child in self.children] == [0] * len(self.children), (self.where / "log").read_text()

    def rows(self, sql):
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True) as store:
            return store.execute(sql).fetchall()

    def window(self):
        """Begin and end of what was accounted, in seconds of the play."""
        (seen, ms), = self.rows("SELECT max(last_seen_ms), (SELECT sum(ms) / 7 FROM usage_1m) FROM gpu")
        return (seen - ms) / 1000 - self.play.start, seen / 1000 - self.play.start


class Play:
    def __init__(self, where, node, port, proctrack):
        self.where, self.node, self.proctrack, self.port = where, node, proctrack, port
        self.jobs, self.pids = plan(), where / "pids"
        where.mkdir(mode=0o755)
        self.pids.mkdir()
        self.pids.chmod(0o777)
        self.recordings = [Recording(where, told_by, self) for told_by in ("prolog", "watcher")]

    def script(self, name):
        """One of dist/slurm, for the recording that is told by it."""
        path = self.where / name
        text = (ROOT / "dist/slurm" / name).read_text()
        path.write_text(text.replace("@bindir@/gua lease", f"{GUA} lease --leases {self.recordings[0].leases}").replace(
            "\n", f"\n[ -e {self.where}/no-{name}.$SLURM_JOB_ID ] && exit 0\n", 1))
        path.chmod(0o755)
        return path

    def until(self, second):
        time.sleep(max(0, self.start + second - time.time()))

    def submit(self, cluster):
        work = f'k=$SLURM_JOB_NAME${{SLURM_ARRAY_TASK_ID:+.$SLURM_ARRAY_TASK_ID}}; cd {self.pids}; echo $$ >.$k; mv .$k $k; exec sleep 300'
        for job in self.jobs:
            ask = ["-J", job.name, "--gres=gpu:1"]
            if job.task == 2:
                continue
            if job.name == "stepless":
                job.id = cluster.submitted(job.user, "salloc", "--no-shell", *ask)
            elif job.name == "never":
                cluster.background(job.user, "srun", *ask, "sleep", "300")
                job.id = cluster.number(job.name)
            else:
                array = ["--array=1-2"] if job.task else []
                job.id = cluster.submitted(job.user, "sbatch", *ask, *array, "-o", "/dev/null", "--wrap", work)
        for job in self.jobs:
            job.id = f"{self.array}_{job.task}" if job.task else job.id
            job.facts = cluster.show(job.id)

    @property
    def array(self):
        return next(job.id for job in self.jobs if job.task == 1).partition("_")[0]

    def run(self):
        with Cluster(self.where, self.node, self.port, len(UUIDS), self.proctrack, self.script("prolog"), self.script("epilog")) as cluster:
            self.start = time.time()
            for recording in self.recordings:
                recording.begin()
            self.until(SUBMIT_S)
            self.submit(cluster)
            self.began = time.time() - self.start
            for job in self.jobs:
                if not job.epilog:
                    (self.where / f"no-epilog.{job.facts['JobId']}").touch()
            for job in sorted(self.jobs, key=lambda job: job.end):
                self.until(job.end)
                cluster.end(job.id)
                job.since, job.until = (float(cluster.show(job.id)[name]) - self.start for name in ("StartTime", "EndTime"))
            self.until(PLAY_S)
            for recording in self.recordings:
                recording.end()
        return self


@pytest.fixture(scope="session")
def plays(tmp_path_factory, request):
    where = tmp_path_factory.mktemp("real")
    for folder in (where, where.parent):
        folder.chmod(0o755)     # for the users of the jobs
    add_users(where)
    add_cards(UUIDS)
    plays = [Play(where / proctrack, f"gpu{i}", 7100 + 10 * i, proctrack) for i, proctrack in enumerate(("cgroup", "linuxproc"))]
    with concurrent.futures.ThreadPoolExecutor() as threads:
        yield {play.proctrack: play for play in threads.map(Play.run, plays)}
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\nThe largest errors:", *(f"{what} {seconds:.1f} s" for seconds, what in sorted(errors, reverse=True)[:4]), sep="\n  ")


@pytest.fixture(params=[(proctrack, told_by) for proctrack in ("cgroup", "linuxproc") for told_by in (0, 1)],
                ids=["cgroup-prolog", "cgroup-watcher", "linuxproc-prolog", "linuxproc-watcher"])
def recording(plays, request):
    proctrack, told_by = request.param
    return plays[proctrack].recordings[told_by]


def lease_end(job, recording):
    """When the recorder must see the end of a lease, if not when Slurm says. Without a word of the epilog the prolog's lease ends with
    the job's cgroup; where there is none, it stays: this Slurm does not say when a job must end."""
    silent = not job.epilog and recording.told_by == "prolog"
    return PLAY_S if silent and recording.play.proctrack == "linuxproc" else job.until


def within(span, moment):
    return span is not None and span[0] <= moment < span[1]


def truth(job, recording):
    """Seconds of a job's card in each state, and of its lease."""
    begin, end = recording.window()
    sums, own = dict.fromkeys(STATES, 0), dict.fromkeys(("active", "idle_held", "reserved"), 0)
    for step in range(int((end - begin) / STEP_S)):
        moment = begin + step * STEP_S
        leased = job.since <= moment < lease_end(job, recording)
        state = ("active" if within(job.load, moment) else "idle_held" if within(job.hold, moment) else
                 "reserved" if leased else "truly_idle")
        sums[state] += STEP_S
        if leased and state in own:
            own[state] += STEP_S
    return sums, own


def slack(job, recording):
    """How far a figure may be off."""
    return DRAIN_S + ROUGH_S + (CGROUP_S if not job.epilog and recording.told_by == "prolog" else 0)


errors = []     # (seconds, what)


def compare(what, true, measured, slack):
    errors.extend((abs(measured.get(state, 0) - seconds), f"{what} {state}") for state, seconds in true.items())
    return [f"{what} {state}: {measured.get(state, 0):.1f} s, true {seconds:.1f} s" for state, seconds in true.items()
            if abs(measured.get(state, 0) - seconds) > slack]


def test_the_play_was_as_planned(plays):
    for play in plays.values():
        assert play.began < 25, "submitting took too long: the machine is too slow for this play"
        for job in play.jobs:
            assert job.facts["cards"] == [job.card] and job.facts["UserId"].startswith(job.user), job
            assert (play.pids / job.key).exists() == (job.name not in ("never", "stepless"))


def test_states_of_cards(recording):
    measured = {uuid: {STATES[state]: ms / 1000 for of, state, ms in recording.rows(
        "SELECT uuid, state, sum(ms) FROM usage_1m JOIN gpu ON gpu.id = gpu GROUP BY 1, 2") if of == uuid} for uuid in UUIDS}
    wrong = [line for job in recording.play.jobs for line in
             compare(f"{recording}, card of {job.key}", truth(job, recording)[0], measured[UUIDS[job.card]], slack(job, recording))]
    assert not wrong, "\n".join(wrong)


def test_leases(recording):
    rows = {name: (owner, dict(zip(("active", "idle_held", "reserved"), (ms / 1000 for ms in sums)))) for name, owner, *sums in
            recording.rows("SELECT name, owner, (SELECT sum(active_ms) FROM leased_1d AS d WHERE d.lease = l.id),"
                           " (SELECT sum(idle_held_ms) FROM leased_1d AS d WHERE d.lease = l.id),"
                           " (SELECT coalesce(sum(reserved_ms), 0) FROM reserved_1m AS r WHERE r.lease = l.id) FROM lease AS l")}
    jobs = {job.facts["JobId"]: job for job in recording.play.jobs}
    assert {number: owner for number, (owner, _) in rows.items()} == {number: job.user for number, job in jobs.items()}
    wrong = [line for number, job in jobs.items() for line in
             compare(f"{recording}, lease of {job.key}", truth(job, recording)[1], rows[number][1], slack(job, recording))]
    assert not wrong, "\n".join(wrong)


def test_processes_have_their_jobs(recording):
    """Also those whose cgroups name none, and for a recorder that may not read their environment."""
    found = {(user, job) for user, job in recording.rows("SELECT user, job FROM process")}
    assert found == {(job.user, f"slurm:{job.facts['JobId']}") for job in recording.play.jobs if job.hold}
