/* What scontrol prints: jobs as text and as JSON, lists of hosts and of resources. */
#include "fuzz.h"

#include "lease/slurm_gres.h"
#include "lease/slurm_jobs.h"

static void take(void *context, const struct lease_file *f)
{
	char name[LEASE_FILE_NAME_CAP];
	CHECK(context == NULL && f->cards && *f->cards && f->share >= 0);
	CHECK(f->id && lease_file_name(name, f->id));
	CHECK(strspn(f->cards, "0123456789,") == strlen(f->cards));
	CHECK(f->uid >= -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slurm_jobs j = { "n1", take, NULL };
	struct err e = { 0 };
	char *text = fuzz_text(data, size);
	struct slurm_gres g = { 0 };
	slurm_gres_add(&g, text);
	CHECK(!g.cards.failed && g.share >= 0);
	str_finish(&g.cards);
	CHECK(slurm_gres_host(text, "n1") >= -1);
	if (*text == '{')
		slurm_jobs_json(&j, text, size, &e);
	else
		slurm_jobs_text(&j, "4", text, size, &e);
	free(text);
	return 0;
}
