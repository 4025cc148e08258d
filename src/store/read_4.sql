-- How a program that may not write reads a store of version 4: without its sums, whose meaning
-- was another. The slots have everything.
CREATE TEMP VIEW heat_1h AS SELECT slot, active_ms, idle_held_ms, truly_idle_ms, 0 AS use_unknown_ms,
	0 AS active_q1_ms, 0 AS active_q2_ms, 0 AS active_q3_ms,
	0 AS idle_held_q1_ms, 0 AS idle_held_q2_ms, 0 AS idle_held_q3_ms,
	0 AS truly_idle_q1_ms, 0 AS truly_idle_q2_ms, 0 AS truly_idle_q3_ms,
	0 AS use_unknown_q1_ms, 0 AS use_unknown_q2_ms, 0 AS use_unknown_q3_ms
	FROM main.heat_1h WHERE 0;
CREATE TEMP VIEW usage_hour AS SELECT * FROM usage_1m WHERE 0;
CREATE TEMP VIEW holding_hour AS SELECT * FROM holding_1m WHERE 0;
