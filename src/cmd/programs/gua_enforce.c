/* gua-enforce: the program behind `gua enforce run`. It is a program of its own because it
 * tells people and asks for sessions to be ended, which gua itself cannot do. */
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
