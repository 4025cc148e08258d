-- How a program that may not write reads a store of version 2: temporary views hide its tables and
-- have the columns of version 3. For a store of version 1, read_1.sql comes first, and a view of a
-- table that it has made stays.
CREATE TEMP VIEW IF NOT EXISTS run AS SELECT *, 'normal' AS privacy, 300000 AS spell_ms
	FROM main.run;

CREATE TEMP VIEW process AS SELECT *, NULL AS notebook_path, NULL AS job_name, NULL AS account,
	NULL AS login, NULL AS session, NULL AS parents, NULL AS python_env, NULL AS tag,
	NULL AS posix_session
	FROM main.process;

CREATE TEMP VIEW spell AS SELECT 0 AS end_ms, 0 AS gpu, 0 AS process, 0 AS begin_ms,
	0 AS idle_held_ms, 0 AS squatting_ms, 0 AS mem_peak_kib, 0 AS energy_mj, 0 AS how_ended
	WHERE 0;
CREATE TEMP VIEW open_spell AS SELECT 0 AS gpu, 0 AS process, 0 AS begin_ms, 0 AS end_ms,
	0 AS idle_held_ms, 0 AS squatting_ms, 0 AS mem_peak_kib, 0 AS energy_mj WHERE 0;

CREATE TEMP VIEW total_user AS SELECT *, coalesce((SELECT max(last_tick_ms) FROM main.run), 0)
	AS moved_ms FROM main.total_user;
CREATE TEMP VIEW identity AS SELECT host, user, iif(user = '_unknown', 0,
	row_number() OVER (PARTITION BY host ORDER BY user)) AS place, 0 AS first_ms, 0 AS named_ms
	FROM (SELECT DISTINCT host, user FROM main.total_user);
CREATE TEMP VIEW reading AS SELECT 0 AS gpu, 0 AS at_ms, 0 AS util_pct, 0 AS mem_used_bytes,
	0 AS power_w, 0 AS power_limit_w, 0 AS temperature_c, 0 AS idle_held_since_ms WHERE 0;

CREATE TEMP VIEW IF NOT EXISTS holding_1m AS SELECT *,
	0 AS engine_ms, NULL AS own_use FROM main.holding_1m;
CREATE TEMP VIEW IF NOT EXISTS holding_5m AS SELECT *,
	0 AS engine_ms, NULL AS own_use FROM main.holding_5m;
CREATE TEMP VIEW IF NOT EXISTS holding_1h AS SELECT *,
	0 AS engine_ms, NULL AS own_use FROM main.holding_1h;
CREATE TEMP VIEW IF NOT EXISTS holding_1d AS SELECT *,
	0 AS engine_ms, NULL AS own_use FROM main.holding_1d;
