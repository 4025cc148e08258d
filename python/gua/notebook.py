"""The IPython extension: `%load_ext gua`. After each cell that matters it says what the cell used and what it left on the
cards; `%gua report` sums the notebook up, `%gua free` gives memory back. gua-notebook(7) is the manual."""
import base64
import dataclasses
import functools
import gc
import html
import sys
import time
from collections.abc import Iterable

from . import _frameworks, commands, summary
from ._watch import Reading, Span, Watch
from .summary import brief, length

USAGE = """%gua            a line after each cell that matters: time, memory, memory on cards
%gua all        a line after every cell
%gua off        no lines; %gua report still knows the cells
%%gua           as the first line of a cell: a line after this cell
%gua report     the cells so far, what holds memory on cards; by growth, or: %gua report peak, %gua report time
%gua idle       for how long this kernel has held how much without using it
%gua free       drop Out[], _, what %run kept and the last traceback, empty the frameworks' caches, and say what came free
%gua free NAME  also delete these names
%gua ask jax    also ask JAX (or tensorflow) about its memory"""
SECONDS = 1.0           # a cell matters if it takes this long,
RAM_BYTES = 64 << 20    # or changes the memory by this much, or needs as much for a moment,
GPU_BYTES = 8 << 20     # or the same on a card
GROWTH_BYTES = 1 << 20  # what a run must leave to count as growth
GROWTH_RUNS = 3         # runs of a cell after which growth is named
MOST_ROWS = 10
MOST_CELLS = 2000       # that are kept for the report
EMPTIED = ("_", "__", "___")
IPYTHON = ("IPython", "ipykernel")  # packages whose own variables are not the user's
HOLDERS_S = 0.05        # how long to look for what holds memory after a cell

size = functools.partial(summary.size, digits=0)


def clean(text, most=60):
    """Text from outside for a terminal: without control characters and those that change the direction of writing."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text.replace("\t", " "))
    return shown if len(shown) <= most else shown[:most - 1] + "…"


def change(before, after):
    return f"{size(before)} → {size(after)}"


@dataclasses.dataclass
class Cell:
    """One run of a cell. `used` is what the frameworks had in use before and after; None: no framework told."""
    number: int
    source: str
    span: Span
    used: tuple

    def wall_s(self):
        return self.span.end.wall_s - self.span.begin.wall_s

    def peak(self):
        """The highest memory on cards above the start; None: unknown."""
        before = self.span.begin.held()
        if before is None or self.span.end.held() is None or None in self.span.gpu_peak.values():
            return None
        return max(0, self.span.held_peak - before)

    def left(self):
        """What it left on the cards: by the frameworks if they tell, because they cache, else by the driver."""
        if None not in self.used:
            return self.used[1] - self.used[0]
        before, after = self.span.begin.held(), self.span.end.held()
        return None if before is None or after is None else after - before

    def grew(self, before):
        """What it left, as far as that is still there since another run: None if unknown. Memory that other cells freed
        between the two is no growth."""
        both = (before.used[1], self.used[1]) if None not in (before.used[1], self.used[1]) else \
            (before.span.end.held(), self.span.end.held())
        return None if None in (*both, self.left()) else min(self.left(), both[1] - both[0])

    def ram_left(self):
        return self.span.end.ram - self.span.begin.ram

    def ram_peak(self):
        return max(0, self.span.ram_peak - self.span.begin.ram)

    def matters(self):
        return (self.wall_s() >= SECONDS or max(abs(self.ram_left()), self.ram_peak()) >= RAM_BYTES
                or max(abs(self.left() or 0), self.peak() or 0) >= GPU_BYTES)

    def title(self):
        lines = [line.strip() for line in self.source.splitlines()]
        return clean(next((line for line in lines if line and not line.startswith(("%%gua", "%gua", "#"))), ""))


def card_order(watch, uuid):
    index, instance, _ = watch.names[uuid]
    return index, -1 if instance is None else instance


def card_name(watch, uuid):
    index, instance, _ = watch.names[uuid]
    return f"GPU {index}" if instance is None else f"GPU {index}:{instance}"


def cell_line(cell, watch):
    """What one cell used, in a line."""
    begin, end = cell.span.begin, cell.span.end
    cpu_s = max(0, end.cpu_s - begin.cpu_s)  # the watch's own part is known a reading later
    parts = [f"{length(cell.wall_s())} (CPU {length(cpu_s)})",
             f"RAM {change(begin.ram, end.ram)}, peak +{size(cell.ram_peak())}"]
    peaks = cell.span.gpu_peak
    for uuid in sorted(peaks, key=lambda uuid: card_order(watch, uuid)):
        before, after = (None if reading.gpu is None else reading.gpu.get(uuid, 0) for reading in (begin, end))
        above = "" if None in (before, peaks[uuid]) else f", peak +{size(max(0, peaks[uuid] - before))}"
        parts.append(f"{card_name(watch, uuid)}: {change(before, after)}{above}")
    if begin.gpu is None or end.gpu is None:
        parts.append(f"GPU memory unknown: {clean(brief(begin.note or end.note), 200)}")
    elif peaks:
        times = cell.span.gpu_time()
        parts.append(("GPU time unknown" if times is None else
                      f"GPU time {length(times[0])} active, {length(times[1])} idle")
                     + f" (sum of {len(peaks)} cards)" * (len(peaks) > 1))
    return f"In [{cell.number}] " + "; ".join(parts)


def memory_line(held, pools):
    """Where the memory on cards is: "8.1 GiB held: 0.4 GiB context and other, ..."."""
    if held is None:
        return "memory on cards is unknown"
    if not pools:
        return f"{size(held)} held on cards"
    used, cached = sum(pool.used for pool in pools), sum(pool.cached for pool in pools)
    names = ", ".join(pool.framework for pool in pools)
    other = held - used - cached if held >= used + cached else None
    return (f"{size(held)} held on cards: {size(other)} context and other, "
            f"{size(cached)} cached and free, {size(used)} in use (by {names})")


def traceback_locals():
    """The variables that the last traceback keeps alive, with those of the errors before it: [(name, object)]."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    found, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        trace = getattr(error, "__traceback__", None)
        while trace:
            space = trace.tb_frame.f_globals
            if trace.tb_frame.f_locals is not space and str(space.get("__name__")).split(".")[0] not in IPYTHON:
                found += [(f"{name} in {trace.tb_frame.f_code.co_name}(), kept by the last traceback", value)
                          for name, value in trace.tb_frame.f_locals.items()]
            trace = trace.tb_next
        error = error.__cause__ or error.__context__
    return found


