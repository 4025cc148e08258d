/* Hands one call after the other to a helper, with a deadline, and writes the answers. */
#include "driver/capture/capture_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { LEFT_MAX = 4 }; /* helpers that are stuck: then nothing more is asked */

static bool start_helper(struct capture *c)
{
	const struct helper_work work = { .name = "gua-capture",
		.begin = capture_caller_begin,
		.serve = capture_caller_serve,
		.end = capture_caller_end,
		.context = &c->caller };
	if (!c->helper && !c->ended && helper_new(&c->helper, &work, &c->why) != 0)
		c->ended = true;
	return c->helper != NULL;
}

/* "-", "0" or "0/2". */
static void add_unit(struct str *out, struct capture_unit unit)
{
	if (unit.card < 0)
		str_add(out, " -");
	else if (unit.instance < 0)
		str_addf(out, " %d", unit.card);
	else
		str_addf(out, " %d/%d", unit.card, unit.instance);
}

static void add_call(struct str *out, const struct nvml_form *form, struct capture_unit unit,
	const int *args)
{
	str_addf(out, "call %s", form->symbol);
	add_unit(out, unit);
	for (unsigned i = 0; i < form->n_args; i++)
		str_addf(out, "%s%d%s", i ? "," : " (", args[i],
			i + 1 == form->n_args ? ")" : "");
	str_add(out, " =");
}

/* What is written in the place of an answer. */
static void add_no_answer(struct capture *c)
{
	if (c->crashed)
		str_add(c->out, " no answer: it ended the process that called it\n");
	else
		str_addf(c->out, " no answer in %.1f s\n", (double)c->o->deadline_ms / 1000);
}

/* The helper did not answer, or ended: another one is started for the next call. */
static void give_up(struct capture *c, struct capture_unit unit)
{
	char where[HELPER_PLACE_CAP];
	helper_where(c->helper, where, sizeof(where));
	if (!c->seen->stuck[0])
		snprintf(c->seen->stuck, sizeof(c->seen->stuck), "%.63s %s", where,
			c->crashed ? "ended the process that called it"
				   : "did not answer in time");
	helper_free(c->helper, 0);
	c->helper = NULL;
	c->n_left++;
	if (unit.card >= 0)
		c->cards[unit.card].stuck = true;
	c->ended |= unit.card < 0 || c->n_left >= LEFT_MAX;
}

/* Sends a request and waits for the reply, of which `text` is valid until the next one. */
static bool exchange(struct capture *c, const struct capture_request *request,
	struct capture_reply *reply, const char **text)
{
	struct str bytes = { 0 };
	const struct str *got = NULL;
	struct err e = { 0 };
	str_add_bytes(&bytes, (const char *)request, sizeof(*request));
	bool well = start_helper(c) && helper_send(c->helper, &bytes, &e) == 0 &&
		    helper_receive(c->helper, c->o->deadline_ms, &got, &e) == 0 &&
		    got->len >= sizeof(*reply);
	str_finish(&bytes);
	c->crashed = !well && e.code != ERR_BUSY;
	if (!well)
		return false;
	memcpy(reply, got->data, sizeof(*reply));
	*text = got->data + sizeof(*reply);
	return true;
}

static void note_pid(struct nvml_captured *seen, uint32_t pid)
{
	for (size_t i = 0; i < seen->n_pids; i++)
		if (seen->pids[i] == pid)
			return;
	if (pid && array_reserve(&seen->pids, &seen->cap_pids, seen->n_pids + 1))
		seen->pids[seen->n_pids++] = pid;
}

/* The pids in the entries of a list: the first number, or the second one after a stamp. */
static void note_pids(struct capture *c, const struct nvml_form *form, const char *text)
{
	if (!form->row || form->signature == NVML_SIG_SAMPLES)
		return;
	for (const char *row = text; (row = strchr(row, '\n')) != NULL;) {
		row += strspn(row, "\n ");
		if (form->signature == NVML_SIG_USE_V1)
			row += strcspn(row, " ");
		note_pid(c->seen, (uint32_t)strtoul(row, NULL, 10));
	}
}

static void write_answer(struct capture *c, const struct capture_question *q,
	const struct capture_reply *reply, const char *text)
{
	struct nvml_form form = q->form;
	if (reply->older)
		form.symbol = nvml_plan_older(q->place);
	add_call(c->out, &form, q->unit, q->args);
	str_addf(c->out, " %d", reply->code);
	nvml_secrets_replace(&c->secrets, form.secret, text, c->out);
	str_add(c->out, "\n");
	c->seen->n_calls++;
}

/* Makes a call and writes its answer; false: there is none. */
bool capture_ask(
	struct capture *c, const struct capture_question *q, struct capture_reply *reply)
{
	const char *text = "";
	struct capture_request request = { .place = (int64_t)q->place,
		.card = q->unit.card,
		.instance = q->unit.instance,
		.since_us = q->since_us };
	memcpy(request.args, q->args, sizeof(request.args));
	*reply = (struct capture_reply){ 0 };
	if (c->ended || c->done[q->place])
		return false;
	if (!exchange(c, &request, reply, &text)) {
		if (!c->helper)
			return false;
		add_call(c->out, &q->form, q->unit, q->args);
		add_no_answer(c);
		give_up(c, q->unit);
		return false;
	}
	if (reply->missing) {
		str_addf(c->out, "missing %s\n", q->form.symbol);
		c->done[q->place] = true;
		return false;
	}
	note_pids(c, &q->form, text);
	write_answer(c, q, reply, text);
	return reply->code == NVML_OK;
}

/* Whether a library is in a directory in which users have none: not in /run/user, for one. */
static bool is_of_system(const char *path)
{
	static const char *const places[] = { "/usr/lib", "/usr/local/lib",
		"/usr/local/nvidia/", "/lib/", "/lib32/", "/lib64/", "/run/opengl-driver/" };
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strncmp(path, places[i], strlen(places[i])) == 0)
			return !strstr(path, "/../");
	return false;
}

/* Opens the library; a path that may name a user's directory is shortened. */
bool capture_open(struct capture *c)
{
	struct capture_reply reply = { 0 };
	const char *text = "";
	if (!exchange(c, &(struct capture_request){ .place = -1 }, &reply, &text)) {
		str_add(c->out, "library");
		add_no_answer(c);
		if (c->helper)
			give_up(c, (struct capture_unit){ -1, -1 });
		return false;
	}
	const char *slash = strrchr(text, '/');
	char safe[512];
	const char *shown = is_of_system(text) || !slash ? text : slash + 1;
	text_escape(safe, sizeof(safe), shown, strcspn(shown, "\""));
	if (reply.code == NVML_OK)
		str_addf(c->out, "library \"%s\"\n", safe);
	else
		str_add(c->out, "library none\n");
	return reply.code == NVML_OK;
}
