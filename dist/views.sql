-- Views of a store for people; gua-store(5) describes them. They last as long as the connection:
--
--   sqlite3 -readonly -header -column -init views.sql gua.db "SELECT * FROM day_users"
--
-- Days and times are UTC.

-- The names of the states.
CREATE TEMP VIEW state (of, state, name) AS VALUES
	('card', 0, 'active'), ('card', 1, 'idle_held'),
	('card', 2, 'truly_idle'), ('card', 3, 'unobserved'), ('card', 4, 'use_unknown'),
	('card', 5, 'reserved'), ('holder', 5, 'reserved'),
	('holder', 0, 'active'), ('holder', 1, 'idle_held'),
	('holder', 2, 'truly_idle'), ('holder', 3, 'squatting'), ('holder', 4, 'use_unknown');

-- What each card did each day. mean_util_pct is of all states but unobserved and use_unknown; energy_kwh of the time
-- with known energy, NULL when no energy is known.
CREATE TEMP VIEW day_cards AS
	SELECT date(slot, 'unixepoch') AS day, host.hostname AS host, gpu.idx AS card,
		gpu.mig_index AS mig, gpu.uuid AS uuid,
		round(sum(iif(state = 0, ms, 0)) / 3.6e6, 3) AS active_hours,
		round(sum(iif(state = 1, ms, 0)) / 3.6e6, 3) AS idle_held_hours,
		round(sum(iif(state = 2, ms, 0)) / 3.6e6, 3) AS truly_idle_hours,
		round(sum(iif(state = 3, ms, 0)) / 3.6e6, 3) AS unobserved_hours,
		round(sum(iif(state = 4, ms, 0)) / 3.6e6, 3) AS use_unknown_hours,
		round((sum(iif(state IN (3, 4), 0, unsure_ms)) +
			sqrt(max(0, sum(iif(state IN (3, 4), 0, unsure_ms2))))) / 3.6e6, 3)
			AS idle_held_unsure_hours,
		round(sum(iif(state IN (3, 4), 0, util_pct_ms)) * 1.0
			/ nullif(sum(iif(state IN (3, 4), 0, ms)), 0), 1) AS mean_util_pct,
		iif(sum(ms) > sum(energy_unknown_ms), round(sum(energy_mj) / 3.6e9, 3), NULL)
			AS energy_kwh,
		round(sum(iif(state = 5, ms, 0)) / 3.6e6, 3) AS reserved_hours
	FROM usage JOIN gpu ON gpu.id = usage.gpu JOIN host ON host.id = gpu.host
	GROUP BY day, gpu.id ORDER BY day, host.hostname, gpu.idx, gpu.mig_index;

-- Each user's time each day: presence, and in the last column the share.
CREATE TEMP VIEW day_users AS
	SELECT date(slot, 'unixepoch') AS day, host.hostname AS host, process.user AS user,
		round(sum(active_presence_ms + idle_held_presence_ms + truly_idle_presence_ms
			+ squatting_presence_ms + use_unknown_presence_ms) / 3.6e6, 3) AS gpu_hours,
		round(sum(active_presence_ms) / 3.6e6, 3) AS active_hours,
		round(sum(idle_held_presence_ms) / 3.6e6, 3) AS idle_held_hours,
		round(sum(squatting_presence_ms) / 3.6e6, 3) AS squatting_hours,
		round(sum(use_unknown_presence_ms) / 3.6e6, 3) AS use_unknown_hours,
		round(sum(active_share_ms + idle_share_ms) / 3.6e6, 3) AS share_hours
	FROM holding JOIN process ON process.id = holding.process
		JOIN host ON host.id = process.host
	GROUP BY day, host.id, process.user ORDER BY day, host.hostname, process.user;

