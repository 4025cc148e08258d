-- The store of gua: one SQLite file. This file has its tables; views.sql has views of all slots, and
-- dist/views.sql the views for people.
-- user_version numbers the schema: upgrade_N.sql turns version N into the next one, and with
-- read_N.sql a program that does not write reads a store of version N.
-- Times named *_ms are unix milliseconds, slots are unix seconds (start of the slot).
-- Start reading at the views for people: day_cards, day_users, now_holders, idle_spells.

PRAGMA application_id = 0x47554131; -- "GUA1"
PRAGMA user_version = 5;

-- One row per machine. A file that was merged or imported has several.
CREATE TABLE host (
	id            INTEGER PRIMARY KEY,
	hostname      TEXT NOT NULL UNIQUE,
	machine_id    TEXT NOT NULL,       -- '' when unknown
	environment   TEXT NOT NULL,       -- bare, docker, k8s ...
	driver        TEXT NOT NULL,       -- version, '' when unknown
	first_seen_ms INTEGER NOT NULL,
	last_seen_ms  INTEGER NOT NULL     -- of a run that goes on: see run.last_tick_ms
);

-- One row per start of the recorder (or per import).
CREATE TABLE run (
	id              INTEGER PRIMARY KEY,
	host            INTEGER NOT NULL REFERENCES host(id),
	version         TEXT NOT NULL,     -- of gua
	source          TEXT NOT NULL,     -- nvml, sim (invented data), import; nvml,sim: both
	boot_id         TEXT NOT NULL,
	started_ms      INTEGER NOT NULL,
	last_tick_ms    INTEGER NOT NULL,
	ended_ms        INTEGER,           -- NULL: running, or killed and not started again yet
	how_ended       TEXT,              -- stopped, finished, killed (ended_ms is the last tick)
	interval_ms     INTEGER NOT NULL,
	drain_ms        INTEGER NOT NULL,
	active_util_pct REAL NOT NULL,     -- the rules in force
	held_mem_bytes  INTEGER NOT NULL,
	count_graphics  INTEGER NOT NULL,
	glance_ms       INTEGER NOT NULL DEFAULT 0, -- time between glances; 0: none
	privacy         TEXT NOT NULL DEFAULT 'normal', -- strict: no command lines and paths were kept
	spell_ms        INTEGER NOT NULL DEFAULT 300000, -- idle for at least this long: a spell
	leases          INTEGER NOT NULL DEFAULT 0 -- 1: a scheduler said what it gave away
);

-- One row per card or MIG instance.
CREATE TABLE gpu (
	id               INTEGER PRIMARY KEY,
	host             INTEGER NOT NULL REFERENCES host(id),
	uuid             TEXT NOT NULL,
	name             TEXT NOT NULL,
	parent_uuid      TEXT NOT NULL,    -- of a MIG instance, else ''
	pci              TEXT NOT NULL,
	idx              INTEGER NOT NULL, -- the driver's index when last seen
	mig_index        INTEGER,          -- NULL when not MIG, like the next two
	gpu_instance     INTEGER,
	compute_instance INTEGER,
	mem_total_bytes  INTEGER,          -- NULL: unknown
	status           TEXT NOT NULL,    -- ok, lost, asleep, denied
	first_seen_ms    INTEGER NOT NULL,
	last_seen_ms     INTEGER NOT NULL, -- accounted up to here; see reading.seen_ms
	source           TEXT NOT NULL DEFAULT '', -- nvml, sim (invented data); '' when unknown
	UNIQUE (host, uuid)
);

