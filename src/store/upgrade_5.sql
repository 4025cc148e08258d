-- What the first stores of version 5 need, and those of version 4 after upgrade_4.sql.
-- The same rows in tables with an index, whose pages between the leaves a tick does not write.
CREATE TEMP TABLE kept AS SELECT * FROM holder;
DROP TABLE holder;
CREATE TABLE holder (
	gpu INTEGER NOT NULL REFERENCES gpu(id), process INTEGER NOT NULL REFERENCES process(id),
	kind INTEGER NOT NULL, mem_bytes INTEGER, since_ms INTEGER NOT NULL, last_active_ms INTEGER,
	PRIMARY KEY (gpu, process)
);
INSERT INTO holder SELECT * FROM temp.kept;
DROP TABLE temp.kept;
CREATE TEMP TABLE kept AS SELECT * FROM total_user;
DROP TABLE total_user;
CREATE TABLE total_user (
	host INTEGER NOT NULL, user TEXT NOT NULL, state INTEGER NOT NULL, presence_ms INTEGER NOT NULL,
	share_ms INTEGER NOT NULL, moved_ms INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (host, user, state)
);
INSERT INTO total_user SELECT * FROM temp.kept;
DROP TABLE temp.kept;
CREATE TEMP TABLE kept AS SELECT * FROM open_spell;
DROP TABLE open_spell;
CREATE TABLE open_spell (
	gpu INTEGER NOT NULL REFERENCES gpu(id), process INTEGER NOT NULL REFERENCES process(id),
	begin_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL, idle_held_ms INTEGER NOT NULL,
	squatting_ms INTEGER NOT NULL, mem_peak_kib INTEGER, energy_mj INTEGER
);
INSERT INTO open_spell SELECT * FROM temp.kept;
DROP TABLE temp.kept;