-- The spells, the longest first: those that ended, and those that go on and are long enough (ended
-- and how_ended are NULL). hours is the time from begin to end, idle_hours what was seen to be idle;
-- squatting_hours is a part of it. energy_kwh is the share of the card's idle-held energy.
CREATE TEMP VIEW idle_spells AS
	SELECT host.hostname AS host, gpu.idx AS card, gpu.mig_index AS mig, process.user AS user,
		process.pid AS pid, process.command AS command, process.notebook AS notebook,
		process.job AS job, datetime(begin_ms / 1000, 'unixepoch') AS began,
		iif(how_ended IS NULL, NULL, datetime(end_ms / 1000, 'unixepoch')) AS ended,
		CASE how_ended WHEN 0 THEN 'active' WHEN 1 THEN 'released' WHEN 2 THEN 'exited'
			WHEN 3 THEN 'stopped' END AS how_ended,
		round((end_ms - begin_ms) / 3.6e6, 3) AS hours,
		round((idle_held_ms + squatting_ms) / 3.6e6, 3) AS idle_hours,
		round(squatting_ms / 3.6e6, 3) AS squatting_hours,
		round((end_ms - begin_ms - idle_held_ms - squatting_ms) / 3.6e6, 3)
			AS unobserved_hours,
		mem_peak_kib / 1024 AS mem_mib, round(energy_mj / 3.6e9, 3) AS energy_kwh
	FROM (SELECT * FROM spell UNION ALL
		SELECT end_ms, gpu, process, begin_ms, idle_held_ms, squatting_ms, mem_peak_kib,
			energy_mj, NULL FROM open_spell AS o
		WHERE idle_held_ms + squatting_ms >= (SELECT spell_ms FROM run
			WHERE run.host = (SELECT host FROM gpu WHERE id = o.gpu)
			AND source <> 'import' ORDER BY id DESC LIMIT 1)
		AND NOT EXISTS (SELECT 1 FROM spell WHERE spell.end_ms = o.end_ms
			AND spell.gpu = o.gpu AND spell.process = o.process)) AS spell
	JOIN process ON process.id = spell.process
	JOIN gpu ON gpu.id = spell.gpu JOIN host ON host.id = gpu.host
	ORDER BY idle_held_ms + squatting_ms DESC;

-- The leases, with their hours on each card; ended is NULL for those that go on. reserved_hours is
-- the part of the card's reserved time that counts for the lease.
CREATE TEMP VIEW leased_time AS
	SELECT host.hostname AS host, CASE kind WHEN 0 THEN 'slurm' WHEN 1 THEN 'pod'
			WHEN 2 THEN 'pick' END AS kind,
		lease.name AS name, owner, job_name, account, gpu.idx AS card, gpu.mig_index AS mig,
		datetime(since_ms / 1000, 'unixepoch') AS since,
		datetime(ended_ms / 1000, 'unixepoch') AS ended,
		round(sum(active_ms) / 3.6e6, 3) AS active_hours,
		round(sum(idle_held_ms) / 3.6e6, 3) AS idle_held_hours,
		round(sum(use_unknown_ms) / 3.6e6, 3) AS use_unknown_hours,
		round(sum(untouched_ms) / 3.6e6, 3) AS untouched_hours,
		round(sum(reserved_ms) / 3.6e6, 3) AS reserved_hours
	FROM (SELECT gpu, lease, 0 AS reserved_ms, active_ms, idle_held_ms, use_unknown_ms, untouched_ms
			FROM leased_1d
		UNION ALL SELECT gpu, lease, reserved_ms, 0, 0, 0, 0 FROM (SELECT * FROM reserved_1h
			UNION ALL SELECT * FROM reserved_5m UNION ALL SELECT * FROM reserved_1m)) AS leased
		JOIN lease ON lease.id = leased.lease JOIN gpu ON gpu.id = leased.gpu
		JOIN host ON host.id = lease.host
	GROUP BY lease.id, gpu.id ORDER BY since_ms, lease.id, gpu.idx, gpu.mig_index;

-- Which process holds what, as of the last tick. idle_since is NULL while the holder is active.
CREATE TEMP VIEW now_holders AS
	SELECT host.hostname AS host, gpu.idx AS card, gpu.mig_index AS mig, process.user AS user,
		process.pid AS pid, process.command AS command,
		holder.mem_bytes / 1048576 AS mem_mib,
		datetime(holder.since_ms / 1000, 'unixepoch') AS since,
		iif(holder.last_active_ms >= run.last_tick_ms - run.interval_ms, NULL,
			datetime(coalesce(holder.last_active_ms, holder.since_ms) / 1000,
				'unixepoch')) AS idle_since,
		datetime(run.last_tick_ms / 1000, 'unixepoch') AS as_of
	FROM holder JOIN process ON process.id = holder.process
		JOIN gpu ON gpu.id = holder.gpu JOIN host ON host.id = gpu.host
		LEFT JOIN run ON run.host = host.id AND run.ended_ms IS NULL
	ORDER BY host.hostname, gpu.idx, gpu.mig_index, holder.mem_bytes DESC;
