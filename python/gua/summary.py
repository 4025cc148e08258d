"""The short form of a tracker's results, as `gua track` prints it: time, CPU, RAM, GPU memory, GPU time, and the options
with which to ask Slurm for as much."""
import math

MARGIN = 0.2    # that is added to what was measured
TICK_S = 0.01   # CPU time is counted in ticks: in a run of milliseconds one of them looks like a whole core
MIB, GIB = 1 << 20, 1 << 30


def size(count, digits=1):
    """Bytes as people read them: 0.4 MiB, 23.5 GiB; `digits` are those of MiB."""
    if count is None:
        return "unknown"
    if abs(count) >= GIB:
        return f"{count / GIB:.1f} GiB"
    return f"{round(count / MIB, digits) + 0.0:.{digits}f} MiB"  # -0.0 + 0.0 has no sign


def length(seconds):
    """Seconds as people read them: 1.02 s, 12 min 5 s, 3 h 20 min."""
    if seconds is None:
        return "unknown"
    whole = int(seconds)
    if seconds < 60:
        return f"{seconds:.2f} s"
    if seconds < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if seconds < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def in_steps(value, step):
    """Rounded up to a whole number of steps, at least one."""
    return max(1, math.ceil(value / step)) * step


def slurm(result):
    """The options of sbatch for a job that needs as much as was measured, with a margin."""
    words, used = [], len(used_cards(result))
    ram = result["ram_charged_bytes"]
    if ram is not None and not any(process["unreadable"] for process in result["processes"]):
        mib = ram * (1 + MARGIN) / MIB
        words.append(f"--mem={in_steps(mib, 100)}M" if mib <= 10 * 1024 else f"--mem={in_steps(mib / 1024, 1)}G")
    elapsed = result["elapsed_s"]
    doubt = 2 * TICK_S / elapsed if 0 < elapsed < 1 else 0
    words.append(f"--cpus-per-task={max(1, math.ceil((result['cpu_max_pct'][2] or 0) / 100 - doubt - 0.1))}")
    words += [f"--gres=gpu:{used}"] if used else []
    minutes = elapsed * (1 + MARGIN) / 60
    minutes = in_steps(minutes, 5 if minutes <= 60 else 15)
    return " ".join([*words, f"--time={minutes // 60:02d}:{minutes % 60:02d}:00"])


def used_cards(result):
    return [card for card in result["cards"] if (card["tree_max_bytes"] or 0) > 0 or (card["active_s"] or 0) > 0]


def brief(why):
    """The reason of a note, without what explains it."""
    return why.split(";")[0].split(" (")[0]


def gpu_lines(result):
    """What to say of GPU memory and of GPU time."""
    if not result["gpu_known"]:
        why = result["gpu_note"]
        return (f"unknown: {brief(why)}", "unknown") if why else ("not read", "not read")
    used, most = used_cards(result), result["gpu_ram_bytes"][2]
    if not used and most is not None and result["gpu_active_s"] is not None:
        if result["use_instead"]:
            return "none in this process tree", "none"
        return f"none: no card was used; this host has {result['gpu_count']}", "none"
    memory = "unknown: the driver does not report it"
    if most is not None:
        totals = [card["mem_total_bytes"] for card in used]
        memory = f"{size(most)} at most, of {size(None if None in totals else sum(totals))} on {len(used)} " \
                 f"card{'s' * (len(used) != 1)}"
    return memory, f"active {length(result['gpu_active_s'])}, idle-held {length(result['gpu_idle_held_s'])}"


def short(result):
    """The lines of a result of the library."""
    cores = [None if part is None else part / 100 for part in (result["cpu_mean_pct"][2], result["cpu_max_pct"][2])]
    shown = ["unknown" if value is None else f"{value:.2f}" for value in cores]
    times = (result["user_s"][2], result["system_s"][2])
    ram, swap = result["ram_total_bytes"][2], result["ram_swap_bytes"][2]
    limit = result["ram_capacity_bytes"] if result["ram_limit_bytes"] is None else result["ram_limit_bytes"]
    memory, time = gpu_lines(result)
    instead = result["use_instead"]
    advice = f"no advice: {instead}" if instead else f"{slurm(result)} (from 1 run)"
    rows = [("Time", length(result["elapsed_s"])),
            ("CPU", f"{length(None if None in times else sum(times))}; {shown[0]} cores on average, {shown[1]} at most, "
                    f"of {result['expected_cores']}"),
            ("RAM", ("unknown" if ram is None else f"{size(ram)} at most, of {size(limit)}")
             + (f"; swap {size(swap)} at most" if swap else "")),
            ("GPU memory", memory), ("GPU time", time), ("Slurm", advice)]
    return "\n".join(f"{label:<12}{text}" for label, text in rows)
