/* Prints the compact view: one line for each card; or JSON with gpustat's keys, and gua's with
 * the prefix "gua.". */
#include "view/stat.h"

#include "render/json.h"

/* Shorter idle times are not shown: the driver keeps ten seconds of samples, so "idle for 9 s"
 * would only show how far they reach back. */
#define LEAST_SHOWN_MS 15000

int stat_pick(struct stat_pick *p, struct live *l, const struct filter *f, struct err *e)
{
	const struct present *now = live_present(l);
	*p = (struct stat_pick){ .live = l,
		.now = now,
		.filter = f,
		.cards = calloc(now->n_cards + 1, sizeof(*p->cards)),
		.boards = calloc(now->n_boards + 1, sizeof(const struct present_board *)) };
	int found = p->cards && p->boards ? filter_cards(f, now, p->cards, e) : err_memory(e);
	for (int i = 0; i < found; i++) {
		size_t k = 0;
		if (!filter_on_card(f, now, p->cards[i]))
			continue;
		const struct present_board *b = &now->boards[now->cards[p->cards[i]].board];
		p->cards[p->n++] = p->cards[i];
		while (k < p->n_boards && p->boards[k] != b)
			k++;
		p->boards[k] = b;
		p->n_boards += k == p->n_boards;
	}
	return found < 0 ? found : 0;
}

void stat_pick_finish(struct stat_pick *p)
{
	free(p->cards);
	free(p->boards);
	*p = (struct stat_pick){ 0 };
}

const struct present_card *stat_next_card(
	const struct stat_pick *p, const struct present_board *b, size_t *at)
{
	while (*at < p->n) {
		const struct present_card *c = &p->now->cards[p->cards[(*at)++]];
		if (&p->now->boards[c->board] == b)
			return c;
	}
	return NULL;
}

void stat_command(char *dst, size_t cap, const struct present_process *p)
{
	size_t len = strcspn(p->id.command, " ");
	snprintf(dst, cap, "%.*s", (int)len, p->id.command);
}

/* How a number looks: right-aligned, and bright from a limit on. */
struct number_look {
	int width;
	const char *color;
	double bright_from;
};
static const struct number_look temperature_look = { 3, "31", 50 };
static const struct number_look fan_look = { 3, "36", 30 };
static const struct number_look use_look = { 3, "32", 30 };
static const struct number_look codec_look = { 3, "32", 50 };
static const struct number_look power_limit_look = { 3, "35", INFINITY };
static const struct number_look memory_used_look = { 5, "33", 0 };
static const struct number_look memory_total_look = { 5, "33", INFINITY };

/* Appends a number; "??" if it is not known. */
static void add_number(struct str *out, double value, const struct number_look *look,
	const struct text_style *style)
{
	if (isnan(value))
		text_add_colored(out, str_brief("%*s", look->width, "??").text, "1;30", style);
	else
		text_add_colored(out, str_brief("%*.0f", look->width, floor(value)).text,
			str_brief("%s%s", value >= look->bright_from ? "1;" : "", look->color)
				.text,
			style);
}

/* "45s" "12m" "2h10m" "5d2h" */
static struct brief short_duration(int64_t ms)
{
	long long s = ms / 1000, m = s / 60, h = m / 60;
	if (m < 60)
		return s < 60 ? str_brief("%llds", s) : str_brief("%lldm", m);
	if (h < 24)
		return m % 60 ? str_brief("%lldh%lldm", h, m % 60) : str_brief("%lldh", h);
	return h % 24 ? str_brief("%lldd%lldh", h / 24, h % 24) : str_brief("%lldd", h / 24);
}

/* Appends "WORD 2h10m", or ">2h10m" if it may be longer; nothing if it is not known or is
 * short. */
static void add_since(
	struct str *out, const char *word, int64_t since_ms, bool longer, int64_t now_ms)
{
	if (since_ms >= 0 && now_ms - since_ms >= LEAST_SHOWN_MS)
		str_addf(out, "%s%s%s", word, longer ? ">" : "",
			short_duration(now_ms - since_ms).text);
}

/* gpustat's text for a card that does not answer: "((GPU is lost))"; "" for one that does. */
static const char *status_text(enum card_status status, int code)
{
	enum { UNKNOWN_ERROR = 999 };
	static const char *const texts[CARD_STATUS_COUNT] = { "", "((GPU is lost))",
		"((asleep))", "((no permission))" };
	if (status == CARD_STATUS_LOST && code == UNKNOWN_ERROR)
		return "((Unknown Error))";
	return texts[status];
}

