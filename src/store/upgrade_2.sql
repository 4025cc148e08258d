-- Version 2 to version 3: where processes come from, how much of it a run kept, spells, the use of
-- engines, and what exporters need.
ALTER TABLE run ADD COLUMN privacy TEXT NOT NULL DEFAULT 'normal';

ALTER TABLE process ADD COLUMN notebook_path TEXT;
ALTER TABLE process ADD COLUMN job_name TEXT;
ALTER TABLE process ADD COLUMN account TEXT;
ALTER TABLE process ADD COLUMN login TEXT;
ALTER TABLE process ADD COLUMN session TEXT;
ALTER TABLE process ADD COLUMN parents TEXT;
ALTER TABLE process ADD COLUMN python_env TEXT;
ALTER TABLE process ADD COLUMN tag TEXT;
ALTER TABLE process ADD COLUMN posix_session INTEGER;

ALTER TABLE run ADD COLUMN spell_ms INTEGER NOT NULL DEFAULT 300000;

CREATE TABLE spell (
	end_ms INTEGER NOT NULL, gpu INTEGER NOT NULL REFERENCES gpu(id),
	process INTEGER NOT NULL REFERENCES process(id), begin_ms INTEGER NOT NULL,
	idle_held_ms INTEGER NOT NULL, squatting_ms INTEGER NOT NULL, mem_peak_kib INTEGER,
	energy_mj INTEGER, how_ended INTEGER NOT NULL, PRIMARY KEY (end_ms, gpu, process)
) WITHOUT ROWID;
CREATE TABLE open_spell (
	gpu INTEGER NOT NULL REFERENCES gpu(id), process INTEGER NOT NULL REFERENCES process(id),
	begin_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL, idle_held_ms INTEGER NOT NULL,
	squatting_ms INTEGER NOT NULL, mem_peak_kib INTEGER, energy_mj INTEGER,
	PRIMARY KEY (gpu, process)
) WITHOUT ROWID;

ALTER TABLE total_user ADD COLUMN moved_ms INTEGER NOT NULL DEFAULT 0;
UPDATE total_user SET moved_ms = coalesce((SELECT max(last_tick_ms) FROM run), 0);

CREATE TABLE identity (
	host INTEGER NOT NULL, user TEXT NOT NULL, place INTEGER NOT NULL,
	first_ms INTEGER NOT NULL, named_ms INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (host, user)
) WITHOUT ROWID;
INSERT INTO identity SELECT host, user, iif(user = '_unknown', 0,
	row_number() OVER (PARTITION BY host ORDER BY user)), 0, 0
	FROM (SELECT DISTINCT host, user FROM total_user);

CREATE TABLE reading (
	gpu INTEGER PRIMARY KEY REFERENCES gpu(id), at_ms INTEGER NOT NULL, util_pct REAL,
	mem_used_bytes INTEGER, power_w REAL, power_limit_w REAL, temperature_c REAL,
	idle_held_since_ms INTEGER
);

-- Nothing has ever been written to it: enforcement has a file of its own, policy.db.
DROP TABLE IF EXISTS action;

ALTER TABLE holding_1m ADD COLUMN engine_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holding_5m ADD COLUMN engine_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holding_1h ADD COLUMN engine_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holding_1d ADD COLUMN engine_ms INTEGER NOT NULL DEFAULT 0;
