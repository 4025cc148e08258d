/* Prints the few lines of a tracker's result that a person wants. */
#include "render/track_short.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/size.h"
#include "base/timetext.h"
#include "render/track_parts.h"

enum { VALUE_CAP = 64 };

static void size_in(char dst[VALUE_CAP], int64_t bytes, const char *unit)
{
	const struct track_unit *u = track_size_unit(unit, (double)bytes);
	char size[SIZE_TEXT_CAP];
	size_text(size, (double)bytes);
	if (bytes < 0)
		snprintf(dst, VALUE_CAP, "unknown");
	else if (strcmp(unit, "auto") == 0)
		snprintf(dst, VALUE_CAP, "%s", size);
	else
		snprintf(dst, VALUE_CAP, "%.3f %s", (double)bytes * u->factor, u->name);
}

/* "1.02 s", "12 min 5 s", "3 h 20 min". */
static void time_in(char dst[VALUE_CAP], double seconds, const char *unit)
{
	const struct track_unit *u = track_time_unit(unit, seconds);
	long long whole = isnan(seconds) ? 0 : (long long)seconds;
	if (isnan(seconds))
		snprintf(dst, VALUE_CAP, "unknown");
	else if (strcmp(unit, "auto") != 0)
		snprintf(dst, VALUE_CAP, "%.3f %s", seconds * u->factor, u->name);
	else if (seconds < 60)
		snprintf(dst, VALUE_CAP, "%.2f s", seconds);
	else if (seconds < 3600)
		snprintf(dst, VALUE_CAP, "%lld min %lld s", whole / 60, whole % 60);
	else
		duration_text(dst, VALUE_CAP, whole * 1000);
}

static void begin_line(struct str *out, const char *label)
{
	str_addf(out, "%-12s", label);
}

static void add_time(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	char time[VALUE_CAP];
	time_in(time, r->elapsed_s, style->time_unit);
	begin_line(out, "Time");
	str_addf(out, "%s", time);
	if (!r->exited)
		str_add(out, "; still running\n");
	else if (r->exit_status == -1)
		str_add(out, "\n");
	else if (WIFSIGNALED(r->exit_status))
		str_addf(out, "; killed by signal %d (%s)\n", WTERMSIG(r->exit_status),
			strsignal(WTERMSIG(r->exit_status)));
	else
		str_addf(out, "; exit status %d\n", WEXITSTATUS(r->exit_status));
}

static void add_cpu(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	char time[VALUE_CAP];
	const struct track_cpu *cpu = &r->cpu[TRACK_COMBINED];
	time_in(time, r->user_s[TRACK_COMBINED] + r->system_s[TRACK_COMBINED],
		style->time_unit);
	begin_line(out, "CPU");
	str_addf(out, "%s; %.2f cores on average, %.2f at most, of %lld\n", time,
		cpu->mean_sum_pct / 100, cpu->max_sum_pct / 100, (long long)r->expected_cores);
}

static void add_ram(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	char used[VALUE_CAP], all[VALUE_CAP], swap[VALUE_CAP];
	const struct track_ram *ram = &r->ram[TRACK_COMBINED];
	size_in(used, ram->total_bytes, style->ram_unit);
	size_in(all, r->ram_capacity_bytes, style->ram_unit);
	size_in(swap, ram->swap_bytes, style->ram_unit);
	begin_line(out, "RAM");
	if (ram->total_bytes < 0)
		str_add(out, "unknown");
	else
		str_addf(out, "%s at most, of %s", used, all);
	if (ram->swap_bytes > 0)
		str_addf(out, "; swap %s at most", swap);
	str_add(out, "\n");
}

/* The cards that the tree was on: how many, and their memory. */
struct used {
	size_t n;
	int64_t bytes; /* -1 unknown */
};

static struct used cards_used(const struct track_result *r)
{
	struct used used = { 0 };
	for (size_t i = 0; i < r->n_cards; i++) {
		const struct track_card *c = &r->cards[i];
		if (!track_card_is_used(c))
			continue;
		used.n++;
		used.bytes = used.bytes < 0 || c->id.mem_total_bytes < 0
				     ? -1
				     : used.bytes + c->id.mem_total_bytes;
	}
	return used;
}

/* Returns why there are no numbers of cards; NULL: there are. */
static const char *why_no_gpu(const struct track_result *r, const struct used *used)
{
	if (!r->gpu_known)
		return r->gpu_note[0] ? "unknown" : "not read";
	if (r->gpu_ram[TRACK_COMBINED] < 0 || isnan(r->gpu_active_s))
		return NULL;
	return used->n ? NULL : "none";
}

static void add_gpu_memory(struct str *out, const struct track_result *r,
	const struct track_style *style, const struct used *used)
{
	char most[VALUE_CAP], all[VALUE_CAP];
	size_in(most, r->gpu_ram[TRACK_COMBINED], style->gpu_ram_unit);
	size_in(all, used->bytes, style->gpu_ram_unit);
	if (r->gpu_ram[TRACK_COMBINED] < 0)
		str_add(out, "unknown: the driver does not report it");
	else if (used->n)
		str_addf(out, "%s at most, of %s on %zu card%s", most, all, used->n,
			used->n == 1 ? "" : "s");
	else
		str_addf(out, "%s", most);
}

static void add_gpu_time(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	char active[VALUE_CAP], held[VALUE_CAP];
	time_in(active, r->gpu_active_s, style->time_unit);
	time_in(held, r->gpu_idle_held_s, style->time_unit);
	str_addf(out, "active %s, idle-held %s", active, held);
}

/* Adds what is behind why_no_gpu(). The note's own explanations are for -v. */
static void add_reason(struct str *out, const struct track_result *r)
{
	if (!r->gpu_known && r->gpu_note[0]) {
		const char *aside = strstr(r->gpu_note, " (");
		size_t len = strcspn(r->gpu_note, ";");
		if (aside && aside < r->gpu_note + len)
			len = (size_t)(aside - r->gpu_note);
		str_addf(out, ": %.*s", (int)len, r->gpu_note);
	} else if (r->gpu_known) {
		str_addf(
			out, ": no card was used; this host has %lld", (long long)r->gpu_count);
	}
}

/* Two lines: memory and time. */
static void add_gpu(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	struct used used = cards_used(r);
	const char *why = why_no_gpu(r, &used);
	begin_line(out, "GPU memory");
	if (why) {
		str_add(out, why);
		add_reason(out, r);
	} else {
		add_gpu_memory(out, r, style, &used);
	}
	str_add(out, "\n");
	begin_line(out, "GPU time");
	if (why)
		str_add(out, why);
	else
		add_gpu_time(out, r, style);
	str_add(out, "\n");
}

void track_short_text(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	add_time(out, r, style);
	add_cpu(out, r, style);
	add_ram(out, r, style);
	add_gpu(out, r, style);
	if (!style->advice)
		return;
	struct track_advice advice;
	track_advise(&advice, r, style);
	begin_line(out, "Slurm");
	str_addf(out, "%s (%s)\n", advice.command, advice.basis);
}
