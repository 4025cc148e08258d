/* The rows of nvml_metrics.def. */
#include "driver/nvml/nvml_metric_rows.h"

#include "driver/nvml/nvml_metric.h"

/* clang-format off */
#define ROW(metric_, shape_, ...)                                                              \
	{ .metric = METRIC_##metric_, .shape = SHAPE_##shape_, __VA_ARGS__ },
#define CALL(metric_, shape_, symbol_, ...)                                                    \
	ROW(metric_, shape_, .symbol = "nvmlDeviceGet" symbol_, __VA_ARGS__)
#define VALUE(metric_, number, ...)                                                            \
	ROW(metric_, FIELD, .symbol = "nvmlDeviceGetFieldValues", .which = (number), __VA_ARGS__)
const struct nvml_call nvml_metric_rows[] = {
#include "driver/nvml/nvml_metrics.def"
};
/* clang-format on */
enum { ROWS = sizeof(nvml_metric_rows) / sizeof(nvml_metric_rows[0]) };
_Static_assert((int)ROWS <= (int)NVML_METRIC_ROWS, "room for every row");
const size_t nvml_n_metric_rows = ROWS;
