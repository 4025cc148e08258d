/* For tests: opens a source, does what its operands say and prints each reading as a JSON line.
 *
 * usage: readings [OPTIONS] ACTION...
 *   scan drain glance look facilities   do it and print
 *   power                        from now on drains read power
 *   +MS                          advance the virtual clock
 *   step+MS step-MS              set the wall clock forward or back
 *   reopen                       close the source and open it again
 *   pause                        print a line and go on when standard input has one: the test
 *                                changes files in between */
#include <jansson.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "driver/source.h"

struct settings {
	const char *source, *nvml, *root, *clock, *scenario;
};

#define AT(member) offsetof(struct settings, member)
static const struct option_row options[] = {
	{ .kind = OPTION_TEXT, .name = "source", .arg = "NAME", .offset = AT(source) },
	{ .kind = OPTION_TEXT, .name = "nvml", .arg = "PATH", .offset = AT(nvml) },
	{ .kind = OPTION_TEXT, .name = "root", .arg = "DIR", .offset = AT(root) },
	{ .kind = OPTION_TEXT, .name = "clock", .arg = "FILE", .offset = AT(clock) },
	{ .kind = OPTION_TEXT, .name = "scenario", .arg = "FILE", .offset = AT(scenario) },
	{ .name = NULL },
};

static json_t *number(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

static json_t *samples_json(const struct card_reading *r)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->n_samples; i++)
		json_array_append_new(
			list, json_pack("[I,o]", (json_int_t)r->samples[i].wall_us,
				      number(r->samples[i].util_pct)));
	return list;
}

static json_t *uses_json(const struct card_reading *r)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->n_process_utils; i++)
		json_array_append_new(
			list, json_pack("[I,I,f]", (json_int_t)r->process_utils[i].pid,
				      (json_int_t)r->process_utils[i].wall_us,
				      r->process_utils[i].sm_pct));
	return list;
}

static json_t *processes_json(const struct card_reading *r)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->n_processes; i++)
		json_array_append_new(
			list, json_pack("[I,i,I]", (json_int_t)r->processes[i].pid,
				      (int)r->processes[i].kind,
				      (json_int_t)r->processes[i].mem_bytes));
	return list;
}

static json_t *ended_json(const struct card_reading *r)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->n_ended; i++)
		json_array_append_new(list, json_pack("[I,I,I,I]", (json_int_t)r->ended[i].pid,
						    (json_int_t)r->ended[i].started_ms,
						    (json_int_t)r->ended[i].ended_ms,
						    (json_int_t)r->ended[i].mem_peak_bytes));
	return list;
}

static json_t *card_json(const struct card_reading *r)
{
	static const char *const util_kinds[] = { "none", "ring", "polled", "mean", "unknown" };
	json_t *card = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:I}", "uuid",
		r->id.uuid, "name", r->id.name, "parent", r->id.parent_uuid, "pci", r->id.pci,
		"index", r->id.index, "mig_index", r->id.mig_index, "gi", r->id.gpu_instance,
		"ci", r->id.compute_instance, "mem_total", (json_int_t)r->id.mem_total_bytes);
	json_object_update_new(card,
		json_pack("{s:s, s:i, s:s, s:o, s:b, s:o, s:o, s:o, s:b, s:o, s:I}", "status",
			card_status_names[r->status], "code", r->code, "util_kind",
			util_kinds[r->util_kind], "samples", samples_json(r), "uses_known",
			r->process_util_known, "uses", uses_json(r), "energy_mj",
			number(r->energy_mj), "power_mw", number(r->power_mw),
			"processes_known", r->processes_known, "processes", processes_json(r),
			"mem_used", (json_int_t)r->mem_used_bytes));
	json_object_update_new(
		card, json_pack("{s:b, s:b, s:b, s:I, s:o, s:o}", "mem_includes_reserved",
			      r->mem_includes_reserved, "mem_is_sum", r->mem_is_sum, "stranger",
			      r->stranger, "lost", (json_int_t)r->n_lost, "ended",
			      ended_json(r), "sm_active", number(r->sm_active_pct)));
	return card;
}

static void print_line(json_t *line)
{
	char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(15));
	puts(text ? text : "null");
	fflush(stdout);
	free(text);
	json_decref(line);
}