def named_things(shell):
    """The names of the notebook and the places where IPython keeps results, which are the classic traps."""
    space, hook = shell.user_ns, shell.displayhook
    shown = [name for name in EMPTIED if space.get(name) is getattr(hook, name)]  # the others are the user's own
    own = [(str(name), value) for name, value in list(space.items())
           if name not in shell.user_ns_hidden or (name in EMPTIED and name not in shown)]
    results = [(f"Out[{number}], kept by IPython", value) for number, value in list(shell.history_manager.output_hist.items())]
    last = [(f"{name}, kept by IPython", space.get(name)) for name in shown]
    scripts = [(f"{name} in {path.rpartition('/')[2]}, kept by %run", value) for path, module in scripts_run(shell).items()
               for name, value in list(vars(module).items())]
    return own + results + last + scripts + traceback_locals()


def scripts_run(shell):
    """The modules of scripts that %run has run, which IPython keeps with all their variables: {path: module}."""
    return dict(getattr(shell, "_main_mod_cache", {}))


def holder_lines(shell, most=MOST_ROWS, most_s=1.0):
    rows = [row for row in _frameworks.holders(named_things(shell), most_s) if row[1] >= _frameworks.SMALL]
    lines = [f"  {size(nbytes):>9}  {clean(name, 80)} ({count} array{'s' if count > 1 else ''}; {clean(what, 80)})"
             for name, nbytes, count, what in rows[:most]]
    return lines + ([f"  {len(rows) - most} more names"] if len(rows) > most else [])


def idle_recorded(row):
    """What the recorder knows of this kernel on one card."""
    if row is None or (row["idle_seconds"] is None and not row["active"]):
        return "its use is unknown"
    if row["active"]:
        return "in use"
    return f"not used for {'at least ' * row['idle_is_lower_bound']}{length(row['idle_seconds'])}"


