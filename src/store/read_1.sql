-- How a program that may not write reads a store of version 1: temporary views hide its tables
-- and have the columns of version 2 (and of later ones, where their files cannot add them). Only what
-- gua itself queries is here.
CREATE TEMP VIEW run AS SELECT *, 0 AS glance_ms, 'normal' AS privacy, 300000 AS spell_ms
	FROM main.run;
CREATE TEMP VIEW gpu AS SELECT *, iif(EXISTS (SELECT 1 FROM main.run WHERE run.host = gpu.host
	AND run.source <> 'sim'), 'nvml', 'sim') AS source FROM main.gpu;

CREATE TEMP VIEW usage_1m AS
	SELECT slot, gpu, state, ms, util_pct_ms, coalesce(energy_mj, 0) AS energy_mj,
		iif(energy_mj IS NULL, ms, 0) AS energy_unknown_ms, 0 AS unsure_ms, 0 AS unsure_ms2
	FROM main.usage_1m;
CREATE TEMP VIEW usage_5m AS
	SELECT slot, gpu, state, ms, util_pct_ms, coalesce(energy_mj, 0) AS energy_mj,
		iif(energy_mj IS NULL, ms, 0) AS energy_unknown_ms, 0 AS unsure_ms, 0 AS unsure_ms2
	FROM main.usage_5m;
CREATE TEMP VIEW usage_1h AS
	SELECT slot, gpu, state, ms, util_pct_ms, coalesce(energy_mj, 0) AS energy_mj,
		iif(energy_mj IS NULL, ms, 0) AS energy_unknown_ms, 0 AS unsure_ms, 0 AS unsure_ms2
	FROM main.usage_1h;
CREATE TEMP VIEW usage_1d AS
	SELECT slot, gpu, state, ms, util_pct_ms, energy_mj,
		ms - energy_known_ms AS energy_unknown_ms, 0 AS unsure_ms, 0 AS unsure_ms2
	FROM main.usage_1d;

CREATE TEMP VIEW holding_1m AS
	SELECT *, 0 AS use_unknown_ms, 0 AS use_unknown_double_ms, 0 AS engine_ms,
		NULL AS own_use
	FROM main.holding_1m;
CREATE TEMP VIEW holding_5m AS
	SELECT *, 0 AS use_unknown_ms, 0 AS use_unknown_double_ms, 0 AS engine_ms,
		NULL AS own_use
	FROM main.holding_5m;
CREATE TEMP VIEW holding_1h AS
	SELECT *, 0 AS use_unknown_ms, 0 AS use_unknown_double_ms, 0 AS engine_ms,
		NULL AS own_use
	FROM main.holding_1h;
CREATE TEMP VIEW holding_1d AS
	SELECT *, 0 AS use_unknown_ms, 0 AS use_unknown_double_ms, 0 AS engine_ms,
		NULL AS own_use
	FROM main.holding_1d;

CREATE TEMP VIEW sm_active AS SELECT 0 AS slot, 0 AS gpu, 0 AS ms, 0 AS pct_ms WHERE 0;
CREATE TEMP VIEW open_life AS
	SELECT pid, p.id AS process FROM main.process AS p JOIN main.run ON run.id = p.run
	WHERE boot_id = (SELECT boot_id FROM main.run AS newest WHERE newest.host = p.host
		ORDER BY newest.id DESC LIMIT 1);
CREATE TEMP VIEW total_gpu AS SELECT gpu, state, ms, coalesce(energy_mj, 0) AS energy_mj,
	coalesce((SELECT sum(energy_unknown_ms) FROM usage_1d AS u
		WHERE u.gpu = t.gpu AND u.state = t.state), 0) +
	coalesce((SELECT sum(energy_unknown_ms) FROM usage_1m AS u
		WHERE u.gpu = t.gpu AND u.state = t.state), 0) AS energy_unknown_ms, 0 AS unsure_ms, 0 AS unsure_ms2
	FROM main.total_gpu AS t;
