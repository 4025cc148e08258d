"""gua report --digest: last week for a mail, for the administrator and for one person; and what mails it."""
import os
import pwd
import re
import subprocess
import time

import pytest

from conftest import BUILD, GUA, ROOT, clean_environment, gua
from handmade import HOUR, IDLE_HELD, SQUATTING, Store
from test_compare import BEFORE, NOW, THIS, make
from test_report import fails



def digest(path, *args, now=NOW, status=0, **options):
    run = gua("report", "--db", path, "--now", f"@{now}", "--digest", *args, **options)
    assert run.returncode == status, run.stderr
    text = run.stdout
    lines = text.splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 72, text
    assert text == "".join(line.rstrip() + "\n" for line in lines) and "\x1b" not in text
    return text


@pytest.fixture
def weeks(tmp_path):
    return make(tmp_path / "gua.db")


def test_for_the_administrator(weeks, expect):
    expect("report/digest.txt", digest(weeks, "--cost", "2.5"))


def test_for_one_person(weeks, expect):
    expect("report/digest-alice.txt", digest(weeks, "--user", "alice", "--cost", "2.5"))
    assert digest(weeks, "--user", "alice") != digest(weeks, "--user", "bob")


def test_rank_is_by_unused_hours(weeks):
    found = {name: int(re.search(r"number (\d+) of 3 users", " ".join(digest(weeks, "--user", name).split())).group(1))
             for name in ("alice", "bob", "dave")}
    assert found == {"bob": 1, "alice": 2, "dave": 3}


def test_who_left_and_who_never_came(weeks):
    assert re.search(r"held +0\.00 +4\.67  gone", digest(weeks, "--user", "carol"))
    assert "You held no GPU in this time." in digest(weeks, "--user", "zoe")


def test_another_window_and_another_comparison(weeks):
    text = digest(weeks, "--since", "yesterday", "--compare", "2026-11-03", "--utc")
    assert "Sun 2026-11-15 to Sun 2026-11-15 UTC" in text
    assert "More: gua report --since 2026-11-15T00:00Z --until 2026-11-16T00:00Z" in text
    more = re.search(r"More: gua (.*--until \S+ --compare)", digest(weeks)).group(1).split()
    assert gua(*more, "--db", weeks, "--now", f"@{NOW}").returncode == 0


def test_what_is_held_now_is_named_with_its_command(tmp_path, expect):
    """A recorder is at work: two notebooks and a Slurm job of bob are idle, a third process works."""
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, THIS, NOW)
    gpu = s.card(host, 3, THIS, NOW)
    holders = [(s.process(host, 4242, "bob", notebook="jupyter:1", notebook_path="/home/bob/thesis.ipynb"), 3 * HOUR),
               (s.process(host, 4243, "bob", job="slurm:77"), 600), (s.process(host, 4244, "bob"), 10),
               (s.process(host, 4245, "alice"), 9 * HOUR)]
    for process, idle in holders:
        s.usage(THIS + process * HOUR, gpu, IDLE_HELD, HOUR, width=HOUR)
        s.holding(THIS + process * HOUR, gpu, process, IDLE_HELD, HOUR, width=HOUR)
        s.insert("holder", gpu=gpu, process=process, kind=1, mem_bytes=8 * 2**30, since_ms=THIS * 1000,
                 last_active_ms=(NOW - idle) * 1000)
    text = digest(s.save(), "--user", "bob")
    expect("report/digest-holds.txt", text)
    assert "kill 4242" in text and "scancel 77" in text and "4244" not in text and "4245" not in text


def test_the_path_of_a_notebook_is_not_cut(tmp_path):
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, THIS, NOW)
    gpu = s.card(host, 3, THIS, NOW)
    path = "/home/bob/" + "experiments/" * 12 + "a.ipynb"
    process = s.process(host, 4242, "bob", notebook="jupyter:1", notebook_path=path)
    s.usage(THIS, gpu, IDLE_HELD, HOUR, width=HOUR)
    s.holding(THIS, gpu, process, IDLE_HELD, HOUR, width=HOUR)
    s.insert("holder", gpu=gpu, process=process, kind=1, mem_bytes=8 * 2**30, since_ms=THIS * 1000)
    spell(s, gpu, process, THIS, HOUR)
    text = gua("report", "--db", s.save(), "--now", f"@{NOW}", "--digest", "--user", "bob").stdout
    assert f"    {path}\n    kill 4242\n" in text and text.count("a.ipynb") == 2


