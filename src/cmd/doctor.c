/* `gua doctor`: can this host be audited, and what is in the way. Changes nothing. */
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/doctor.h"
#include "sample/worker.h"

struct doctor_options {
	bool json;
	const char *db, *nvml, *root, *clock;
	int64_t timeout_ms;
};

#define AT(member) offsetof(struct doctor_options, member)
static const struct option_row doctor_table[] = {
	{ .kind = OPTION_FLAG, .name = "json", .help = "print JSON", .offset = AT(json) },
	{ .kind = OPTION_TEXT,
		.name = "db",
		.arg = "PATH",
		.help = "the store to look at",
		.offset = AT(db) },
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

struct finding *finding_add(struct findings *f, enum finding_result result, const char *check,
	const char *format, ...)
{
	/* The last row is overwritten rather than lost with what it says of the exit status. */
	struct finding *row = &f->rows[f->n < FINDINGS_MAX ? f->n++ : FINDINGS_MAX - 1];
	char raw[sizeof(row->text)];
	va_list args;
	va_start(args, format);
	vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	*row = (struct finding){ .result = result };
	text_copy(row->check, sizeof(row->check), check);
	text_escape(row->text, sizeof(row->text), raw, strlen(raw));
	f->count[result]++;
	return row;
}

void finding_advise(struct finding *row, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(row->advice, sizeof(row->advice), format, args);
	va_end(args);
}

/* One round of everything, so that it is known which ways work. */
static int ask_all(struct source *s, void *nothing, struct err *e)
{
	(void)nothing;
	s->want_power = true;
	int rc = source_drain(s, NULL, e);
	return rc ? rc : source_look(s, NULL, e);
}

/* The source is the worker's: NULL when the driver has not answered. */
static struct worker *ask_driver(
	struct examination *x, const struct source_options *options, int64_t deadline_ms)
{
	struct worker *w = NULL;
	if (worker_new(&w, options, deadline_ms, &x->why) != 0)
		return NULL;
	worker_own(w, ask_all, NULL, NULL);
	int rc = worker_run(w, JOB_OWN, &x->why);
	x->hangs = rc == ERR_BUSY;
	x->source = rc ? NULL : worker_source(w);
	return w;
}

static void examine(const struct examination *x, struct findings *f)
{
	examine_system(x, f);
	examine_module(x, f);
	examine_nodes(x, f);
	examine_driver(x, f);
	examine_cards(x, f);
	examine_facilities(x, f);
	examine_visibility(x, f);
	examine_store(x, f);
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

static json_t *cards_json(const struct source *s)
{
	json_t *list = json_array();
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
		json_array_append_new(list, card);
	}
	return list;
}

static json_t *facilities_json(struct source *s)
{
	struct facility rows[64];
	size_t n = s ? s->ops->facilities(s, rows, 64) : 0;
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:b, s:b, s:s}", "job", rows[i].job, "how",
				      rows[i].how, "fallback", rows[i].fallback, "works",
				      rows[i].works, "note", rows[i].note));
	return list;
}

static void print_json(const struct findings *f, struct source *s, struct str *out)
{
	json_t *checks = json_array();
	for (size_t i = 0; i < f->n; i++)
		json_array_append_new(
			checks, json_pack("{s:s, s:s, s:s, s:s}", "check", f->rows[i].check,
					"result", result_names[f->rows[i].result], "text",
					f->rows[i].text, "advice", f->rows[i].advice));
	json_t *all = json_pack("{s:i, s:o, s:o, s:o}", "schema", 1, "checks", checks, "cards",
		cards_json(s), "facilities", facilities_json(s));
	char *text = json_dumps(all, JSON_INDENT(2));
	str_add(out, text ? text : "");
	str_add(out, "\n");
	out->failed |= !text;
	free(text);
	json_decref(all);
}

static int run_doctor(const struct command *self, int argc, char **argv)
{
	struct doctor_options o = {
		.root = "", .clock = "real", .timeout_ms = DRIVER_TIMEOUT_MS
	};
	struct err e = { 0 };
	static struct clock clock; /* a thread that hangs may still use it */
	char db[PATH_MAX];
	int status;
	if (cmd_options_only(self, argc, argv, &o, &status))
		return status;
	if (!o.db && cmd_default_db(db, sizeof(db), &e) != 0)
		return cmd_fail(self, &e);
	if (clock_open(&clock, o.clock, 0, &e) != 0)
		return cmd_fail(self, &e);
	/* What falls back is in the findings; it need not be logged too. */
	log_setup(LOG_LEVEL_WARNING, LOG_STYLE_PLAIN);
	struct examination x = {
		.root = o.root, .nvml = cmd_nvml_path(o.nvml), .db = o.db ? o.db : db
	};
	struct findings *f = calloc(1, sizeof(*f));
	struct str out = { .failed = !f };
	struct worker *w = NULL;
	if (f) {
		const struct source_options source = {
			.name = "nvml", .nvml_path = x.nvml, .root = x.root, .clock = &clock
		};
		w = ask_driver(&x, &source, o.timeout_ms);
		examine(&x, f);
		if (o.json)
			print_json(f, x.source, &out);
		else
			print_text(f, &out);
	}
	status = cmd_print(self, &out);
	if (status == 0)
		status = f->count[FINDING_PROBLEM] > 0;
	if (w && !worker_end(w, WORKER_CLOSING_MS))
		cmd_leave_driver();
	else
		clock_finish(&clock);
	free(f);
	return status;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "say whether this host can be audited and what is in the way",
	.usage = "[OPTIONS]",
	.details = "Changes nothing. Exit status: 0 when there is no problem, 1 when there is.",
	.options = doctor_table,
	.run = run_doctor,
};
