"""Stores made by hand: the schema of src/store and the rows that a test wants, nothing else: without the sums of
complete hours, a report reads the slots."""
import contextlib
import functools
import os
import pathlib
import sqlite3

from conftest import ROOT

HOUR = 3600
SCHEMA = "".join((ROOT / "src/store" / name).read_text() for name in ("schema.sql", "views.sql"))
VIEWS = (ROOT / "dist/views.sql").read_text()  # of the connection
ACTIVE, IDLE_HELD, TRULY_IDLE, UNOBSERVED, USE_UNKNOWN, RESERVED = range(6)
SQUATTING = 3
ENDED_ACTIVE, ENDED_RELEASED, ENDED_EXITED, ENDED_STOPPED = range(4)
HOLDER_STATES = ("active", "idle_held", "truly_idle", "squatting", "use_unknown")
TABLES = {60: "1m", 300: "5m", 3600: "1h"}


@functools.cache
def empty_store():
    """The bytes of a store without rows: to write them takes a tenth of the time of the schema's statements."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return db.serialize()


class Store:
    """One store; moments are unix seconds, times seconds."""

    def __init__(self, path):
        self.path = path
        new = path != ":memory:" and not os.path.exists(path)
        if new:
            pathlib.Path(path).write_bytes(empty_store())
        self.db = sqlite3.connect(path)
        self.db.execute("PRAGMA synchronous = OFF")  # each statement would wait for the disk
        if path == ":memory:":
            self.db.deserialize(empty_store())
        elif not new:  # an empty file, whose pages may have a size of their own
            self.db.executescript(SCHEMA)

    @classmethod
    def open(cls, path):
        """One that was saved."""
        store = cls.__new__(cls)
        store.path, store.db = path, sqlite3.connect(path)
        return store

    def insert(self, table, **values):
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        return self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})",
                               list(values.values())).lastrowid

    def host(self, hostname="lab-a100", machine_id="m1", environment="bare",
             driver="560.35.05"):
        return self.insert("host", hostname=hostname, machine_id=machine_id,
                           environment=environment, driver=driver, first_seen_ms=0,
                           last_seen_ms=0)

    def run(self, host, started, last_tick, source="nvml", ended=None, interval=30, util=10,
            mem=100_000_000, graphics=0):
        return self.insert("run", host=host, version="0.1.0", source=source, boot_id="b",
                           started_ms=int(started * 1000), last_tick_ms=int(last_tick * 1000),
                           ended_ms=None if ended is None else int(ended * 1000),
                           interval_ms=int(interval * 1000), drain_ms=5000,
                           active_util_pct=util, held_mem_bytes=mem, count_graphics=graphics)

    def card(self, host, index, first_seen, last_seen, uuid=None, status="ok",
             name="NVIDIA A100-SXM4-80GB", parent="", mig=None, source="nvml"):
        uuid = uuid or f"GPU-{index:08x}-1111-2222-3333-444444444444"
        return self.insert("gpu", host=host, uuid=uuid, name=name, parent_uuid=parent,
                           pci="0000:17:00.0", idx=index, mig_index=mig, gpu_instance=mig,
                           compute_instance=None if mig is None else 0,
                           mem_total_bytes=85_899_345_920, status=status, source=source,
                           first_seen_ms=int(first_seen * 1000),
                           last_seen_ms=int(last_seen * 1000))

    def process(self, host, pid, user, command="python train.py", started=None, seen=(0, 0),
                last_active=None, **labels):
        return self.insert("process", host=host, run=1, pid=pid, start_ticks=pid,
                           started_ms=None if started is None else int(started * 1000),
                           uid=1000, user=user, command=command,
                           first_seen_ms=int(seen[0] * 1000), last_seen_ms=int(seen[1] * 1000),
                           last_active_ms=None if last_active is None
                           else int(last_active * 1000), **labels)

    def usage(self, slot, card, state, seconds, util=0, joules=None, width=60, joules_known=None, unsure=0):
        """joules None: not known; joules_known: they are of so many seconds, if not of all."""
        known = (0 if joules is None else seconds) if joules_known is None else joules_known
        sums = (round(seconds * 1000), round(seconds * 1000 * util), round((joules or 0) * 1000),
                round((seconds - known) * 1000), round(unsure * 1000))
        self.db.execute(f"INSERT INTO usage_{TABLES[width]} VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)",
                        (int(slot), card, state, *sums))

    def holding(self, slot, card, process, state, seconds, presence=None, share=0, mem_mb=None,
                width=60):
        """Adds to the row of that slot, card and process; share is of the card's active time when
        the state is active or squatting, of its idle-held time otherwise."""
        name = HOLDER_STATES[state]
        part = "active_share_ms" if state in (ACTIVE, SQUATTING) else "idle_share_ms"
        double = 0 if presence is None else seconds - presence
        table = f"holding_{TABLES[width]}"
        self.db.execute(
            f"INSERT INTO {table} VALUES (?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0) "
            "ON CONFLICT DO NOTHING", (int(slot), card, process))
        self.db.execute(
            f"UPDATE {table} SET {name}_ms = {name}_ms + ?, "
            f"{name}_double_ms = {name}_double_ms + ?, {part} = {part} + ?, "
            "mem_peak_kib = coalesce(max(mem_peak_kib, ?), ?, mem_peak_kib) "
            "WHERE slot = ? AND gpu = ? AND process = ?",
            (round(seconds * 1000), round(double * 1000), round(share * 1000),
             *2 * (None if mem_mb is None else round(mem_mb * 1e6 / 1024),),
             int(slot), card, process))

    def sums(self, end):
        """The sums of the complete hours before `end`, as a recorder keeps them."""
        for kind in ("usage", "holding"):
            key, *columns = [row[1] for row in self.db.execute(f"PRAGMA table_info({kind}_1m)")][2:]
            added = ", ".join(f"{'max' if name in ('mem_peak_kib', 'own_use') else 'sum'}({name})" for name in columns)
            for table, width, slots in (("hour", HOUR, ("1m", "5m")), ("1d", 24 * HOUR, ("1h", "hour"))):
                union = " UNION ALL ".join(f"SELECT * FROM {kind}_{name} WHERE slot < {end}" for name in slots)
                self.db.execute(f"INSERT INTO {kind}_{table} SELECT slot / {width} * {width}, gpu, {key}, {added} "
                                f"FROM ({union}) GROUP BY 1, 2, 3")
        heat = {end - HOUR: [0] * 20}
        for slot, seconds, state, ms in self.db.execute(f"SELECT slot, seconds, state, ms FROM usage WHERE slot < {end}"):
            if state != UNOBSERVED:
                row = heat.setdefault(slot // HOUR * HOUR, [0] * 20)
                place = (ACTIVE, IDLE_HELD, TRULY_IDLE, USE_UNKNOWN, RESERVED).index(state)
                row[place] += ms
                for quarter in range(3):
                    row[5 + 3 * place + quarter] += ms // 4 if seconds == HOUR else ms * (slot % HOUR // 900 == quarter)
        self.db.executemany(f"INSERT INTO heat_1h VALUES ({', '.join('?' * 21)})", [(slot, *row) for slot, row in heat.items()])

    def spell(self, card, process, begin, end, how=ENDED_ACTIVE, squatting=0, unobserved=0, mem_mib=None, joules=None):
        """An idle spell; one that goes on has how=None."""
        values = dict(end_ms=round(end * 1000), gpu=card, process=process, begin_ms=round(begin * 1000),
                      idle_held_ms=round((end - begin - squatting - unobserved) * 1000),
                      squatting_ms=round(squatting * 1000),
                      mem_peak_kib=None if mem_mib is None else mem_mib * 1024,
                      energy_mj=None if joules is None else round(joules * 1000))
        if how is None:
            self.insert("open_spell", **values)
        else:
            self.insert("spell", how_ended=how, **values)

    def event(self, host, at, kind, card=None, value=0, text=""):
        return self.insert("event", host=host, at_ms=round(at * 1000), gpu=card, kind=kind, value=value, text=text)

    def save(self):
        self.db.commit()
        self.db.close()
        return self.path