static void print_round(
	const struct source *s, const char *action, const struct err *e, size_t heap_grown)
{
	json_t *cards = json_array(), *xids = json_array();
	for (size_t i = 0; s && i < s->n_cards; i++)
		json_array_append_new(cards, card_json(&s->cards[i]));
	for (size_t i = 0; s && i < s->n_xids; i++)
		json_array_append_new(xids, json_pack("[I,I]", (json_int_t)s->xids[i].card,
						    (json_int_t)s->xids[i].number));
	print_line(json_pack("{s:s, s:s?, s:i, s:s, s:I, s:o, s:o, s:I, s:I}", "action", action,
		"error", e->code ? e->text : NULL, "error_code", e->code, "driver",
		s ? s->driver_version : "", "heap_grown", (json_int_t)heap_grown, "cards",
		cards, "xids", xids, "period_us", (json_int_t)(s ? s->sample_period_us : 0),
		"ring_us", (json_int_t)(s ? s->ring_us : 0)));
}

static void print_facilities(struct source *s)
{
	struct facility rows[64];
	size_t n = s->ops->facilities(s, rows, 64);
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:b, s:b, s:s}", "job", rows[i].job, "how",
				      rows[i].how, "fallback", rows[i].fallback, "works",
				      rows[i].works, "note", rows[i].note));
	print_line(json_pack("{s:s, s:o}", "action", "facilities", "facilities", list));
}

/* Bytes on the heap that the call took and kept; 0 where malloc does not count. */
static int measured(int (*call)(struct source *, struct err *), struct source *s, struct err *e,
	size_t *grown)
{
	size_t before = mallinfo2().uordblks;
	int rc = call(s, e);
	size_t after = mallinfo2().uordblks;
	*grown = after > before ? after - before : 0;
	return rc;
}

static void pause_for_test(void)
{
	char line[16];
	print_line(json_pack("{s:s}", "action", "pause"));
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static int drain_all(struct source *s, struct err *e)
{
	return source_drain(s, NULL, e);
}

static int look_all(struct source *s, struct err *e)
{
	return source_look(s, NULL, e);
}

static int glance_all(struct source *s, struct err *e)
{
	return source_glance(s, GLANCE_MEMORY | GLANCE_ENERGY, e);
}

static int act(struct source **s, const struct source_options *o, const char *action)
{
	static const struct {
		const char *name;
		int (*call)(struct source *, struct err *);
	} calls[] = { { "scan", source_scan }, { "drain", drain_all }, { "look", look_all },
		{ "glance", glance_all } };
	struct err e = { 0 };
	size_t grown = 0;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(action, calls[i].name) == 0) {
			measured(calls[i].call, *s, &e, &grown);
			print_round(*s, action, &e, grown);
			return 0;
		}
	if (strcmp(action, "facilities") == 0) {
		print_facilities(*s);
	} else if (strcmp(action, "power") == 0) {
		(*s)->drains = DRAIN_POWER;
	} else if (strcmp(action, "pause") == 0) {
		pause_for_test();
	} else if (strcmp(action, "reopen") == 0) {
		source_close(*s);
		*s = NULL;
		source_open(s, o, &e);
		print_round(*s, action, &e, 0);
		return *s ? 0 : 1;
	} else if (action[0] == '+') {
		clock_advance(o->clock, atoll(action + 1) * 1000);
	} else if (strncmp(action, "step", 4) == 0 && clock_is_virtual(o->clock)) {
		o->clock->virtual_time->wall_less_us += atoll(action + 4) * 1000;
	} else {
		fprintf(stderr, "readings: unknown action %s\n", action);
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct settings set = { .source = "nvml", .root = "", .clock = "real" };
	struct err e = { 0 };
	struct clock clock;
	struct source *s = NULL;
	struct command_line line = { .argc = argc, .argv = argv };
	if (options_parse(&line, options, &set, &e) != 0 ||
		clock_open(&clock, set.clock, 0, &e) != 0) {
		fprintf(stderr, "readings: %s\n", e.text);
		return 2;
	}
	struct source_options o = { .name = set.source,
		.nvml_path = set.nvml,
		.scenario = set.scenario,
		.root = set.root,
		.clock = &clock };
	source_open(&s, &o, &e);
	print_round(s, "open", &e, 0);
	int rc = s ? 0 : 1;
	for (int i = line.first_operand; rc == 0 && i < argc; i++)
		rc = act(&s, &o, argv[i]);
	source_close(s);
	clock_finish(&clock);
	return rc;
}
