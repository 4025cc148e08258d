/* gua doctor: checks whether this host can be audited, and reports problems. Changes
 * nothing. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/share/choose_db.h"
#include "cmd/cmd.h"
#include "cmd/cmd_doctor.h"
#include "driver/host/apart.h"
#include "driver/host/worker.h"
#include "driver/kind.h"
#include "driver/capture/capture.h"

struct doctor_options {
	bool json;
	const char *capture, *db, *source, *scenario, *nvml, *root, *clock;
	int64_t timeout_ms;
};

#define AT(member) offsetof(struct doctor_options, member)
static const struct option_row doctor_table[] = {
	{ .kind = OPTION_FLAG, .name = "json", .help = "print JSON", .offset = AT(json) },
	{ .kind = OPTION_TEXT,
		.name = "capture",
		.arg = "FILE",
		.help = "write all answers of the driver to FILE, for a bug report",
		.offset = AT(capture) },
	{ .kind = OPTION_TEXT,
		.name = "db",
		.arg = "PATH",
		.help = "the store to look at",
		.offset = AT(db) },
	{ .kind = OPTION_TEXT,
		.name = "source",
		.arg = "NAME,...",
		.help = SOURCE_HELP,
		.offset = AT(source),
		.words = source_words },
	{ .kind = OPTION_TEXT,
		.name = "scenario",
		.arg = "FILE",
		.help = SCENARIO_HELP,
		.offset = AT(scenario) },
	{ .kind = OPTION_TEXT,
		.name = "nvml",
		.arg = "PATH",
		.help = "the driver's library (default: GUA_NVML, else libnvidia-ml.so.1)",
		.offset = AT(nvml) },
	{ .kind = OPTION_DURATION,
		.name = "driver-timeout",
		.arg = "D",
		.help = DRIVER_TIMEOUT_HELP,
		.offset = AT(timeout_ms),
		.min = 100,
		.max = 3600e3 },
	{ .kind = OPTION_TEXT,
		.name = "root",
		.arg = "DIR",
		.help = "where /proc, /sys, /dev and /etc are",
		.offset = AT(root),
		.hidden = true },
	{ .kind = OPTION_TEXT,
		.name = "clock",
		.arg = "HOW",
		.help = "real or a clock file",
		.offset = AT(clock),
		.hidden = true },
	{ .name = NULL },
};

static const char *const result_names[] = { "ok", "warning", "problem" };

/* A source that is examined. */
struct patient {
	const struct source_kind *kind;
	struct apart *apart; /* the process that asks it */
	struct worker *worker;
	struct diagnosis diagnosis; /* its source is owned by the worker */
};

struct patients {
	struct patient all[SOURCE_KINDS_MAX];
	size_t n;
};

/* Reads samples and processes once, to find out which calls of the driver work. */
static int ask_all(struct source *s, void *nothing, struct err *e)
{
	(void)nothing;
	s->want_power = true;
	int rc = source_drain(s, NULL, e);
	return rc ? rc : source_look(s, NULL, e);
}

/* Asks a source in its own worker, so that one that hangs does not block the others. */
static void ask_source(
	struct patient *p, const struct source_options *common, int64_t deadline_ms)
{
	struct diagnosis *d = &p->diagnosis;
	struct source_options options = *common;
	options.name = source_is_captured(common->name) ? common->name : p->kind->name;
	d->name = options.name;
	d->root = options.root;
	d->before = p->kind->look ? p->kind->look(d->root) : NULL;
	const struct apart_manner manner = apart_manner_of(deadline_ms);
	if (apart_new(&p->apart, &options, &manner, &d->why) != 0)
		return;
	options.host = apart_host(p->apart);
	if (worker_new(&p->worker, &options, deadline_ms, &d->why) != 0)
		return;
	worker_own(p->worker, ask_all, NULL, NULL);
	int rc = worker_run(p->worker, JOB_OWN, &d->why);
	d->hangs = rc == ERR_BUSY;
	d->source = rc ? NULL : worker_source(p->worker);
}