class Notebook:
    """The extension in one IPython: the cells so far, and the commands of %gua."""

    def __init__(self, shell, watch=None):
        self.shell, self.watch, self.cells = shell, watch or Watch(), []
        self.lines, self.every, self.ask = False, False, ()
        self.depth, self.begun, self.dropped = 0, None, 0

    # Events of IPython. Cells can run cells: the outermost one counts.

    def before(self, info):
        self.depth += 1
        if self.depth > 1 or not self.watch.is_alive():
            return
        used = self.in_use()
        self.watch.begin()
        self.begun = (self.shell.execution_count, info.raw_cell or "", used)

    def after(self, result):
        # The cell that loaded the extension did not begin here; IPython announces only the end of an empty one.
        if self.depth == 0 or (result is not None and not (result.info.raw_cell or "").strip()):
            return
        self.depth -= 1
        if self.depth or not self.watch.is_alive():  # a process that the cell forked off reports nothing
            return
        if not self.begun:  # interrupted
            self.watch.rest()
            return
        span, (number, source, used) = self.watch.end(), self.begun
        cell = Cell(number, source.strip(), span, (used, self.in_use()))
        self.begun = None
        lines = [line.split() for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if all(words[0].strip("?") == "%gua" for words in lines):
            return
        self.cells.append(cell)
        if len(self.cells) > MOST_CELLS:
            self.cells.pop(0)
            self.dropped += 1
        asked_for = lines[0][0] == "%%gua"
        if asked_for or (self.lines and (self.every or cell.matters())):
            print("gua: " + cell_line(cell, self.watch))
        if self.lines or asked_for:
            self.say_growth(cell)

    def in_use(self):
        """What the frameworks have in use; None if none tells, or this process is on no card."""
        if not self.watch.on_cards():
            return None
        found = _frameworks.pools(self.ask)
        return sum(pool.used for pool in found) if found else None

    def runs(self, cell):
        return [one for one in self.cells if one.source == cell.source]

    def growth(self, cell):
        """(bytes that each run of this cell leaves, runs), if the last runs each left more than the one before, else None.
        The first of them does not count: it makes what the others use."""
        runs, grown = self.runs(cell), []
        for before, run in zip(runs[-2::-1], runs[:0:-1]):
            grew = run.grew(before)
            if grew is None or grew < GROWTH_BYTES:
                break
            grown.append(grew)
        return (sum(grown) / len(grown), len(grown) + 1) if len(grown) + 1 >= GROWTH_RUNS else None

    def say_growth(self, cell):
        found = self.growth(cell)
        if found is None:
            return
        print(f"gua: each run of this cell leaves {size(found[0])} more on the cards ({found[1]} runs). What holds most:")
        print("\n".join(holder_lines(self.shell, 3, HOLDERS_S)
                        or ["  not found among the names of this notebook; %gua report looks longer"]))

    @staticmethod
    def strip_cell_magic(lines):
        """An input transformer: `%%gua` only marks a cell, which runs like any other."""
        return lines[1:] if lines and lines[0].split()[:1] == ["%%gua"] else lines

    # Commands.

    def magic(self, line):
        words = line.split()
        name = words[0] if words else "on"
        command = {"on": self.on, "all": self.on, "off": self.off, "report": self.report, "idle": self.idle,
                   "free": self.free, "ask": self.ask_for, "help": lambda _: print(USAGE)}.get(name)
        if not command:
            print(f"gua: %gua has no command '{clean(name)}'\n{USAGE}")
            return
        command(words)

    magic.__doc__ = USAGE  # what %gua? shows

    def on(self, words):
        self.lines, self.every = True, words[:1] == ["all"]
        print("gua: a line after " + ("every cell" if self.every else "each cell that matters") + "; %gua off ends it, "
              "%gua help lists more")
        if note := self.watch.read().note:
            print(f"gua: memory on cards is unknown: {clean(note, 300)}")

    def off(self, _words):
        self.lines = False
        print("gua: no more lines; %gua report still knows the cells")

    def ask_for(self, words):
        unknown = [word for word in words[1:] if word not in _frameworks.ON_REQUEST]
        if unknown or len(words) < 2:
            print(f"gua: %gua ask takes {' or '.join(_frameworks.ON_REQUEST)}; torch and cupy are always asked")
            return
        self.ask = tuple(dict.fromkeys((*self.ask, *words[1:])))
        print(f"gua: {' and '.join(self.ask)} will be asked, once the program has started it")

    def report(self, words):
        order = words[1] if len(words) > 1 else "growth"
        if order not in ORDERS:
            print(f"gua: %gua report sorts by {', '.join(ORDERS)}, not by '{clean(order)}'")
            return
        from IPython.display import display
        display(Report(self, order))

    def idle(self, _words):
        now = self.watch.read()
        if not now.gpu:
            print("gua: " + (f"memory on cards is unknown: {clean(brief(now.note), 200)}" if now.gpu is None
                             else "this kernel holds no memory on a card"))
            return
        held, count = now.held(), len(now.gpu)
        print("gua: this kernel holds " + ("memory" if held is None else size(held)) + f" on {count} card{'s' * (count > 1)}")
        cards = sorted(now.gpu, key=lambda uuid: card_order(self.watch, uuid))
        recorded = {row["uuid"]: row for row in self.recorded() if row["uuid"] in now.gpu}
        idle = {uuid: row["idle_seconds"] for uuid, row in recorded.items()} if recorded else now.idle
        for uuid in cards:
            said = idle_recorded(recorded.get(uuid)) if recorded else self.idle_since_loaded(now, uuid)
            print(f"  {card_name(self.watch, uuid)}: {size(now.gpu[uuid])}, {said}")
        known = [(idle[uuid], uuid) for uuid in cards if idle.get(uuid)]
        if known:
            print(f"gua: held without use: {length(sum(seconds for seconds, _ in known))} of GPU time"
                  + commands.price_of([(seconds, self.watch.names[uuid]) for seconds, uuid in known])
                  + (", as the recorder of this host saw it" if recorded else ", since gua was loaded"))

    def idle_since_loaded(self, now, uuid):
        """What is known of one card without a recorder."""
        if uuid not in now.idle:
            return "its use is unknown"
        used = self.watch.last_used.get(uuid)
        return (f"idle for {length(now.idle[uuid])} of the {length(now.wall_s - self.watch.loaded.wall_s)} since gua was "
                "loaded, " + ("not used" if used is None else f"last used {length(max(0, now.wall_s - used))} ago"))

    def recorded(self):
        """This kernel's rows of `gua who`, if a recorder is running and knows them."""
        try:
            document = commands.document("who", "--json", f"--pid={self.watch.pid}", timeout=5)
        except (commands.GuaError, OSError, ValueError):
            return []
        if document.get("recorded_until"):  # the recorder has ended: only the last seconds are known
            return []
        return [row for row in document["holders"] if row["pid"] == self.watch.pid and row["held_since"]]

    def free(self, words):
        names = list(dict.fromkeys(name for word in words[1:] for name in word.split(",") if name))
        missing = [name for name in names if name not in self.shell.user_ns]
        reserved = [name for name in names if name in self.shell.user_ns_hidden or name.startswith("__")]
        if missing or reserved:
            print(f"gua: there is no name {clean(', '.join(missing))}: nothing was dropped" if missing else
                  f"gua: {', '.join(reserved)} belongs to IPython and cannot be deleted: nothing was dropped")
            return
        reading = self.watch.read()
        before = reading.held()
        for name in names:  # not by shell.del_var(), which deletes all other names of the same object too
            del self.shell.user_ns[name]
        dropped = self.drop_results()
        had_traceback = self.drop_traceback()
        scripts = len(scripts_run(self.shell))
        self.shell.clear_main_mod_cache()
        give_back(reading)
        after = self.watch.read().held()
        if before is None or after is None:
            print("gua: what came free is unknown" + clean(f": {brief(self.watch.note)}" * bool(self.watch.note), 200))
        else:
            print(f"gua: {size(max(0, before - after))} came free on cards ({change(before, after)})")
        said = ([f"the name{'s' * (len(names) > 1)} {', '.join(names)}"] if names else [])
        said += [f"{dropped} result{'s' * (dropped > 1)} in Out"] if dropped else []
        said += ["the last traceback, so %debug cannot show it any more"] if had_traceback else []
        said += [f"the variables of {scripts} script{'s' * (scripts > 1)} that %run kept"] if scripts else []
        if said:
            print("gua: dropped " + "; ".join(said))
        if after and (lines := holder_lines(self.shell)):
            print("gua: still held by\n" + "\n".join(lines))

    def drop_results(self):
        """Forgets what cells have shown, in all places where IPython keeps it; returns how many there were."""
        space, hidden, results = self.shell.user_ns, self.shell.user_ns_hidden, self.shell.history_manager.output_hist
        kept = {**{f"_{number}": value for number, value in results.items()},
                **{name: getattr(self.shell.displayhook, name) for name in EMPTIED}}
        for name, value in kept.items():
            hidden.pop(name, None)
            if name in space and space[name] is value:  # else it is the user's own
                del space[name]
        for name in EMPTIED:
            hidden[name] = ""
            space.setdefault(name, "")
            setattr(self.shell.displayhook, name, "")
        count = len(results)
        results.clear()
        return count

    def drop_traceback(self):
        had = any(hasattr(sys, name) for name in ("last_traceback", "last_exc"))
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            if hasattr(sys, name):
                delattr(sys, name)
        self.shell.last_execution_result = None
        self.shell.InteractiveTB.tb = None
        return had


ORDERS = {"growth": lambda cell: cell.left() or 0, "peak": lambda cell: cell.peak() or 0, "time": Cell.wall_s}


class Report:
    """%gua report, as text and as HTML."""

    def __init__(self, notebook, order):
        now = notebook.watch.read()
        self.cells, self.dropped = list(notebook.cells), notebook.dropped
        self.rows = sorted(self.cells, key=ORDERS[order], reverse=True)[:MOST_ROWS]
        self.order = order
        pools = _frameworks.pools(notebook.ask) if now.gpu else []
        self.memory = memory_line(now.held(), pools) if now.gpu is not None else \
            f"memory on cards is unknown: {clean(brief(now.note), 200)}"
        self.idle = (f"GPU time since gua was loaded: {length(sum(now.active.values()))} active, "
                     f"{length(sum(now.idle.values()))} idle" if now.gpu and now.idle else "")
        self.holders = holder_lines(notebook.shell) if now.gpu else []
        arrays = _frameworks.every_array() if pools else []
        self.arrays = (f"{len(arrays)} array{'s' * (len(arrays) > 1)} on cards, "
                       f"{size(sum(one.nbytes for one in arrays))} in all" if arrays else "")
        sources = dict.fromkeys(cell.source for cell in self.cells)
        grown = [(next(cell for cell in self.cells if cell.source == source), source) for source in sources]
        self.growing = [f"In [{notebook.runs(cell)[-1].number}] leaves {size(found[0])} more at each run "
                        f"({found[1]} runs): {cell.title()}"
                        for cell, _ in grown if (found := notebook.growth(cell)) is not None]

    def table(self):
        return [("In", "left on cards", "peak", "RAM left", "time", "cell")] + [
            (f"[{cell.number}]", size(cell.left()), size(cell.peak()), size(cell.ram_left()), length(cell.wall_s()),
             cell.title()) for cell in self.rows]

    def heading(self):
        more = f", {self.dropped} older ones not kept" if self.dropped else ""
        first = f"the first {len(self.rows)} " if len(self.rows) < len(self.cells) else ""
        return f"{len(self.cells)} run{'s' * (len(self.cells) != 1)} of cells, {first}sorted by {self.order}{more}"

    def __repr__(self):
        rows = self.table()
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = ["  ".join([*(f"{text:>{width}}" for text, width in zip(row, widths)), row[5]]).rstrip() for row in rows]
        return "\n".join([*filter(None, [self.memory, self.idle, self.arrays]), *self.holders, *self.growing,
                          self.heading(), *(lines if len(rows) > 1 else [])])

    def _repr_html_(self):
        head, *rows = self.table()
        cells = "".join("<tr>" + "".join(f"<td style='text-align:{'left' if i == 5 else 'right'}'>{html.escape(text)}</td>"
                                         for i, text in enumerate(row)) + "</tr>" for row in rows)
        titles = "".join(f"<th style='text-align:{'left' if i == 5 else 'right'}'>{text}</th>"
                         for i, text in enumerate(head))
        facts = "".join(f"<div>{html.escape(text)}</div>" for text in filter(None, [self.memory, self.idle, self.arrays,
                                                                                    *self.growing]))
        held = f"<pre style='margin:0'>{html.escape(chr(10).join(self.holders))}</pre>" if self.holders else ""
        return (f"<div>{facts}{held}{self.picture()}<div>{html.escape(self.heading())}</div>"
                f"<table><thead><tr>{titles}</tr></thead><tbody>{cells}</tbody></table></div>")

    def picture(self):
        """Memory on cards over the cell runs: a bar for what was held after each, its peak above it. It is an image, because
        a notebook that is not trusted shows only the text inside of inline SVG."""
        known = [(cell, cell.span.end.held(), (cell.span.begin.held() or 0) + (cell.peak() or 0)) for cell in self.cells
                 if cell.span.end.held() is not None and cell.span.begin.held() is not None][-60:]
        highest = max((max(held, peak) for _, held, peak in known), default=0)
        if not highest:
            return ""
        width, height, step = 600, 80, 600 / len(known)
        bars = []
        for i, (_, held, peak) in enumerate(known):
            for value, colour in ((max(held, peak), "#c9c9c9"), (held, "#3b6ea5")):
                tall = height * value / highest
                bars.append(f"<rect x='{i * step:.1f}' y='{height - tall:.1f}' width='{max(1, step - 1):.1f}' "
                            f"height='{tall:.1f}' fill='{colour}'/>")
        drawn = (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}'>"
                 f"{''.join(bars)}</svg>")
        return (f"<img width='{width}' height='{height}' alt='memory on cards after each cell run' "
                f"src='data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}'>"
                f"<div>memory on cards after each cell run (blue) and at most (grey); the highest is {size(highest)}</div>")