def test_what_computes_or_may_compute_is_not_named(tmp_path):
    """Neither a process whose job computes on another card, nor one on a card whose use is unknown."""
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, THIS, NOW)
    cards = [s.card(host, i, THIS, NOW) for i in range(3)]
    for card, pid, job, active in ((0, 1, "slurm:77", 10), (1, 2, "slurm:77", None), (1, 3, "slurm:78", None),
                                   (2, 4, "slurm:79", None)):
        process = s.process(host, pid, "bob", job=job)
        s.usage(THIS + pid * HOUR, cards[card], IDLE_HELD, HOUR, width=HOUR)
        s.holding(THIS + pid * HOUR, cards[card], process, IDLE_HELD, HOUR, width=HOUR)
        s.insert("holder", gpu=cards[card], process=process, kind=1, mem_bytes=8 * 2**30, since_ms=THIS * 1000,
                 last_active_ms=active and (NOW - active) * 1000)
    s.insert("reading", gpu=cards[2], at_ms=NOW * 1000, util_pct=None)
    text = digest(s.save(), "--user", "bob")
    assert "scancel 78" in text and "scancel 77" not in text and "scancel 79" not in text


def spell(s, gpu, process, begin, seconds):
    s.insert("spell", end_ms=(begin + seconds) * 1000, gpu=gpu, process=process, begin_ms=begin * 1000,
             idle_held_ms=seconds * 1000, squatting_ms=0, mem_peak_kib=2**23, how_ended=0)


def test_a_person_reads_about_their_own_spells(tmp_path):
    s = Store(tmp_path / "gua.db")
    host = s.host()
    s.run(host, THIS, NOW)
    gpu = s.card(host, 0, THIS, NOW)
    for i, (name, hours) in enumerate((("alice", 40), ("alice", 30), ("alice", 20), ("alice", 10), ("bob", 2))):
        process = s.process(host, i + 1, name, f"{name[0]}{hours}.py")
        s.usage(THIS + i * HOUR, gpu, IDLE_HELD, HOUR, width=HOUR)
        s.holding(THIS + i * HOUR, gpu, process, IDLE_HELD, HOUR, width=HOUR)
        spell(s, gpu, process, THIS + i * HOUR, hours * HOUR)
    path = s.save()
    own = digest(path, "--user", "bob")
    assert "Your longest idle spells" in own and "b2.py" in own and "alice" not in own
    everybody = digest(path)
    assert everybody.index("a40.py") < everybody.index("a30.py") and "Unused GPU-hours" in everybody


def test_a_long_digest_still_fits(tmp_path):
    """Long names, many users, many kinds of events, a caution, a price: 25 lines hold."""
    s = Store(tmp_path / "gua.db")
    host = s.host("h" * 120)
    s.run(host, BEFORE, NOW, source="sim")
    gpu = s.card(host, 0, BEFORE, NOW)
    for slot in range(BEFORE, NOW, 24 * HOUR):
        s.usage(slot, gpu, IDLE_HELD, HOUR, width=HOUR, joules=1)
    for i in range(40):
        process = s.process(host, i + 1, f"{i}" + "\u00e9" * 60)
        s.holding(THIS + HOUR, gpu, process, SQUATTING, 60, width=HOUR)
        spell(s, gpu, process, THIS + i * HOUR, 24 * HOUR)
    for i, kind in enumerate(("xid",) * 30 + ("gap", "suspend", "driver-down", "card-lost")):
        s.event(host, THIS + i, kind, gpu, i)
    path = s.save()
    for args in ((), ("--ascii",), ("--user", "3" + "\u00e9" * 60), ("--cost", "2")):
        assert digest(path, *args).startswith("SIMULATED DATA")
    assert digest(path, "--ascii").isascii()


@pytest.mark.parametrize("args, says", [
    (("--json",), "takes no --json"), (("--format", "csv"), "takes no --json"), (("--by", "card"), "takes no --json"),
    (("--user", "alice,bob"), "at most one user"), (("--user", "alice", "--user", "bob"), "at most one user")])
def test_wrong_usage(weeks, args, says):
    assert says in fails(2, "--db", weeks, "--digest", *args)


# What mails it.

