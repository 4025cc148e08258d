/* Reads the recorder's configuration at the start and at SIGHUP. */
#include "cmd/daemon_config.h"

#include <string.h>

#include "base/log.h"

/* Reads into `c`. *wrong is set to what is wrong with an option, with ERR_USAGE. */
static int read_into(struct daemon_config *d, struct configuration *c, struct err *e)
{
	char text[2048];
	int rc = configure_read(c, d->from, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < c->settings.n_errors; i++) {
		settings_error_text(&c->settings, i, text, sizeof(text));
		if (configure_is_option(c, i))
			return err_set(e, ERR_USAGE, "%s", text);
		log_warning("%s", text);
	}
	settings_override(&config_schema, &c->values, d->table, d->options, c->given);
	return 0;
}

/* Whether a file that cannot be used, or a wrong value, may have asked for strict privacy. */
static bool may_be_strict(const struct settings *s)
{
	bool may = false;
	for (size_t i = 0; i < s->n_errors; i++)
		may |= s->errors[i].whole;
	for (size_t i = 0; i < s->n_items; i++) {
		const struct config_key *key = s->items[i].key;
		may |= s->items[i].wrong && key && key->value.name &&
		       strcmp(key->value.name, "privacy") == 0;
	}
	return may;
}

static bool is_given(const struct daemon_config *d, const char *option)
{
	size_t i = 0;
	while (d->table[i].name && strcmp(d->table[i].name, option) != 0)
		i++;
	return d->table[i].name && d->now.given[i];
}

/* What was kept by mistake cannot be taken back, so the recorder is strict in case of doubt. */
int daemon_config_read(struct daemon_config *d, struct err *e)
{
	struct config *values = &d->now.values;
	int rc = read_into(d, &d->now, e);
	if (rc || is_given(d, "privacy") || !may_be_strict(&d->now.settings) ||
		config_privacy(values) == PRIVACY_STRICT)
		return rc;
	values->privacy = privacy_names[PRIVACY_STRICT];
	log_warning("privacy is strict until the configuration is right");
	return 0;
}

static void report(
	struct daemon_config *d, const struct settings *s, int64_t now_ms, const char *instead)
{
	char first[2048];
	if (!s->n_errors) {
		fault_clear(&d->fault, now_ms);
		return;
	}
	settings_error_text(s, 0, first, sizeof(first));
	fault_raise(&d->fault, now_ms,
		"the configuration has %zu error%s; %s in force. See gua config --check. "
		"First: %.100s",
		s->n_errors, s->n_errors == 1 ? "" : "s", instead, first);
}

void daemon_config_report(struct daemon_config *d, int64_t now_ms)
{
	report(d, &d->now.settings, now_ms, "the rest of it is");
}

/* Logs the recorder's keys that are different; returns how many are. */
static size_t log_changes(const struct daemon_config *d)
{
	size_t n = 0;
	char new[64];
	for (const struct config_key *key = config_schema.keys; key->section; key++) {
		if (!key->commands || !strstr(key->commands, "daemon") ||
			!settings_differ(key, &d->now.values, &d->next.values))
			continue;
		settings_value_text(key, &d->next.values, new, sizeof(new));
		log_notice("configuration: %s is %s after the next tick", key->value.name, new);
		n++;
	}
	return n;
}

void daemon_config_again(struct daemon_config *d, int64_t now_ms)
{
	struct err e = { 0 };
	configuration_finish(&d->next);
	d->next = (struct configuration){ .root = d->now.root, .recorder = d->now.recorder };
	memcpy(d->next.given, d->now.given, sizeof(d->next.given));
	d->changed = false;
	if (read_into(d, &d->next, &e)) {
		log_warning("the configuration cannot be read again: %s", e.text);
		return;
	}
	report(d, &d->next.settings, now_ms, "the one read before is still");
	if (!d->next.settings.n_errors)
		d->changed = log_changes(d) > 0;
}

void daemon_config_next(struct daemon_config *d)
{
	if (!d->changed)
		return;
	configuration_finish(&d->now);
	d->now = d->next;
	d->next = (struct configuration){ 0 };
	d->changed = false;
}

void daemon_config_finish(struct daemon_config *d)
{
	configuration_finish(&d->now);
	configuration_finish(&d->next);
}