-- One row per process life: pid, start time and boot (of the run that saw it first).
CREATE TABLE process (
	id             INTEGER PRIMARY KEY,
	host           INTEGER NOT NULL REFERENCES host(id),
	run            INTEGER NOT NULL REFERENCES run(id), -- saw it first; names the boot
	pid            INTEGER NOT NULL,
	start_ticks    INTEGER NOT NULL,   -- /proc/PID/stat field 22; 0: unknown
	started_ms     INTEGER,
	uid            INTEGER,
	user           TEXT NOT NULL,      -- the identity
	command        TEXT NOT NULL,      -- '' where privacy was strict
	notebook       TEXT, job TEXT, container TEXT, pod TEXT, unit TEXT, -- NULL: none
	first_seen_ms  INTEGER NOT NULL,
	last_seen_ms   INTEGER NOT NULL,   -- of a process in `holder`: see run.last_tick_ms
	last_active_ms INTEGER,            -- NULL: never seen active
	ended_ms       INTEGER,            -- seen to be gone, or the recorder stopped; NULL: lives
	-- Where it comes from (gua(1), ORIGIN OF A PROCESS); NULL: not known.
	notebook_path  TEXT, job_name TEXT, account TEXT, login TEXT, session TEXT, parents TEXT,
	python_env     TEXT, tag TEXT,
	posix_session  INTEGER,            -- pid of its session leader (setsid(2)); NULL: unknown
	job_task       TEXT                -- of a task of an array: slurm:3_2, whose job is slurm:5
);
CREATE INDEX process_pod ON process (pod) WHERE pod IS NOT NULL;
-- Processes that were alive when a recorder ended: the next recorder of the same boot finds them
-- by pid. An index of all pids would take a tenth of the size of their rows.
CREATE TABLE open_life (
	pid     INTEGER NOT NULL,
	process INTEGER NOT NULL REFERENCES process(id),
	PRIMARY KEY (pid, process)
) WITHOUT ROWID;

-- The current holders, with what each holds: each tick changes those of which something is new. Rows
-- of this table, and of total_user, are changed in place: without an index of its own, a table has
-- some of its rows in pages between the leaves, which would be written, too.
CREATE TABLE holder (
	gpu            INTEGER NOT NULL REFERENCES gpu(id),
	process        INTEGER NOT NULL REFERENCES process(id),
	kind           INTEGER NOT NULL,   -- bits: 1 compute, 2 graphics, 4 MPS client
	mem_bytes      INTEGER,            -- NULL: the driver cannot tell
	since_ms       INTEGER NOT NULL,
	last_active_ms INTEGER,
	PRIMARY KEY (gpu, process)
);

-- Spells that ended: stretches of time in which a process held a card idle, with at least
-- run.spell_ms of idle time in them. By their end, so that those of a window are found quickly.
CREATE TABLE spell (
	end_ms       INTEGER NOT NULL,     -- the last moment at which it was seen idle
	gpu          INTEGER NOT NULL REFERENCES gpu(id),
	process      INTEGER NOT NULL REFERENCES process(id),
	begin_ms     INTEGER NOT NULL,
	idle_held_ms INTEGER NOT NULL,     -- by its own state; what is left of the time between
	squatting_ms INTEGER NOT NULL,     -- begin and end was not observed
	mem_peak_kib INTEGER,              -- NULL: the driver cannot tell
	energy_mj    INTEGER,              -- its share of the card's idle-held energy; NULL: not known
	how_ended    INTEGER NOT NULL,     -- 0 active, 1 released, 2 exited, 3 recorder stopped
	PRIMARY KEY (end_ms, gpu, process)
) WITHOUT ROWID;
-- Stretches that have not ended, also those that are not long enough yet: replaced by each tick.
-- The next recorder of the same boot goes on with them. When a recorder has stopped, a spell is in
-- both tables, with the same key. A process has at most one on each card; without an index, a tick
-- writes fewer pages.
CREATE TABLE open_spell (
	gpu INTEGER NOT NULL REFERENCES gpu(id), process INTEGER NOT NULL REFERENCES process(id),
	begin_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL, idle_held_ms INTEGER NOT NULL,
	squatting_ms INTEGER NOT NULL, mem_peak_kib INTEGER, energy_mj INTEGER
);

