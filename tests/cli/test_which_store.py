"""Which store a command uses: GUA_DB, the user's own, the system's; and that invented and real data never meet."""
import json
import os
import re

import pytest

from conftest import GUA, gua
from fake import fake_driver
from handmade import ACTIVE, IDLE_HELD, SCHEMA, Store
from live import CARDS

T = 1793620800  # Mon 2026-11-02 12:00 UTC


def make_store(path, hostname="lab", source="nvml", uuid="GPU-a"):
    path.parent.mkdir(parents=True, exist_ok=True)
    s = Store(path)
    host = s.host(hostname=hostname, machine_id=hostname)
    s.run(host, T, T + 120, source=source, ended=T + 120)
    card = s.card(host, 0, T, T + 120, uuid=uuid, source=source)
    for slot in (T, T + 60):
        s.usage(slot, card, ACTIVE, 30, util=80)
        s.usage(slot, card, IDLE_HELD, 30)
    return s.save()


def report(*words, **options):
    return gua("report", "--since", f"@{T}", "--now", f"@{T + 120}", "--json", *words, **options)


def hosts(run):
    assert run.returncode == 0, run.stderr
    return [host["host"] for host in json.loads(run.stdout)["hosts"]]


@pytest.mark.parametrize("name, value, where", [("XDG_STATE_HOME", "state", "state/gua/gua.db"),
                                                ("GUA_DB", "here.db", "here.db")])
def test_the_environment_names_the_store_for_everybody(tmp_path, name, value, where):
    """Also for root: a test must never meet the host's recorder."""
    env = {name: str(tmp_path / value)}
    run = gua("start", "--source", "sim", "--interval", "1s", env=env)
    assert run.returncode == 0, run.stderr
    pid = re.search(rf"recording into {tmp_path / where} \(pid (\d+)\)", run.stdout)
    try:
        if name == "GUA_DB" or os.geteuid() == 0:  # others read the system's store if it is being recorded
            assert json.loads(gua("status", "--json", env=env).stdout)["store"]["path"] == str(tmp_path / where)
    finally:
        run = gua("stop", env=env)
    assert run.returncode == 0 and re.fullmatch(
        rf"stopped the recorder of {tmp_path / where} \(pid {pid[1]}, recording since \w+ \d{{4}}-\d\d-\d\d \d\d:\d\d.*\)\n",
        run.stdout), run.stdout + run.stderr
    run = gua("stop", env=env)
    said = run.stderr.removesuffix("; the one of the system is, and root can stop it: gua stop --db /var/lib/gua/gua.db\n")
    assert run.returncode == 1 and said.rstrip("\n") == f"gua stop: no recorder is running on {tmp_path / where}"


def test_gua_db_may_be_relative(tmp_path):
    run = gua("daemon", "--once", "--source", "sim", env={"GUA_DB": "here.db"}, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "here.db").exists()


def test_gua_db_wins_and_an_empty_variable_is_none(tmp_path):
    env = {"XDG_STATE_HOME": str(tmp_path / "state"), "GUA_DB": str(make_store(tmp_path / "named.db", "named"))}
    make_store(tmp_path / "state" / "gua" / "gua.db", "own")
    assert hosts(report(env=env)) == ["named"]
    if os.geteuid() == 0:  # others might read a store of this host's system instead
        assert hosts(report(env={**env, "GUA_DB": ""})) == ["own"]


def test_a_simulated_view_leaves_the_real_store_alone(tmp_path):
    make_store(tmp_path / "gua" / "gua.db")
    run = gua("who", "--source", "sim", "--clock", "virtual", "--json", env={"XDG_STATE_HOME": str(tmp_path)})
    answer = json.loads(run.stdout)
    assert not answer["note"] and answer["recorded_until"] is None, answer


@pytest.mark.parametrize("words", [[], ["--db"]])
def test_a_simulated_view_does_not_believe_a_measured_store_that_is_named(tmp_path, words):
    db = make_store(tmp_path / "measured.db")
    run = gua("who", "--source", "sim", "--clock", "virtual", "--json", *words, *[db] * len(words),
              env={} if words else {"GUA_DB": str(db)})
    answer = json.loads(run.stdout)
    assert answer["note"] == f"the store {str(db)[:120]} has measured data and the cards are simulated: it is not used"
    assert answer["recorded_until"] is None


