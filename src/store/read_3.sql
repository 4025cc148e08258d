-- How a program that may not write reads a store of version 3: temporary views hide its tables and
-- have the columns of version 4.
CREATE TEMP VIEW IF NOT EXISTS holding_1m AS
	SELECT *, NULL AS own_use FROM main.holding_1m;
CREATE TEMP VIEW IF NOT EXISTS holding_5m AS
	SELECT *, NULL AS own_use FROM main.holding_5m;
CREATE TEMP VIEW IF NOT EXISTS holding_1h AS
	SELECT *, NULL AS own_use FROM main.holding_1h;
CREATE TEMP VIEW IF NOT EXISTS holding_1d AS
	SELECT *, NULL AS own_use FROM main.holding_1d;
CREATE TEMP VIEW IF NOT EXISTS usage_1m AS SELECT *, 0 AS unsure_ms2 FROM main.usage_1m;
CREATE TEMP VIEW IF NOT EXISTS usage_5m AS SELECT *, 0 AS unsure_ms2 FROM main.usage_5m;
CREATE TEMP VIEW IF NOT EXISTS usage_1h AS SELECT *, 0 AS unsure_ms2 FROM main.usage_1h;
CREATE TEMP VIEW IF NOT EXISTS usage_1d AS SELECT *, 0 AS unsure_ms2 FROM main.usage_1d;
CREATE TEMP VIEW IF NOT EXISTS total_gpu AS SELECT *, 0 AS unsure_ms2 FROM main.total_gpu;
