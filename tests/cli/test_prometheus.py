"""dist/prometheus: the rules do what their tests say, and a test fails when a threshold is another one."""
import concurrent.futures
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

pytestmark = pytest.mark.any_build

RULES = ROOT / "dist" / "prometheus"
TESTS = ROOT / "tests" / "prometheus"
# What is a threshold: a number that something is compared with, or how long it must last.
THRESHOLD = re.compile(r"(?<=[<>] )0\.\d+|\d+(?= \* 3600)|(?<=== )0|(?<=for: )\d+(?=[mh])")


def promtool(folder, tests, alerts=None):
    """Runs these rule tests with this text as alerts.yml."""
    folder.mkdir()
    for path in [*RULES.glob("*.yml"), *TESTS.glob("*.yml")]:
        shutil.copy(path, folder)
    if alerts is not None:
        (folder / "alerts.yml").write_text(alerts)
    return subprocess.run(["promtool", "test", "rules", *tests], cwd=folder, capture_output=True, text=True)


def test_the_configuration_is_valid(tmp_path):
    """With the files that it names: promtool looks at them."""
    for path in RULES.glob("*.yml"):
        shutil.copy(path, tmp_path)
    text = (RULES / "prometheus.yml").read_text()
    for name in re.findall(r"/etc/prometheus/(\S+)", text):
        (tmp_path / name).touch()
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus", str(tmp_path)))
    run = subprocess.run(["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True)
    assert run.returncode == 0 and "FAILED" not in run.stdout, run.stdout + run.stderr


def test_the_rules_pass_their_tests(tmp_path):
    run = promtool(tmp_path / "rules", sorted(path.name for path in TESTS.glob("*.yml")))
    assert run.returncode == 0, run.stdout + run.stderr


def other_thresholds():
    """(name, alerts.yml with another threshold) for a lower and a higher value of each."""
    text = (RULES / "alerts.yml").read_text()
    for found in THRESHOLD.finditer(text):
        alert = re.findall(r"alert: (\w+)", text[:found.start()])[-1]
        number = float(found.group())
        others = ["1"] if number == 0 else [
            f"{number * factor:.3f}" if number < 1 else str(round(number * factor)) for factor in (0.75, 1.4)]
        for other in others:
            yield f"{alert} {found.group()} -> {other}", text[:found.start()] + other + text[found.end():]


def test_another_threshold_fails_a_test(tmp_path):
    """promtool mostly waits: all at once."""
    def passes(numbered):
        number, (name, alerts) = numbered
        day = any(word in name for word in ("Fleet", "Identity", "HeldIdleLong"))
        run = promtool(tmp_path / str(number), ["alerts-day.test.yml" if day else "alerts-minutes.test.yml"], alerts)
        return name if run.returncode == 0 else None
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        unnoticed = [name for name in pool.map(passes, enumerate(other_thresholds())) if name]
    assert unnoticed == []


def test_every_alert_is_tested_and_every_threshold_is_changed():
    text = (RULES / "alerts.yml").read_text()
    tests = "".join(path.read_text() for path in TESTS.glob("alerts*.yml"))
    alerts = re.findall(r"alert: (\w+)", text)
    assert len(alerts) == 6
    for alert in alerts:
        assert tests.count(f"alertname: {alert}") >= 2, alert
        assert any(name.startswith(alert + " ") for name, _ in other_thresholds()), alert
    # 3 ratios, a floor, an age, 5 durations: two others each; 2 comparisons with 0: one other.
    assert len(list(other_thresholds())) == 2 * 10 + 2
