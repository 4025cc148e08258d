/* Reads --now. */
#include "cmd/share/cmd_window.h"

#include "base/clock.h"
#include "base/timetext.h"

int cmd_now(const char *option, int64_t *now_ms, struct err *e)
{
	struct clock clock;
	clock_init_real(&clock);
	*now_ms = clock_wall_ms(&clock);
	if (option && moment_parse(option, *now_ms, true, now_ms, e) != 0)
		return err_prefix(e, "--now");
	return 0;
}
