/* Writes bars, state signs, links, and the age of the data. */
#include "serve/page_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/moment.h"
#include "render/html.h"
#include "serve/world.h"

/* How long a page waits for a store that is locked. */
enum { WAIT_MS = 300 };

void part_gauge(struct str *out, double share, const char *class)
{
	double wide = share > 1 ? 100 : share > 0 ? 100 * share : 0;
	str_addf(out,
		"<svg class=\"gauge\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" "
		"aria-hidden=\"true\"><rect class=\"rest\" width=\"100\" height=\"6\"/>"
		"<rect class=\"%s\" width=\"%.1f\" height=\"6\"/></svg>",
		class, wide);
}

void part_key(struct str *out, const char *state)
{
	str_addf(out,
		"<svg class=\"key\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">"
		"<rect class=\"%s\" width=\"12\" height=\"12\"/></svg>",
		state);
}

void part_warning(struct str *out, const char *text)
{
	str_add(out, "<p class=\"warning\" role=\"note\">");
	html_text(out, text);
	str_add(out, "</p>\n");
}

void part_user(struct str *out, const char *user)
{
	if (strcmp(user, USER_DEAD) == 0) {
		html_text(out, process_shown_user(user));
		return;
	}
	str_add(out, "<a href=\"/user/");
	html_url(out, user);
	str_add(out, "\">");
	html_text(out, user);
	str_add(out, "</a>");
}

void part_card(struct str *out, const struct card_id *id)
{
	char label[CARD_LABEL_CAP];
	card_label(label, sizeof(label), id);
	str_add(out, "<a href=\"/card/");
	html_url(out, id->uuid);
	str_addf(out, "\">GPU %s</a>", label);
}

void part_notebook(struct str *out, const char *user, const char *notebook)
{
	str_add(out, "<a href=\"/notebook/");
	html_url(out, user);
	str_add(out, "/");
	html_url(out, notebook);
	str_add(out, "\">");
	html_text(out, notebook);
	str_add(out, "</a>");
}

/* Whether the parameter is about the look of the page, not about the data. */
static bool is_of_page(const char *name)
{
	return strcmp(name, "print") == 0 || strcmp(name, "order") == 0;
}

static void add_field(struct str *out, const struct request_param *p, char *before)
{
	str_add_bytes(out, before, 1);
	html_url(out, p->name);
	str_add(out, "=");
	html_url(out, p->value);
	*before = '&';
}

void part_query(struct str *out, const char *path, const struct request *q,
	const struct request_param *instead)
{
	char before = '?';
	str_add(out, path);
	for (size_t i = 0; i < q->n_params; i++)
		if (!is_of_page(q->params[i].name) &&
			(!instead || strcmp(q->params[i].name, instead->name) != 0))
			add_field(out, &q->params[i], &before);
	if (instead)
		add_field(out, instead, &before);
}

const char *part_param(const struct request *q, const char *name)
{
	const char *value = request_param(q, name);
	return value && *value ? value : NULL;
}

int part_present(struct present *b, const struct request *q, struct err *e)
{
	const struct store_list *stores = q->world->stores;
	int rc = 0;
	for (size_t i = 0; i < stores->n && rc == 0; i++)
		rc = present_store_add(b, stores->paths[i], q->now_ms, WAIT_MS, e);
	return rc;
}

/* " 3 h 20 min ago"; "" for a moment in the future, which occurs after the clock was set. */
static void ago_text(char dst[64], int64_t ms)
{
	char age[40];
	duration_text(age, sizeof(age), ms > 0 ? ms : 0);
	snprintf(dst, 64, ms >= 0 ? " %s ago" : "", age);
}

/* A sentence about a recorder that is silent. */
static void say_silence(
	char *dst, size_t cap, const struct request *q, const struct present_host *h)
{
	char moment[48], ago[64];
	moment_text(moment, sizeof(moment), h->last_tick_ms, q->world->utc);
	ago_text(ago, q->now_ms - h->last_tick_ms);
	if (!h->any_run)
		snprintf(dst, cap,
			"No recorder has written to this store yet. Start one: gua start");
	else if (!h->running || h->killed)
		snprintf(dst, cap,
			"The recorder of %s %s. This is what it saw last%s (%s). Start it: gua "
			"start",
			h->hostname, h->killed ? "was killed" : "is not running", ago, moment);
	else
		snprintf(dst, cap,
			"The recorder of %s wrote last%s (%s). To find out why: gua status",
			h->hostname, ago, moment);
}

static void add_age(struct str *out, const struct request *q, const struct present_host *h)
{
	char ago[64], moment[48], interval[40];
	ago_text(ago, q->now_ms - h->last_tick_ms);
	duration_text(interval, sizeof(interval), h->interval_ms);
	moment_text(moment, sizeof(moment), h->last_tick_ms, q->world->utc);
	str_add(out, "<p class=\"age\">");
	html_text(out, h->hostname);
	str_add(out, ", driver ");
	html_text(out, *h->driver ? h->driver : "unknown");
	str_addf(out, ". Read%s (%s); the recorder reads every %s.</p>\n", ago, moment,
		interval);
}

int64_t part_idle_ms(const struct request *q, const struct present_host *h, int64_t since_ms)
{
	int64_t until_ms = h->stale ? h->last_tick_ms : q->now_ms;
	return until_ms > since_ms ? until_ms - since_ms : 0;
}

bool part_knows_holders(const struct present *b, size_t host)
{
	for (size_t i = 0; i < b->n_cards; i++)
		if (b->cards[i].host == host && b->cards[i].n_processes)
			return true;
	return b->hosts[host].running;
}

void part_present_age(
	struct str *out, const struct request *q, const struct present *b, bool all)
{
	char text[512];
	for (size_t i = 0; i < b->n_hosts; i++) {
		if (!b->hosts[i].stale) {
			if (all)
				add_age(out, q, &b->hosts[i]);
			continue;
		}
		say_silence(text, sizeof(text), q, &b->hosts[i]);
		part_warning(out, text);
	}
}