static void ask_sources(struct patients *p, const struct source_list *list,
	const struct source_options *common, int64_t deadline_ms)
{
	for (size_t i = 0; i < list->n; i++) {
		p->all[i].kind = list->kinds[i];
		ask_source(&p->all[i], common, deadline_ms);
	}
	p->n = list->n;
}

static void end_sources(struct patients *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->all[i].worker)
			worker_end(p->all[i].worker, WORKER_CLOSING_MS);
		apart_free(p->all[i].apart);
		free(p->all[i].diagnosis.before);
	}
}

/* A capture is of another host: nothing of this one is examined. */
static void examine(const struct examination *x, const struct patients *p, struct findings *f)
{
	bool captured = p->n && source_is_captured(p->all[0].diagnosis.name);
	if (!captured)
		examine_system(x, f);
	for (size_t i = 0; i < p->n; i++)
		p->all[i].kind->diagnose(&p->all[i].diagnosis, f);
	if (captured)
		return;
	examine_visibility(x, f);
	const struct source *opened[SOURCE_KINDS_MAX + 1] = { NULL };
	for (size_t i = 0, n = 0; i < p->n; i++)
		if (p->all[i].diagnosis.source)
			opened[n++] = p->all[i].diagnosis.source;
	examine_processes(x, opened, f);
	examine_store(x, f);
	examine_notices(x, f);
}

/* Adds words within 80 columns, the lines after the first indented. */
static void add_wrapped(struct str *out, const char *text, size_t indent)
{
	size_t column = indent;
	for (bool first = true; *text; first = false) {
		size_t len = strcspn(text, " ");
		if (!first && column + 1 + len > 80) {
			str_add(out, "\n");
			str_add_repeat(out, " ", indent);
			column = indent;
		} else if (!first) {
			str_add(out, " ");
			column++;
		}
		str_add_bytes(out, text, len);
		column += len;
		text += len + strspn(text + len, " ");
	}
	str_add(out, "\n");
}

static void print_text(const struct findings *f, struct str *out)
{
	enum { INDENT = 29 };
	for (size_t i = 0; i < f->n; i++) {
		const struct finding *row = &f->rows[i];
		str_addf(out, "%-8s %-19s ", result_names[row->result], row->check);
		add_wrapped(out, row->text, INDENT);
		if (!row->advice[0])
			continue;
		str_add_repeat(out, " ", INDENT);
		str_add(out, "-> ");
		add_wrapped(out, row->advice, INDENT + 3);
	}
	str_addf(out, "\n%zu ok, %zu warning%s, %zu problem%s\n", f->count[FINDING_OK],
		f->count[FINDING_WARNING], f->count[FINDING_WARNING] == 1 ? "" : "s",
		f->count[FINDING_PROBLEM], f->count[FINDING_PROBLEM] == 1 ? "" : "s");
}

static void add_cards(json_t *list, const struct source *s)
{
	for (size_t i = 0; s && i < s->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		json_t *card = json_pack("{s:s, s:s, s:i, s:s, s:s, s:i}", "uuid", r->id.uuid,
			"name", r->id.name, "index", r->id.index, "pci", r->id.pci, "status",
			card_status_names[r->status], "code", r->code);
		bool mig = r->id.mig_index >= 0;
		json_object_set_new(card, "parent_uuid",
			mig ? json_string(r->id.parent_uuid) : json_null());
		json_object_set_new(
			card, "mig_index", mig ? json_integer(r->id.mig_index) : json_null());
		json_object_set_new(card, "mem_total_bytes",
			r->id.mem_total_bytes >= 0 ? json_integer(r->id.mem_total_bytes)
						   : json_null());
		json_object_set_new(card, "source", json_string(r->source));
		json_array_append_new(list, card);
	}
}

static void add_facilities(json_t *list, struct source *s)
{
	struct facility rows[64];
	size_t n = s ? s->ops->facilities(s, rows, 64) : 0;
	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:b, s:b, s:s}", "job", rows[i].job, "how",
				      rows[i].how, "fallback", rows[i].fallback, "works",
				      rows[i].works, "note", rows[i].note));
}

