/* Makes a report from the words of a user and the configuration. */
#include "report/report_ask.h"

#include "report/report_parts.h"

static const char *find_group(const void *groups, const char *user)
{
	return config_groups_find(groups, user);
}

static double find_price(const void *prices, const struct card_id *card)
{
	const struct report_prices *p = prices;
	if (isfinite(p->all))
		return p->all;
	return config_price_of(p->by_name, card->name, card->mig_index >= 0);
}

void report_ask_configure(struct audit_question *q, struct report_request *request,
	const struct config *c, const struct report_prices *prices)
{
	q->group_of = find_group;
	q->group_context = &c->groups;
	q->price_of = find_price;
	q->price_context = prices;
	request->has_groups = c->groups.n > 0;
	request->has_prices = isfinite(prices->all) || prices->by_name->n > 0;
	request->energy_price = c->energy_price;
	request->co2_g_per_kwh = c->co2_g_per_kwh;
}

/* The number of rows for people unless they ask for more: what fits on a screen. */
enum { TOP_PEOPLE = 10, TOP_PEOPLE_INNER = 5 };
/* The number of idle spells unless `longest` is given. */
enum { LONGEST_PEOPLE = 5, LONGEST_DATA = 20 };

/* Reads the requested window, and the one to compare with. */
static int read_window(struct report_asked *asked, const struct report_words *w, struct err *e)
{
	struct audit_question *q = &asked->question;
	struct window window = { .until_ms = q->now_ms };
	struct window_words words = w->window;
	if (!words.since && !words.last)
		words.last = "1h";
	if (period_parse_window(&window, &words, q->now_ms, w->utc, e) != 0)
		return ERR_USAGE;
	q->since_ms = window.since_ms;
	q->until_ms = window.until_ms;
	asked->other = window;
	asked->compares = w->compare != NULL;
	return w->compare ? period_window_other(&asked->other, w->compare, q->now_ms, w->utc, e)
			  : 0;
}

static int read_request(struct report_asked *asked, const struct report_words *w, struct err *e)
{
	struct report_request *request = &asked->request;
	struct audit_question *q = &asked->question;
	const struct text_list *users = &w->only.lists[ONLY_USER];
	bool one_user = users->n == 1 && !strchr(users->items[0], ',');
	size_t top = w->top < 0 ? 0 : (size_t)w->top;
	bool calm = w->top < 0 && w->people;
	*request = (struct report_request){
		.order = audit_order_of(w->sort),
		.top = calm ? TOP_PEOPLE : top,
		.top_inner = calm ? TOP_PEOPLE_INNER : top,
		.rest = w->people,
		.only = &w->only,
		.utc = w->utc,
	};
	/* A report about one user is by default about what they ran. */
	if (identity_by_parse(&request->by, w->by ? w->by : one_user ? "process" : "user", e))
		return err_prefix(e, "--by");
	/* The parts of the audit that this needs. Users are always included. */
	q->want_processes = identity_by_is(&request->by, IDENTITY_PROCESS);
	q->max_processes = request->top;
	q->order = request->order;
	q->only = *request->only;
	if (!q->want_processes && !identity_by_is(&request->by, IDENTITY_USER) &&
		!identity_by_is(&request->by, IDENTITY_CARD))
		q->by = request->by;
	return 0;
}

int report_ask(struct report_asked *asked, const struct report_words *words, int64_t now_ms,
	struct err *e)
{
	*asked = (struct report_asked){
		.question = { .now_ms = now_ms,
			.utc = words->utc,
			.present_of = words->person,
			.want_columns = words->timeline,
			.max_spells = words->longest >= 0 ? (size_t)words->longest
				      : words->people	  ? LONGEST_PEOPLE
							  : LONGEST_DATA },
	};
	int rc = 0;
	for (size_t i = 0; i < RESTRICTIONS && rc == 0; i++)
		rc = options_list_check(restriction_names[i], &words->only.lists[i], e);
	return rc || read_request(asked, words, e) ? e->code : read_window(asked, words, e);
}

