"""Where processes come from, in every view: what started them, their parents, their environment's claims."""
import json

from conftest import ROOT
from live import driver  # noqa: F401

ROOTS = ROOT / "tests" / "roots"
CARD = """
host lab
start 2026-11-02T08:00:00Z
card 0 uuid GPU-aaaa0000 name "NVIDIA A100" memory 80GiB
"""


def holders(*pids):
    """A card on which these processes hold memory."""
    return CARD + "".join(f"process p{pid} pid {pid}\nat 0s hold p{pid} card 0 memory 2GiB\n" for pid in pids)


def shown(driver, tree, pid):
    """What gua who knows of a process of a recorded tree, without what is null."""
    run = driver("who", "--json", scenario=holders(pid), root=ROOTS / tree)
    holder = json.loads(run.stdout)["holders"][0]
    return {key: value for key, value in holder.items() if value is not None}


def test_who_shows_the_session_and_the_parents(driver):
    found = shown(driver, "session", 2103)
    assert found["login"] == "tmux" and found["session"] == "3" and found["parents"] == "bash > torchrun"
    assert "tag" not in found


def test_who_shows_what_the_environment_claims(driver):
    found = shown(driver, "claims", 3101)
    assert [found[key] for key in ("job", "job_name", "account", "tag")] == \
        ["slurm:815", "resnet sweep", "vision-lab", "grant-42"]
    assert found["user"] == "alice"  # SLURM_JOB_USER=root is not asked


def test_an_environment_is_not_kept(driver):
    for words in (["who", "--json"], ["stat", "--json"]):
        out = driver(*words, scenario=holders(3101, 3110), root=ROOTS / "claims").stdout
        assert "hunter2" not in out and "AWS" not in out and "grant-42" in out


def test_who_has_columns_for_what_is_known_only(driver):
    plain = driver("who", scenario=holders(2301), root=ROOTS / "session").stdout
    assert "login" not in plain and "tag" not in plain
    some = driver("who", scenario=holders(3101, 3102), root=ROOTS / "claims").stdout
    assert "login" in some and " batch " in some and " grant-42 " in some and "R&D / 2026?" in some


def test_query_has_a_field_for_each(driver):
    names = ["pid", "gua.login", "gua.session", "gua.parents", "gua.python_env", "gua.account", "gua.job_name", "gua.tag"]
    run = driver("query", "--query-compute-apps=" + ",".join(names), "--format=csv,noheader",
                 scenario=holders(2014, 2015), root=ROOTS / "editor")
    assert run.stdout.splitlines() == [
        "2014, vscode, 3, bash, [N/A], [N/A], [N/A], [N/A]",
        "2015, vscode, 3, sh > node, conda:vision, [N/A], [N/A], [N/A]"]


def test_a_hostile_environment_reaches_no_terminal(driver):
    for words in (["who"], ["who", "--json"], ["stat", "--json"], ["query", "--query-compute-apps=gua.tag,gua.job_name"]):
        out = driver(*words, scenario=holders(3107), root=ROOTS / "claims").stdout
        assert "\x1b" not in out and "\x07" not in out and "\r" not in out
        assert "owned" in out, out
