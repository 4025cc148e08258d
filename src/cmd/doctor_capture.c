/* gua doctor --capture: what the driver answers on this host, in a file that a user can read
 * and send. Names of users, commands, jobs and so on are replaced. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/timetext.h"
#include "cmd/cmd_doctor.h"
#include "proc/reader.h"
#include "driver/capture/capture.h"
#include "version.h"

enum { USERS = 100, FIRST_FIELD = 101 }; /* kinds of names, beside those of the driver */

static void add_head(const struct nvml_capture_options *o, struct str *out)
{
	char now[40];
	moment_iso(now, sizeof(now), clock_wall_ms(o->clock));
	str_add(out, NVML_CAPTURE_HEAD
		"\n"
		"# Made by gua doctor --capture: what NVIDIA's driver answers on a host. "
		"Please "
		"read it\n"
		"# before you send it. Names of users, commands, jobs, containers and hosts, "
		"UUIDs and\n"
		"# serial numbers are replaced; pids, times, models and versions are not. "
		"gua-capture(5)\n"
		"# explains the lines.\n");
	str_addf(out, "made %s\ngua %s\n", now, GUA_VERSION);
	capture_system(o->root, out);
}

static void add_user(struct nvml_secrets *names, const struct process_id *id, struct str *out)
{
	bool public = strcmp(id->user, "root") == 0 || strcmp(id->user, USER_UNKNOWN) == 0;
	if (public)
		str_addf(out, " user \"%s\"", id->user);
	else
		str_addf(out, " user \"user-%u\"",
			nvml_secrets_number(names, USERS, id->user, strlen(id->user)));
}

/* The kind before a colon stays: "docker:container-1". Only gua's own words are kinds: a unit
 * may have a colon in its name. */
static void add_field(struct nvml_secrets *names, enum process_text which,
	const struct process_id *id, struct str *out)
{
	const char *text = process_text(id, which), *colon = strchr(text, ':');
	const char *name = process_fields[which].name;
	int kind = FIRST_FIELD + (int)which;
	bool kinds =
		which == PROCESS_NOTEBOOK || which == PROCESS_JOB || which == PROCESS_CONTAINER;
	bool labelled = kinds && colon;
	if (!*text)
		return;
	str_addf(out, " %s \"%.*s%s-%u\"", name, labelled ? (int)(colon + 1 - text) : 0, text,
		name, nvml_secrets_number(names, kind, text, strlen(text)));
}

static void add_process(struct nvml_secrets *names, const struct process_id *id,
	int64_t begin_ms, struct str *out)
{
	static const enum process_text kept[] = { PROCESS_COMMAND, PROCESS_NOTEBOOK,
		PROCESS_JOB, PROCESS_CONTAINER, PROCESS_POD, PROCESS_UNIT };
	str_addf(out, "process %" PRIu32, id->pid);
	if (strcmp(id->user, USER_DEAD) == 0) {
		str_add(out, " gone\n");
		return;
	}
	if (id->started_ms >= 0)
		str_addf(out, " age_ms %" PRId64,
			begin_ms > id->started_ms ? begin_ms - id->started_ms : 0);
	add_user(names, id, out);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		add_field(names, kept[i], id, out);
	str_add(out, "\n");
}

/* The processes that the driver named, as far as /proc knows them. */
static void add_processes(const struct nvml_captured *seen, const char *root, struct str *out)
{
	struct nvml_secrets names = { 0 };
	struct reader *reader = NULL;
	if (seen->n_pids == 0 || reader_open(&reader, root, NULL) != 0)
		return;
	reader_expect(reader, seen->pids, seen->n_pids);
	for (size_t i = 0; i < seen->n_pids; i++) {
		struct process_id id;
		bool brief = false;
		reader_describe(reader, seen->pids[i], &id, &brief);
		add_process(&names, &id, seen->begin_ms, out);
	}
	reader_close(reader);
	nvml_secrets_finish(&names);
}

static void print_result(
	const struct nvml_captured *seen, const char *path, size_t size, struct str *out)
{
	char safe[512];
	text_escape(safe, sizeof(safe), path, strlen(path));
	str_addf(out, "Wrote %s: %zu KiB, %u call%s of the driver, %u card%s, %zu process%s.\n",
		safe, (size + 1023) / 1024, seen->n_calls, seen->n_calls == 1 ? "" : "s",
		seen->n_cards, seen->n_cards == 1 ? "" : "s", seen->n_pids,
		seen->n_pids == 1 ? "" : "es");
	if (seen->stuck[0])
		str_addf(out, "%s; the capture says so, and has the rest.\n", seen->stuck);
	if (seen->n_calls == 0)
		str_add(out, "The driver's library could not be loaded; 'gua doctor' says "
			     "why.\n");
	str_add(out,
		"Names of users, commands, jobs, containers and hosts, UUIDs and serial "
		"numbers are\nreplaced. Please read the file before you send it: it is plain "
		"text, see man\ngua-capture.\n");
}

int doctor_capture(
	const struct command *self, const char *path, const struct nvml_capture_options *o)
{
	struct str file = { 0 }, said = { 0 };
	struct nvml_captured seen = { 0 };
	struct err e = { 0 };
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "gua doctor: asking the driver, which takes %d s ...\n",
			o->rounds);
	add_head(o, &file);
	int rc = nvml_capture(o, &file, &seen, &e);
	if (!rc)
		add_processes(&seen, o->root, &file);
	str_add(&file, "end\n");
	if (!rc && file.failed)
		rc = err_memory(&e);
	if (!rc)
		rc = file_replace(path, str_text(&file), file.len, &e);
	if (!rc)
		print_result(&seen, path, file.len, &said);
	str_finish(&file);
	nvml_captured_finish(&seen);
	if (rc) {
		str_finish(&said);
		return cmd_fail(self, &e);
	}
	return cmd_print(self, &said);
}
