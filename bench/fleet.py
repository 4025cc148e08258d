"""A fleet report over many hosts in VictoriaMetrics, and the live fleet: three servers on the fake driver scraped by a real
Prometheus. The engines are Debian's, on loopback and in temporary directories."""
import json
import pathlib
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import engines  # noqa: E402

START = 1727740800  # 2024-10-01 00:00 UTC: an engine refuses samples of the future
CARDS, USERS = 8, 20
STATES = {"active": 0.55, "idle_held": 0.25, "idle": 0.2}
RECORDED = "instance_state:gua_gpu_state_seconds:sum"  # what docs/scale.md says to record for so many hosts
EDGE = 600  # scrapes of a minute around both edges of the window, this far


def times(days, hourly):
    """Moments of samples: every minute around the edges, and just before each full hour between them."""
    end = START + days * 86400
    around = [t for edge in (START, end) for t in range(edge - EDGE, edge + EDGE, 60)]
    hours = range(START + 3600 - 20, end, 3600) if hourly else ()
    return sorted({t + 7 for t in around} | {int(t) for t in hours})


def line(name, labels, moments, values):
    return json.dumps({"metric": {"__name__": name, "job": "gua", **labels}, "values": values,
                       "timestamps": [1000 * t for t in moments]}, separators=(",", ":"))


def lines_of(host, often, seldom):
    """All series of a host: counters are linear between the samples, so that fewer of them say the same."""
    target = {"instance": f"node{host:05}:9400"}
    since = START - 40 * 86400
    yield line("gua_sample_timestamp_seconds", target, often, often)
    for family, more in (("gua_gpus", {}), ("gua_build_info", {"version": "0.1.0"})):
        yield line(family, {**target, **more}, seldom, [CARDS if family == "gua_gpus" else 1] * len(seldom))
    for card in range(CARDS):
        labels = {**target, "gpu": str(card), "uuid": f"GPU-{host:08x}-{card:04x}"}
        yield line("gua_gpu_info", {**labels, "model": "NVIDIA A100-SXM4-80GB", "driver_version": "550.54", "source": "nvml"},
                   seldom, [1] * len(seldom))
        for state, part in STATES.items():
            yield line("gua_gpu_state_seconds_total", {**labels, "state": state}, often,
                       [int((t - since) * part) for t in often])
    for state, part in STATES.items():
        yield line(RECORDED, {**target, "state": state}, often, [CARDS * int((t - since) * part) for t in often])
    for user in range(USERS):
        for state, part in (("active", 0.55), ("idle_held", 0.25)):
            share = CARDS * part / USERS
            yield line("gua_identity_gpu_seconds_total",
                       {**target, "identity": f"user{(host * 7 + user) % 500:03}", "state": state},
                       seldom, [int((t - since) * share) for t in seldom])


def load(url, hosts, often, seldom):
    """Imports the fleet, with samples at these moments; returns how many series and samples it has."""
    n_series = n_samples = 0
    part = []
    for host in range(hosts):
        for text in lines_of(host, often, seldom):
            part.append(text)
            n_series += 1
            n_samples += text.count(",", text.index("timestamps")) + 1
        if len(part) > 3000 or host + 1 == hosts:
            request = urllib.request.Request(f"{url}/api/v1/import", data="\n".join(part).encode(), method="POST")
            with urllib.request.urlopen(request, timeout=600):
                part = []
    engines.ask(f"{url}/internal/force_flush", 600)
    return n_series, n_samples


def rows(bench, command, what, name, judged, seconds=10, memory=200):
    """By the clock the fastest of the runs counts: a quiet moment."""
    wall, cpu, peak = bench.runs_of(*command, runs=3)
    bench.table.row(f"{name}, by the clock", min(wall) / 1e3, "s", seconds, f"{what}; CPU of gua {min(cpu) / 1e3:.1f} s",
                    judged=judged)
    bench.table.row(f"{name}, gua's own memory", max(peak), "MB", memory, "", judged=judged)


def wide(bench, say):
    """All series of many hosts at single moments: an hour, of which the engine has its edges only."""
    hosts, hour = 500 if bench.quick else 10000, 3600
    moments = [edge + t + 7 for edge in (START, START + hour) for t in range(-120, 120, 60)]
    folder = bench.folder / "wide"
    folder.mkdir()
    with engines.victoria(folder, extra=("-search.maxUniqueTimeseries=3000000", "-search.maxQueryDuration=120s")) as url:
        say(f"fleet: {hosts} hosts x {CARDS} cards at the edges of an hour into VictoriaMetrics")
        n_series, _ = load(url, hosts, moments, moments)
        command = [bench.build / "gua", "report", "--from", url, "--since", f"@{START}", "--until", f"@{START + hour}",
                   "--now", f"@{START + hour + 900}", "--utc"]
        rows(bench, command, f"{hosts} hosts, {n_series} series", "fleet of many hosts", not bench.quick, 30, 256)


def run(bench, say):
    """The part `fleet` of the bench."""
    if engines.missing():
        bench.table.skip("fleet report", f"not installed: {' '.join(engines.missing())}")
        return
    hosts, days = (100, 7) if bench.quick else (2000, 30)
    folder = bench.folder / "fleet"
    folder.mkdir()
    with engines.victoria(folder) as url:
        say(f"fleet: {hosts} hosts x {CARDS} cards x {days} days into VictoriaMetrics")
        n_series, n_samples = load(url, hosts, times(days, True), times(days, False))
        end = START + days * 86400
        command = [bench.build / "gua", "report", "--from", url, "--since", f"@{START}", "--until", f"@{end}",
                   "--now", f"@{end + 900}", "--utc"]
        found = json.loads(bench.output(*command, "--json"))
        expected = hosts * CARDS * days * 86400
        total = sum(seconds or 0 for seconds in found["gpu_seconds"].values())  # null: not known
        assert abs(total - expected) < 1e-6 * expected, (total, expected)
        assert len(found["hosts"]) == hosts and found["gpu_seconds"]["unobserved"] < 1e-6 * expected
        what = f"{hosts} hosts x {CARDS} x {days} d, {n_series} series, {n_samples / 1e6:.0f} M samples"
        rows(bench, command, what, "fleet report", not bench.quick)
        engines.ask(f"{url}/api/v1/admin/tsdb/delete_series?match[]={{__name__='{RECORDED}'}}")
        rows(bench, command, "the sums of hosts are not recorded", "fleet report without a rule", False)
    wide(bench, say)
