/* The pages Audit, of one card, of one user, and For me. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/card.h"
#include "proc/user.h"
#include "render/html.h"
#include "serve/page_report.h"
#include "serve/pages.h"
#include "serve/world.h"

#define CRUMBS                                                                                 \
	{                                                                                      \
		{                                                                              \
			"Audit", "/audit"                                                      \
		}                                                                              \
	}

void page_audit(const struct request *q, struct answer *a)
{
	report_page(q, a,
		&(struct report_page){ .frame = { .place = PLACE_AUDIT, .title = "Audit" },
			.path = "/audit" });
}

/* The card with this UUID; NULL: no store has it now. */
static const struct present_card *find_card(const struct present *b, const char *uuid)
{
	for (size_t i = 0; i < b->n_cards; i++)
		if (strcmp(b->cards[i].id.uuid, uuid) == 0)
			return &b->cards[i];
	return NULL;
}

/* "GPU 2 of lab (A100-SXM4-80GB)", or the UUID of a card that no store has now. */
static void name_card(char *dst, size_t cap, const struct request *q, const char *uuid)
{
	struct present b = { 0 };
	struct err e = { 0 };
	char label[CARD_LABEL_CAP];
	snprintf(dst, cap, "%s", uuid);
	const struct present_card *c =
		part_present(&b, q, &e) == 0 ? find_card(&b, uuid) : NULL;
	if (c) {
		card_label(label, sizeof(label), &c->id);
		snprintf(dst, cap, "GPU %s of %s (%s)", label, b.hosts[c->host].hostname,
			card_short_name(c->id.name));
	}
	present_store_finish(&b);
}

void page_audit_card(const struct request *q, struct answer *a)
{
	char title[384];
	struct str path = { 0 };
	const struct holder_choice now = { .uuid = q->parts[1] };
	str_add(&path, "/card/");
	html_url(&path, q->parts[1]);
	name_card(title, sizeof(title), q, q->parts[1]);
	report_page(q, a,
		&(struct report_page){
			.frame = { .place = PLACE_AUDIT, .title = title, .crumbs = CRUMBS },
			.path = str_text(&path),
			.only = { { "card", q->parts[1] }, { "longest", "20" } },
			.now = &now });
	str_finish(&path);
}

void page_audit_notebook(const struct request *q, struct answer *a)
{
	const char *user = q->parts[1], *notebook = q->parts[2],
		   *slash = strrchr(notebook, '/');
	struct str path = { 0 }, owner = { 0 };
	const struct holder_choice now = { .user = user, .notebook = notebook };
	str_add(&owner, "/user/");
	html_url(&owner, user);
	str_add(&path, "/notebook/");
	html_url(&path, user);
	str_add(&path, "/");
	html_url(&path, notebook);
	report_page(q, a,
		&(struct report_page){
			.frame = { .place = PLACE_AUDIT,
				.title = slash && slash[1] ? slash + 1 : notebook,
				.crumbs = { { "Audit", "/audit" },
					{ user, str_text(&owner) } } },
			.path = str_text(&path),
			.only = { { "user", user }, { "notebook", notebook },
				{ "longest", "20" } },
			.now = &now });
	str_finish(&owner);
	str_finish(&path);
}

static void user_page(const struct request *q, struct answer *a, const char *user,
	const struct page_frame *frame)
{
	struct str path = { 0 };
	const struct holder_choice now = { .user = user };
	str_add(&path, frame->place == PLACE_ME ? "/me" : "/user/");
	if (frame->place != PLACE_ME)
		html_url(&path, user);
	report_page(q, a,
		&(struct report_page){ .frame = *frame,
			.path = str_text(&path),
			.only = { { "user", user }, { "longest", "20" } },
			.now = &now });
	str_finish(&path);
}

void page_audit_user(const struct request *q, struct answer *a)
{
	const struct page_frame frame = {
		.place = PLACE_AUDIT, .title = q->parts[1], .crumbs = CRUMBS
	};
	user_page(q, a, q->parts[1], &frame);
}

/* Explains how the server can know which user asks. */
static void explain_me(struct answer *a)
{
	page_begin(&a->body, &(struct page_frame){ .place = PLACE_ME, .title = "For me" });
	str_add(&a->body,
		"<p>This page shows your own use of the GPUs, when the server knows who "
		"you are. It does not know that now.</p>\n"
		"<p>It knows users of its own host, who connect to the loopback interface or a "
		"unix socket there, also through <code>ssh -L</code>. A reverse proxy that "
		"logs "
		"people in can say in a header who asks. <code>man gua-serve</code> explains "
		"how. Until then:</p>\n<ul>\n"
		"<li>the page of each user is linked wherever the name is shown, on "
		"<a href=\"/\">Now</a> and in the <a href=\"/audit\">Audit</a>;</li>\n"
		"<li>on the host, <code class=\"copy\">gua report --mine</code> prints the "
		"same as text.</li>\n</ul>\n");
	page_end(&a->body);
}

/* The name of a user of this host for "uid:1000", as stores have it. */
static void name_user(char *dst, size_t cap, const char *user, const struct serve_world *world)
{
	char *end = NULL;
	unsigned long uid = strncmp(user, "uid:", 4) == 0 ? strtoul(user + 4, &end, 10) : 0;
	if (!end || *end || !world->users) {
		str_copy(dst, cap, user);
		return;
	}
	pthread_mutex_lock(world->users_lock);
	user_names_get(world->users, (uint32_t)uid, clock_monotonic_us(), dst, cap);
	pthread_mutex_unlock(world->users_lock);
}

void page_audit_me(const struct request *q, struct answer *a)
{
	char title[320], user[256];
	if (!q->user) {
		explain_me(a);
		return;
	}
	name_user(user, sizeof(user), q->user, q->world);
	snprintf(title, sizeof(title), "For me: %s", user);
	const struct page_frame frame = { .place = PLACE_ME, .title = title };
	user_page(q, a, user, &frame);
}