/* The name of a board. As in gpustat, a lost one has none. */
static const char *board_name(const struct present_board *b)
{
	return b->status == CARD_STATUS_LOST || !*b->id.name ? status_text(b->status, b->code)
							     : b->id.name;
}

/* "user:cmd/pid(4000M idle 2h)" */
static void add_process(struct str *out, const struct present_process *p, int64_t now_ms,
	const struct stat_options *o)
{
	const struct text_style *style = &o->style;
	bool show_user = o->user || !o->command;
	str_add(out, " ");
	if (show_user)
		text_add_colored(out, p->id.user[0] ? process_shown_user(p->id.user) : "--",
			"1;30", style);
	if (o->command) {
		char command[COMMAND_CAP];
		str_add(out, show_user ? ":" : "");
		stat_command(command, sizeof(command), p);
		text_add_colored(out, command[0] ? command : "--", "36", style);
	}
	if (o->pid)
		str_addf(out, "/%u", p->id.pid);
	if (*process_label_of(&p->id))
		str_addf(out, "[%s]", process_label_of(&p->id));
	str_add(out, "(");
	text_add_colored(out,
		p->mem_bytes > 0 ? str_brief("%lldM", (long long)(p->mem_bytes >> 20)).text
				 : "?M",
		"33", style);
	if (p->holder)
		add_since(out, " idle ", p->idle_since_ms, p->idle_longer, now_ms);
	str_add(out, ")");
}

/* Host memory as gpustat writes it: in a larger unit if there are more than four digits. */
static struct brief host_memory(int64_t bytes)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB" };
	size_t unit = 0;
	double number = (double)bytes;
	for (; number > 9999 && unit < 5; unit++)
		number /= 1024;
	return bytes < 0 ? str_brief("??") : str_brief("%.0f%s", floor(number), units[unit]);
}

/* Appends the processes of a card that match the filter, on its line or below it. */
static void add_processes(struct str *out, const struct stat_pick *picked,
	const struct present_card *c, const struct stat_options *o, bool below)
{
	size_t left = 0;
	const struct filter *f = picked->filter;
	const struct present_process *all = picked->now->processes;
	for (size_t k = 0; k < c->n_processes; k++)
		left += filter_process(f, &all[c->first_process + k]);
	for (size_t k = 0; k < c->n_processes; k++) {
		const struct present_process *p = &all[c->first_process + k];
		if (!filter_process(f, p))
			continue;
		left--;
		if (below) {
			bool last = left == 0;
			struct str arguments = { 0 };
			const char *branch =
				o->style.ascii ? (last ? "`-" : "|-") : (last ? "└─" : "├─");
			str_addf(out, " %s %6u (%4s%%, %6s):", branch, p->id.pid,
				isnan(p->cpu_pct) ? "??" : str_brief("%.0f", p->cpu_pct).text,
				host_memory(p->rss_bytes).text);
			live_process_arguments(picked->live, p, &arguments);
			for (size_t at = 0; at < arguments.len;
				at += strlen(arguments.data + at) + 1)
				str_addf(out, " %s", arguments.data + at);
			if (arguments.len == 0)
				str_addf(out, " %s", p->id.command[0] ? p->id.command : "--");
			str_add(out, "\n");
			str_finish(&arguments);
		} else
			add_process(out, p, picked->now->now_ms, o);
	}
}

static void add_memory(struct str *out, const double *v, const struct text_style *style)
{
	str_add(out, " | ");
	add_number(out, v[METRIC_MEMORY_USED] / 1048576, &memory_used_look, style);
	str_add(out, " / ");
	add_number(out, v[METRIC_MEMORY_TOTAL] / 1048576, &memory_total_look, style);
	str_add(out, " MB");
}

/* Appends a name padded to the requested width; a longer name loses its beginning. */
static void add_name(struct str *out, const char *name, size_t width, const char *color,
	const struct text_style *style)
{
	size_t len = str_columns(name);
	struct str text = { 0 };
	if (len > width) {
		const char *at = name;
		unsigned code = 0;
		for (size_t skip = len - width + 1; skip > 0 && *at; skip--) {
			size_t taken = str_utf8_char(at, strlen(at), &code);
			at += taken ? taken : 1;
		}
		str_addf(&text, "%s%s", style->ascii ? "~" : "…", at);
	} else {
		str_add(&text, name);
		str_add_repeat(&text, " ", width - len);
	}
	text_add_colored(out, str_text(&text), color, style);
	str_finish(&text);
}

