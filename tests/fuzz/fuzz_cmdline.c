/* /proc/PID/cmdline: the command and the kernel that it names; environ, which has that form. */
#include "fuzz.h"

#include "model/process.h"
#include "proc/command.h"
#include "proc/environment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct proc_stat stat = { .comm = "comm", .comm_len = 4 };
	const char *bytes = (const char *)data;
	char command[COMMAND_CAP], tiny[4], label[LABEL_CAP];
	command_text(command, sizeof(command), bytes, size, &stat);
	CHECK(command[0] || size >= sizeof(command) / 16);
	check_safe(command);
	command_text(tiny, sizeof(tiny), bytes, size, &stat);
	check_safe(tiny);
	bool kernel = command_kernel(label, sizeof(label), bytes, size);
	CHECK(kernel == (strncmp(label, "jupyter:", 8) == 0));
	CHECK(kernel || label[0] == '\0');
	check_safe(label);
	struct environment env;
	environment_parse(&env, bytes, size, size % 2);
	for (size_t i = 0; i < VARIABLES; i++) {
		environment_label(label, sizeof(label), env.values[i]);
		check_safe(label);
		environment_path(tiny, sizeof(tiny), env.values[i]);
		check_safe(tiny);
	}
	return 0;
}
