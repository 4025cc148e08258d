-- How a program that may not write reads a store of version 4: without its sums, whose meaning
-- was another. The slots have everything.
CREATE TEMP VIEW heat_1h AS SELECT slot, active_ms, idle_held_ms, truly_idle_ms, 0 AS use_unknown_ms, 0 AS reserved_ms,
	0 AS active_q1_ms, 0 AS active_q2_ms, 0 AS active_q3_ms,
	0 AS idle_held_q1_ms, 0 AS idle_held_q2_ms, 0 AS idle_held_q3_ms,
	0 AS truly_idle_q1_ms, 0 AS truly_idle_q2_ms, 0 AS truly_idle_q3_ms,
	0 AS use_unknown_q1_ms, 0 AS use_unknown_q2_ms, 0 AS use_unknown_q3_ms,
	0 AS reserved_q1_ms, 0 AS reserved_q2_ms, 0 AS reserved_q3_ms
	FROM main.heat_1h WHERE 0;
CREATE TEMP VIEW usage_hour AS SELECT * FROM usage_1m WHERE 0;
CREATE TEMP VIEW holding_hour AS SELECT * FROM holding_1m WHERE 0;
CREATE TEMP VIEW reading AS SELECT *, NULL AS seen_ms FROM main.reading;
CREATE TEMP VIEW run AS SELECT *, 0 AS leases FROM main.run;
CREATE TEMP VIEW lease AS SELECT 0 AS id, 0 AS host, 0 AS kind, '' AS name, '' AS owner, 0 AS uid,
	'' AS job_name, '' AS account, 0 AS share, 0 AS since_ms, 0 AS until_ms, 0 AS first_seen_ms,
	0 AS last_seen_ms, 0 AS ended_ms, '' AS task WHERE 0;
CREATE TEMP VIEW process AS SELECT *, NULL AS job_task FROM main.process;
CREATE TEMP VIEW reserved_1m AS SELECT 0 AS slot, 0 AS gpu, 0 AS lease, 0 AS reserved_ms, 0 AS unknown_ms
	WHERE 0;
CREATE TEMP VIEW reserved_5m AS SELECT 0 AS slot, 0 AS gpu, 0 AS lease, 0 AS reserved_ms, 0 AS unknown_ms
	WHERE 0;
CREATE TEMP VIEW reserved_1h AS SELECT 0 AS slot, 0 AS gpu, 0 AS lease, 0 AS reserved_ms, 0 AS unknown_ms
	WHERE 0;
CREATE TEMP VIEW leased_1d AS SELECT 0 AS slot, 0 AS gpu, 0 AS lease, 0 AS active_ms,
	0 AS idle_held_ms, 0 AS use_unknown_ms, 0 AS untouched_ms WHERE 0;