int report_ask_check_groups(
	const struct report_words *words, const struct config *c, struct err *e)
{
	const struct text_list *groups = &words->only.lists[ONLY_GROUP];
	char word[TEXT_LIST_WORD_CAP];
	for (size_t i = 0; i < groups->n; i++)
		for (const char *at = groups->items[i]; options_list_word(&at, word);) {
			size_t k = 0;
			while (k < c->groups.n && strcmp(c->groups.items[k].name, word) != 0)
				k++;
			if (k == c->groups.n)
				return err_set(e, ERR_NOTHING,
					"there is no group '%s': 'gua config' prints those "
					"that gua.conf defines",
					word);
		}
	return 0;
}

/* Says where there is data, if the requested window has none. */
static int no_data(const struct audit *a, const struct audit_question *q, struct err *e)
{
	struct brief from = moment_text(q->since_ms, q->utc);
	struct brief until = moment_text(q->until_ms, q->utc);
	struct brief oldest = moment_text(a->oldest_ms, q->utc);
	struct brief newest = moment_text(a->newest_ms, q->utc);
	int64_t hours = (q->now_ms - a->newest_ms) / 3600000 + 1;
	if (q->engine)
		return err_set(e, ERR_NOTHING,
			"no metrics of %s%s between %s and %s; 'gua fleet status' shows the "
			"hosts that the engine knows",
			a->fleet.metrics,
			q->only.lists[ONLY_HOST].n ? " that match --host" : "", from.text,
			until.text);
	if (a->oldest_ms < 0)
		return err_set(e, ERR_NOTHING,
			"the store has no data yet; the recorder stores the first after one "
			"interval (30 s by default)");
	if (a->newest_ms > q->now_ms || q->until_ms < q->now_ms)
		return err_set(e, ERR_NOTHING,
			"no data between %s and %s; the store has data from %s to %s",
			from.text, until.text, oldest.text, newest.text);
	return err_set(e, ERR_NOTHING,
		"no data between %s and %s; the store has data from %s to %s: try --since "
		"%lld%c",
		from.text, until.text, oldest.text, newest.text,
		(long long)(hours < 48 ? hours + 1 : hours / 24 + 2), hours < 48 ? 'h' : 'd');
}

/* Audits the window, and the one to compare with. Both must use the same stores: if a store
 * turns out to be unreadable in one of them, both are audited again without it. */
static int audit_windows(struct report_answer *answer, const struct report_asked *asked,
	struct store_fault *faults, struct err *e)
{
	struct audit_question q = asked->question;
	q.faults = faults;
	struct audit_question other = q;
	other.since_ms = asked->other.since_ms;
	other.until_ms = asked->other.until_ms;
	other.want_processes = other.want_columns = false;
	other.by.n = other.max_spells = 0;
	for (;;) {
		audit_finish(&answer->audit);
		audit_finish(&answer->before);
		int rc = audit_run(&answer->audit, &q, e);
		answer->empty = rc == 0 && answer->audit.n_cards == 0;
		if (rc || answer->empty || !asked->compares)
			return rc;
		rc = audit_run(&answer->before, &other, e);
		if (rc || answer->before.stores.n_unread == answer->audit.stores.n_unread)
			return rc;
	}
}

int report_ask_answer(
	struct report_answer *answer, const struct report_asked *asked, struct err *e)
{
	const struct audit_question *q = &asked->question;
	struct report_other other = { &answer->audit, &answer->before, asked->other.since_ms,
		asked->other.until_ms };
	struct store_fault *faults = calloc(q->n_paths + 1, sizeof(*faults));
	int rc = faults ? audit_windows(answer, asked, faults, e) : err_memory(e);
	gather_free_faults(faults, q->n_paths);
	if (rc == 0 && answer->empty)
		return no_data(&answer->audit, q, e);
	if (rc)
		return rc;
	report_make(&answer->report, &answer->audit, &asked->request);
	report_policy_add(&answer->report, q->paths, q->n_paths);
	if (!asked->compares)
		return 0;
	report_compare(&answer->report, &other, &asked->request);
	if (q->present_of)
		report_compare_person(&answer->report, q->present_of, &other);
	return 0;
}

void report_ask_finish(struct report_answer *answer)
{
	report_finish(&answer->report);
	audit_finish(&answer->audit);
	audit_finish(&answer->before);
}
