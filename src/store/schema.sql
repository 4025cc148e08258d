-- The store of gua: one SQLite file. This file is the only schema; user_version numbers it.
-- Times named *_ms are unix milliseconds, slots are unix seconds (start of the slot).
-- Start reading at the views at the end: day_cards, day_users, now_holders.

PRAGMA application_id = 0x47554131; -- "GUA1"
PRAGMA user_version = 1;

-- One row per machine. A file that was merged or imported has several.
CREATE TABLE host (
	id            INTEGER PRIMARY KEY,
	hostname      TEXT NOT NULL UNIQUE,
	machine_id    TEXT NOT NULL,       -- '' when unknown
	environment   TEXT NOT NULL,       -- bare, docker, k8s ...
	driver        TEXT NOT NULL,       -- version, '' when unknown
	first_seen_ms INTEGER NOT NULL,
	last_seen_ms  INTEGER NOT NULL
);

-- One row per start of the recorder (or per import).
CREATE TABLE run (
	id              INTEGER PRIMARY KEY,
	host            INTEGER NOT NULL REFERENCES host(id),
	version         TEXT NOT NULL,     -- of gua
	source          TEXT NOT NULL,     -- nvml, sim (invented data), import
	boot_id         TEXT NOT NULL,
	started_ms      INTEGER NOT NULL,
	last_tick_ms    INTEGER NOT NULL,
	ended_ms        INTEGER,           -- NULL: running, or killed and not started again yet
	how_ended       TEXT,              -- stopped, finished, killed (ended_ms is the last tick)
	interval_ms     INTEGER NOT NULL,
	drain_ms        INTEGER NOT NULL,
	active_util_pct REAL NOT NULL,     -- the rules in force
	held_mem_bytes  INTEGER NOT NULL,
	count_graphics  INTEGER NOT NULL
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
	last_seen_ms     INTEGER NOT NULL, -- accounted up to here
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
	command        TEXT NOT NULL,
	notebook       TEXT, job TEXT, container TEXT, pod TEXT, unit TEXT, -- NULL: none
	first_seen_ms  INTEGER NOT NULL,
	last_seen_ms   INTEGER NOT NULL,   -- of a process in `holder`: see run.last_tick_ms
	last_active_ms INTEGER,            -- NULL: never seen active
	ended_ms       INTEGER             -- seen to be gone, or the recorder stopped; NULL: lives
);
CREATE INDEX process_pid ON process (pid); -- a life is found again after a restart

-- Who holds what now: replaced by each tick.
CREATE TABLE holder (
	gpu            INTEGER NOT NULL REFERENCES gpu(id),
	process        INTEGER NOT NULL REFERENCES process(id),
	kind           INTEGER NOT NULL,   -- bits: 1 compute, 2 graphics, 4 MPS client
	mem_bytes      INTEGER,            -- NULL: the driver cannot tell
	since_ms       INTEGER NOT NULL,
	last_active_ms INTEGER,
	PRIMARY KEY (gpu, process)
) WITHOUT ROWID;

-- Sums of a card's time. state: 0 active, 1 idle_held, 2 truly_idle, 3 unobserved.
-- A minute table for the last day, five minutes for two weeks, hours for ever; compaction moves
-- sums from one to the next.
CREATE TABLE usage_1m (
	slot        INTEGER NOT NULL,
	gpu         INTEGER NOT NULL,
	state       INTEGER NOT NULL,
	ms          INTEGER NOT NULL,      -- measured milliseconds
	util_pct_ms INTEGER NOT NULL,      -- sum of percent x ms: divide by ms for the mean
	energy_mj   INTEGER,               -- NULL: unknown
	PRIMARY KEY (slot, gpu, state)
) WITHOUT ROWID;
CREATE TABLE usage_5m (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, state INTEGER NOT NULL,
	ms INTEGER NOT NULL, util_pct_ms INTEGER NOT NULL, energy_mj INTEGER,
	PRIMARY KEY (slot, gpu, state)
) WITHOUT ROWID;
CREATE TABLE usage_1h (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, state INTEGER NOT NULL,
	ms INTEGER NOT NULL, util_pct_ms INTEGER NOT NULL, energy_mj INTEGER,
	PRIMARY KEY (slot, gpu, state)
) WITHOUT ROWID;
-- The sums of usage_5m and usage_1h once more, for long windows: by day (UTC) for each card, and
-- over all cards of the file for the hours of the week. A slot enters them when it leaves
-- usage_1m; they always say exactly what those two tables say.
CREATE TABLE usage_1d (
	slot            INTEGER NOT NULL,
	gpu             INTEGER NOT NULL,
	state           INTEGER NOT NULL,
	ms              INTEGER NOT NULL,
	util_pct_ms     INTEGER NOT NULL,
	energy_mj       INTEGER NOT NULL,  -- of the slots that know it
	energy_known_ms INTEGER NOT NULL,  -- and their time
	PRIMARY KEY (slot, gpu, state)
) WITHOUT ROWID;
CREATE TABLE heat_5m (
	slot          INTEGER PRIMARY KEY,
	active_ms     INTEGER NOT NULL,
	idle_held_ms  INTEGER NOT NULL,
	truly_idle_ms INTEGER NOT NULL
);
CREATE TABLE heat_1h (
	slot INTEGER PRIMARY KEY,
	active_ms INTEGER NOT NULL, idle_held_ms INTEGER NOT NULL, truly_idle_ms INTEGER NOT NULL
);

