/* gua-enforce: the program behind `gua enforce run`. It is a separate program because it
 * notifies people and asks for sessions to be ended, which gua itself cannot do. */
#include <pwd.h>

#include "cmd/enforce.h"
#include "cmd/share/hand_over.h"
#include "policy/channel.h"
#include "policy/courier.h"
#include "policy/service.h"

static struct post_program find_post(char path[PATH_MAX])
{
	bool found = hand_over_path("post", path);
	return (struct post_program){ found ? path : NULL, (const char *const *)environ };
}

static int describe(struct notice *n, const char *user, struct err *e)
{
	char memory[4096];
	struct passwd entry, *found = NULL;
	struct clock clock;
	if (getpwnam_r(user, &entry, memory, sizeof(memory), &found) != 0 || !found)
		return err_set(e, ERR_USAGE, "there is no user '%s' on this host", user);
	clock_init_real(&clock);
	notice_init(n, NOTICE_TEST);
	str_copy(n->session, sizeof(n->session), "test");
	str_copy(n->user, sizeof(n->user), found->pw_name);
	n->uid = (int64_t)found->pw_uid;
	n->made_ms = clock_wall_ms(&clock);
	if (gethostname(n->host, sizeof(n->host)) != 0)
		str_copy(n->host, sizeof(n->host), "this host");
	n->host[sizeof(n->host) - 1] = '\0';
	return 0;
}

/* Sends the notice through all channels and prints each result. True: none has failed. */
static bool send_all(struct courier *c, const struct config_notices *config,
	const struct notice *n, struct err *e)
{
	static const char *const words[] = { "sent", "nobody", "FAILED" };
	char safe[2 * CHANNEL_WHY_CAP];
	struct pollfd fds[COURIER_MOST];
	struct courier_result r;
	bool fine = true;
	for (int i = 0; i < CHANNELS; i++)
		if (channel_configured((enum channel)i, config))
			fine &= courier_send(c, i, (enum channel)i, n, e) == 0;
	while (courier_wait_ms(c) >= 0) {
		poll(fds, courier_fds(c, fds), (int)courier_wait_ms(c));
		while (courier_next(c, &r)) {
			str_escape(safe, sizeof(safe), r.text, strlen(r.text));
			printf("%-9s %-7s %s\n", channel_kinds[r.channel].name,
				words[r.delivery], safe);
			fine &= r.delivery != DELIVERY_FAILED;
		}
	}
	return fine;
}

/* gua enforce test-notice USER: sends a test through each channel that is configured. */
static int test_notice(struct enforce *x, struct err *e)
{
	const struct config_notices *config = &x->conf->values.notices;
	struct courier *c = NULL;
	struct notice n;
	char path[PATH_MAX];
	const struct post_program post = find_post(path);
	if (!x->operand)
		return err_set(e, ERR_USAGE, "say whom to send a test notice to");
	if (channel_check(config, e) || describe(&n, x->operand, e) ||
		courier_new(&c, config, &post, e))
		return e->code;
	bool fine = send_all(c, config, &n, e);
	courier_free(c);
	return *e->text ? e->code : fine ? 0 : 1;
}

/* Earlier configurations: running deliveries may still refer to their texts. */
struct outdated {
	struct settings *items;
	size_t n;
};

/* Reads the configuration again; if it has an error, the old one stays in force. Sessions that
 * are being ended are checked against the new one before the next signal. */
static void reload(struct enforce *x, struct service *s, struct outdated *old)
{
	struct configuration before = *x->conf;
	struct err e = { 0 };
	int rc = array_one_more(&old->items, old->n) ? 0 : err_memory(&e);
	if (rc == 0)
		rc = configure_again(x->self, x->conf, &x->o->conf);
	if (rc == 0 && channel_check(&x->conf->values.notices, &e) != 0) {
		log_warning("%s", e.text);
		configure_finish(x->conf);
		*x->conf = before;
		rc = ERR_USAGE;
	}
	if (rc) {
		log_warning("the configuration that was read before stays in force; see gua "
			    "config --check");
	} else {
		old->items[old->n++] = before.settings;
		x->policy.enforce = strcmp(x->conf->values.policy.mode, "enforce") == 0;
	}
	service_configure(s, &x->policy, &x->conf->settings);
	if (rc == 0)
		log_notice("the configuration was read again");
}

/* gua enforce run: the service; reads its configuration again on request. */
static int run(struct enforce *x, struct err *e)
{
	char end[PATH_MAX], post[PATH_MAX];
	const char *socket = x->conf->values.end.socket;
	struct service_options o = { .db = x->db,
		.policy_db = x->policy_db,
		.root = x->o->root ? x->o->root : "",
		.clock = x->o->clock,
		.fixed_ms = x->o->now ? x->now_ms : -1,
		.once = x->o->once,
		.end_program = hand_over_path("end", end) ? end : "gua-end",
		.end_socket = socket ? socket : secure_getenv("GUA_END_SOCKET"),
		.nvml = cmd_nvml_path(NULL),
		.notify_socket = secure_getenv("NOTIFY_SOCKET"),
		.post = find_post(post) };
	struct outdated old = { 0 };
	struct service *s = NULL;
	log_setup(LOG_LEVEL_NOTICE,
		getenv("JOURNAL_STREAM") ? LOG_STYLE_JOURNAL : LOG_STYLE_PLAIN);
	int rc = service_open(&s, &o, &x->policy, &x->conf->settings, e);
	while (rc == 0 && (rc = service_run(s, e)) == SERVICE_RELOAD) {
		reload(x, s, &old);
		rc = 0;
	}
	service_close(s);
	for (size_t i = 0; i < old.n; i++)
		settings_finish(&old.items[i]);
	free(old.items);
	return rc ? e->code : 0;
}

int main(int argc, char **argv)
{
	static const struct enforce_parts parts = { .run = run, .test_notice = test_notice };
	struct command own = cmd_enforce;
	own.parts = &parts;
	file_hold_standard();
	return cmd_run(&own, argc, argv);
}