def test_a_simulated_view_reads_a_simulated_store_that_is_named(tmp_path):
    db = make_store(tmp_path / "sim.db", source="sim")
    answer = json.loads(gua("who", "--source", "sim", "--clock", "virtual", "--json", "--db", db).stdout)
    assert answer["recorded_until"] == "2026-11-02T12:02:00Z" and "the recorder stopped" in answer["note"]


def test_real_cards_do_not_meet_a_simulated_store_that_nobody_named(tmp_path, clock_file):
    """After `gua start --source sim`."""
    db = make_store(tmp_path / "gua" / "gua.db", source="sim")
    clock = clock_file(T + 200)
    env = {**fake_driver(tmp_path, CARDS, clock=clock), "XDG_STATE_HOME": str(tmp_path)}
    if os.geteuid() != 0:
        pytest.skip("a user without the right to hide /var/lib might read this host's own store")
    answer = json.loads(gua("who", "--json", "--clock", clock, env=env).stdout)
    assert answer["recorded_until"] is None
    assert answer["note"] == (f"the store {str(db)[:120]} has simulated data and the cards are real: it is not used. "
                              "Name it with --db to use it")
    answer = json.loads(gua("who", "--json", "--clock", clock, "--db", db, env=env).stdout)
    assert answer["recorded_until"] == "2026-11-02T12:02:00Z"


# What another user than root sees; $1 is that user's state directory, $2 a store.
SYSTEM = f"""cp {GUA} /var/lib/gua-program
    as_user() {{ setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }}
    gua="as_user /var/lib/gua-program"
    chmod 755 /var/lib
"""
# A recorder of root's. It ends by itself if the script is killed before its trap.
RECORDED = SYSTEM + """timeout 60 /var/lib/gua-program daemon --foreground --source sim --interval 1s \
        --db /var/lib/gua/gua.db 2>/dev/null & recorder=$!
    trap 'kill $recorder; wait $recorder' EXIT
    tries=0
    until [ -n "$(/var/lib/gua-program status --db /var/lib/gua/gua.db --json 2>/dev/null | grep 'last_tick": "')" ]
    do tries=$((tries + 1)); [ $tries -lt 600 ]; sleep 0.05; done
"""


@pytest.fixture
def home(own_var_lib):
    """The user's state directory; it is made in the script, below the /var/lib of the test."""
    return "/var/lib/state"


@pytest.mark.parametrize("words", ["report", "export", "status"])
@pytest.mark.parametrize("group, advice", [
    ("root", "only root may read it. To share it, run as root: groupadd -f gua; chgrp -R gua /var/lib/gua; "
             "usermod -aG gua nobody (then log in again)"),
    ("video", "members of the group video may read it. Run as root: usermod -aG video nobody (then log in again)")])
def test_who_may_not_read_the_systems_store_learns_which_group_helps(own_var_lib, home, tmp_path, words, group, advice):
    script = SYSTEM + f"""mkdir -m 750 /var/lib/gua; cp "$1" /var/lib/gua/gua.db; chgrp {group} /var/lib/gua
        $gua {words}"""
    run = own_var_lib(script, make_store(tmp_path / "made.db"), XDG_STATE_HOME=home)
    assert run.returncode == 1, run.stdout
    assert run.stderr == (f"gua {words}: cannot open the store /var/lib/gua/gua.db: Permission denied; {advice}\n")


def test_no_advice_opens_a_file_that_is_no_store(own_var_lib, home):
    script = SYSTEM + 'install -m 640 /dev/null /var/lib/secrets; $gua report --db /var/lib/secrets'
    run = own_var_lib(script, XDG_STATE_HOME=home)
    assert (run.returncode, run.stderr) == (1, "gua report: cannot open the store /var/lib/secrets: Permission denied\n")


