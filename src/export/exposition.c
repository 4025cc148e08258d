/* The text of a family: its head, its labels, its samples. */
#include "export/exposition.h"

#include <string.h>

const struct family family_state = { "gua_gpu_state_seconds", FAMILY_COUNTER, "seconds",
	"Time of a card by state; idle_held: held and not used." };
const struct family family_unobserved = { "gua_gpu_unobserved_seconds", FAMILY_COUNTER,
	"seconds", "Time of a card without a reading while the recorder ran." };
const struct family family_energy = { "gua_gpu_energy_joules", FAMILY_COUNTER, "joules",
	"Energy of a card by the state it was in, of the time with known energy." };
const struct family family_identity = {
	"gua_identity_gpu_seconds", FAMILY_COUNTER, "seconds",
	"Shares of cards' active and idle-held time by whose it is; they add up to that time."
};
const struct family family_squatting = { "gua_identity_squatting_seconds", FAMILY_COUNTER,
	"seconds", "Time in which somebody held a card idle that others kept active." };
const struct family family_gpus = { "gua_gpus", FAMILY_GAUGE, NULL,
	"Cards and MIG instances that should be observed." };
const struct family family_accounted = { "gua_sample_timestamp_seconds", FAMILY_GAUGE,
	"seconds", "Up to when the counters are accounted." };
const struct family family_card_info = { "gua_gpu", FAMILY_INFO, NULL,
	"What a card is; source sim is invented data, capture is of another host." };

const char *const exposition_states[CARD_STATES] = {
	[CARD_ACTIVE] = "active",
	[CARD_IDLE_HELD] = "idle_held",
	[CARD_TRULY_IDLE] = "idle",
	[CARD_UNOBSERVED] = "unobserved",
	[CARD_USE_UNKNOWN] = "use_unknown",
};

/* Appends text with escapes for a backslash, a line feed and, in labels, a quote. */
static void add_escaped(struct str *out, const char *text, bool quotes)
{
	for (const char *at = text; *at;) {
		size_t plain = strcspn(at, quotes ? "\\\n\"" : "\\\n");
		str_add_bytes(out, at, plain);
		at += plain;
		if (*at)
			str_add(out, *at == '\n' ? "\\n" : *at == '"' ? "\\\"" : "\\\\");
		at += *at != '\0';
	}
}

void label_add(struct str *labels, const char *name, const char *value)
{
	str_addf(labels, "%s%s=\"", labels->len ? "," : "", name);
	add_escaped(labels, value, true);
	str_add(labels, "\"");
}

void label_card(struct str *labels, const struct card_id *id)
{
	char gpu[CARD_LABEL_CAP];
	card_label(gpu, sizeof(gpu), id);
	label_add(labels, "gpu", gpu);
	label_add(labels, "uuid", id->uuid);
}

void label_card_info(struct str *labels, const struct scrape_card *c, const char *driver)
{
	label_card(labels, &c->id);
	label_add(labels, "model", c->id.name);
	label_add(labels, "driver_version", driver);
	label_add(labels, "mig", c->id.mig_index >= 0 ? "true" : "false");
	label_add(labels, "source", c->source);
}

void family_name(struct str *out, const struct family *f)
{
	static const char *const ends[] = {
		[FAMILY_COUNTER] = "_total", [FAMILY_GAUGE] = "", [FAMILY_INFO] = "_info"
	};
	str_add(out, f->name);
	str_add(out, ends[f->type]);
}

/* In OpenMetrics a family has another name than its samples, a unit, and the help last. */
void family_head(struct str *out, const struct family *f, bool openmetrics)
{
	static const char *const types[] = {
		[FAMILY_COUNTER] = "counter", [FAMILY_GAUGE] = "gauge", [FAMILY_INFO] = "info"
	};
	struct str name = { 0 };
	if (openmetrics)
		str_add(&name, f->name);
	else
		family_name(&name, f);
	const char *type = !openmetrics && f->type == FAMILY_INFO ? "gauge" : types[f->type];
	if (!openmetrics) {
		str_addf(out, "# HELP %s ", str_text(&name));
		add_escaped(out, f->help, false);
		str_addf(out, "\n# TYPE %s %s\n", str_text(&name), type);
	} else {
		str_addf(out, "# TYPE %s %s\n", str_text(&name), type);
		if (f->unit)
			str_addf(out, "# UNIT %s %s\n", str_text(&name), f->unit);
		str_addf(out, "# HELP %s ", str_text(&name));
		add_escaped(out, f->help, true);
		str_add(out, "\n");
	}
	out->failed |= name.failed;
	str_finish(&name);
}
