/* Names of the columns of a tracking file. */
#include "model/tracking.h"

const char *const tracking_columns[TRACKING_COLUMNS] = {
	"main_ram",
	"descendants_ram",
	"combined_ram",
	"system_ram",
	"main_gpu_ram",
	"descendants_gpu_ram",
	"combined_gpu_ram",
	"system_gpu_ram",
	"gpu_sum_utilization_percent",
	"gpu_hardware_utilization_percent",
	"main_n_threads",
	"descendants_n_threads",
	"combined_n_threads",
	"cpu_system_sum_utilization_percent",
	"cpu_system_hardware_utilization_percent",
	"cpu_main_sum_utilization_percent",
	"cpu_main_hardware_utilization_percent",
	"cpu_descendants_sum_utilization_percent",
	"cpu_descendants_hardware_utilization_percent",
	"cpu_combined_sum_utilization_percent",
	"cpu_combined_hardware_utilization_percent",
	"timestamp",
};

const char *const tracking_statics[TRACKING_STATICS] = {
	"ram_unit",
	"gpu_ram_unit",
	"time_unit",
	"ram_system_capacity",
	"gpu_ram_system_capacity",
	"system_core_count",
	"n_expected_cores",
	"system_gpu_count",
	"n_expected_gpus",
};