static void print_json(const struct findings *f, const struct patients *p, struct str *out)
{
	json_t *checks = json_array(), *cards = json_array(), *facilities = json_array();
	for (size_t i = 0; i < f->n; i++)
		json_array_append_new(
			checks, json_pack("{s:s, s:s, s:s, s:s}", "check", f->rows[i].check,
					"result", result_names[f->rows[i].result], "text",
					f->rows[i].text, "advice", f->rows[i].advice));
	for (size_t i = 0; i < p->n; i++) {
		add_cards(cards, p->all[i].diagnosis.source);
		add_facilities(facilities, p->all[i].diagnosis.source);
	}
	json_t *all = json_pack("{s:s, s:o, s:o, s:o}", "schema", "gua-doctor-1", "checks",
		checks, "cards", cards, "facilities", facilities);
	char *text = json_dumps(all, JSON_INDENT(2));
	str_add(out, text ? text : "");
	str_add(out, "\n");
	out->failed |= !text;
	free(text);
	json_decref(all);
}

static int examine_all(const struct command *self, const struct doctor_options *o,
	const struct source_list *list, const char *db)
{
	struct clock clock;
	struct err e = { 0 };
	if (clock_open(&clock, o->clock, 0, &e) != 0)
		return cmd_fail(self, &e);
	const struct source_options common = { .name = o->source,
		.nvml_path = cmd_nvml_path(o->nvml),
		.scenario = o->scenario,
		.root = o->root,
		.clock = &clock };
	const struct examination x = { .root = o->root, .db = db };
	struct patients p = { 0 };
	struct findings *f = calloc(1, sizeof(*f));
	struct str out = { .failed = !f };
	if (f) {
		ask_sources(&p, list, &common, o->timeout_ms);
		examine(&x, &p, f);
		if (o->json)
			print_json(f, &p, &out);
		else
			print_text(f, &out);
	}
	int status = cmd_print(self, &out);
	if (status == 0)
		status = f->count[FINDING_PROBLEM] > 0;
	end_sources(&p);
	clock_finish(&clock);
	free(f);
	return status;
}

enum { CAPTURE_ROUNDS = 6 };

static int capture(const struct command *self, const struct doctor_options *o)
{
	struct clock clock;
	struct err e = { 0 };
	if (o->json || source_is_invented(o->source) || strcmp(o->source, SOURCE_NONE) == 0) {
		err_set(&e, ERR_USAGE, "--capture goes with the driver, and without --json");
		return cmd_fail(self, &e);
	}
	if (clock_open(&clock, o->clock, 0, &e) != 0)
		return cmd_fail(self, &e);
	const struct nvml_capture_options options = { .path = cmd_nvml_path(o->nvml),
		.option = "--nvml PATH",
		.root = o->root,
		.clock = &clock,
		.deadline_ms = o->timeout_ms,
		.rounds = CAPTURE_ROUNDS };
	int status = doctor_capture(self, o->capture, &options);
	clock_finish(&clock);
	return status;
}

static int run_doctor(const struct command *self, int argc, char **argv)
{
	struct doctor_options o = { .source = SOURCE_AUTO,
		.root = "",
		.clock = "real",
		.timeout_ms = DRIVER_TIMEOUT_MS };
	struct err e = { 0 };
	struct source_list list;
	char db[PATH_MAX];
	int status;
	if (cmd_options_only(self, argc, argv, &o, &status))
		return status;
	if (source_check(o.source, o.scenario, false, &e) != 0 ||
		source_list_read(&list, o.source, false, &e) != 0)
		return cmd_fail(self, &e);
	if (o.capture)
		return capture(self, &o);
	if (!o.db && choose_db_own(db, sizeof(db), &e) != 0)
		return cmd_fail(self, &e);
	/* The findings report fallbacks, so they need not be logged too. */
	log_setup(LOG_LEVEL_WARNING, LOG_STYLE_PLAIN);
	return examine_all(self, &o, &list, o.db ? o.db : db);
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "say whether this host can be audited and what is in the way",
	.usage = "[OPTIONS]",
	.details = "It changes nothing, and writes no file but that of --capture. The exit "
		   "status is 1 if\nthere is a problem, else 0.",
	.options = doctor_table,
	.run = run_doctor,
};
