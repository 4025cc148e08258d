/* Checks the options of gua export --openmetrics and prints to stdout. */
#include "cmd/export_openmetrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "model/sentence.h"
#include "export/history.h"
#include "export/exposition.h"
#include "driver/kind.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

static bool is_own(const char *name)
{
	static const char *const own[] = { "gpu", "uuid", "state", "identity", "model",
		"driver_version", "mig", "source" };
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(own[i], name) == 0)
			return true;
	return false;
}

/* Adds NAME=VALUE, which may be anything after the first '='. */
static int add_label(struct str *labels, const char *text, struct err *e)
{
	char name[128];
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;
	if (len == 0 || len >= sizeof(name) || strspn(text, LETTERS) == 0 ||
		strspn(text, LETTERS "0123456789") != len)
		return err_set(e, ERR_USAGE,
			"--label '%s' is not NAME=VALUE with a name of letters, digits and _",
			text);
	memcpy(name, text, len);
	name[len] = '\0';
	if (is_own(name) || strncmp(name, "__", 2) == 0)
		return err_set(e, ERR_USAGE, "--label: the name '%s' is taken", name);
	exposition_label(labels, name, equals + 1);
	return 0;
}

static int flush(struct str *out, void *context, struct err *e)
{
	(void)context;
	if (out->failed)
		return err_memory(e);
	if (out->len && fwrite(out->data, 1, out->len, stdout) != out->len)
		return err_set(e, ERR_WORLD, "cannot write the output: %s", strerror(errno));
	str_clear(out);
	return 0;
}

static int print(struct history *h, const struct backfill *b, struct err *e)
{
	struct str out = { 0 };
	int rc = history_print(&out, h, b, e);
	str_finish(&out);
	if (rc == 0 && fflush(stdout) != 0)
		rc = err_set(e, ERR_WORLD, "cannot write the output: %s", strerror(errno));
	return rc;
}

int export_openmetrics(const char *path, struct export_window window,
	const struct openmetrics_options *o, const struct config *config, struct err *e)
{
	struct str labels = { 0 };
	struct identity_names names;
	struct history *h = NULL;
	int rc = identity_names_init(&names, config, o->identities, e);
	for (size_t i = 0; rc == 0 && i < o->labels.n; i++)
		rc = add_label(&labels, o->labels.items[i], e);
	if (rc == 0)
		rc = history_open(&h, path, window, &names, e);
	const char *source = rc == 0 ? history_totals(h)->source : "";
	if (source_is_invented(source))
		log_notice("%s: %s", path,
			source_is_captured(source) ? CAPTURED_NOTE : SIMULATED_NOTE);
	if (rc == 0)
		rc = print(h,
			&(struct backfill){
				.step_s = (o->step_ms ? o->step_ms : STEP_DEFAULT_MS) / 1000,
				.labels = str_text(&labels),
				.flush = flush },
			e);
	history_close(h);
	str_finish(&labels);
	return rc;
}
