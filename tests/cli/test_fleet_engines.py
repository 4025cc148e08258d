"""Metrics of other exporters on real Prometheus and VictoriaMetrics: long windows that the engine judges, and the same fleet as
gua's own counters."""
import collections
import contextlib
import json
import random

import jsonschema
import pytest

import engines
import fleet_truth
from conftest import BUILD, ROOT, gua
from sampled_truth import Card, Grid, MIB, STATES, Samples, dcgm as card_series, judged_seconds, random_card, scrape_times, true_seconds
from test_fleet_sampled import columns_of, patiently

pytestmark = [
    pytest.mark.other_programs,
    pytest.mark.skipif(not (BUILD / "gua-fleet").exists(), reason="built without libcurl"),
    pytest.mark.skipif(bool(engines.missing()), reason=f"not installed: {' '.join(engines.missing())}"),
]

SCHEMA = json.loads((ROOT / "man/report.schema.json").read_text())
T = 1730678400  # Mon 2024-11-04 00:00 UTC
STEP, N = 30, 5000
END = T + STEP * N
TIMES = [T + 7 + STEP * i for i in range(N)]


def dcgm(card, use, mem, pod):
    labels = {"instance": "10.0.0.1:9400", "gpu": str(card.index), "UUID": card.uuid, "modelName": "NVIDIA A100", "Hostname": card.host}
    if pod:
        labels |= {"namespace": pod.split("/")[0], "pod": pod.split("/")[1]}
    yield "DCGM_FI_DEV_GPU_UTIL", labels, use
    yield "DCGM_FI_DEV_FB_USED", labels, mem


def watts(use):
    return 350 if use >= 10 else 100


def energy(card):
    """The counter of a card, also over holes: (time, labels, mJ)."""
    total = 0
    for t, row in zip(TIMES, card.rows):
        total += 1000 * STEP * watts(row[0] if row else 0)
        if row:
            yield t, next(iter(dcgm(card, *row)))[1], total


def smi(card, use, mem, _):
    """Two models; the driver keeps 400 MiB of one and 700 MiB of the other for itself."""
    labels = {"instance": f"{card.host}:9835", "uuid": card.uuid[4:]}
    own = 400 if card.index else 700
    yield "nvidia_smi_power_draw_watts", labels, watts(use)
    yield "nvidia_smi_utilization_gpu_ratio", labels, use / 100
    yield "nvidia_smi_memory_used_bytes", labels, (mem + own) * MIB
    yield "nvidia_smi_gpu_info", labels | {"name": "L4" if card.index else "H100", "index": str(card.index)}, 1


@pytest.fixture(scope="module")
def cards():
    rng = random.Random(29)
    return [Grid(rng, f"node{h}", c, N) for h in range(3) for c in range(2)]


