/* gua-enforce: the program behind `gua enforce run`. It is a program of its own because it
 * links a library for the network. */
#include "base/file.h"
#include "cmd/enforce.h"
#include "cmd/enforce_run.h"

int main(int argc, char **argv)
{
	static const struct enforce_parts parts = { .run = enforce_run,
		.test_notice = enforce_test_notice };
	file_hold_standard();
	return enforce_command(&cmd_enforce, argc, argv, &parts);
}
