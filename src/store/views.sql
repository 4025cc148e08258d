-- The views that are in every store. Each program parses them when it opens a store, so those that
-- only people use are in dist/views.sql.

-- All slots of cards; `seconds` is the width of the slot.
CREATE VIEW usage AS
	SELECT 3600 AS seconds, * FROM usage_1h UNION ALL SELECT 300, * FROM usage_5m
	UNION ALL SELECT 60, * FROM usage_1m;

-- All slots of holders, with presence worked out.
CREATE VIEW holding AS
	SELECT slot, seconds, gpu, process, active_ms, idle_held_ms, truly_idle_ms, squatting_ms,
		use_unknown_ms, active_ms - active_double_ms AS active_presence_ms,
		idle_held_ms - idle_held_double_ms AS idle_held_presence_ms,
		truly_idle_ms - truly_idle_double_ms AS truly_idle_presence_ms,
		squatting_ms - squatting_double_ms AS squatting_presence_ms,
		use_unknown_ms - use_unknown_double_ms AS use_unknown_presence_ms,
		active_share_ms, idle_share_ms, sm_pct_ms, mem_peak_kib, engine_ms,
		own_use & 255 AS sm_max_pct, own_use >> 8 AS own_unknown_ms
	FROM (SELECT 3600 AS seconds, * FROM holding_1h UNION ALL
		SELECT 300, * FROM holding_5m UNION ALL SELECT 60, * FROM holding_1m);