/* Appends the end of a line: processes, where gpustat has them, and the state. */
static void add_tail(struct str *out, const struct stat_pick *picked,
	const struct present_card *c, const struct stat_options *o)
{
	if (!o->no_processes) {
		str_add(out, " |");
		if (c->processes_known && c->status == CARD_STATUS_OK)
			add_processes(out, picked, c, o, false);
		else
			str_add(out, " (Not Supported)");
		/* Memory that no listed process holds: the card has less free than it seems. */
		double orphan = c->values[METRIC_GUA_ORPHAN_MEMORY];
		if (orphan >= (double)ORPHAN_LEAST_BYTES) {
			str_add(out, " unexplained(");
			text_add_colored(out, str_brief("%.0fM", floor(orphan / 1048576)).text,
				"33", &o->style);
			str_add(out, ")");
		}
	}
	str_add(out, " | ");
	if (c->status == CARD_STATUS_OK) {
		char codes[STATE_CODES_CAP];
		struct str text = { 0 };
		state_codes(codes, c->state);
		str_add(&text, state_looks[c->state].word);
		if (c->state == CARD_IDLE_HELD || c->state == CARD_TRULY_IDLE ||
			c->state == CARD_USE_UNKNOWN || c->state == CARD_RESERVED)
			add_since(&text, " ", c->state_since_ms, c->state_longer,
				picked->now->now_ms);
		if (c->state ==
			CARD_RESERVED) /* it has no process that would say whose it is */
			str_addf(&text, " %s", c->leased_to);
		text_add_colored(out, str_text(&text), codes, &o->style);
		str_finish(&text);
	} else
		text_add_colored(out, card_status_names[c->status], "31", &o->style);
	text_end_line(out);
	if (o->full_command && !o->no_processes)
		add_processes(out, picked, c, o, true);
}

/* Appends index, name, temperature, use and memory of a board. */
static void add_board(struct str *out, const struct present_board *b, size_t width,
	const struct stat_options *o)
{
	const struct text_style *style = &o->style;
	const double *v = b->values;
	bool well = b->status == CARD_STATUS_OK;
	text_add_colored(out, str_brief("[%d]", b->id.index).text, "36", style);
	str_add(out, " ");
	if (width) {
		add_name(out, board_name(b), width, well ? "34" : "31", style);
		str_add(out, " |");
	}
	add_number(out, v[METRIC_TEMPERATURE_GPU], &temperature_look, style);
	str_add(out, style->ascii ? "'C, " : "°C, ");
	if (o->fan) {
		add_number(out, v[METRIC_FAN_SPEED], &fan_look, style);
		str_add(out, " %, ");
	}
	add_number(out, v[METRIC_UTILIZATION_GPU], &use_look, style);
	str_add(out, " %");
	if (o->encoder || o->decoder) {
		str_add(out, " (");
		if (o->encoder) {
			str_add(out, "E: ");
			add_number(out, v[METRIC_UTILIZATION_ENCODER], &codec_look, style);
			str_add(out, o->decoder ? " %  " : " %");
		}
		if (o->decoder) {
			str_add(out, "D: ");
			add_number(out, v[METRIC_UTILIZATION_DECODER], &codec_look, style);
			str_add(out, " %");
		}
		str_add(out, ")");
	}
	if (o->draw || o->limit) {
		double limit = v[METRIC_POWER_ENFORCED];
		const struct number_look draw_look = { 3, "35",
			isnan(limit) ? 0 : 0.4 * limit };
		str_add(out, ",  ");
		add_number(out, v[METRIC_POWER_DRAW], &draw_look, style);
		if (o->limit) { /* without it, gpustat writes no unit */
			str_add(out, " / ");
			add_number(out, limit, &power_limit_look, style);
			str_add(out, " W");
		}
	}
	add_memory(out, v, style);
}

