/* The page Now: the cards as tiles, and a table of their holders that can be sorted. */
#include "driver/source.h"
#include "model/card.h"
#include "model/sentence.h"
#include "render/html.h"
#include "serve/page.h"

/* A page while it is written. */
struct view {
	struct str *out;
	const struct request *q;
	const struct present *b;
};

/* More cards than this are shown as small tiles, without readings. */
enum { MANY = 32 };

/* "6 GPUs: 2 active, 1 idle-held, 3 truly-idle." */
static void add_summary(const struct view *v)
{
	size_t counts[CARD_SHOWN_STATES] = { 0 };
	bool more = false;
	for (size_t i = 0; i < v->b->n_cards; i++)
		counts[v->b->cards[i].state]++;
	str_addf(v->out, "<h2 id=\"gpus\" class=\"lead\">%zu GPU%s: ", v->b->n_cards,
		v->b->n_cards == 1 ? "" : "s");
	for (size_t i = 0; i < CARD_SHOWN_STATES; i++) {
		enum card_state s = state_order[i];
		if (!counts[s])
			continue;
		str_addf(v->out, "%s%zu %s", more ? ", " : "", counts[s], state_looks[s].word);
		more = true;
	}
	str_add(v->out, "</h2>\n");
	if (v->b->n_cards > MANY)
		str_add(v->out, "<p><a href=\"#holding\">To the holders</a></p>\n");
}

/* A number with its unit. A reading whose unit explains it has a name only for screen
 * readers. */
static void add_reading(const struct view *v, const char *name, double value, const char *unit)
{
	bool percent = strcmp(unit, "%") == 0;
	if (!isnan(value))
		str_addf(v->out, "<div><dt%s>%s</dt><dd>%.0f %s</dd></div>\n",
			percent ? "" : " class=\"hidden\"", name, value, unit);
}

/* A holder that computes, or else the one that has been idle for longest; and how many more
 * there are. */
static void add_holder_line(const struct view *v, const struct present_card *c)
{
	if (c->state == CARD_RESERVED) {
		html_addf(v->out, "<p class=\"who\">for %s", c->leased_to);
		if (c->n_leases > 1)
			str_addf(v->out, " <span class=\"dim\">and %zu more</span>",
				c->n_leases - 1);
		str_add(v->out, "</p>\n");
		return;
	}
	if (!c->n_processes) {
		str_addf(v->out, "<p class=\"who dim\">%s</p>\n",
			page_knows_holders(v->b, c->host) ? "nobody holds it"
							  : "holders are not known");
		return;
	}
	const struct present_process *h = &v->b->processes[c->first_process], *all = h;
	for (size_t i = 1; i < c->n_processes && !h->active; i++)
		if (all[i].active)
			h = &all[i];
	const char *label = process_label_of(&h->id), *slash = strrchr(label, '/');
	str_add(v->out, "<p class=\"who\">");
	page_user_link(v->out, h->id.user);
	if (*label) {
		html_addf(v->out, " <span class=\"dim\" title=\"%s\">%s</span>", label,
			slash && slash[1] ? slash + 1 : label);
	}
	if (c->n_processes > 1)
		str_addf(
			v->out, " <span class=\"dim\">and %zu more</span>", c->n_processes - 1);
	str_add(v->out, "</p>\n");
}

