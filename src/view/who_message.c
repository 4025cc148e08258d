/* Writes the letters of gua who --message. */
#include "view/who.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/timetext.h"
#include "model/release.h"

enum { COLUMNS = 72 };

static void add_rule(struct str *out)
{
	str_add_repeat(out, "-", COLUMNS);
	str_add(out, "\n");
}

/* Appends a line about what a process holds. */
static void add_holding(struct str *out, const struct who *w, const struct present_process *p,
	const struct text_style *style)
{
	char card[CARD_LABEL_CAP], size[SIZE_TEXT_CAP + 16] = "unknown memory", idle[40],
							line[256];
	const char *label = process_label_of(&p->id);
	card_label(card, sizeof(card), &w->now->cards[p->card].id);
	if (p->mem_bytes >= 0)
		size_text(size, (double)p->mem_bytes);
	duration_text(idle, sizeof(idle), w->now->now_ms - p->idle_since_ms);
	snprintf(line, sizeof(line), "  GPU %s  %s  idle for %s%s  pid %u  ", card, size,
		p->idle_longer ? "more than " : "", idle, (unsigned)p->id.pid);
	str_add(out, line);
	text_add_cut(out, *label ? label : p->id.command, COLUMNS - text_columns(line), style);
	str_add(out, "\n");
}

/* Whether an earlier holder of this user is released by the same command. */
static bool is_told(const struct who *w, size_t i, const char *command)
{
	char other[RELEASE_CAP];
	for (size_t k = 0; k < i; k++) {
		const struct process_id *id = &w->holders[k]->id;
		release_command(other, id->pid, id->job, id->container);
		if (strcmp(id->user, w->holders[i]->id.user) == 0 &&
			strcmp(other, command) == 0)
			return true;
	}
	return false;
}

static void add_commands(struct str *out, const struct who *w, const char *user)
{
	char command[RELEASE_CAP];
	for (size_t i = 0; i < w->n; i++) {
		const struct process_id *id = &w->holders[i]->id;
		if (strcmp(id->user, user) != 0)
			continue;
		release_command(command, id->pid, id->job, id->container);
		if (!is_told(w, i, command))
			str_addf(out, "  %s\n", command);
	}
}

static void add_letter(
	struct str *out, const struct who *w, const char *user, const struct text_style *style)
{
	bool notebook = false;
	str_addf(out, "To: %s\nSubject: idle GPU memory on %s\n\n", user,
		w->now->hosts[0].hostname);
	text_add_wrapped(out,
		"Your processes hold GPU memory and have not used the GPU for a while:", 0, 0,
		style);
	str_add(out, "\n");
	for (size_t i = 0; i < w->n; i++) {
		if (strcmp(w->holders[i]->id.user, user) != 0)
			continue;
		add_holding(out, w, w->holders[i], style);
		notebook |= *w->holders[i]->id.notebook != '\0';
	}
	str_add(out, "\n");
	text_add_wrapped(out,
		"Nobody else can use this memory. If you no longer need it, please save your "
		"work and release it:",
		0, 0, style);
	str_add(out, "\n");
	add_commands(out, w, user);
	str_add(out, "\n");
	text_add_wrapped(out,
		notebook ? "For a notebook it is enough to shut down its kernel in Jupyter. "
			   "\"man gua-memory\" explains other ways."
			 : "\"man gua-memory\" explains other ways.",
		0, 0, style);
}

void who_message(struct str *out, const struct who *w, const struct text_style *style)
{
	struct text_style narrow = *style;
	narrow.columns = COLUMNS;
	for (size_t i = 0; i < w->n; i++) {
		const char *user = w->holders[i]->id.user;
		bool told = false;
		for (size_t k = 0; k < i; k++)
			told |= strcmp(w->holders[k]->id.user, user) == 0;
		if (told || strcmp(user, USER_DEAD) == 0)
			continue;
		if (out->len)
			add_rule(out);
		add_letter(out, w, user, &narrow);
	}
}
