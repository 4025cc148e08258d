"""A build against another one, in turn on the same machine (`bench/run --only against --against DIR`): what the recorder,
the live views and the demo cost, as parts of what they cost there. The ratios hold on a busy machine, too."""
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess

import live
import recorder

SCENARIO = "tests/scenarios/sixteen.scenario"


def cpu_ms(command, env):
    """CPU time of a command and of all that it starts."""
    before = live.children_ms()
    subprocess.run([str(word) for word in command], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return live.children_ms() - before


def ratio(table, figure, values, unit, goal):
    """A row from {build: [values]}, this build first."""
    mine, other = (statistics.median(some) for some in values.values())
    table.row(figure, mine / other, "x", goal, f"{mine:.4g} {unit} against {other:.4g}, medians of {len(values[list(values)[0]])}")


def recording(bench, builds, rounds):
    ticks = 240 if bench.quick else 960
    cpu, written, resident = ({build: [] for build in builds} for _ in range(3))
    for number in range(rounds):
        for build in builds:
            folder = bench.folder / f"against-{number}"
            run = recorder.Recording(build / "gua", build / "tests" / "libnvidia-ml.so.1", build.parent / SCENARIO, folder, ticks)
            points = [point for point in run.points if point[0] > ticks * 10]
            (first_s, _, first), (last_s, _, last) = points[0], points[-1]
            cpu[build].append(run.cpu / ticks * 1e3)
            written[build].append((last - first) / 1024 / ((last_s - first_s) / 30))
            resident[build].append(max(point[1] for point in run.points))
            shutil.rmtree(folder)
    ratio(bench.table, "recorder: CPU outside the driver", cpu, "ms a tick", 0.65)
    ratio(bench.table, "recorder: written", written, "KiB a tick", 0.65)
    ratio(bench.table, "recorder: resident, all processes", resident, "KiB", 0.9)


def views(bench, builds, rounds):
    processes = [subprocess.Popen(["sleep", "3600"]) for _ in range(128)]
    words = {"stat": ["stat"], "who": ["who"], "pick": ["pick", "--free-for", "10m", "--hold", "0s"]}
    cpu = {name: {build: [] for build in builds} for name in (*words, "top")}
    try:
        with contextlib.ExitStack() as stack:
            stores, envs = {}, {}
            for number, build in enumerate(builds):
                folder = bench.folder / f"views-{number}"
                folder.mkdir()
                stores[build] = stack.enter_context(live.recorded(build, folder, processes, 8, 1 if bench.quick else 6))
                envs[build] = live.environment(build, live.crowded(folder / "half.scenario", processes, 8), folder)
            for name, command in words.items():
                locks = ["--lock-dir", bench.folder / "locks"] if name == "pick" else []
                for _ in range(10 * rounds):
                    for build in builds:
                        cpu[name][build].append(cpu_ms([build / "gua", *command, "--db", stores[build], *locks], envs[build]))
            for _ in range(rounds):
                for build in builds:
                    folder = pathlib.Path(envs[build]["HOME"])
                    env = live.environment(build, live.crowded(folder / "crowd.scenario", processes), folder)
                    cpu["top"][build].append(live.screen([str(build / "gua"), "top"], env, 5 if bench.quick else 10)[0])
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for name, goal in (("stat", 0.5), ("who", 0.5), ("pick", 1)):
        ratio(bench.table, f"{name}: CPU, 128 holders, with a store", cpu[name], "ms", goal)
    ratio(bench.table, "top: CPU at 1 s, 16 cards, 128 processes", cpu["top"], "% of a core", 0.6)


def rows(bench, say, other):
    builds, rounds = [bench.build, other], 1 if bench.quick else 3
    say("the recorder of both builds, in virtual time")
    recording(bench, builds, rounds)
    say("the live views of both builds")
    views(bench, builds, rounds)
    say("the demo of both builds")
    env = {**os.environ, "XDG_CACHE_HOME": str(bench.folder)}
    demo = {build: [] for build in builds}
    for _ in range(3 * rounds):
        for build in builds:
            demo[build].append(cpu_ms([build / "gua", "demo"], env))
    ratio(bench.table, "demo: CPU", demo, "ms", 0.55)