-- Sums of a holder's time, its states side by side: most holders have two in an hour, and a row
-- for each would make the file a quarter larger.
CREATE TABLE holding_1m (
	slot                 INTEGER NOT NULL,
	gpu                  INTEGER NOT NULL,
	process              INTEGER NOT NULL,
	active_ms            INTEGER NOT NULL, -- its time on the card in each state
	idle_held_ms         INTEGER NOT NULL,
	truly_idle_ms        INTEGER NOT NULL,
	squatting_ms         INTEGER NOT NULL,
	active_double_ms     INTEGER NOT NULL, -- of it, what another process of the same user
	idle_held_double_ms  INTEGER NOT NULL, -- counts already: time - double is presence, and
	truly_idle_double_ms INTEGER NOT NULL, -- presence summed over a user's processes is the
	squatting_double_ms  INTEGER NOT NULL, -- user's GPU time
	active_share_ms      INTEGER NOT NULL, -- its part of the card's active time (by SM use)
	idle_share_ms        INTEGER NOT NULL, -- and of its idle-held time (by memory)
	sm_pct_ms            INTEGER,          -- own SM percent x ms; NULL: the driver has none
	mem_peak_kib         INTEGER,          -- NULL: the driver cannot tell
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
	PRIMARY KEY (slot, gpu, process)
) WITHOUT ROWID;
-- The sums of holding_5m and holding_1h once more, by day (UTC): for windows of whole days, which
-- would otherwise read five times as many rows. A slot enters it when it leaves holding_1m.
CREATE TABLE holding_1d (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, process INTEGER NOT NULL,
	active_ms INTEGER NOT NULL, idle_held_ms INTEGER NOT NULL,
	truly_idle_ms INTEGER NOT NULL, squatting_ms INTEGER NOT NULL,
	active_double_ms INTEGER NOT NULL, idle_held_double_ms INTEGER NOT NULL,
	truly_idle_double_ms INTEGER NOT NULL, squatting_double_ms INTEGER NOT NULL,
	active_share_ms INTEGER NOT NULL, idle_share_ms INTEGER NOT NULL,
	sm_pct_ms INTEGER, mem_peak_kib INTEGER,
	PRIMARY KEY (slot, gpu, process)
) WITHOUT ROWID;

-- Running totals since the store was made: exported counters never go back.
CREATE TABLE total_gpu (
	gpu       INTEGER NOT NULL,
	state     INTEGER NOT NULL,
	ms        INTEGER NOT NULL,
	energy_mj INTEGER,
	PRIMARY KEY (gpu, state)
) WITHOUT ROWID;
CREATE TABLE total_user (
	host        INTEGER NOT NULL,
	user        TEXT NOT NULL,
	state       INTEGER NOT NULL,      -- 0 active, 1 idle_held, 2 truly_idle, 3 squatting
	presence_ms INTEGER NOT NULL,
	share_ms    INTEGER NOT NULL,
	PRIMARY KEY (host, user, state)
) WITHOUT ROWID;

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

-- What enforcement did.
CREATE TABLE action (
	id      INTEGER PRIMARY KEY,
	at_ms   INTEGER NOT NULL,
	process INTEGER REFERENCES process(id),
	gpu     INTEGER REFERENCES gpu(id),
	kind    TEXT NOT NULL,
	mode    TEXT NOT NULL,
	result  TEXT NOT NULL,
	text    TEXT NOT NULL
);

-- Foreign databases that were taken over, so that none is counted twice.
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

-- Views for people; gua-store(5) has examples. Days and times are UTC.

-- The names of the states.
CREATE VIEW state (of, state, name) AS VALUES
	('card', 0, 'active'), ('card', 1, 'idle_held'),
	('card', 2, 'truly_idle'), ('card', 3, 'unobserved'),
	('holder', 0, 'active'), ('holder', 1, 'idle_held'),
	('holder', 2, 'truly_idle'), ('holder', 3, 'squatting');

