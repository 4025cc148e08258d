-- Version 4 to version 5: sums of complete hours, also while their slots are in finer tables. The
-- sums are made afterwards: see make_schema() in store_open.c.
DROP TABLE heat_5m;
DROP TABLE heat_1h;
DELETE FROM usage_1d;
DELETE FROM holding_1d;
CREATE TABLE usage_hour (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, state INTEGER NOT NULL,
	ms INTEGER NOT NULL, util_pct_ms INTEGER NOT NULL, energy_mj INTEGER NOT NULL DEFAULT 0,
	energy_unknown_ms INTEGER NOT NULL DEFAULT 0, unsure_ms INTEGER NOT NULL DEFAULT 0,
	unsure_ms2 INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (slot, gpu, state)
) WITHOUT ROWID;
CREATE TABLE heat_1h (
	slot           INTEGER PRIMARY KEY,
	active_ms      INTEGER NOT NULL,
	idle_held_ms   INTEGER NOT NULL,
	truly_idle_ms  INTEGER NOT NULL,
	use_unknown_ms INTEGER NOT NULL,
	reserved_ms    INTEGER NOT NULL,
	active_q1_ms INTEGER, active_q2_ms INTEGER, active_q3_ms INTEGER,
	idle_held_q1_ms INTEGER, idle_held_q2_ms INTEGER, idle_held_q3_ms INTEGER,
	truly_idle_q1_ms INTEGER, truly_idle_q2_ms INTEGER, truly_idle_q3_ms INTEGER,
	use_unknown_q1_ms INTEGER, use_unknown_q2_ms INTEGER, use_unknown_q3_ms INTEGER,
	reserved_q1_ms INTEGER, reserved_q2_ms INTEGER, reserved_q3_ms INTEGER
);
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
ALTER TABLE reading ADD COLUMN seen_ms INTEGER;
-- Leases.
ALTER TABLE run ADD COLUMN leases INTEGER NOT NULL DEFAULT 0;
CREATE TABLE lease (
	id INTEGER PRIMARY KEY, host INTEGER NOT NULL REFERENCES host(id), kind INTEGER NOT NULL,
	name TEXT NOT NULL, owner TEXT NOT NULL, uid INTEGER, job_name TEXT, account TEXT,
	share INTEGER NOT NULL, since_ms INTEGER NOT NULL, until_ms INTEGER,
	first_seen_ms INTEGER NOT NULL, last_seen_ms INTEGER NOT NULL, ended_ms INTEGER,
	task TEXT
);
ALTER TABLE process ADD COLUMN job_task TEXT;
CREATE INDEX process_pod ON process (pod) WHERE pod IS NOT NULL;
CREATE INDEX lease_open ON lease (host, kind, name) WHERE ended_ms IS NULL;
CREATE TABLE reserved_1m (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, lease INTEGER NOT NULL,
	reserved_ms INTEGER NOT NULL, unknown_ms INTEGER NOT NULL,
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
CREATE TABLE leased_1d (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, lease INTEGER NOT NULL,
	active_ms INTEGER NOT NULL, idle_held_ms INTEGER NOT NULL, use_unknown_ms INTEGER NOT NULL,
	untouched_ms INTEGER NOT NULL,
	PRIMARY KEY (slot, gpu, lease)
) WITHOUT ROWID;