-- Sums of a card's time. state: 0 active, 1 idle_held, 2 truly_idle, 3 unobserved,
-- 4 use_unknown (held, and the driver reports no utilisation), 5 reserved (truly_idle but for a
-- lease).
-- A minute table for the last day, five minutes for two weeks, hours for ever; compaction moves
-- sums from one to the next.
CREATE TABLE usage_1m (
	slot              INTEGER NOT NULL,
	gpu               INTEGER NOT NULL,
	state             INTEGER NOT NULL,
	ms                INTEGER NOT NULL,  -- measured milliseconds
	util_pct_ms       INTEGER NOT NULL,  -- sum of percent x ms: divide by ms for the mean
	energy_mj         INTEGER NOT NULL DEFAULT 0, -- of the part of ms whose energy is known
	energy_unknown_ms INTEGER NOT NULL DEFAULT 0, -- the other part
	unsure_ms         INTEGER NOT NULL DEFAULT 0, -- this much may be of another state, plus
	unsure_ms2        INTEGER NOT NULL DEFAULT 0, -- the root of this
	PRIMARY KEY (slot, gpu, state)
) WITHOUT ROWID;
CREATE TABLE usage_5m (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, state INTEGER NOT NULL,
	ms INTEGER NOT NULL, util_pct_ms INTEGER NOT NULL, energy_mj INTEGER NOT NULL DEFAULT 0,
	energy_unknown_ms INTEGER NOT NULL DEFAULT 0, unsure_ms INTEGER NOT NULL DEFAULT 0,
	unsure_ms2 INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (slot, gpu, state)
) WITHOUT ROWID;
CREATE TABLE usage_1h (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, state INTEGER NOT NULL,
	ms INTEGER NOT NULL, util_pct_ms INTEGER NOT NULL, energy_mj INTEGER NOT NULL DEFAULT 0,
	energy_unknown_ms INTEGER NOT NULL DEFAULT 0, unsure_ms INTEGER NOT NULL DEFAULT 0,
	unsure_ms2 INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (slot, gpu, state)
) WITHOUT ROWID;
-- Sums of complete hours once more, so that a report of months reads few rows. usage_hour has those
-- of the hours whose slots are in usage_1m and usage_5m: compaction moves its rows to usage_1h when
-- it deletes those slots. usage_1d has the sums of all hours by day (UTC). An hour enters them in the
-- first tick after it; heat_1h has a row for the last one. Every slot before the end of that hour is
-- in them, and no later slot.
CREATE TABLE usage_hour (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, state INTEGER NOT NULL,
	ms INTEGER NOT NULL, util_pct_ms INTEGER NOT NULL, energy_mj INTEGER NOT NULL DEFAULT 0,
	energy_unknown_ms INTEGER NOT NULL DEFAULT 0, unsure_ms INTEGER NOT NULL DEFAULT 0,
	unsure_ms2 INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (slot, gpu, state)
) WITHOUT ROWID;
CREATE TABLE usage_1d (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, state INTEGER NOT NULL,
	ms INTEGER NOT NULL, util_pct_ms INTEGER NOT NULL, energy_mj INTEGER NOT NULL DEFAULT 0,
	energy_unknown_ms INTEGER NOT NULL, unsure_ms INTEGER NOT NULL DEFAULT 0,
	unsure_ms2 INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (slot, gpu, state)
) WITHOUT ROWID;
-- The hours over all cards of the file, for the hours of the week.
CREATE TABLE heat_1h (
	slot           INTEGER PRIMARY KEY,
	active_ms      INTEGER NOT NULL,
	idle_held_ms   INTEGER NOT NULL,
	truly_idle_ms  INTEGER NOT NULL,
	use_unknown_ms INTEGER NOT NULL,
	reserved_ms    INTEGER NOT NULL,
	-- The first three quarters of the hour: in some time zones an hour begins at a half or a quarter.
	active_q1_ms INTEGER, active_q2_ms INTEGER, active_q3_ms INTEGER,
	idle_held_q1_ms INTEGER, idle_held_q2_ms INTEGER, idle_held_q3_ms INTEGER,
	truly_idle_q1_ms INTEGER, truly_idle_q2_ms INTEGER, truly_idle_q3_ms INTEGER,
	use_unknown_q1_ms INTEGER, use_unknown_q2_ms INTEGER, use_unknown_q3_ms INTEGER,
	reserved_q1_ms INTEGER, reserved_q2_ms INTEGER, reserved_q3_ms INTEGER
);

-- Mean SM activity by the hour, of cards that report it (GPM): pct_ms / ms, in percent.
CREATE TABLE sm_active (
	slot   INTEGER NOT NULL,
	gpu    INTEGER NOT NULL,
	ms     INTEGER NOT NULL,           -- time for which it is known
	pct_ms INTEGER NOT NULL,           -- sum of percent x ms
	PRIMARY KEY (slot, gpu)
) WITHOUT ROWID;

