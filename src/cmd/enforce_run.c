/* gua enforce run: starts the service, and reads its configuration again when it is asked to.
 * Only for gua-enforce. */
#include "cmd/enforce_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "cmd/share/hand_over.h"
#include "policy/channel.h"
#include "policy/service.h"

/* Earlier configurations. */
struct outdated {
	struct settings *items;
	size_t n;
};

/* One with a fault is left alone. What is under way is asked about again before it signals
 * anybody. */
static void reload(struct enforce *x, struct service *s, struct outdated *old)
{
	struct configuration before = x->conf;
	struct err e = { 0 };
	int rc = array_one_more(&old->items, old->n) ? 0 : err_memory(&e);
	if (rc == 0)
		rc = configure_again(x->self, &x->conf, &x->o->conf, x->o);
	if (rc == 0 && channel_check(&x->conf.values.notices, &e) != 0) {
		log_warning("%s", e.text);
		configure_finish(&x->conf);
		x->conf = before;
		rc = ERR_USAGE;
	}
	if (rc) {
		log_warning("the configuration that was read before stays in force; see gua "
			    "config --check");
	} else {
		old->items[old->n++] = before.settings;
		x->policy.enforce = strcmp(x->conf.values.policy.mode, "enforce") == 0;
	}
	service_configure(s, &x->policy, &x->conf.settings);
	if (rc == 0)
		log_notice("the configuration was read again");
}

int enforce_run(struct enforce *x)
{
	struct err e = { 0 };
	char end[PATH_MAX], post[PATH_MAX];
	const char *socket = x->conf.values.end.socket;
	struct service_options o = { .db = x->db,
		.policy_db = x->policy_db,
		.root = x->o->root ? x->o->root : "",
		.clock = x->o->clock,
		.fixed_ms = x->o->now ? x->now_ms : -1,
		.once = x->o->once,
		.end_program = hand_over_path("end", end) ? end : "gua-end",
		.end_socket = socket ? socket : secure_getenv("GUA_END_SOCKET"),
		.nvml = cmd_nvml_path(NULL),
		.post = enforce_post(post) };
	struct outdated old = { 0 };
	struct service *s = NULL;
	log_setup(LOG_LEVEL_NOTICE,
		getenv("JOURNAL_STREAM") ? LOG_STYLE_JOURNAL : LOG_STYLE_PLAIN);
	int rc = service_open(&s, &o, &x->policy, &x->conf.settings, &e);
	while (rc == 0 && (rc = service_run(s, &e)) == SERVICE_RELOAD) {
		reload(x, s, &old);
		rc = 0;
	}
	service_close(s);
	for (size_t i = 0; i < old.n; i++)
		settings_finish(&old.items[i]);
	free(old.items);
	return rc ? cmd_fail(x->self, &e) : 0;
}
