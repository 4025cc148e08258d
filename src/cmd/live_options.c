/* Opening a live view from the command line. */
#include "cmd/live_options.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/cmd.h"

#define SYSTEM_DB "/var/lib/gua/gua.db"
#define VIRTUAL_START_MS 1793606400000 /* 2026-11-02T08:00:00Z */

/* People look at the system's record when they keep none of their own. */
static const char *choose_db(struct live_session *s, const char *asked)
{
	struct err e = { 0 };
	if (asked)
		return asked;
	bool named = cmd_default_db(s->db, sizeof(s->db), &e) == 0;
	bool own = named && access(s->db, F_OK) == 0;
	if (!own && access(SYSTEM_DB, R_OK) == 0)
		return SYSTEM_DB;
	return named ? s->db : NULL;
}

int live_session_open(struct live_session *s, const struct live_values *v,
	const unsigned char *wanted, struct err *e)
{
	const char *source = v->source ? v->source : "nvml";
	if (v->scenario && strcmp(source, "sim") != 0)
		return err_set(e, ERR_USAGE, "--scenario goes with --source sim");
	int rc = clock_open(&s->clock, v->clock ? v->clock : "real", VIRTUAL_START_MS, e);
	if (rc)
		return rc;
	struct live_options o = {
		.source = { .name = source,
			.nvml_path = cmd_nvml_path(v->nvml),
			.scenario = v->scenario,
			.root = v->root ? v->root : "",
			.clock = &s->clock },
		.db = choose_db(s, v->db),
		.rules = RULES_DEFAULT,
		.metrics = wanted,
	};
	rc = live_open(&s->live, &o, e);
	if (rc)
		clock_finish(&s->clock);
	return rc;
}

void live_session_close(struct live_session *s)
{
	live_close(s->live);
	clock_finish(&s->clock);
	s->live = NULL;
}

struct text_style live_text_style(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize size = { 0 };
	bool terminal = isatty(STDOUT_FILENO);
	bool sized = terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col;
	setlocale(LC_CTYPE, "");
	return (struct text_style){
		.columns = sized ? size.ws_col : 80,
		.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
		.color = terminal && !(no_color && *no_color) && term && *term &&
			 strcmp(term, "dumb") != 0,
	};
}