-- Sums of a holder's time, its states side by side: most holders have two in an hour, and a row
-- for each would make the file a quarter larger.
CREATE TABLE holding_1m (
	slot                 INTEGER NOT NULL,
	gpu                  INTEGER NOT NULL,
	process              INTEGER NOT NULL,
	active_ms            INTEGER NOT NULL, -- its time on the card, by its own state
	idle_held_ms         INTEGER NOT NULL,
	truly_idle_ms        INTEGER NOT NULL,
	squatting_ms         INTEGER NOT NULL,
	active_double_ms     INTEGER NOT NULL, -- time - double is presence, by the user's state:
	idle_held_double_ms  INTEGER NOT NULL, -- summed over a user's processes, the user's GPU
	truly_idle_double_ms INTEGER NOT NULL, -- time. Mostly what another process of the user
	squatting_double_ms  INTEGER NOT NULL, -- counts already; negative where the user's state
	                                       -- is not that of this process
	active_share_ms      INTEGER NOT NULL, -- its part of the card's active time (by SM use)
	idle_share_ms        INTEGER NOT NULL, -- and of its idle-held time (by memory)
	sm_pct_ms            INTEGER,          -- own SM percent x ms; NULL: the driver has none
	mem_peak_kib         INTEGER,          -- NULL: the driver cannot tell
	use_unknown_ms       INTEGER NOT NULL DEFAULT 0, -- as active_ms ...
	use_unknown_double_ms INTEGER NOT NULL DEFAULT 0, -- ... and active_double_ms
	engine_ms            INTEGER NOT NULL DEFAULT 0, -- it used an encoder, a decoder, JPEG or
	                                       -- optical flow; in any state, for policy
	own_use              INTEGER,          -- for policy; NULL: before version 4. The lowest 8 bits:
	                                       -- the most SM use of any drain, whole percents: its own,
	                                       -- or its card's while its session is alone there and
	                                       -- the driver has none (of several, one has it). The others: milliseconds in which
	                                       -- neither is known. The view `holding` has both; two
	                                       -- columns would make the file 2 % larger
	PRIMARY KEY (slot, gpu, process)
) WITHOUT ROWID;
CREATE TABLE holding_5m (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, process INTEGER NOT NULL,
	active_ms INTEGER NOT NULL, idle_held_ms INTEGER NOT NULL,
	truly_idle_ms INTEGER NOT NULL, squatting_ms INTEGER NOT NULL,
	active_double_ms INTEGER NOT NULL, idle_held_double_ms INTEGER NOT NULL,
	truly_idle_double_ms INTEGER NOT NULL, squatting_double_ms INTEGER NOT NULL,
	active_share_ms INTEGER NOT NULL, idle_share_ms INTEGER NOT NULL,
	sm_pct_ms INTEGER, mem_peak_kib INTEGER,
	use_unknown_ms INTEGER NOT NULL DEFAULT 0,
	use_unknown_double_ms INTEGER NOT NULL DEFAULT 0,
	engine_ms INTEGER NOT NULL DEFAULT 0,
	own_use INTEGER,
	PRIMARY KEY (slot, gpu, process)
) WITHOUT ROWID;
CREATE TABLE holding_1h (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, process INTEGER NOT NULL,
	active_ms INTEGER NOT NULL, idle_held_ms INTEGER NOT NULL,
	truly_idle_ms INTEGER NOT NULL, squatting_ms INTEGER NOT NULL,
	active_double_ms INTEGER NOT NULL, idle_held_double_ms INTEGER NOT NULL,
	truly_idle_double_ms INTEGER NOT NULL, squatting_double_ms INTEGER NOT NULL,
	active_share_ms INTEGER NOT NULL, idle_share_ms INTEGER NOT NULL,
	sm_pct_ms INTEGER, mem_peak_kib INTEGER,
	use_unknown_ms INTEGER NOT NULL DEFAULT 0,
	use_unknown_double_ms INTEGER NOT NULL DEFAULT 0,
	engine_ms INTEGER NOT NULL DEFAULT 0,
	own_use INTEGER,
	PRIMARY KEY (slot, gpu, process)
) WITHOUT ROWID;
-- The same sums once more as usage_hour and usage_1d.
CREATE TABLE holding_hour (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, process INTEGER NOT NULL,
	active_ms INTEGER NOT NULL, idle_held_ms INTEGER NOT NULL,
	truly_idle_ms INTEGER NOT NULL, squatting_ms INTEGER NOT NULL,
	active_double_ms INTEGER NOT NULL, idle_held_double_ms INTEGER NOT NULL,
	truly_idle_double_ms INTEGER NOT NULL, squatting_double_ms INTEGER NOT NULL,
	active_share_ms INTEGER NOT NULL, idle_share_ms INTEGER NOT NULL,
	sm_pct_ms INTEGER, mem_peak_kib INTEGER,
	use_unknown_ms INTEGER NOT NULL DEFAULT 0,
	use_unknown_double_ms INTEGER NOT NULL DEFAULT 0,
	engine_ms INTEGER NOT NULL DEFAULT 0,
	own_use INTEGER,
	PRIMARY KEY (slot, gpu, process)
) WITHOUT ROWID;
CREATE TABLE holding_1d (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, process INTEGER NOT NULL,
	active_ms INTEGER NOT NULL, idle_held_ms INTEGER NOT NULL,
	truly_idle_ms INTEGER NOT NULL, squatting_ms INTEGER NOT NULL,
	active_double_ms INTEGER NOT NULL, idle_held_double_ms INTEGER NOT NULL,
	truly_idle_double_ms INTEGER NOT NULL, squatting_double_ms INTEGER NOT NULL,
	active_share_ms INTEGER NOT NULL, idle_share_ms INTEGER NOT NULL,
	sm_pct_ms INTEGER, mem_peak_kib INTEGER,
	use_unknown_ms INTEGER NOT NULL DEFAULT 0,
	use_unknown_double_ms INTEGER NOT NULL DEFAULT 0,
	engine_ms INTEGER NOT NULL DEFAULT 0,
	own_use INTEGER,
	PRIMARY KEY (slot, gpu, process)
) WITHOUT ROWID;