static void add_instance(struct str *out, const struct stat_pick *picked,
	const struct present_card *c, size_t width, const struct stat_options *o)
{
	text_add_colored(
		out, str_brief("  [%.20s]", card_label(&c->id).text).text, "36", &o->style);
	if (width) {
		str_add(out, " ");
		add_name(out, c->id.name, width, "34", &o->style);
	}
	if (c->status != CARD_STATUS_OK) {
		str_addf(out, " | %s\n", status_text(c->status, c->code));
		return;
	}
	add_memory(out, c->values, &o->style);
	add_tail(out, picked, c, o);
}

void stat_text(struct str *out, const struct stat_pick *picked, const struct stat_options *o)
{
	const struct present *now = picked->now;
	const struct present_card *c;
	size_t width = o->name_width >= 0 ? (size_t)o->name_width : 0;
	for (size_t i = 0; o->name_width < 0 && i < now->n_boards; i++) {
		size_t len = str_columns(board_name(&now->boards[i]));
		width = len > width ? len : width;
	}
	if (!o->no_header) {
		const char *driver = now->hosts[0].driver;
		/* Without names, gpustat leaves room for a name of usual length. */
		str_addf(out, "%-*s  %s  %s", (int)(width ? width : 16) + 3,
			now->hosts[0].hostname,
			moment_format("%a %b %e %H:%M:%S %Y", now->now_ms, o->style.utc).text,
			*driver ? driver : "None");
		text_end_line(out);
	}
	for (size_t i = 0, at = 0; i < picked->n_boards; i++, at = 0) {
		const struct present_board *b = picked->boards[i];
		add_board(out, b, width, o);
		if (!b->mig || b->status != CARD_STATUS_OK) {
			add_tail(out, picked, stat_next_card(picked, b, &at), o);
			continue;
		}
		str_add(out, " | MIG\n");
		while ((c = stat_next_card(picked, b, &at)) != NULL)
			add_instance(out, picked, c, width, o);
	}
	if (picked->n == 0)
		text_add_colored(out,
			now->n_cards ? "(no card matches)\n" : "(No GPUs are available)\n",
			"33", &o->style);
}

static void json_process(
	struct json *j, const struct stat_pick *pick, const struct present_process *p)
{
	char command[COMMAND_CAP];
	stat_command(command, sizeof(command), p);
	int64_t idle_ms = p->idle_since_ms < 0 ? -1 : pick->now->now_ms - p->idle_since_ms;
	json_open(j, NULL, '{');
	json_label(j, "username", p->id.user);
	json_label(j, "command", command);
	struct str arguments = { 0 };
	live_process_arguments(pick->live, p, &arguments);
	json_open(j, "full_command", '[');
	for (size_t at = 0; at < arguments.len; at += strlen(arguments.data + at) + 1)
		json_text(j, NULL, arguments.data + at);
	json_close(j, ']');
	str_finish(&arguments);
	json_number(j, "gpu_memory_usage",
		p->mem_bytes < 0 ? NAN : (double)(p->mem_bytes >> 20), 0);
	json_number(j, "cpu_percent", p->cpu_pct, 1);
	json_known(j, "cpu_memory_usage", p->rss_bytes);
	json_number(j, "pid", p->id.pid, 0);
	json_bool(j, "gua.holder", p->holder);
	if (p->active || p->idle_since_ms >= 0)
		json_bool(j, "gua.active", p->active);
	else
		json_text(j, "gua.active", NULL);
	json_number(j, "gua.sm_percent", p->sm_pct, 1);
	json_moment(j, "gua.held_since", p->held_since_ms);
	json_moment(j, "gua.idle_since", p->idle_since_ms);
	json_number(j, "gua.idle_seconds", idle_ms < 0 ? NAN : (double)idle_ms / 1000, 3);
	json_bool(j, "gua.idle_is_lower_bound", p->idle_longer);
	json_label(j, "gua.context", context_texts[p->context]);
	for (size_t i = PROCESS_COMMAND + 1; i < PROCESS_TEXTS; i++) {
		json_label(j, str_brief("gua.%s", process_fields[i].name).text,
			process_text(&p->id, i));
	}
	json_close(j, '}');
}