def test_an_own_store_does_not_hide_a_store_that_is_being_recorded(own_var_lib, home, tmp_path):
    script = RECORDED + """mkdir -p /var/lib/state/gua; cp "$1" /var/lib/state/gua/gua.db
        chown -R 65534 /var/lib/state; chmod 755 /var/lib/gua; chmod 644 /var/lib/gua/gua.db*
        $gua status --json"""
    run = own_var_lib(script, make_store(tmp_path / "made.db"), XDG_STATE_HOME=home)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["store"]["path"] == "/var/lib/gua/gua.db"
    assert run.stderr == ("gua: reading the system's store /var/lib/gua/gua.db, which is being recorded; "
                          "your own: --db /var/lib/state/gua/gua.db\n")


def test_stop_says_that_the_recorder_is_the_systems(own_var_lib, home):
    run = own_var_lib(RECORDED + "chmod 755 /var/lib/gua; $gua stop", XDG_STATE_HOME=home)
    assert run.returncode == 1 and run.stderr == (
        "gua stop: no recorder is running on /var/lib/state/gua/gua.db; the one of the system is, and root can stop it: "
        "gua stop --db /var/lib/gua/gua.db\n")


def test_an_own_store_is_read_when_nobody_records_the_systems(own_var_lib, home, tmp_path):
    script = SYSTEM + f"""mkdir -p /var/lib/state/gua /var/lib/gua; cp "$1" /var/lib/state/gua/gua.db
        cp "$2" /var/lib/gua/gua.db; chmod 755 /var/lib/gua; chmod 644 /var/lib/gua/gua.db
        chown -R 65534 /var/lib/state
        $gua report --since @{T} --now @{T + 120} --json"""
    run = own_var_lib(script, make_store(tmp_path / "own.db", "own"), make_store(tmp_path / "system.db", "system"),
                      XDG_STATE_HOME=home)
    assert hosts(run) == ["own"] and run.stderr == ""


def test_start_says_that_the_system_records_already(own_var_lib, home):
    script = RECORDED + """mkdir -m 777 /var/lib/state; chmod 755 /var/lib/gua; chmod 644 /var/lib/gua/gua.db*
        $gua daemon --source sim --once"""
    run = own_var_lib(script, XDG_STATE_HOME=home)
    assert run.returncode == 0, run.stderr
    assert run.stderr.startswith("gua: the system's store /var/lib/gua/gua.db is being recorded already, "
                                 "and commands without --db read that one\n")


@pytest.mark.parametrize("words, said", [
    (f"report --since @{T} --now @{T + 120}", "reading your own store; "),
    ("daemon --once --source sim", "the system may have a store already; ")], ids=["report", "daemon"])
def test_who_has_an_own_store_is_told_of_one_that_is_closed(own_var_lib, home, tmp_path, words, said):
    script = SYSTEM + f"""mkdir -m 750 /var/lib/gua; mkdir -p /var/lib/state/gua; cp "$1" /var/lib/state/gua/gua.db
        chown -R 65534 /var/lib/state
        $gua {words}"""
    run = own_var_lib(script, make_store(tmp_path / "made.db"), XDG_STATE_HOME=home)
    assert run.returncode == 0, run.stderr
    assert run.stderr.startswith(f"gua: {said}cannot open the store /var/lib/gua/gua.db: Permission denied; only root ")


def test_a_directory_means_all_stores_in_it(tmp_path):
    """In the order of their names; other files are passed over, and named if they should have been stores."""
    lab = tmp_path / "lab"
    for name in ("b", "a", "c"):
        make_store(lab / f"{name}.store" if name == "c" else lab / f"{name}.db", name, uuid=f"GPU-{name}")
    (lab / "README").write_text("these are stores\n" * 20)
    (lab / "broken.db").write_text("this is not a store\n" * 20)
    (lab / "empty.db").write_text("")
    (lab / "more.db").mkdir()
    (lab / "again.db").symlink_to("a.db")
    newer = make_store(lab / "newer.store", "newer")
    with open(newer, "r+b") as file:
        file.seek(60)
        file.write((99).to_bytes(4, "big"))
    version = re.search(r"user_version = (\d+)", SCHEMA).group(1)
    run = report("--db", lab)
    unread = [f"{lab}/broken.db is not a store of gua (not a database)", f"{lab}/empty.db is empty: nothing was recorded yet",
              f"{newer} has schema version 99 and this gua knows up to {version}: use a newer gua"]
    found = json.loads(run.stdout)
    assert run.returncode == 1 and [host["host"] for host in found["hosts"]] == ["a", "b", "c"]
    assert found["stores"] == {"asked": 6, "read": 3, "not_read": unread}
    assert run.stderr == "".join(f"gua: not read: {why}\n" for why in unread) + \
        "gua report: 3 of 6 stores could not be read\n"
    run = gua("export", "--json", "--db", lab)
    assert [row["host"] for row in json.loads(run.stdout)["rows"]] == ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert run.stderr == "".join(f"gua: skipped: {why}\n" for why in unread)


