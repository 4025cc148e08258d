-- Version 3 to version 4: the most use of any drain, by which policy judges. Rows from before have none:
-- there, any use counts.
ALTER TABLE holding_1m ADD COLUMN own_use INTEGER;
ALTER TABLE holding_5m ADD COLUMN own_use INTEGER;
ALTER TABLE holding_1h ADD COLUMN own_use INTEGER;
ALTER TABLE holding_1d ADD COLUMN own_use INTEGER;
-- Errors that do not depend on each other, as squares. Rows from before have
-- only the other sort, which is added up.
ALTER TABLE usage_1m ADD COLUMN unsure_ms2 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_5m ADD COLUMN unsure_ms2 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_1h ADD COLUMN unsure_ms2 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_1d ADD COLUMN unsure_ms2 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE total_gpu ADD COLUMN unsure_ms2 INTEGER NOT NULL DEFAULT 0;