-- What schedulers have given away: one row per lease. Its cards are those of its sums.
CREATE TABLE lease (
	id            INTEGER PRIMARY KEY,
	host          INTEGER NOT NULL REFERENCES host(id),
	kind          INTEGER NOT NULL,    -- 0 slurm, 1 pod, 2 pick
	name          TEXT NOT NULL,       -- within its kind: job number, namespace/pod, pid
	owner         TEXT NOT NULL,       -- user or namespace
	uid           INTEGER,             -- NULL: not known, like the next two
	job_name      TEXT, account TEXT,
	share         INTEGER NOT NULL,    -- 1: whole cards, n: one of n parts, 0: a part
	since_ms      INTEGER NOT NULL,    -- when it began, as the scheduler says
	until_ms      INTEGER,             -- when it must end; NULL: open
	first_seen_ms INTEGER NOT NULL,
	last_seen_ms  INTEGER NOT NULL,    -- of one that goes on: see run.last_tick_ms
	ended_ms      INTEGER,             -- NULL: it goes on
	task          TEXT                 -- 3_2: task 2 of the array 3; NULL: none
);
CREATE INDEX lease_open ON lease (host, kind, name) WHERE ended_ms IS NULL;
-- Reserved time of a lease on a card; there is a row only where there is some.
CREATE TABLE reserved_1m (
	slot        INTEGER NOT NULL,
	gpu         INTEGER NOT NULL,
	lease       INTEGER NOT NULL,
	reserved_ms INTEGER NOT NULL,      -- its part of the card's reserved time
	unknown_ms  INTEGER NOT NULL,      -- its part of truly-idle time in which it may have ended
	PRIMARY KEY (slot, gpu, lease)
) WITHOUT ROWID;
CREATE TABLE reserved_5m (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, lease INTEGER NOT NULL,
	reserved_ms INTEGER NOT NULL, unknown_ms INTEGER NOT NULL,
	PRIMARY KEY (slot, gpu, lease)
) WITHOUT ROWID;
CREATE TABLE reserved_1h (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, lease INTEGER NOT NULL,
	reserved_ms INTEGER NOT NULL, unknown_ms INTEGER NOT NULL,
	PRIMARY KEY (slot, gpu, lease)
) WITHOUT ROWID;
-- A lease's own time by day (UTC): active and idle-held by the processes of its job, else of its
-- owner; of unknown use as its card; the rest that was observed is untouched.
CREATE TABLE leased_1d (
	slot           INTEGER NOT NULL,
	gpu            INTEGER NOT NULL,
	lease          INTEGER NOT NULL,
	active_ms      INTEGER NOT NULL,
	idle_held_ms   INTEGER NOT NULL,
	use_unknown_ms INTEGER NOT NULL,
	untouched_ms   INTEGER NOT NULL,
	PRIMARY KEY (slot, gpu, lease)
) WITHOUT ROWID;