def test_a_directory_without_a_store(tmp_path):
    run = report("--db", tmp_path)
    assert run.returncode == 1
    assert run.stderr == f"gua report: the directory {tmp_path} has no store that can be read\n"


def test_there_is_no_limit_to_the_number_of_stores(tmp_path):
    """More than the files that this process may have open."""
    made = make_store(tmp_path / "made.db").read_bytes()
    lab = tmp_path / "lab"
    lab.mkdir()
    n = 50
    for i in range(n):
        name = f"{i:03}"  # as long as the name in the store
        (lab / f"{name}.db").write_bytes(made.replace(b"lab", name.encode()).replace(b"GPU-a", b"G-" + name.encode()))
    words = [word for i in range(n) for word in ("--db", lab / f"{i:03}.db")]
    run = report(*words, preexec_fn=few_files)
    assert hosts(run) == [f"{i:03}" for i in range(n)]
    assert hosts(report("--db", lab, preexec_fn=few_files)) == [f"{i:03}" for i in range(n)]
    assert hosts(report("--db", f"{tmp_path}/*/00*.db")) == [f"{i:03}" for i in range(10)]


def few_files():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


# A recorder of root's in the directory of the service's user, as 'sudo gua start' makes it before the service is there.
FIRST_AS_ROOT = SYSTEM + """install -d -o 65534 -g 65534 -m 750 /var/lib/gua
    /var/lib/gua-program daemon --once --source sim --db /var/lib/gua/gua.db
"""


def test_a_store_that_root_makes_belongs_to_the_user_of_its_directory(own_var_lib, home):
    script = FIRST_AS_ROOT + """stat -c '%n %u:%g' /var/lib/gua/gua.db /var/lib/gua/gua.db.lock
        $gua daemon --once --source sim --db /var/lib/gua/gua.db"""
    run = own_var_lib(script, XDG_STATE_HOME=home)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "/var/lib/gua/gua.db 65534:65534\n/var/lib/gua/gua.db.lock 65534:65534\n"


def test_a_recorder_says_whose_store_it_may_not_open(own_var_lib, home):
    script = FIRST_AS_ROOT + """chown 0:0 /var/lib/gua/gua.db*
        $gua daemon --once --source sim --db /var/lib/gua/gua.db"""
    run = own_var_lib(script, XDG_STATE_HOME=home)
    assert run.returncode == 1
    assert "/var/lib/gua/gua.db.lock: it belongs to the user with uid 0; record as that user, or" in run.stderr


def test_who_may_not_read_the_log_of_policy_learns_which_group_helps(own_var_lib, home):
    script = SYSTEM + "mkdir -m 750 /var/lib/gua; chgrp video /var/lib/gua; $gua enforce log --db /var/lib/gua/gua.db"
    run = own_var_lib(script, XDG_STATE_HOME=home)
    assert run.returncode == 1
    assert "/var/lib/gua/policy.db: Permission denied; members of the group video may read it" in run.stderr
    assert "has not run here" not in run.stderr


def test_a_start_on_a_full_disk_says_that_it_is_full(own_var_lib, home):
    """SQLite cannot make its shared memory there, and calls that an I/O error."""
    script = f"""mkdir /var/lib/small; mount -t tmpfs -o size=300k none /var/lib/small
        {GUA} daemon --once --source sim --db /var/lib/small/gua.db
        cat /dev/zero >/var/lib/small/full 2>/dev/null || true
        {GUA} start --source sim --db /var/lib/small/gua.db"""
    run = own_var_lib(script, XDG_STATE_HOME=home)
    assert run.returncode == 1 and "/var/lib/small/gua.db: the disk is full" in run.stderr, run.stderr
