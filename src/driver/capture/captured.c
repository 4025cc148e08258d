/* A capture as a source: the real driver's code runs on a play of the file. The capture is of
 * another host, so everything that gua reads from /proc and /sys comes from the file too. */
#include "driver/nvml/nvml.h"

bool captured_asleep(const struct capture_play *play, const char *pci)
{
	const struct capture_file *r = play->recorded;
	for (size_t i = 0; i < r->n_gpus; i++)
		if (r->asleep[i] && strcmp(r->gpus[i].pci, pci) == 0)
			return true;
	return false;
}

size_t captured_gpus(const struct capture_play *play, struct proc_card *gpus)
{
	const struct capture_file *r = play->recorded;
	memcpy(gpus, r->gpus, r->n_gpus * sizeof(gpus[0]));
	return r->n_gpus;
}

bool captured_describe(struct source *base, uint32_t pid, struct process_id *id)
{
	const struct capture_play *play = ((struct nvml_source *)base)->play;
	const struct capture_file_process *found = capture_file_process(play->recorded, pid);
	struct moment opened = play->opened;
	char key[CAPTURE_LINE_CAP], value[CAPTURE_LINE_CAP];
	const char *at = found ? found->pairs : NULL;
	if (!at)
		return false;
	*id = (struct process_id){ .pid = pid,
		.uid = -1,
		.owner_uid = -1,
		.started_ms = -1,
		.start_ticks = 1,
		.user = USER_UNKNOWN };
	while (capture_file_pair(&at, key, value)) {
		if (strcmp(key, "user") == 0 && *value)
			str_copy(id->user, sizeof(id->user), value);
		if (strcmp(key, "age_ms") == 0) {
			int64_t age_ms = strtoll(value, NULL, 10),
				now_ms = opened.wall_us / 1000;
			id->started_ms =
				age_ms >= 0 && age_ms < now_ms ? now_ms - age_ms : now_ms;
			id->start_ticks = (uint64_t)id->started_ms / 10 + 1;
		}
		for (size_t i = 0; i < PROCESS_TEXTS; i++)
			if (strcmp(key, process_fields[i].name) == 0)
				str_copy((char *)id + process_fields[i].offset,
					process_fields[i].cap, value);
	}
	return true;
}

int captured_source_open(
	struct source **source, const struct source_options *options, struct err *e)
{
	struct capture_file *recorded = NULL;
	struct capture_play *play = NULL;
	if (capture_file_open(&recorded, source_capture_path(options->name), e) != 0 ||
		capture_play_open(&play, recorded, options->clock, e) != 0 ||
		nvml_open(source, options, play, e) != 0)
		return e->code;
	str_copy((*source)->hostname, sizeof((*source)->hostname), "captured-host");
	return 0;
}

int captured_check(const char *path, struct err *e)
{
	struct capture_file *r = NULL;
	int rc = capture_file_open(&r, path, e);
	capture_file_free(r);
	return rc;
}

void captured_diagnose(const struct diagnosis *d, struct findings *f)
{
	struct capture_file *r = NULL;
	struct err e = { 0 };
	if (capture_file_open(&r, source_capture_path(d->name), &e) != 0) {
		finding_add(f, FINDING_PROBLEM, "capture", "%s", e.text);
		return;
	}
	finding_add(f, FINDING_OK, "capture",
		"this is a capture of another host, made %s: not this host, and not now",
		r->made[0] ? r->made : "at an unknown time");
	finding_add(f, FINDING_OK, "system", "%s%s%s",
		r->system[0] ? r->system : "unknown system", r->kernel[0] ? ", " : "",
		r->kernel);
	nvml_diagnose_at(d, &r->site, f);
	capture_file_free(r);
}