/* Adds the processes of the shown cards of a board, or of one of them. */
static void json_processes(struct json *j, const struct stat_pick *p,
	const struct present_board *b, const struct present_card *only)
{
	bool known = false;
	const struct present_card *c;
	for (size_t at = 0; (c = stat_next_card(p, b, &at)) != NULL;)
		known |= (!only || c == only) && c->processes_known;
	if (!known) {
		json_text(j, "processes", NULL);
		return;
	}
	json_open(j, "processes", '[');
	for (size_t at = 0; (c = stat_next_card(p, b, &at)) != NULL;) {
		const struct present_process *all = &p->now->processes[c->first_process];
		for (size_t k = 0; (!only || c == only) && k < c->n_processes; k++)
			if (filter_process(p->filter, &all[k]))
				json_process(j, p, &all[k]);
	}
	json_close(j, ']');
}

static void json_metric(struct json *j, const char *key, const double *v, enum metric m)
{
	json_number(j, key, floor(v[m] / metrics[m].scale), 0);
}

const char *stat_state(const struct present_card *c)
{
	return c->status == CARD_STATUS_OK ? state_looks[c->state].key
					   : card_status_names[c->status];
}

static void add_own(struct json *j, const struct present_card *c)
{
	json_text(j, "gua.state", stat_state(c));
	json_moment(j, "gua.state_since", c->state_since_ms);
	json_bool(j, "gua.state_is_lower_bound", c->state_longer);
	json_moment(j, "gua.free_since", c->free_since_ms);
	json_metric(j, "gua.orphan_memory", c->values, METRIC_GUA_ORPHAN_MEMORY);
	json_label(j, "gua.leased_to", c->leased_to);
}

static void json_board(struct json *j, const struct stat_pick *p, const struct present_board *b)
{
	const double *v = b->values;
	size_t at = 0;
	const struct present_card *c = stat_next_card(p, b, &at);
	json_open(j, NULL, '{');
	json_number(j, "index", b->id.index, 0);
	json_text(j, "uuid", card_has_uuid(&b->id) ? b->id.uuid : NULL);
	bool well = b->status != CARD_STATUS_LOST;
	json_label(j, "name", well ? b->id.name : status_text(b->status, b->code));
	if (!well)
		json_label(j, "gua.name", b->id.name);
	json_metric(j, "temperature.gpu", v, METRIC_TEMPERATURE_GPU);
	json_metric(j, "fan.speed", v, METRIC_FAN_SPEED);
	json_metric(j, "utilization.gpu", v, METRIC_UTILIZATION_GPU);
	json_metric(j, "utilization.enc", v, METRIC_UTILIZATION_ENCODER);
	json_metric(j, "utilization.dec", v, METRIC_UTILIZATION_DECODER);
	json_metric(j, "power.draw", v, METRIC_POWER_DRAW);
	json_metric(j, "enforced.power.limit", v, METRIC_POWER_ENFORCED);
	json_metric(j, "memory.used", v, METRIC_MEMORY_USED);
	json_metric(j, "memory.total", v, METRIC_MEMORY_TOTAL);
	json_processes(j, p, b, NULL);
	json_label(j, "gua.source", c->source);
	if (!b->mig) {
		add_own(j, c);
		json_close(j, '}');
		return;
	}
	json_open(j, "gua.instances", '[');
	for (; c; c = stat_next_card(p, b, &at)) {
		json_open(j, NULL, '{');
		json_number(j, "index", c->id.mig_index, 0);
		json_text(j, "name", c->id.name);
		json_text(j, "uuid", c->id.uuid);
		json_metric(j, "memory.used", c->values, METRIC_MEMORY_USED);
		json_metric(j, "memory.total", c->values, METRIC_MEMORY_TOTAL);
		add_own(j, c);
		json_processes(j, p, b, c);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

void stat_json(struct str *out, const struct stat_pick *picked, int lines)
{
	const struct present *now = picked->now;
	struct json j = { .out = out, .lines = lines };
	json_open(&j, NULL, '{');
	json_text(&j, "hostname", now->hosts[0].hostname);
	json_label(&j, "driver_version", now->hosts[0].driver);
	json_text(
		&j, "query_time", moment_format("%Y-%m-%dT%H:%M:%S", now->now_ms, false).text);
	json_text(&j, "gua.schema", "gua-stat-1");
	json_moment(&j, "gua.time", now->now_ms);
	json_label(&j, "gua.note", now->hosts[0].note);
	json_open(&j, "gpus", '[');
	for (size_t i = 0; i < picked->n_boards; i++)
		json_board(&j, picked, picked->boards[i]);
	json_close(&j, ']');
	json_close(&j, '}');
}