-- Running totals since the store was made: exported counters never go back.
CREATE TABLE total_gpu (
	gpu               INTEGER NOT NULL,
	state             INTEGER NOT NULL,
	ms                INTEGER NOT NULL,
	energy_mj         INTEGER NOT NULL DEFAULT 0,
	energy_unknown_ms INTEGER NOT NULL DEFAULT 0,
	unsure_ms         INTEGER NOT NULL DEFAULT 0,
	unsure_ms2        INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (gpu, state)
) WITHOUT ROWID;
CREATE TABLE total_user (
	host        INTEGER NOT NULL,
	user        TEXT NOT NULL,
	state       INTEGER NOT NULL,      -- 0 active, 1 idle_held, 2 truly_idle, 3 squatting,
	                                   -- 4 use_unknown, 5 reserved (the owner's part)
	presence_ms INTEGER NOT NULL,
	share_ms    INTEGER NOT NULL,      -- of cards' active time at 0, of idle-held time at 1
	moved_ms    INTEGER NOT NULL DEFAULT 0, -- the tick that last added to it
	PRIMARY KEY (host, user, state)
);

-- The users, in the order in which they came: an exporter names those at the first places.
CREATE TABLE identity (
	host     INTEGER NOT NULL,
	user     TEXT NOT NULL,
	place    INTEGER NOT NULL,         -- given once, from 1 on: the first that no user of the
	                                   -- last 35 days had; 0: _unknown
	first_ms INTEGER NOT NULL,         -- the tick that stored it first
	named_ms INTEGER NOT NULL DEFAULT 0, -- of uid:N: processes from up to then have their
	                                   -- user's name since
	PRIMARY KEY (host, user)
) WITHOUT ROWID;

-- What the cards reported at the last tick: replaced by each. NULL: not known.
CREATE TABLE reading (
	gpu                INTEGER PRIMARY KEY REFERENCES gpu(id),
	at_ms              INTEGER NOT NULL, -- the tick
	util_pct           REAL,             -- mean since the tick before, like power_w
	mem_used_bytes     INTEGER,          -- gpu.mem_total_bytes has the total
	power_w            REAL,
	power_limit_w      REAL,             -- in force
	temperature_c      REAL,
	idle_held_since_ms INTEGER,          -- idle-held without a pause since then; NULL: it is not
	seen_ms            INTEGER           -- accounted up to here; NULL: gpu.last_seen_ms has it
);

-- What happened: card-lost, card-back, gap, clock-step ... The newest 100,000 are kept.
CREATE TABLE event (
	id    INTEGER PRIMARY KEY,
	host  INTEGER NOT NULL REFERENCES host(id),
	at_ms INTEGER NOT NULL,
	gpu   INTEGER REFERENCES gpu(id),
	kind  TEXT NOT NULL,
	value INTEGER NOT NULL,
	text  TEXT NOT NULL
);

-- Databases of other tools that were imported, so that none is counted twice.
CREATE TABLE import (
	id          INTEGER PRIMARY KEY,
	host        INTEGER NOT NULL REFERENCES host(id),
	first_ms    INTEGER NOT NULL,
	last_ms     INTEGER NOT NULL,
	samples     INTEGER NOT NULL,
	imported_ms INTEGER NOT NULL,
	path        TEXT NOT NULL,
	UNIQUE (host, first_ms, last_ms, samples)
);
