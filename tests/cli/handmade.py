"""Stores made by hand: the schema of src/store and the rows that a test wants, nothing else."""
import sqlite3

from conftest import ROOT

HOUR = 3600
SCHEMA = "".join((ROOT / "src/store" / name).read_text() for name in ("schema.sql", "views.sql"))
ACTIVE, IDLE_HELD, TRULY_IDLE, UNOBSERVED, USE_UNKNOWN = range(5)
SQUATTING = 3
ENDED_ACTIVE, ENDED_RELEASED, ENDED_EXITED, ENDED_STOPPED = range(4)
HOLDER_STATES = ("active", "idle_held", "truly_idle", "squatting", "use_unknown")
TABLES = {60: "1m", 300: "5m", 3600: "1h"}


class Store:
    """One store; moments are unix seconds, times seconds."""

    def __init__(self, path):
        self.path = path
        self.db = sqlite3.connect(path)
        self.db.execute("PRAGMA synchronous = OFF")  # each statement of the schema would wait for the disk
        self.db.executescript(SCHEMA)

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
        if width > 60:  # the sums by day and over all cards have it once more
            self.usage_sums(slot, card, state, sums, TABLES[width])

    def usage_sums(self, slot, card, state, sums, suffix):
        self.db.execute(
            "INSERT INTO usage_1d VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET ms = ms + excluded.ms, "
            "util_pct_ms = util_pct_ms + excluded.util_pct_ms, energy_mj = energy_mj + excluded.energy_mj, "
            "energy_unknown_ms = energy_unknown_ms + excluded.energy_unknown_ms, "
            "unsure_ms = unsure_ms + excluded.unsure_ms",
            (int(slot) // 86400 * 86400, card, state, *sums))
        ms = sums[0]
        self.db.execute(
            f"INSERT INTO heat_{suffix} VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "active_ms = active_ms + excluded.active_ms, idle_held_ms = idle_held_ms + excluded.idle_held_ms, "
            "truly_idle_ms = truly_idle_ms + excluded.truly_idle_ms",
            (int(slot), *(ms if state == other else 0 for other in (ACTIVE, IDLE_HELD, TRULY_IDLE))))

    def holding(self, slot, card, process, state, seconds, presence=None, share=0, mem_mb=None,
                width=60):
        """Adds to the row of that slot, card and process; share is of the card's active time when
        the state is active or squatting, of its idle-held time otherwise."""
        name = HOLDER_STATES[state]
        part = "active_share_ms" if state in (ACTIVE, SQUATTING) else "idle_share_ms"
        double = 0 if presence is None else seconds - presence
        places = [(f"holding_{TABLES[width]}", int(slot))]
        if width > 60:  # the sums by day have it once more
            places.append(("holding_1d", int(slot) // 86400 * 86400))
        for table, start in places:
            self.db.execute(
                f"INSERT INTO {table} VALUES (?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0) "
                "ON CONFLICT DO NOTHING", (start, card, process))
            self.db.execute(
                f"UPDATE {table} SET {name}_ms = {name}_ms + ?, "
                f"{name}_double_ms = {name}_double_ms + ?, {part} = {part} + ?, "
                "mem_peak_kib = coalesce(max(mem_peak_kib, ?), ?, mem_peak_kib) "
                "WHERE slot = ? AND gpu = ? AND process = ?",
                (round(seconds * 1000), round(double * 1000), round(share * 1000),
                 *2 * (None if mem_mb is None else round(mem_mb * 1e6 / 1024),),
                 start, card, process))

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
