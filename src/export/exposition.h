/* Metrics as text for Prometheus and its relatives: the text format 0.0.4, and OpenMetrics 1.0.
 * Series never have a host, a pid, a path or a command as a label. */
#pragma once

#include "base/base.h"
#include "model/scrape.h"

#define EXPOSITION_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define EXPOSITION_OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Appends all families. */
void exposition_print(struct str *out, const struct scrape *s, bool openmetrics);

/* The parts, for programs that print other samples of the same families. */
enum family_type { FAMILY_COUNTER, FAMILY_GAUGE, FAMILY_INFO };
struct family {
	const char *name; /* without _total or _info */
	enum family_type type;
	const char *unit; /* the end of the name; NULL: no unit */
	const char *help;
};
void exposition_head(struct str *out, const struct family *f, bool openmetrics);
/* The name of its samples. */
void exposition_name(struct str *out, const struct family *f);
/* Appends `name="value"`, with a comma after the labels before it. */
void exposition_label(struct str *labels, const char *name, const char *value);
/* The labels of a card: gpu and uuid. */
void exposition_label_card(struct str *labels, const struct card_id *id);
/* The label of an identity's time; NULL: it is not a state. */
const char *exposition_identity_state(enum identity_sum sum);

/* All labels of gua_gpu_info. */
void exposition_label_info(struct str *labels, const struct scrape_card *c, const char *driver);

/* The family of this name, which must be one. */
const struct family *exposition_family(const char *name);
