"""Whether the ratios of the bench hold on a busy machine: some figures and their yardsticks, in turn, first as the machine is
and then beside four programs that only compute."""
import contextlib
import statistics
import subprocess
import time

LOAD, MOST = 4, 1.3


@contextlib.contextmanager
def busy(count):
    """Programs that use all the CPU time that they get."""
    programs = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def ratio(bench, command, yardstick, rounds):
    """CPU time of a command as a multiple of that of its yardstick: the median of pairs."""
    ratios = []
    for _ in range(rounds):
        mine, other = (bench.measure(*words, runs=3)[0] for words in (command, yardstick))
        ratios.append(mine / other)
    return statistics.median(ratios)


def rows(bench, say):
    store, rounds = bench.folder / "loaded.db", 3 if bench.quick else 9
    bench.output(bench.tool("year"), store, int(time.time()), 30 if bench.quick else 365)
    report = (bench.build / "gua", "report", "--db", store, "--since", "1000w")
    pairs = {
        "report of the year / reading all rows": (report, (bench.tool("scan"), store)),
        "page of the year / its report": ((*report, "--format", "html"), report),
        "by user,process / report of the year": ((*report, "--by", "user,process"), report),
        "of one user / report of the year": ((*report, "--user", "ann"), report),
    }
    say("ratios, alone and beside a load of 4")
    alone = {name: ratio(bench, *pair, rounds) for name, pair in pairs.items()}
    with busy(LOAD):
        beside = {name: ratio(bench, *pair, rounds) for name, pair in pairs.items()}
    for name in pairs:
        change = max(beside[name] / alone[name], alone[name] / beside[name])
        bench.table.row(f"beside a load of 4: {name}", change, "x", MOST,
                        f"{beside[name]:.3f} against {alone[name]:.3f}", judged=not bench.quick)
    store.unlink()
