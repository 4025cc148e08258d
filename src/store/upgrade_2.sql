-- Version 2 to version 3: where processes come from, and how much of it a run kept.
ALTER TABLE run ADD COLUMN privacy TEXT NOT NULL DEFAULT 'normal';

ALTER TABLE process ADD COLUMN notebook_path TEXT;
ALTER TABLE process ADD COLUMN job_name TEXT;
ALTER TABLE process ADD COLUMN account TEXT;
ALTER TABLE process ADD COLUMN login TEXT;
ALTER TABLE process ADD COLUMN session TEXT;
ALTER TABLE process ADD COLUMN parents TEXT;
ALTER TABLE process ADD COLUMN python_env TEXT;
ALTER TABLE process ADD COLUMN tag TEXT;