-- All slots of cards; `seconds` is the width of the slot.
CREATE VIEW usage (slot, seconds, gpu, state, ms, util_pct_ms, energy_mj) AS
	SELECT slot, 3600, gpu, state, ms, util_pct_ms, energy_mj FROM usage_1h UNION ALL
	SELECT slot, 300, gpu, state, ms, util_pct_ms, energy_mj FROM usage_5m UNION ALL
	SELECT slot, 60, gpu, state, ms, util_pct_ms, energy_mj FROM usage_1m;

-- All slots of holders, with presence worked out.
CREATE VIEW holding AS
	SELECT slot, seconds, gpu, process, active_ms, idle_held_ms, truly_idle_ms, squatting_ms,
		active_ms - active_double_ms AS active_presence_ms,
		idle_held_ms - idle_held_double_ms AS idle_held_presence_ms,
		truly_idle_ms - truly_idle_double_ms AS truly_idle_presence_ms,
		squatting_ms - squatting_double_ms AS squatting_presence_ms,
		active_share_ms, idle_share_ms, sm_pct_ms, mem_peak_kib
	FROM (SELECT 3600 AS seconds, * FROM holding_1h UNION ALL
		SELECT 300, * FROM holding_5m UNION ALL SELECT 60, * FROM holding_1m);

-- What each card did each day. energy_kwh is NULL when the card does not tell.
CREATE VIEW day_cards AS
	SELECT date(slot, 'unixepoch') AS day, host.hostname AS host, gpu.idx AS card,
		gpu.mig_index AS mig, gpu.uuid AS uuid,
		round(sum(iif(state = 0, ms, 0)) / 3.6e6, 3) AS active_hours,
		round(sum(iif(state = 1, ms, 0)) / 3.6e6, 3) AS idle_held_hours,
		round(sum(iif(state = 2, ms, 0)) / 3.6e6, 3) AS truly_idle_hours,
		round(sum(iif(state = 3, ms, 0)) / 3.6e6, 3) AS unobserved_hours,
		round(sum(iif(state < 3, util_pct_ms, 0)) * 1.0
			/ nullif(sum(iif(state < 3, ms, 0)), 0), 1) AS mean_util_pct,
		round(sum(energy_mj) / 3.6e9, 3) AS energy_kwh
	FROM usage JOIN gpu ON gpu.id = usage.gpu JOIN host ON host.id = gpu.host
	GROUP BY day, gpu.id ORDER BY day, host.hostname, gpu.idx, gpu.mig_index;

-- What each user had each day: presence, and in the last column the share.
CREATE VIEW day_users AS
	SELECT date(slot, 'unixepoch') AS day, host.hostname AS host, process.user AS user,
		round(sum(active_presence_ms + idle_held_presence_ms + truly_idle_presence_ms
			+ squatting_presence_ms) / 3.6e6, 3) AS gpu_hours,
		round(sum(active_presence_ms) / 3.6e6, 3) AS active_hours,
		round(sum(idle_held_presence_ms) / 3.6e6, 3) AS idle_held_hours,
		round(sum(squatting_presence_ms) / 3.6e6, 3) AS squatting_hours,
		round(sum(active_share_ms + idle_share_ms) / 3.6e6, 3) AS share_hours
	FROM holding JOIN process ON process.id = holding.process
		JOIN host ON host.id = process.host
	GROUP BY day, host.id, process.user ORDER BY day, host.hostname, process.user;

-- Who holds what now, as of the last tick. idle_since is NULL while the holder is active.
CREATE VIEW now_holders AS
	SELECT host.hostname AS host, gpu.idx AS card, gpu.mig_index AS mig, process.user AS user,
		process.pid AS pid, process.command AS command,
		holder.mem_bytes / 1000000 AS mem_mb,
		datetime(holder.since_ms / 1000, 'unixepoch') AS since,
		iif(holder.last_active_ms >= run.last_tick_ms - run.interval_ms, NULL,
			datetime(coalesce(holder.last_active_ms, holder.since_ms) / 1000,
				'unixepoch')) AS idle_since,
		datetime(run.last_tick_ms / 1000, 'unixepoch') AS as_of
	FROM holder JOIN process ON process.id = holder.process
		JOIN gpu ON gpu.id = holder.gpu JOIN host ON host.id = gpu.host
		LEFT JOIN run ON run.host = host.id AND run.ended_ms IS NULL
	ORDER BY host.hostname, gpu.idx, gpu.mig_index, holder.mem_bytes DESC;
