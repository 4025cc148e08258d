/* Writes what a pick found: UUIDs, indexes, JSON, and why there is no card. */
#include "pick/pick_result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/duration.h"
#include "model/process.h"
#include "render/json.h"

void pick_result_finish(struct pick_result *r)
{
	for (size_t i = 0; i < r->n_facts; i++)
		if (r->facts[i].lock >= 0)
			close(r->facts[i].lock);
	free(r->facts);
	r->facts = NULL;
	r->n_facts = r->n_picked = 0;
}

static bool is_plain(const char *uuid)
{
	return uuid[strspn(uuid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789-/_.:")] == '\0';
}

int pick_result_uuids(const struct pick_result *r, struct str *out, struct err *e)
{
	for (size_t i = 0; i < r->n_picked; i++) {
		const char *uuid = r->facts[i].id.uuid;
		if (!is_plain(uuid))
			return err_set(e, ERR_WORLD,
				"the driver reports an unusable UUID for a card: '%s'", uuid);
		str_addf(out, "%s%s", i ? "," : "", uuid);
	}
	return 0;
}

void pick_result_indexes(const struct pick_result *r, struct str *out)
{
	for (size_t i = 0; i < r->n_picked; i++) {
		char label[CARD_LABEL_CAP];
		card_label(label, sizeof(label), &r->facts[i].id);
		str_addf(out, "%s%s", i ? "," : "", label);
	}
}

int pick_result_refuse(const struct pick_result *r, size_t n, struct err *e)
{
	struct str why = { 0 };
	size_t counts[PICK_VERDICTS] = { 0 };
	for (size_t i = 0; i < r->n_facts; i++)
		counts[r->facts[i].verdict]++;
	for (size_t i = 0; i < PICK_VERDICTS; i++)
		if (counts[i])
			str_addf(&why, "%s%zu %s", why.len ? "; " : "", counts[i],
				pick_verdict_names[i]);
	if (n == 1)
		err_set(e, ERR_WORLD, "no free card: %s", str_text(&why));
	else
		err_set(e, ERR_WORLD, "fewer than %zu free cards: %s", n, str_text(&why));
	str_finish(&why);
	return ERR_WORLD;
}

void pick_result_reservations(const struct pick_result *r, struct str *out)
{
	struct user_names *names = NULL;
	if (user_names_new(&names, user_find_system, NULL, USER_DEADLINE_MS, NULL) != 0)
		return;
	for (size_t i = 0; i < r->n_facts; i++) {
		const struct pick_fact *f = &r->facts[i];
		char label[CARD_LABEL_CAP];
		if (f->verdict != PICK_TAKEN && f->verdict != PICK_PROMISED)
			continue;
		card_label(label, sizeof(label), &f->id);
		str_addf(out, "gua pick: card %s is %s ", label,
			f->verdict == PICK_TAKEN ? "reserved by" : "left for");
		pick_owner_add(out, &f->by, names);
		str_addf(
			out, "%s\n", f->verdict == PICK_TAKEN ? "" : ", who has waited longer");
	}
	user_names_free(names);
}

/* "no holders, utilisation 0%, free memory 79.4 GiB, free for 12 min" */
static void add_why(struct json *j, const struct pick_result *r, const struct pick_fact *f)
{
	struct str why = { 0 };
	char text[64];
	if (f->holders == 0)
		str_add(&why, "no holders");
	else if (isnan(f->holders))
		str_add(&why, "holders not known");
	else
		str_addf(&why, "holders: %.0f", f->holders);
	if (f->suspect[0])
		str_add(&why, ", utilisation not believed");
	else if (!isnan(f->util_pct))
		str_addf(&why, ", utilisation %.0f %%", f->util_pct);
	if (!isnan(f->free_bytes)) {
		size_text(text, f->free_bytes);
		str_addf(&why, ", free memory %s", text);
	}
	if (f->free_since_ms >= 0 && r->time_ms > f->free_since_ms) {
		duration_text(text, sizeof(text), r->time_ms - f->free_since_ms);
		str_addf(&why, ", free for %s", text);
	}
	json_text(j, "why", str_text(&why));
	str_finish(&why);
}

static void add_id(struct json *j, const struct card_id *id)
{
	json_number(j, "index", id->index, 0);
	json_number(j, "mig_index", id->mig_index < 0 ? NAN : (double)id->mig_index, 0);
	json_text(j, "uuid", card_has_uuid(id) ? id->uuid : NULL);
	json_text(j, "name", *id->name ? id->name : NULL);
}

static void add_picked(struct json *j, const struct pick_result *r, const struct pick_fact *f)
{
	json_open(j, NULL, '{');
	add_id(j, &f->id);
	json_number(j, "mem_free_bytes", f->free_bytes, 0);
	json_number(j, "util_pct", f->util_pct, 1);
	json_moment(j, "free_since", f->free_since_ms);
	add_why(j, r, f);
	json_close(j, '}');
}

static void add_owner(struct json *j, const struct pick_owner *by, struct user_names *names)
{
	char user[USER_CAP] = "";
	int64_t uid = pick_owner_uid(by);
	if (uid >= 0)
		user_names_get(names, (uint32_t)uid, 0, user, sizeof(user));
	json_open(j, "by", '{');
	json_text(j, "user", *user ? user : NULL);
	json_number(j, "uid", uid < 0 ? NAN : (double)uid, 0);
	json_number(j, "pid", by->pid < 0 ? NAN : (double)by->pid, 0);
	json_text(j, "command", *by->comm ? by->comm : NULL);
	json_number(j, "seconds_left", by->left_ms < 0 ? NAN : (double)by->left_ms / 1000, 0);
	json_close(j, '}');
}

static void add_other(struct json *j, const struct pick_fact *f, struct user_names *names)
{
	json_open(j, NULL, '{');
	add_id(j, &f->id);
	json_text(j, "verdict", pick_verdict_words[f->verdict]);
	json_text(j, "why", pick_verdict_names[f->verdict]);
	if (f->verdict == PICK_TAKEN || f->verdict == PICK_PROMISED)
		add_owner(j, &f->by, names);
	else
		json_text(j, "by", NULL);
	json_close(j, '}');
}

void pick_result_json(
	const struct pick_result *r, int64_t hold_ms, const char *error, struct str *out)
{
	struct json j = { .out = out, .lines = 2 };
	struct user_names *names = NULL;
	if (user_names_new(&names, user_find_system, NULL, USER_DEADLINE_MS, NULL) != 0) {
		out->failed = true;
		return;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-pick-1");
	json_text(&j, "host", *r->host ? r->host : NULL);
	json_moment(&j, "time", r->time_ms);
	json_text(&j, "note", *r->note ? r->note : NULL);
	json_text(&j, "error", error);
	json_number(&j, "hold_seconds", error ? NAN : (double)hold_ms / 1000, 3);
	json_open(&j, "picked", '[');
	for (size_t i = 0; i < r->n_picked && !error; i++)
		add_picked(&j, r, &r->facts[i]);
	json_close(&j, ']');
	json_open(&j, "not_picked", '[');
	for (size_t i = r->n_picked; i < r->n_facts; i++)
		add_other(&j, &r->facts[i], names);
	json_close(&j, ']');
	json_close(&j, '}');
	user_names_free(names);
}
