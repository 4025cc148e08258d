"""Whose time it is: names that come late, and numbers that are given to another person."""
import json

from conftest import gua
from recorded import ONE_CARD, record, rows  # noqa: F401

HOLD = ONE_CARD + """
process work pid 4194101
at 0s hold work card 0 memory 8GiB
at 0s load work card 0 sm 95
"""


def make_root(root, start, passwd):
    """A recorded root with one process of uid 1001, its start (640000: that of the first record), and the users that
    have a name."""
    proc = root / "proc" / "4194101"
    proc.mkdir(parents=True, exist_ok=True)
    (proc / "stat").write_text(f"4194101 (python) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0\n")
    (proc / "status").write_text("Name:\tpython\nUid:\t1001\t1001\t1001\t1001\n")
    (proc / "cmdline").write_bytes(b"python\0work.py\0")
    (proc / "cgroup").write_text("0::/system.slice/slurmstepd.scope/job_7/step_0\n")
    (root / "proc" / "stat").write_text("cpu  0 0 0 0\nbtime 1793600000\n")
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc" / "passwd").write_text(passwd)
    return root


def totals(db):
    return dict(rows(db, "SELECT user, sum(presence_ms) / 1000.0 FROM total_user GROUP BY user"))


def seconds(db, exported=None):
    """GPU-seconds by identity: as reported, and as the running totals have them, unless those are given."""
    run = gua("report", "--db", db, "--json", "--since", "2026-11-02T08:00:00Z", "--now", "2026-11-02T09:00:00Z")
    reported = {i["identity"]: i["gpu_seconds"] for i in json.loads(run.stdout)["identities"]}
    assert totals(db) == (exported or reported)
    return reported


def test_a_name_that_comes_late_gets_all_of_the_time(record, tmp_path):
    root = tmp_path / "root"
    run = record(HOLD, "--ticks", 2, root=make_root(root, 100, ""))
    assert seconds(run.db) == {"uid:1001": 60}
    record(HOLD, "--ticks", 2, at=600, root=make_root(root, 700000, "alice:x:1001:1001::/:/bin/sh\n"))
    # An exporter has shown the number with its time, which stays there: an engine would count it twice.
    assert seconds(run.db, exported={"uid:1001": 60, "alice": 60}) == {"alice": 120}
    assert rows(run.db, "SELECT DISTINCT user FROM process") == [("alice",)]
    assert "uid:1001" not in gua("export", "--db", run.db).stdout
    assert rows(run.db, "SELECT user, place, first_ms < 1793606460000, named_ms > 0 FROM identity ORDER BY place") == \
        [("uid:1001", 1, 1, 1), ("alice", 2, 0, 0)]
    # Again without a name, and again with one.
    record(HOLD, "--ticks", 2, at=1200, root=make_root(root, 760000, ""))
    record(HOLD, "--ticks", 2, at=1800, root=make_root(root, 820000, "alice:x:1001:1001::/:/bin/sh\n"))
    assert seconds(run.db, exported={"uid:1001": 120, "alice": 120}) == {"alice": 240}


def test_the_same_process_gets_its_name_from_the_next_recorder(record, tmp_path):
    root = tmp_path / "root"
    run = record(HOLD, "--ticks", 2, root=make_root(root, 100, ""))
    record(HOLD, "--ticks", 2, at=60, root=make_root(root, 100, "alice:x:1001:1001::/:/bin/sh\n"))
    assert seconds(run.db) == {"alice": 120}  # an exporter has shown no time of the number yet
    # An exporter shows the name from the beginning with all of the time: it is not a newcomer.
    assert rows(run.db, "SELECT user, place, first_ms < 1793606460000 FROM identity") == [("alice", 1, 1)]


def test_a_number_that_is_given_to_another_person_renames_nobody(record, tmp_path):
    root = tmp_path / "root"
    run = record(HOLD, "--ticks", 2, root=make_root(root, 100, "alice:x:1001:1001::/:/bin/sh\n"))
    record(HOLD, "--ticks", 2, at=600, root=make_root(root, 700000, "bob:x:1001:1001::/:/bin/sh\n"))
    assert seconds(run.db) == {"alice": 60, "bob": 60}
    record(HOLD, "--ticks", 2, at=1200, root=make_root(root, 760000, ""))
    assert seconds(run.db) == {"alice": 60, "bob": 60, "uid:1001": 60}


def test_the_time_of_a_pod_is_its_namespaces(record, tmp_path):
    """Unless the site says otherwise."""
    pod, container, passwd = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", "a1b2c3d4" * 8, "alice:x:1001:1001::/:/bin/sh\n"
    root = make_root(tmp_path / "root", 100, passwd)
    cgroup = root / "proc/4194101/cgroup"
    cgroup.write_text(f"0::/kubepods/burstable/pod{pod}/{container}\n")
    (root / f"var/log/pods/ml_web-7c9d8f6b5d-x7k2p_{pod}").mkdir(parents=True)
    (root / "var/log/containers").mkdir()
    (root / f"var/log/containers/web-7c9d8f6b5d-x7k2p_ml_nginx-{container}.log").touch()
    run = record(HOLD, "--ticks", 2, root=root)
    assert seconds(run.db) == {"ml": 60}
    assert rows(run.db, "SELECT user, uid, pod, container FROM process") == \
        [("ml", 1001, "ml/web-7c9d8f6b5d-x7k2p", "container:a1b2c3d4a1b2/nginx")]
    for kind, name in ("namespace", "ml"), ("workload", "ml/web"), ("container", "ml/web-7c9d8f6b5d-x7k2p/nginx"):
        report = gua("report", "--db", run.db, "--by", kind, "--json", "--since", "2026-11-02T08:00:00Z",
                     "--now", "2026-11-02T09:00:00Z")
        assert json.loads(report.stdout)["breakdown"]["rows"][0][kind] == name
    make_root(root, 700000, passwd)
    cgroup.write_text(f"0::/kubepods/burstable/pod{pod}/{container}\n")
    record(HOLD, "--ticks", 2, "--set", "kubernetes.user=uid", at=600, root=root)
    assert seconds(run.db) == {"ml": 60, "alice": 60}