def give_back(before):
    """Collects garbage and empties the frameworks' caches, unless this process was on no card: asking could start CUDA. A
    framework that fails is named: after an error of CUDA each call of it fails."""
    gc.collect()
    if before.gpu == {}:
        return
    for framework, error in _frameworks.empty_caches():
        print(clean(f"gua: {framework} could not empty its cache: {type(error).__name__}: {error}", 200))


class experiment:  # pylint: disable=invalid-name
    """`with gua.experiment(keep=["model"]):` removes the names that the block made, empties the frameworks' caches and
    says what came free. A name that existed before stays, with its new value."""

    def __init__(self, keep: str | Iterable[str] = ()) -> None:
        self.keep = {keep} if isinstance(keep, str) else set(keep)

    def __enter__(self):
        self.shell = commands.running_ipython()
        self.space = self.shell.user_ns if self.shell else sys._getframe(1).f_globals
        self.before = set(self.space)
        self.shared = active is not None and active.watch.is_alive()
        self.watch = active.watch if self.shared else Watch()
        return self

    def __exit__(self, *raised):
        reading = self.watch.read()
        held = reading.held()
        hidden = self.shell.user_ns_hidden if self.shell else ()
        made = sorted(name for name in set(self.space) - self.before - self.keep
                      if name not in hidden and not str(name).startswith("__"))
        for name in made:
            self.space.pop(name, None)
        give_back(reading)
        after = self.watch.read().held()
        freed = "unknown" if held is None or after is None else size(max(0, held - after))
        print(f"gua: {freed} came free on cards; removed {clean(', '.join(made), 500) or 'no names'}"
              + ("; the traceback may still hold memory: %gua free drops it" if raised[0] else ""))
        if not self.shared:
            self.watch.close()


active = globals().get("active")  # the notebook of this process, also after %autoreload has run this again


def load(shell):
    global active
    if active:
        return
    active = Notebook(shell)
    shell.register_magic_function(active.magic, "line", "gua")
    shell.input_transformers_cleanup.append(active.strip_cell_magic)
    shell.events.register("pre_run_cell", active.before)
    shell.events.register("post_run_cell", active.after)


def unload(shell):
    global active
    if not active:
        return
    shell.events.unregister("pre_run_cell", active.before)
    shell.events.unregister("post_run_cell", active.after)
    shell.input_transformers_cleanup.remove(active.strip_cell_magic)
    shell.magics_manager.magics["line"].pop("gua", None)
    active.watch.close()
    active = None
