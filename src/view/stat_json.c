/* Prints the compact view as JSON: gpustat's keys, and gua's keys with the prefix "gua.". */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/timetext.h"
#include "render/json.h"
#include "view/stat.h"

static void add_arguments(struct json *j, struct live *l, const struct present_process *p)
{
	struct str arguments = { 0 };
	live_arguments(l, p, &arguments);
	json_open(j, "full_command", '[');
	for (size_t at = 0; at < arguments.len; at += strlen(arguments.data + at) + 1)
		json_text(j, NULL, arguments.data + at);
	json_close(j, ']');
	str_finish(&arguments);
}

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

static void add_process(
	struct json *j, const struct stat_pick *pick, const struct present_process *p)
{
	char command[COMMAND_CAP];
	stat_command(command, sizeof(command), p);
	int64_t idle_ms = p->idle_since_ms < 0 ? -1 : pick->now->now_ms - p->idle_since_ms;
	json_open(j, NULL, '{');
	json_text(j, "username", or_null(p->id.user));
	json_text(j, "command", or_null(command));
	add_arguments(j, pick->live, p);
	json_number(j, "gpu_memory_usage",
		p->mem_bytes < 0 ? NAN : (double)(p->mem_bytes >> 20), 0);
	json_number(j, "cpu_percent", p->cpu_pct, 1);
	json_number(j, "cpu_memory_usage", p->rss_bytes < 0 ? NAN : (double)p->rss_bytes, 0);
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
	json_text(j, "gua.context", or_null(context_texts[p->context]));
	for (size_t i = PROCESS_COMMAND + 1; i < PROCESS_TEXTS; i++) {
		char key[64];
		snprintf(key, sizeof(key), "gua.%s", process_fields[i].name);
		json_text(j, key, or_null(process_text(&p->id, i)));
	}
	json_close(j, '}');
}

/* Adds the processes of the shown cards of one board, or of one card. */
static void add_processes(struct json *j, const struct stat_pick *p, size_t board,
	const struct present_card *only)
{
	bool known = false;
	const struct present_card *cards = p->now->cards;
	const struct present_process *all = p->now->processes;
	for (size_t i = 0; i < p->n; i++) {
		const struct present_card *c = &cards[p->cards[i]];
		known |= c->board == board && (!only || c == only) && c->processes_known;
	}
	if (!known) {
		json_text(j, "processes", NULL);
		return;
	}
	json_open(j, "processes", '[');
	for (size_t i = 0; i < p->n; i++) {
		const struct present_card *c = &cards[p->cards[i]];
		for (size_t k = 0;
			c->board == board && (!only || c == only) && k < c->n_processes; k++)
			if (filter_process(p->filter, &all[c->first_process + k]))
				add_process(j, p, &all[c->first_process + k]);
	}
	json_close(j, ']');
}

static void add_number(struct json *j, const char *key, const double *v, enum metric m)
{
	json_number(j, key, floor(v[m] / metrics[m].scale), 0);
}

static const char *state_name(const struct present_card *c)
{
	return c->status == CARD_STATUS_OK ? card_state_names[c->state]
					   : card_status_names[c->status];
}

static void add_own(struct json *j, const struct present_card *c)
{
	json_text(j, "gua.state", state_name(c));
	json_moment(j, "gua.state_since", c->state_since_ms);
	json_bool(j, "gua.state_is_lower_bound", c->state_longer);
	json_moment(j, "gua.free_since", c->free_since_ms);
	add_number(j, "gua.orphan_memory", c->values, METRIC_GUA_ORPHAN_MEMORY);
}

static void add_instances(struct json *j, const struct stat_pick *p, size_t board)
{
	const struct present_card *cards = p->now->cards;
	json_open(j, "gua.instances", '[');
	for (size_t i = 0; i < p->n; i++) {
		const struct present_card *c = &cards[p->cards[i]];
		if (c->board != board)
			continue;
		json_open(j, NULL, '{');
		json_number(j, "index", c->id.mig_index, 0);
		json_text(j, "name", c->id.name);
		json_text(j, "uuid", c->id.uuid);
		add_number(j, "memory.used", c->values, METRIC_MEMORY_USED);
		add_number(j, "memory.total", c->values, METRIC_MEMORY_TOTAL);
		add_own(j, c);
		add_processes(j, p, board, c);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void add_board(
	struct json *j, const struct stat_pick *p, const struct present_card *card)
{
	const struct present_board *b = &p->now->boards[card->board];
	const double *v = b->values;
	json_open(j, NULL, '{');
	json_number(j, "index", b->id.index, 0);
	json_text(j, "uuid", card_has_uuid(&b->id) ? b->id.uuid : NULL);
	bool well = b->status != CARD_STATUS_LOST;
	json_text(j, "name", well ? or_null(b->id.name) : stat_status(b->status, b->code));
	if (!well)
		json_text(j, "gua.name", or_null(b->id.name));
	add_number(j, "temperature.gpu", v, METRIC_TEMPERATURE_GPU);
	add_number(j, "fan.speed", v, METRIC_FAN_SPEED);
	add_number(j, "utilization.gpu", v, METRIC_UTILIZATION_GPU);
	add_number(j, "utilization.enc", v, METRIC_UTILIZATION_ENCODER);
	add_number(j, "utilization.dec", v, METRIC_UTILIZATION_DECODER);
	add_number(j, "power.draw", v, METRIC_POWER_DRAW);
	add_number(j, "enforced.power.limit", v, METRIC_POWER_ENFORCED);
	add_number(j, "memory.used", v, METRIC_MEMORY_USED);
	add_number(j, "memory.total", v, METRIC_MEMORY_TOTAL);
	add_processes(j, p, card->board, NULL);
	json_text(j, "gua.source", or_null(card->source));
	if (b->mig)
		add_instances(j, p, card->board);
	else
		add_own(j, card);
	json_close(j, '}');
}

void stat_json(struct str *out, const struct stat_pick *picked, int lines)
{
	const struct present *now = picked->now;
	struct json j = { .out = out, .lines = lines };
	char when[64];
	const struct present_card *cards = now->cards;
	struct tm tm = moment_fields(now->now_ms, false);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	json_open(&j, NULL, '{');
	json_text(&j, "hostname", now->hosts[0].hostname);
	json_text(&j, "driver_version", or_null(now->hosts[0].driver));
	json_text(&j, "query_time", when);
	json_text(&j, "gua.schema", "gua-stat-1");
	json_moment(&j, "gua.time", now->now_ms);
	json_text(&j, "gua.note", or_null(now->hosts[0].note));
	json_open(&j, "gpus", '[');
	for (size_t i = 0; i < picked->n; i++) {
		bool again = false;
		for (size_t k = 0; k < i; k++)
			again |= cards[picked->cards[k]].board == cards[picked->cards[i]].board;
		if (!again)
			add_board(&j, picked, &cards[picked->cards[i]]);
	}
	json_close(&j, ']');
	json_close(&j, '}');
}
