/* gua enforce test-notice USER: sends a test through each channel that is configured. Only for
 * gua-enforce. */
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/enforce_run.h"
#include "cmd/share/hand_over.h"
#include "policy/courier.h"

struct post_program enforce_post(char path[PATH_MAX])
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

static void print_result(const struct courier_result *r)
{
	static const char *const words[] = { "sent", "nobody", "FAILED" };
	char safe[2 * CHANNEL_WHY_CAP];
	str_escape(safe, sizeof(safe), r->text, strlen(r->text));
	printf("%-9s %-7s %s\n", channel_names[r->channel], words[r->delivery], safe);
}

/* Sends it through all, and prints what became of each. True: none has failed. */
static bool send_all(struct courier *c, const struct config_notices *config,
	const struct notice *n, struct err *e)
{
	struct pollfd fds[COURIER_MOST];
	struct courier_result r;
	bool fine = true;
	for (int i = 0; i < CHANNELS; i++)
		if (channel_configured((enum channel)i, config))
			fine &= courier_send(c, i, (enum channel)i, n, e) == 0;
	while (courier_wait_ms(c) >= 0) {
		poll(fds, courier_fds(c, fds), (int)courier_wait_ms(c));
		while (courier_next(c, &r)) {
			print_result(&r);
			fine &= r.delivery != DELIVERY_FAILED;
		}
	}
	return fine;
}

int enforce_test_notice(struct enforce *x)
{
	const struct config_notices *config = &x->conf.values.notices;
	struct courier *c = NULL;
	struct notice n;
	struct err e = { 0 };
	char path[PATH_MAX];
	const struct post_program post = enforce_post(path);
	int rc = x->operand ? channel_check(config, &e)
			    : err_set(&e, ERR_USAGE, "say whom to send a test notice to");
	if (rc == 0)
		rc = describe(&n, x->operand, &e);
	if (rc == 0)
		rc = courier_new(&c, config, &post, &e);
	if (rc)
		return cmd_fail(x->self, &e);
	bool fine = send_all(c, config, &n, &e);
	courier_free(c);
	return *e.text ? cmd_fail(x->self, &e) : fine ? 0 : 1;
}