@pytest.fixture
def mailed(tmp_path):
    """mailed(**ENVIRONMENT): runs the script with a sendmail that keeps its letters; returns them."""
    me = pwd.getpwuid(os.getuid()).pw_name
    monday = time.time() // (7 * 24 * HOUR) * 7 * 24 * HOUR - 3 * 24 * HOUR  # a Monday 0:00 UTC, a week ago or less
    s = Store(tmp_path / "gua.db")
    host = s.host()
    first = int(monday - 14 * 24 * HOUR)
    s.run(host, first, time.time())
    gpu = s.card(host, 0, first, time.time())
    names = (me, "-oQ/tmp", "bob\nBcc: all", "a,b", '"x"', "no-such-user-here", "$(touch pwned)")
    processes = [s.process(host, i + 1, name) for i, name in enumerate(names)]
    for slot in range(first - first % HOUR, int(time.time()), 6 * HOUR):
        s.usage(slot, gpu, IDLE_HELD, HOUR, width=HOUR)
        for process in processes:
            s.holding(slot, gpu, process, IDLE_HELD, HOUR, width=HOUR)
    db = s.save()
    sendmail = tmp_path / "sendmail"
    sendmail.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/args\ncat > {tmp_path}/letter.$$\n')
    sendmail.chmod(0o755)

    def run(**env):
        done = subprocess.run([BUILD / "dist" / "mail-digest"], capture_output=True, text=True, timeout=60, cwd=tmp_path,
                              env=clean_environment(PATH=os.environ["PATH"], GUA=str(GUA),
                                                    **{"SENDMAIL": str(sendmail), "GUA_DB": str(db), **env}))
        return done, [path.read_text() for path in sorted(tmp_path.glob("letter.*"))]
    run.me = me
    return run


def test_the_administrator_gets_a_letter(mailed, tmp_path):
    done, letters = mailed(GUA_MAILTO="ops@example.org")
    assert done.returncode == 0, done.stderr
    letter, = letters
    header, text = letter.split("\n\n", 1)
    assert header.startswith("To: ops@example.org\nSubject: GPU use last week on ") and "charset=UTF-8" in header
    assert text.startswith("GPU use on lab-a100: Mon ") and "Unused GPU-hours" in text
    assert (tmp_path / "args").read_text() == "-t -i\n"


def test_users_get_their_own_and_strange_names_none(mailed, tmp_path):
    done, letters = mailed(GUA_MAIL_USERS="yes")
    assert done.returncode == 0, done.stderr
    own = [letter for letter in letters if f"GPU use of {mailed.me} " in letter]
    assert len(own) == 1 and "Your GPU-hours" in own[0]
    assert len(letters) == 2 and not (tmp_path / "pwned").exists()
    assert not any("Bcc" in letter.split("\n\n")[0] for letter in letters)


def test_the_first_letter_is_about_the_first_days(mailed, tmp_path):
    """An administrator tries it on the day on which the recorder was installed."""
    s = Store(tmp_path / "new.db")
    now = time.time()
    host, slot = s.host(), int(now) // 60 * 60 - 60
    s.run(host, slot, now)
    process = s.process(host, 1, mailed.me)
    gpu = s.card(host, 0, slot, now)
    s.usage(slot, gpu, IDLE_HELD, 60, width=60)
    s.holding(slot, gpu, process, IDLE_HELD, 60, width=60)
    done, letters = mailed(GUA_DB=str(s.save()), GUA_MAIL_USERS="yes")
    assert done.returncode == 0, done.stderr
    subjects = [re.search(r"^Subject: (.*) on ", letter, re.MULTILINE).group(1) for letter in letters]
    assert sorted(subjects) == ["GPU use this week", "Your GPU use this week"]
    assert any(re.search(r"% of 0\.0[0-9] GPU-hours were observed", letter) for letter in letters)
    assert any("You hold no GPU memory now that has been idle for 5 minutes." in letter for letter in letters)


def test_without_a_report_there_is_no_letter(mailed, tmp_path):
    done, letters = mailed(GUA_DB=str(tmp_path / "none.db"))
    assert done.returncode != 0 and letters == [] and "none.db" in done.stderr


def test_without_a_mail_server_it_says_what_to_do(mailed):
    done, letters = mailed(SENDMAIL="/nowhere/sendmail")
    assert done.returncode == 1 and letters == []
    assert done.stderr == "no mail can be sent: there is no /nowhere/sendmail; install a mail server, or name its program " \
                          "with SENDMAIL=\n"


def test_units_name_what_is_installed():
    service = (BUILD / "dist" / "gua-digest.service").read_text()
    timer = (ROOT / "dist" / "gua-digest.timer").read_text()
    cron = (BUILD / "dist" / "gua-digest.cron").read_text()
    path = re.search(r"^ExecStart=(\S+/libexec/gua/mail-digest)$", service, re.MULTILINE).group(1)
    assert f"  gua  {path}\n" in cron and "OnCalendar=Mon 07:00" in timer and "@" not in cron
