-- Version 2 to version 3: where processes come from, how much of it a run kept, and spells.
ALTER TABLE run ADD COLUMN privacy TEXT NOT NULL DEFAULT 'normal';

ALTER TABLE process ADD COLUMN notebook_path TEXT;
ALTER TABLE process ADD COLUMN job_name TEXT;
ALTER TABLE process ADD COLUMN account TEXT;
ALTER TABLE process ADD COLUMN login TEXT;
ALTER TABLE process ADD COLUMN session TEXT;
ALTER TABLE process ADD COLUMN parents TEXT;
ALTER TABLE process ADD COLUMN python_env TEXT;
ALTER TABLE process ADD COLUMN tag TEXT;

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