static void add_tile(const struct view *v, const struct present_card *c)
{
	const char *state = state_looks[c->state].key;
	html_addf(v->out,
		"<li class=\"tile is_%s\">\n<h3><a id=\"card-%-s\" href=\"/card/%-s\">GPU "
		"%s</a> <span class=\"model\">%s</span></h3>\n<p class=\"now\">",
		state, c->id.uuid, c->id.uuid, card_label(&c->id).text,
		card_short_name(c->id.name));
	html_key(v->out, state);
	if (c->status == CARD_STATUS_OK) {
		str_addf(v->out, "%s<strong>%s</strong>",
			v->b->hosts[c->host].stale ? "was " : "", state_looks[c->state].word);
		/* "for 3 h 20 min", or "for > 2 d" if it began before the first recording. */
		int64_t ms = page_idle_ms(v->q, &v->b->hosts[c->host], c->state_since_ms);
		if (c->state_since_ms >= 0 && ms >= 1000)
			str_addf(v->out, " for %s%s", c->state_longer ? "&gt; " : "",
				duration_text(ms).text);
	} else {
		str_addf(v->out, "<strong>%s</strong>", card_status_names[c->status]);
	}
	str_add(v->out, "</p>\n");
	add_holder_line(v, c);
	str_add(v->out, "<dl class=\"facts\">\n");
	/* The memory in use, in words and as a bar. */
	double used_bytes = c->values[METRIC_MEMORY_USED];
	str_addf(v->out,
		"<div class=\"memory\"><dt class=\"hidden\">memory</dt><dd>%s <span "
		"class=\"dim\">of %s</span>",
		size_text(used_bytes).text, size_text((double)c->id.mem_total_bytes).text);
	if (used_bytes >= 0 && c->id.mem_total_bytes > 0)
		page_gauge(v->out, used_bytes / (double)c->id.mem_total_bytes, "memory");
	str_add(v->out, "</dd></div>\n");
	add_reading(v, "use", c->values[METRIC_UTILIZATION_GPU], "%");
	add_reading(v, "power", c->values[METRIC_POWER_DRAW], "W");
	add_reading(v, "temperature", c->values[METRIC_TEMPERATURE_GPU], "°C");
	str_add(v->out, "</dl>\n</li>\n");
}

static void add_tiles(const struct view *v)
{
	bool several = v->b->n_hosts > 1;
	for (size_t h = 0; h < v->b->n_hosts; h++) {
		if (several) {
			html_addf(
				v->out, "<p class=\"host\">%s</p>\n", v->b->hosts[h].hostname);
		}
		str_addf(v->out, "<ul class=\"tiles%s\" aria-labelledby=\"gpus\">\n",
			v->b->n_cards > MANY ? " many" : "");
		for (size_t i = 0; i < v->b->n_cards; i++)
			if (v->b->cards[i].host == h)
				add_tile(v, &v->b->cards[i]);
		str_add(v->out, "</ul>\n");
	}
}

void page_now(const struct request *q, struct answer *a)
{
	struct present b = { 0 };
	struct err e = { 0 };
	char title[160] = "Now";
	if (request_read_present(&b, q, PAGE_WAIT_MS, &e) != 0) {
		answer_err(a, q, &e);
		present_store_finish(&b);
		return;
	}
	if (b.n_hosts == 1 && *b.hosts[0].hostname)
		snprintf(title, sizeof(title), "Now on %s", b.hosts[0].hostname);
	const struct view v = { &a->body, q, &b };
	page_begin(&a->body,
		&(struct page_frame){ .place = PLACE_NOW,
			.title = title,
			.formats = { { "as JSON", "/api/v1/now" },
				{ "as CSV", "/api/v1/who.csv" }, { "print", "/?print=1" } },
			.paper = page_param(q, "print") != NULL });
	str_add(&a->body, "<div id=\"live\">\n");
	/* Data that was not measured on this host. */
	bool simulated = false, captured = false;
	for (size_t i = 0; i < v.b->n_hosts; i++) {
		bool played = source_is_captured(v.b->hosts[i].source);
		captured |= played;
		simulated |= v.b->hosts[i].simulated && !played;
	}
	if (simulated)
		html_warning(v.out, SIMULATED_WARNING);
	if (captured)
		html_warning(v.out, CAPTURED_WARNING);
	page_present_age(&a->body, q, &b, true);
	if (b.n_cards) {
		add_summary(&v);
		add_tiles(&v);
		page_holders(&a->body, q, &b, NULL);
	}
	str_add(&a->body, "</div>\n");
	page_end(&a->body);
	present_store_finish(&b);
}