@pytest.fixture(scope="module")
def urls(tmp_path_factory, cards):
    """Both engines with both exporters, and with a fleet as gua's counters and as DCGM's samples."""
    samples = Samples()
    for card in cards:
        card.add_to(samples, TIMES, dcgm)
        card.add_to(samples, TIMES, smi)
        for t, labels, total in energy(card):
            samples.add(t, [("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, total)])
    with contextlib.ExitStack() as stack:
        yield {"prometheus": stack.enter_context(engines.prometheus(tmp_path_factory.mktemp("p"), samples.openmetrics())),
               "victoria": stack.enter_context(engines.victoria(tmp_path_factory.mktemp("v"), samples.import_text()))}


def document(url, *args, since, until, **window):
    run = patiently("report", "--from", url, "--json", "--since", f"@{since}", "--until", f"@{until}", "--now", f"@{until + 9000}", "--utc", *args)
    assert run.returncode == 0 and run.stderr == "", run.stderr
    found = json.loads(run.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


@pytest.mark.same_path
@pytest.mark.parametrize("engine", ["prometheus", "victoria"])
@pytest.mark.parametrize("metrics", ["dcgm", "nvidia_gpu_exporter"])
def test_the_engine_judges_long_windows(urls, cards, engine, metrics):
    """A short --timeout makes the window long. Only the edges of states and holes may differ from the samples' own judgement."""
    since, until = T + 5000, END - 7300
    found = document(urls[engine], "--metrics", metrics, "--by", "pod", "--timeout", "3s", since=since, until=until)
    exact = document(urls[engine], "--metrics", metrics, "--by", "pod", since=since, until=until)
    means = {gpu["uuid"]: gpu["mean_util_pct"] for gpu in exact["gpus"]}
    assert all(gpu["mean_util_pct"] == pytest.approx(means[gpu["uuid"]], abs=1) for gpu in found["gpus"])
    leased, whole = collections.Counter(), collections.Counter()
    for card in cards:
        expected = card.judged(TIMES, STEP, since, until)
        uuid = card.uuid
        for report, slack in ((exact, 0.01), (found, None)):
            own, = [gpu for gpu in report["gpus"] if gpu["uuid"] == uuid]
            for state in STATES:
                seconds = sum(n for (name, pod), n in expected.items() if name == state)
                if metrics != "dcgm" and state in ("reserved", "truly_idle"):
                    seconds = sum(n for (name, _), n in expected.items() if name in ("reserved", "truly_idle")) * (state == "truly_idle")
                assert (own["gpu_seconds"][state] or 0) == pytest.approx(seconds, abs=slack or 0.01 * (until - since)), (uuid, state)
            for state, power in (("active", 350), ("idle_held", 100), ("truly_idle", 100)):
                kwh, seconds = own["energy_kwh"][state], own["gpu_seconds"][state] or 0
                assert (kwh or 0) == pytest.approx(power * seconds / 3.6e6, rel=0.005 if report is exact else 0.05, abs=0.1), (uuid, state)
        for (state, pod), n in expected.items():
            leased[pod, state] += n
            whole[state] += n
    total = sum(whole.values())
    for state in ("active", "idle_held"):
        assert found["gpu_seconds"][state] == pytest.approx(whole[state], abs=0.004 * total)
        assert sum(hour[state] for hour in found["heatmap"]) == pytest.approx(found["gpu_seconds"][state], abs=1)
    assert found["window"]["observed"] == pytest.approx(exact["window"]["observed"], abs=0.005)
    if metrics == "dcgm":
        for row in found["breakdown"]["rows"]:
            for state in ("active", "idle_held", "reserved"):
                assert row[f"{state}_gpu_seconds"] == pytest.approx(leased[row["pod"], state], abs=0.004 * total)


@pytest.mark.parametrize("engine", ["prometheus", "victoria"])
def test_counters_and_samples_of_one_fleet_agree(tmp_path, engine):
    """The same cards as gua's counters and as DCGM's samples: both are within what they state."""
    since, until = T + 5400, T + 5400 + 6 * 3600
    hosts = [fleet_truth.Host(f"node{h}", [fleet_truth.Cycle(("active", 37 + 41 * h + 13 * c), ("idle_held", 290 + 3 * h), ("truly_idle", 123 - 9 * c),
                                                            shift=17.0 * h) for c in range(3)],
                              [(T - 86400, until + 3000)], [(T, until + 3000)], phase=1.5 + h) for h in range(4)]
    families = fleet_truth.samples(hosts, 60)
    samples = Samples()
    for host in hosts:
        for c, cycle in enumerate(host.cards):
            for t in (T + host.phase + 30 * i for i in range((until + 600 - T) // 30)):
                state = next(name for name in fleet_truth.STATES if cycle.between(name, t, t + 0.001) > 0.0005)
                labels = {"instance": f"{host.name}:9401", "Hostname": host.name, "UUID": host.uuid(c), "gpu": str(c)}
                samples.add(t, [("DCGM_FI_DEV_GPU_UTIL", labels, 80 if state == "active" else 0),
                                ("DCGM_FI_DEV_FB_USED", labels, 0 if state == "truly_idle" else 900)])
    if engine == "victoria":
        running = engines.victoria(tmp_path, fleet_truth.import_text(families) + samples.import_text())
    else:
        running = engines.prometheus(tmp_path, fleet_truth.openmetrics(families).replace("# EOF\n", "") + samples.openmetrics())
    with running as url:
        own = document(url, since=since, until=until)
        assert document(url, "--metrics", "gua", since=since, until=until)["gpu_seconds"] == own["gpu_seconds"]
        assert own["fleet"]["sample_seconds"] is None  # samples of cards that gua counts are not even read
        other = document(url, "--metrics", "dcgm", since=since, until=until)
    assert own["fleet"]["metrics"] == "gua" and other["fleet"]["metrics"] == "dcgm"
    truth = fleet_truth.truth(hosts, since, until)
    slack = other["headline"]["idle_held_uncertainty"]
    assert 0 < slack < 0.02
    for state in ("active", "idle_held", "truly_idle"):
        share = truth[state] / sum(truth.values())
        assert abs(own["headline"][state] - share) < 0.003
        assert abs(other["headline"][state] - own["headline"][state]) <= slack + 0.003, state


@pytest.mark.parametrize("engine", ["prometheus", "victoria"])
def test_each_host_is_read_the_best_way(tmp_path, engine):
    """gua's counters where a host has them, else samples of the exporter that has most; no card is taken twice, whatever hosts are called."""
    since, until = T + 5400, T + 5400 + 4 * 3600
    counted = [fleet_truth.Host(name, [fleet_truth.Cycle(("active", 100), ("idle_held", 300))] * 2, [(T - 86400, until + 3000)], [(T, until + 3000)],
                                users=[("ann", 0, T - 80000, until)]) for name in ("node0", "10.0.0.7", "localhost")]
    samples = Samples()
    for t in range(T, until + 600, 30):
        for host, target, uuid in (("node0", "node0:9401", "GPU-other"), ("alias", "x:9401", "GPU-10.0.0.7-1"), ("node8", "10.0.0.7:9401", "GPU-third"),
                                   ("node1", "y:9401", "GPU-node1"), ("node5", "localhost:9401", "GPU-node5"), ("node2", "z:9401", "GPU-node2")):
            labels = {"instance": target, "Hostname": host, "UUID": uuid, "gpu": "0", "pod": "p", "namespace": "lab"}
            samples.add(t, [("DCGM_FI_DEV_GPU_UTIL", labels, 0), ("DCGM_FI_DEV_FB_USED", labels, 900)])
        for host, uuid in (("node2", "node2"), ("node3", "node3")):
            labels = {"instance": f"{host}:9835", "uuid": uuid}
            samples.add(t, [("nvidia_smi_utilization_gpu_ratio", labels, 0.9), ("nvidia_smi_memory_used_bytes", labels, 900 * MIB)])
    families = fleet_truth.samples(counted, 60)
    if engine == "victoria":
        running = engines.victoria(tmp_path, fleet_truth.import_text(families) + samples.import_text())
    else:
        running = engines.prometheus(tmp_path, fleet_truth.openmetrics(families).replace("# EOF\n", "") + samples.openmetrics())
    with running as url:
        found = document(url, "--by", "host", since=since, until=until)
        text = gua("report", "--from", url, "--since", f"@{since}", "--until", f"@{until}", "--now", f"@{until + 900}", "--utc").stdout
        alone = document(url, "--metrics", "gua", since=since, until=until)
        pods = document(url, "--by", "pod", since=since, until=until)
        said = gua("report", "--from", url, "--since", f"@{since}", "--until", f"@{until}", "--now", f"@{until + 900}", "--utc", "--by", "pod").stdout
    # Only samples name pods: of the hosts that gua alone watches nothing is said but that.
    assert {gpu["host"] for gpu in pods["gpus"]} == {"node0", "alias", "node8", "node1", "node5", "node2", "node3"}
    assert [(row["pod"], row["idle_held_gpu_seconds"]) for row in pods["breakdown"]["rows"] if row["pod"]] == [("lab/p", pytest.approx(6 * (until - since), abs=1))]
    assert "these are samples of dcgm and nvidia_gpu_exporter alone, without the hosts that only gua watches" in " ".join(said.split())
    assert {(gpu["host"], gpu["uuid"]) for gpu in found["gpus"]} == {
        ("node0", "GPU-node0-0"), ("node0", "GPU-node0-1"), ("10.0.0.7", "GPU-10.0.0.7-0"), ("10.0.0.7", "GPU-10.0.0.7-1"),
        ("localhost", "GPU-localhost-0"), ("localhost", "GPU-localhost-1"),
        ("node1", "GPU-node1"), ("node2", "GPU-node2"), ("node3", "GPU-node3"), ("node5", "GPU-node5")}
    length = until - since
    assert found["gpu_seconds"]["idle_held"] == pytest.approx(alone["gpu_seconds"]["idle_held"] + 3 * length, abs=1)
    assert found["gpu_seconds"]["active"] == pytest.approx(alone["gpu_seconds"]["active"] + length, abs=1)
    assert sum(hour["idle_held"] for hour in found["heatmap"]) == pytest.approx(found["gpu_seconds"]["idle_held"], abs=1)
    assert found["fleet"]["metrics"] == "gua and dcgm and nvidia_gpu_exporter" and len(alone["gpus"]) == 6
    users = {user["identity"]: user["idle_held_gpu_seconds"] for user in found["identities"]}
    assert users["lab"] == pytest.approx(3 * length, abs=1) and users["ann"] == pytest.approx(alone["identities"][0]["idle_held_gpu_seconds"], abs=1)
    text = " ".join(text.split())
    for part in ("partly sampled every 30 s by dcgm and nvidia_gpu_exporter", "gua counts on 3 of these hosts; the other 4 have only metrics of"):
        assert part in text, part


def test_the_texts_of_each_exporter(tmp_path):
    """As each exporter writes them, in the versions that are in use; a scrape adds the target's labels. All in one engine."""
    lines = [line for path in sorted((ROOT / "tests/prometheus/exporters").glob("*.txt")) for line in path.read_text().splitlines()
             if not line.startswith("#")]
    since, until = T, T + 7200
    text = "".join(f"{line} {1000 * t}\n" for t in range(T - 60, until + 60, 30) for line in lines)
    with engines.victoria(tmp_path, text) as url:
        found = document(url, "--by", "pod", since=since, until=until)
        jobs = document(url, "--by", "job", since=since, until=until)
        status = [gua("fleet", "status", "--from", url, "--now", f"@{until}", "--utc", *how).stdout for how in (["--json"], ["--all"])]
    versions = {host["host"]: host["version"] for host in json.loads(status[0])["hosts"]}
    assert versions == {name: "1.2.1" if name == "desk1" else None for name in versions} and len(versions) == 5
    assert "NVIDIA GeForce RTX 3090: 2), version 1.2.1 on 1, sampled every 30 s" in " ".join(status[1].split())
    drivers = {host["host"]: host["driver"] for host in found["hosts"]}
    assert drivers["desk1"] == "550.54.14" and drivers["gpu-a"] == "535.104.12" and drivers["slurm1"] in ("", None)
    states = {gpu["uuid"]: max(gpu["gpu_seconds"], key=lambda state: gpu["gpu_seconds"][state] or 0) for gpu in found["gpus"]}
    assert states == {
        "GPU-aaaa-1": "active", "GPU-aaaa-2": "truly_idle", "GPU-bbbb-1": "idle_held", "GPU-bbbb-2": "active", "GPU-bbbb-3": "reserved",
        "GPU-cccc-1": "active", "GPU-cccc-2/9": "idle_held", "GPU-cccc-2/10": "truly_idle", "GPU-dddd-1": "truly_idle", "GPU-dddd-2": "idle_held",
        "GPU-eeee-1": "active", "GPU-eeee-2": "truly_idle"}
    by_uuid = {gpu["uuid"]: gpu for gpu in found["gpus"]}
    assert {gpu["host"] for gpu in found["gpus"]} == {"old1", "gpu-a", "gpu-b", "desk1", "slurm1"}
    assert by_uuid["GPU-dddd-1"]["name"] == "NVIDIA GeForce RTX 3090" and by_uuid["GPU-eeee-1"]["name"] == "Tesla V100-PCIE-32GB"
    assert by_uuid["GPU-bbbb-2"]["mean_util_pct"] == pytest.approx(91.4, abs=0.1) and by_uuid["GPU-bbbb-2"]["sm_active_pct"] == 25
    assert by_uuid["GPU-eeee-1"]["energy_kwh"]["active"] == pytest.approx(0.402, abs=0.001)
    assert {row["pod"] for row in found["breakdown"]["rows"] if row["pod"]} == {"lab/train-0", "teaching/jupyter-ann", "teaching/sleep-1"}
    assert {row["job"] for row in jobs["breakdown"]["rows"] if row["job"]} == {"slurm:4711", "slurm:8123"}
    assert set(found["fleet"]["metrics"].split(" and ")) == {"dcgm", "nvidia_gpu_exporter", "jobstats"}


def test_many_cards_are_asked_about_in_groups(tmp_path):
    """Of 60 cards with a sample each second, few fit into one query: they are divided by the last character of their UUIDs, whatever that is."""
    since, until = T, T + 3600
    samples, endings = Samples(), "0123456789abcdefXYZ!-é"
    for index in range(60):
        labels = {"instance": f"n{index % 3}:9400", "Hostname": f"n{index % 3}", "UUID": f"GPU-{index:02}{endings[index % len(endings)]}", "gpu": str(index)}
        use, mem = ((90, 900), (0, 900), (0, 0))[index % 3]
        for t in range(since - 5, until + 5):
            samples.add(t, [("DCGM_FI_DEV_GPU_UTIL", labels, use), ("DCGM_FI_DEV_FB_USED", labels, mem)])
    with engines.victoria(tmp_path, samples.import_text()) as url:
        found = document(url, "--timeout", "9s", since=since, until=until)
    assert len(found["gpus"]) == 60 and {round(gpu["mean_util_pct"]) for gpu in found["gpus"]} == {0, 90}
    for state in ("active", "idle_held", "truly_idle"):
        assert found["gpu_seconds"][state] == pytest.approx(20 * 3600, rel=0.001)


def long_and_exact(url, *args, since, until):
    """The same window judged by the engine, if it has more than 8,334 samples of use, and sample by sample; cards by UUID."""
    found = [document(url, "--timeout", timeout, *args, since=since, until=until) for timeout in ("1s", "60s")]
    for report in found:
        report["by_uuid"] = {gpu["uuid"]: gpu for gpu in report["gpus"]}
    return found


@pytest.mark.same_path
@pytest.mark.parametrize("engine", ["victoria", "prometheus"])
def test_hosts_that_are_scraped_at_different_intervals(tmp_path, engine):
    """Each has its own step: nothing that a slow scrape saw is unobserved, a hole that is long for a fast one is not filled, and the
    stated ± is that of the host's own interval. Pods that follow each other quickly do not make the interval look longer."""
    rng, since, until = random.Random(5), T + 3600, T + 3600 + 8 * 3600
    intervals = {"fast": 15, "usual": 30, "slow": 60, "rare": 300}
    cards, samples = [], Samples()
    for host, interval in intervals.items():
        for index in range(3):
            spans, t = [], T
            while t < until + 3600:
                t += rng.uniform(900, 2500)
                use, mem = rng.choice([(0, 900), (60, 900), (0, 0)])
                spans.append((t, use, mem, f"lab/{host}-{len(spans)}" if mem else None))
            card = Card(host, index, spans)
            holes = [(x, x + 80) for x in range(since + 500, until, 3000)] if host == "fast" else []
            card.scrapes = [t for t in range(T + 3 + index, until + 900, interval) if not any(a < t <= b for a, b in holes)]
            for t in card.scrapes:
                samples.add(t, [(name, labels | {"instance": f"{host}:9400"}, value) for name, labels, value in card_series(card, t)])
            cards.append(card)
    start = engines.victoria(tmp_path, samples.import_text()) if engine == "victoria" else engines.prometheus(tmp_path, samples.openmetrics())
    with start as url:
        found, exact = long_and_exact(url, since=since, until=until)
        head = patiently("report", "--from", url, "--since", f"@{since}", "--until", f"@{until}", "--now", f"@{until + 9000}").stdout
    assert "sampled every 30 to 300 s by dcgm" in head  # dcgm-exporter reads no card more often
    for card in cards:
        expected, interval = judged_seconds(card, intervals[card.host], since, until), intervals[card.host]
        for report, slack in ((exact, 0.01), (found, 2.1 * interval * len(card.spans))):
            own = report["by_uuid"][card.uuid.lower().replace("gpu-", "GPU-")]
            for state in STATES:
                seconds = sum(n for (name, _), n in expected.items() if name == state)
                assert (own["gpu_seconds"][state] or 0) == pytest.approx(seconds, abs=slack), (report is exact, card.uuid, state)
            observed = sum(own["gpu_seconds"][state] or 0 for state in STATES)
            slack = 0.01 if report is exact else 10 * 2 * interval if card.host == "fast" else 1.1 * interval
            assert observed == pytest.approx(sum(expected.values()), abs=slack), (report is exact, card.uuid)
            least = 2.99 * max(interval, 30) / observed
            assert own["idle_held_uncertainty"] >= least, (report is exact, card.uuid)


@pytest.mark.same_path
@pytest.mark.parametrize("engine", ["victoria", "prometheus"])
def test_bursts_that_two_replicas_see_at_different_moments(tmp_path, engine):
    """Use that either of them saw is not the use of the card. A hole of one is filled by the other; a host may have no replica, too; and
    the pod of the exporter, which is another one after an hour, does not tell replicas apart. In whatever order the engine answers, the
    report is the same."""
    rng, since, until, cards, samples = random.Random(13), T + 3600, T + 3600 + 6 * 3600, [], Samples()
    for index in range(4):
        spans, t = [], T
        while t < until + 3600:
            for mean, use in ((20, 90), (40, 0)):
                t += rng.expovariate(1 / mean)
                spans.append((t, use, 900, None))
        card = Card(f"n{index % 2}", index, spans)
        for phase, replica in ((0, "prometheus-0"), (13, "prometheus-1"))[:1 + index % 2]:
            for t in range(T + phase, until + 900, 30):
                if replica != "prometheus-0" or card.host == "n0" or not since + 7200 < t < since + 10800:
                    more = {"pod": f"dcgm-exporter-{(t - T) // 3600}"} | ({"prometheus_replica": replica} if card.host == "n1" else {})
                    samples.add(t, [(name, labels | more, value) for name, labels, value in card_series(card, t)])
        cards.append(card)
    start = engines.victoria(tmp_path, samples.import_text()) if engine == "victoria" else engines.prometheus(tmp_path, samples.openmetrics())
    with start as url:
        found, _ = long_and_exact(url, since=since, until=until)
        again = [document(url, "--timeout", "1s", since=since, until=until) for _ in range(20 if engine == "prometheus" else 1)]
    assert all(report["gpu_seconds"] == found["gpu_seconds"] for report in again)
    for card in cards:
        own = found["by_uuid"][card.uuid.lower().replace("gpu-", "GPU-")]
        truth = true_seconds(card, since, until)
        for state in ("active", "idle_held"):
            assert own["gpu_seconds"][state] == pytest.approx(truth[state], abs=own["idle_held_uncertainty"] * (until - since)), card.uuid
        assert (own["gpu_seconds"]["unobserved"] or 0) <= 60, card.uuid


@pytest.mark.same_path
@pytest.mark.parametrize("engine", ["victoria", "prometheus"])
def test_cards_of_which_something_is_missing(tmp_path, engine):
    """Memory without use is use unknown if it is held; use without memory is active, or not observed. In long windows, too, also where
    that is so for a part of the window only."""
    since, until = T, T + 4 * 3600
    rows = {  # use and memory, and those of the second half
        "both": (90, 900), "held": (None, 900), "free": (None, 0), "busy": (90, None), "idle": (5, None),
        "lost": (90, 900, None, 900), "came": (None, 900, 0, 900)}
    samples = Samples()
    for t in range(since - 300, until + 300, 5):
        for index, (name, values) in enumerate(rows.items()):
            use, mem = values[-2:] if t > since + 2 * 3600 else values[:2]
            labels = {"instance": f"n{index}:9400", "Hostname": f"n{index}", "UUID": f"GPU-{name}", "gpu": "0"}
            samples.add(t, [("DCGM_FI_DEV_GPU_UTIL", labels, use)] * (use is not None) + [("DCGM_FI_DEV_FB_USED", labels, mem)] * (mem is not None))
    start = engines.victoria(tmp_path, samples.import_text()) if engine == "victoria" else engines.prometheus(tmp_path, samples.openmetrics())
    with start as url:
        reports = long_and_exact(url, since=since, until=until)
    whole = until - since
    expected = {"both": {"active": whole}, "held": {"use_unknown": whole}, "free": {"truly_idle": whole}, "busy": {"active": whole},
                "lost": {"active": whole / 2, "use_unknown": whole / 2}, "came": {"use_unknown": whole / 2, "idle_held": whole / 2}}
    for report in reports:
        assert set(report["by_uuid"]) == {f"GPU-{name}" for name in expected}  # of "idle" nothing is known
        for name, states in expected.items():
            own = report["by_uuid"][f"GPU-{name}"]["gpu_seconds"]
            for state in STATES:
                assert (own[state] or 0) == pytest.approx(states.get(state, 0), abs=60), (report is reports[1], name, state)


def test_means_of_long_windows(tmp_path):
    """Mean utilisation and SM activity, also of pods that follow each other or share a card; GR_ENGINE_ACTIVE goes before GPU_UTIL."""
    since, until = T, T + 4 * 3600
    samples = Samples()
    for t in range(since - 300, until + 300, 5):
        first = t <= since + 3600 + 1200  # not a full hour
        for index in range(3):
            labels = {"instance": "n:9400", "Hostname": "n", "UUID": f"GPU-{index}", "gpu": str(index)}
            pods = [{}, {"pod": "a" if first else "b", "namespace": "x"}, {"pod": "a", "namespace": "x"}][index]
            for more in [pods] + [{"pod": "b", "namespace": "x"}] * (index == 2):
                samples.add(t, [("DCGM_FI_DEV_GPU_UTIL", labels | more, 80 if first else 20), ("DCGM_FI_DEV_FB_USED", labels | more, 900),
                                ("DCGM_FI_PROF_SM_ACTIVE", labels | more, 0.4 if first else 0.1), ("DCGM_FI_DEV_POWER_USAGE", labels | more, 300 if first else 100)])
                if index == 0:
                    samples.add(t, [("DCGM_FI_PROF_GR_ENGINE_ACTIVE", labels, 0.6 if first else 0.0)])
    with engines.victoria(tmp_path, samples.import_text()) as url:
        lanes, page = columns_of(url, "--timeout", "1s", since=since, until=until)
        assert "Time line" in page and [round(sum(column["active"] for column in lane)) for lane in lanes.values()] == [
            pytest.approx(n, abs=10) for n in (4800, 14400, 14400)]
        assert all(len(lane) == 4 for lane in lanes.values())  # nothing finer is known
        for report in long_and_exact(url, since=since, until=until):
            for index, (high, low) in enumerate([(60, 0), (80, 20), (80, 20)]):
                own = report["by_uuid"][f"GPU-{index}"]
                assert own["mean_util_pct"] == pytest.approx((high * 4800 + low * 9600) / 14400, abs=0.5), index
                assert own["sm_active_pct"] == pytest.approx((40 * 4800 + 10 * 9600) / 14400, abs=0.3), index
                assert sum(filter(None, own["energy_kwh"].values())) == pytest.approx((300 * 4800 + 100 * 9600) / 3.6e6, rel=0.01), index


def test_energy_of_hours_with_several_states(tmp_path):
    """No hour is of one state alone: what each state takes is found from all of them."""
    rng, since, until, samples, total = random.Random(8), T, T + 24 * 3600, Samples(), 0
    ends, state = [], []
    while sum(ends) < 25 * 3600:
        ends.append(rng.uniform(300, 1500))
        state.append((300, 90, 900) if len(ends) % 2 else rng.choice([(130, 0, 900), (60, 0, 0)]))
    truth = collections.Counter()
    at, left = 0, ends[0]
    for t in range(since - 60, until + 60, 5):
        if left <= 0:
            at += 1
            left = ends[at]
        left -= 5
        power, use, mem = state[at]
        total += 5 * power
        truth[power] += 5 * power / 3.6e6 * (since < t <= until)
        labels = {"instance": "n:9400", "Hostname": "n", "UUID": "GPU-0", "gpu": "0"}
        samples.add(t, [("DCGM_FI_DEV_GPU_UTIL", labels, use), ("DCGM_FI_DEV_FB_USED", labels, mem),
                        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, 1000 * total)])
    with engines.victoria(tmp_path, samples.import_text()) as url:
        for report in long_and_exact(url, since=since, until=until):
            kwh = report["by_uuid"]["GPU-0"]["energy_kwh"]
            for power, name in ((300, "active"), (130, "idle_held"), (60, "truly_idle")):
                assert kwh[name] == pytest.approx(truth[power], rel=0.03), name


@pytest.mark.large
def test_the_stated_uncertainty_of_long_windows_covers_random_bursts(tmp_path):
    """As that of short ones: 95 of 100 cards are within the ± of their row, for the truth that no sample shows."""
    rng, since, until, cards, samples = random.Random(92), T + 60, T + 60 + 6 * 3600, [], Samples()
    for index in range(100):
        busy, rest = 10 ** rng.uniform(0.3, 3), 10 ** rng.uniform(0.5, 3.5)
        spans, t = [], T - 600
        while t < until + 1000:
            t += rng.expovariate(1 / rest)
            spans.append((t, 0, 900, None))
            t += rng.expovariate(1 / busy)
            spans.append((t, 90, 900, None))
        cards.append(Card("node", index, spans))
        for t in range(T - 300, until + 300, 30):
            samples.add(t, list(card_series(cards[-1], t))[:2])
    with engines.victoria(tmp_path, samples.import_text()) as url:
        found = {gpu["index"]: gpu for gpu in document(url, "--timeout", "5s", since=since, until=until)["gpus"]}
    covered, widths = 0, []
    for card in cards:
        own = found[card.index]
        observed = sum(own["gpu_seconds"][state] or 0 for state in STATES)
        error = abs(own["gpu_seconds"]["idle_held"] - true_seconds(card, since, until)["idle_held"]) / observed
        covered += error <= own["idle_held_uncertainty"]
        widths.append(own["idle_held_uncertainty"])
    assert covered >= 95 and sorted(widths)[50] < 0.05


def test_hosts_and_instances_are_chosen_in_the_engine(tmp_path):
    """--host takes names literally. Instances have copies of their card's power,
    which counts for none of them."""
    since, until = T, T + 12 * 3600
    samples = Samples()
    for t in range(since - 60, until + 60, 5):
        for host in ("n1.lab", "n1-lab", "n2.lab", "n3.lab"):
            for more in ({}, {"GPU_I_ID": "1"}, {"GPU_I_ID": "2"}) if host == "n2.lab" else ({},):
                labels = {"instance": "10.0.0.9:9400", "Hostname": host, "UUID": f"GPU-{host}", "gpu": "0", **more}
                samples.add(t, [("DCGM_FI_PROF_GR_ENGINE_ACTIVE", labels, 0), ("DCGM_FI_DEV_FB_USED", labels, 900), ("DCGM_FI_DEV_POWER_USAGE", labels, 100)])
        labels = {"instance": "n4.lab:9835", "uuid": "n4"}
        samples.add(t, [("nvidia_smi_utilization_gpu_ratio", labels, 0.9), ("nvidia_smi_memory_used_bytes", labels, 900 * MIB)])
    with engines.victoria(tmp_path, samples.import_text()) as url:
        for host, states in (("n1.lab", {"idle_held": 1}), ("n1.lab,n2.lab", {"idle_held": 3}), ("n4.lab", {"active": 1})):
            for report in long_and_exact(url, "--host", host, since=since, until=until):
                assert {state: n for state, n in report["gpu_seconds"].items() if n and state != "unobserved"} == {
                    state: pytest.approx(n * (until - since), abs=20) for state, n in states.items()}, host
                assert sum(sum(filter(None, gpu["energy_kwh"].values())) for gpu in report["gpus"]) == pytest.approx(
                    1.2 * ("n1" in host), abs=0.01)


@pytest.mark.parametrize("seed", range(2))
def test_random_fleets_in_long_windows(tmp_path, seed):
    """Restarts and holes, pods that move, two replicas that scrape at moments of their own, a new version of the exporter in the middle, a
    counter of energy that begins again: the engine's judgement is that of the samples but for an interval at each change."""
    rng, interval = random.Random(seed), 15
    since, until = T + 1000, T + 1000 + 9 * 3600
    cards = [random_card(rng, f"node{h}", c, T, until + 9000, 120, 4000) for h in range(3) for c in range(2)]
    samples, renamed_at = Samples(), rng.uniform(since, until)
    for card in cards:
        for replica in ("a", "b")[:1 + (card.host == "node1")]:
            for t in scrape_times(rng, T, until + 600, interval):
                card.scrapes.append(t)
                samples.add(t, card_series(card, t, t > renamed_at, replica))
    with engines.victoria(tmp_path, samples.import_text()) as url:
        for report in long_and_exact(url, "--by", "pod", since=since, until=until):
            pods = collections.Counter()
            for card in cards:
                expected = judged_seconds(card, interval, since, until)
                own = report["by_uuid"][card.uuid.lower().replace("gpu-", "GPU-")]["gpu_seconds"]
                for state in STATES:
                    seconds = sum(n for (name, _), n in expected.items() if name == state)
                    assert (own[state] or 0) == pytest.approx(seconds, abs=0.015 * (until - since)), (card.uuid, state)
                for (state, pod), n in expected.items():
                    pods[pod, state] += n
            for row in report["breakdown"]["rows"]:
                for state in ("active", "idle_held", "reserved"):
                    assert row[f"{state}_gpu_seconds"] == pytest.approx(pods[row["pod"], state], abs=0.015 * (until - since)), (row["pod"], state)


def test_stamps_of_agents_whose_clocks_are_off(tmp_path):
    """An agent that pushes stamps its samples itself. What a host did is shifted with its clock, and no more than that is unobserved."""
    since, until, off = T + 3600, T + 3600 + 4 * 3600, {"early": -240, "right": 0, "late": 240}
    samples = Samples()
    for t in range(T, until, 5):
        for host, seconds in off.items():
            labels = {"instance": "localhost:9400", "Hostname": host, "UUID": f"GPU-{host}", "gpu": "0"}
            samples.add(t + seconds, [("DCGM_FI_DEV_GPU_UTIL", labels, 80 if t < since + 7200 else 0), ("DCGM_FI_DEV_FB_USED", labels, 900)])
    with engines.victoria(tmp_path, samples.import_text()) as url:
        for report in long_and_exact(url, since=since, until=until):
            for host, seconds in off.items():
                own = report["by_uuid"][f"GPU-{host}"]["gpu_seconds"]
                assert own["active"] == pytest.approx(7200 + seconds, abs=31) and own["unobserved"] == pytest.approx(max(0, -seconds), abs=31)
                assert own["idle_held"] == pytest.approx(7200 - max(0, seconds), abs=31)


@pytest.mark.same_path
@pytest.mark.parametrize("engine", ["victoria", "prometheus"])
def test_jobs_that_metrics_name(tmp_path, engine):
    """jobstats' exporter of before September 2025 has a metric for the job's number and one for the user's, and no labels."""
    since, until, jobs = T, T + 4 * 3600, (0, 12345678, 77)
    samples = Samples()
    for t in range(since - 60, until + 60, 5):
        for index in range(6):
            labels = {"instance": "n1:9445", "uuid": f"GPU-{index}", "minor_number": str(index), "ordinal": str(index), "name": "V100"}
            job = jobs[0] if index else jobs[(t - since) // 3000 % 3]
            samples.add(t, [("nvidia_gpu_duty_cycle", labels, 50 if job == 77 else 0), ("nvidia_gpu_memory_used_bytes", labels, 5 * MIB),
                            ("nvidia_gpu_jobId", labels, job), ("nvidia_gpu_jobUid", labels, 1000 + job % 10 if job else 0),
                            ("nvidia_gpu_power_usage_milliwatts", labels, 200_000)])
    start = engines.victoria(tmp_path, samples.import_text()) if engine == "victoria" else engines.prometheus(tmp_path, samples.openmetrics())
    with start as url:
        reports = long_and_exact(url, "--by", "job", since=since, until=until)
    for report in reports:
        rows = {(row["user"], row["job"]): (row["active_gpu_seconds"], row["reserved_gpu_seconds"]) for row in report["breakdown"]["rows"]}
        assert rows == {("uid:1008", "slurm:12345678"): (0, pytest.approx(2 * 3000 - 600, abs=30)),
                        ("uid:1007", "slurm:77"): (pytest.approx(3000, abs=30), 0)}, rows
        assert report["gpu_seconds"]["truly_idle"] == pytest.approx(5 * 4 * 3600 + 6000, abs=60)
        own = report["by_uuid"]["GPU-0"]
        assert sum(filter(None, own["energy_kwh"].values())) == pytest.approx(0.8, rel=0.01) and own["mean_util_pct"] == pytest.approx(50 * 3000 / 14400, abs=0.5)
