-- Version 1 to version 2. Energy was NULL where it was not known; time has a column for that now.

DROP INDEX process_pid;
CREATE TABLE open_life (
	pid INTEGER NOT NULL, process INTEGER NOT NULL REFERENCES process(id),
	PRIMARY KEY (pid, process)
) WITHOUT ROWID;
INSERT INTO open_life SELECT pid, process.id FROM process JOIN run ON run.id = process.run
	WHERE boot_id = (SELECT boot_id FROM run AS newest WHERE newest.host = process.host
		ORDER BY newest.id DESC LIMIT 1);

ALTER TABLE run ADD COLUMN glance_ms INTEGER NOT NULL DEFAULT 0;

-- A run had one source. A card is taken as real when any run of its host was measured.
ALTER TABLE gpu ADD COLUMN source TEXT NOT NULL DEFAULT '';
UPDATE gpu SET source = iif(EXISTS (SELECT 1 FROM run WHERE run.host = gpu.host
	AND run.source <> 'sim'), 'nvml', 'sim');

ALTER TABLE usage_1m ADD COLUMN energy_unknown_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_1m ADD COLUMN unsure_ms INTEGER NOT NULL DEFAULT 0;
UPDATE usage_1m SET energy_mj = 0, energy_unknown_ms = ms WHERE energy_mj IS NULL;
ALTER TABLE usage_5m ADD COLUMN energy_unknown_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_5m ADD COLUMN unsure_ms INTEGER NOT NULL DEFAULT 0;
UPDATE usage_5m SET energy_mj = 0, energy_unknown_ms = ms WHERE energy_mj IS NULL;
ALTER TABLE usage_1h ADD COLUMN energy_unknown_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_1h ADD COLUMN unsure_ms INTEGER NOT NULL DEFAULT 0;
UPDATE usage_1h SET energy_mj = 0, energy_unknown_ms = ms WHERE energy_mj IS NULL;
ALTER TABLE usage_1d RENAME COLUMN energy_known_ms TO energy_unknown_ms;
UPDATE usage_1d SET energy_unknown_ms = ms - energy_unknown_ms;
ALTER TABLE usage_1d ADD COLUMN unsure_ms INTEGER NOT NULL DEFAULT 0;

CREATE TABLE sm_active (
	slot INTEGER NOT NULL, gpu INTEGER NOT NULL, ms INTEGER NOT NULL, pct_ms INTEGER NOT NULL,
	PRIMARY KEY (slot, gpu)
) WITHOUT ROWID;

ALTER TABLE holding_1m ADD COLUMN use_unknown_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holding_1m ADD COLUMN use_unknown_double_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holding_5m ADD COLUMN use_unknown_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holding_5m ADD COLUMN use_unknown_double_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holding_1h ADD COLUMN use_unknown_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holding_1h ADD COLUMN use_unknown_double_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holding_1d ADD COLUMN use_unknown_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holding_1d ADD COLUMN use_unknown_double_ms INTEGER NOT NULL DEFAULT 0;

-- The slots of all time are the days and the minutes that are in no day yet.
ALTER TABLE total_gpu ADD COLUMN energy_unknown_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE total_gpu ADD COLUMN unsure_ms INTEGER NOT NULL DEFAULT 0;
UPDATE total_gpu SET energy_mj = coalesce(energy_mj, 0), energy_unknown_ms =
	coalesce((SELECT sum(energy_unknown_ms) FROM usage_1d AS u
		WHERE u.gpu = total_gpu.gpu AND u.state = total_gpu.state), 0) +
	coalesce((SELECT sum(energy_unknown_ms) FROM usage_1m AS u
		WHERE u.gpu = total_gpu.gpu AND u.state = total_gpu.state), 0);
