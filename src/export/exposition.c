/* Metrics as text for Prometheus and its relatives: names, labels, and the families of
 * /metrics in their order. */
#include "export/exposition.h"

#include "version.h"

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

void exposition_label(struct str *labels, const char *name, const char *value)
{
	str_addf(labels, "%s%s=\"", labels->len ? "," : "", name);
	add_escaped(labels, value, true);
	str_add(labels, "\"");
}

void exposition_label_card(struct str *labels, const struct card_id *id)
{
	struct brief gpu = card_label(id);
	exposition_label(labels, "gpu", gpu.text);
	exposition_label(labels, "uuid", id->uuid);
}

void exposition_label_info(struct str *labels, const struct scrape_card *c, const char *driver)
{
	exposition_label_card(labels, &c->id);
	exposition_label(labels, "model", c->id.name);
	exposition_label(labels, "driver_version", driver);
	exposition_label(labels, "mig", c->id.mig_index >= 0 ? "true" : "false");
	exposition_label(labels, "source", c->source);
}

void exposition_name(struct str *out, const struct family *f)
{
	static const char *const ends[] = {
		[FAMILY_COUNTER] = "_total", [FAMILY_GAUGE] = "", [FAMILY_INFO] = "_info"
	};
	str_add(out, f->name);
	str_add(out, ends[f->type]);
}

/* In OpenMetrics, a family has another name than its samples, a unit, and its help last. */
void exposition_head(struct str *out, const struct family *f, bool openmetrics)
{
	static const char *const types[] = {
		[FAMILY_COUNTER] = "counter", [FAMILY_GAUGE] = "gauge", [FAMILY_INFO] = "info"
	};
	struct str name = { 0 };
	if (openmetrics)
		str_add(&name, f->name);
	else
		exposition_name(&name, f);
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

/* The current readings of a card. */
enum reading { UTIL, USED, TOTAL, POWER, LIMIT, TEMPERATURE, PROCESSES, SPELLS, HELD_SINCE };

/* A family that is being printed; its head is printed with the first sample. */
struct printer {
	struct str *out;
	const struct family *family;
	bool openmetrics, begun;
	size_t which;	   /* see the table of families */
	struct str labels; /* of the next sample */
};

static void begin_sample(struct printer *p)
{
	if (!p->begun)
		exposition_head(p->out, p->family, p->openmetrics);
	p->begun = true;
	exposition_name(p->out, p->family);
	if (p->labels.len)
		str_addf(p->out, "{%s}", str_text(&p->labels));
	str_clear(&p->labels);
}

static void whole(struct printer *p, int64_t value)
{
	begin_sample(p);
	str_addf(p->out, " %lld\n", (long long)value);
}

/* Prints a reading, unless it is unknown. */
static void real(struct printer *p, double value)
{
	char text[40];
	str_exact_number(text, sizeof(text), value);
	if (!*text) {
		str_clear(&p->labels);
		return;
	}
	begin_sample(p);
	str_addf(p->out, " %s\n", text);
}

/* Counters are whole seconds and joules, which engines store in a third of the space. */
static int64_t whole_of(int64_t thousandths)
{
	return thousandths > 0 ? thousandths / 1000 : 0;
}

/* The time of each card by state or, with `which` ENERGY, its energy. */
enum { ENERGY = 1 };
static void print_states(struct printer *p, const struct scrape *s)
{
	bool energy = p->which == ENERGY;
	for (size_t i = 0; i < s->n_cards; i++) {
		const struct scrape_card *c = &s->cards[i];
		for (int k = 0; k < CARD_STATES && (c->has_energy || !energy); k++) {
			if ((k == CARD_UNOBSERVED && !energy) || /* a family of its own */
				(k == CARD_RESERVED && !s->has_leases))
				continue;
			exposition_label_card(&p->labels, &c->id);
			exposition_label(&p->labels, "state", state_looks[k].label);
			whole(p, whole_of(energy ? c->energy_mj[k] : c->ms[k]));
		}
	}
}

static void print_unobserved(struct printer *p, const struct scrape *s)
{
	for (size_t i = 0; i < s->n_cards; i++) {
		exposition_label_card(&p->labels, &s->cards[i].id);
		whole(p, whole_of(s->cards[i].ms[CARD_UNOBSERVED]));
	}
}

const char *exposition_identity_state(enum identity_sum sum)
{
	return sum == IDENTITY_ACTIVE	   ? state_looks[CARD_ACTIVE].label
	       : sum == IDENTITY_IDLE_HELD ? state_looks[CARD_IDLE_HELD].label
	       : sum == IDENTITY_RESERVED  ? state_looks[CARD_RESERVED].label
					   : NULL;
}

/* The shares of each identity or, with `which` IDENTITY_SQUATTING, its squatting. */
static void print_identities(struct printer *p, const struct scrape *s)
{
	for (size_t i = 0; i < s->n_identities; i++)
		for (int k = 0; k < IDENTITY_SUMS; k++) {
			const char *state = exposition_identity_state(k);
			if (p->which ? k != IDENTITY_SQUATTING
				     : !state || (k == IDENTITY_RESERVED && !s->has_leases))
				continue;
			exposition_label(&p->labels, "identity", s->identities[i].name);
			if (state)
				exposition_label(&p->labels, "state", state);
			whole(p, whole_of(s->identities[i].ms[k]));
		}
}

static double known(int64_t value)
{
	return value < 0 ? NAN : (double)value;
}

static double reading_of(const struct scrape_card *c, enum reading which)
{
	int64_t since_ms = c->now.idle_held_since_ms;
	const double readings[] = { [UTIL] = c->now.util_pct / 100,
		[USED] = known(c->now.mem_used_bytes),
		[TOTAL] = known(c->id.mem_total_bytes),
		[POWER] = c->now.power_w,
		[LIMIT] = c->now.power_limit_w,
		[TEMPERATURE] = c->now.temperature_c,
		[PROCESSES] = (double)c->processes,
		[SPELLS] = (double)c->spells,
		[HELD_SINCE] = since_ms < 0 ? 0 : (double)(since_ms / 1000) };
	return readings[which];
}

/* Rounds a measured value to a few digits: more would be noise that an engine stores. */
static double rounded(double value, size_t which)
{
	double steps = which == UTIL ? 1e4 : which == POWER ? 100 : 1;
	return round(value * steps) / steps;
}

static void print_readings(struct printer *p, const struct scrape *s)
{
	for (size_t i = 0; i < s->n_cards; i++) {
		if (!s->cards[i].live)
			continue;
		exposition_label_card(&p->labels, &s->cards[i].id);
		real(p, rounded(reading_of(&s->cards[i], (enum reading)p->which), p->which));
	}
}

/* The same by the names, labels and units of dcgm-exporter. */
static void print_dcgm(struct printer *p, const struct scrape *s)
{
	for (size_t i = 0; i < s->n_cards && s->dcgm; i++) {
		const struct scrape_card *c = &s->cards[i];
		double value = reading_of(c, (enum reading)p->which);
		if (!c->live)
			continue;
		if (p->which == TOTAL)
			value -= known(c->now.mem_used_bytes);
		value *= p->which == UTIL			 ? 100
			 : p->which == USED || p->which == TOTAL ? 0x1p-20
								 : 1;
		char gpu[16];
		snprintf(gpu, sizeof(gpu), "%d", c->id.index);
		exposition_label(&p->labels, "gpu", gpu);
		bool mig = c->id.mig_index >= 0;
		exposition_label(&p->labels, "UUID", mig ? c->id.parent_uuid : c->id.uuid);
		exposition_label(&p->labels, "modelName", c->id.name);
		snprintf(gpu, sizeof(gpu), "%d", c->id.gpu_instance);
		if (mig)
			exposition_label(&p->labels, "GPU_I_ID", gpu);
		real(p, p->which == POWER ? round(100 * value) / 100 : round(value));
	}
}

static void print_spells_ended(struct printer *p, const struct scrape *s)
{
	for (int i = 0; i < SPELL_STOPPED; i++) {
		exposition_label(&p->labels, "how", spell_end_names[i]);
		whole(p, s->spells_ended[i]);
	}
}

static void print_actions(struct printer *p, const struct scrape *s)
{
	for (size_t i = 0; i < s->n_actions; i++) {
		exposition_label(&p->labels, "action", s->actions[i].step);
		exposition_label(&p->labels, "mode", s->actions[i].mode);
		whole(p, s->actions[i].count);
	}
}

static void print_card_info(struct printer *p, const struct scrape *s)
{
	for (size_t i = 0; i < s->n_cards; i++) {
		exposition_label_info(&p->labels, &s->cards[i], s->driver);
		whole(p, 1);
	}
}

static void print_build(struct printer *p, const struct scrape *s)
{
	(void)s;
	exposition_label(&p->labels, "version", GUA_VERSION);
	whole(p, 1);
}

static void print_recorder(struct printer *p, const struct scrape *s)
{
	if (!s->any_run)
		return;
	exposition_label(&p->labels, "version", s->version);
	exposition_label(&p->labels, "source", s->source);
	whole(p, 1);
}

static void print_others(struct printer *p, const struct scrape *s)
{
	if (s->has_identities)
		whole(p, s->others);
}

static void print_up(struct printer *p, const struct scrape *s)
{
	whole(p, s->up);
}

static void print_faults(struct printer *p, const struct scrape *s)
{
	real(p, known(s->faults));
}

/* A count of struct scrape, and a moment or a length in milliseconds, by its offset. */
static void print_count(struct printer *p, const struct scrape *s)
{
	whole(p, *(const int64_t *)((const char *)s + p->which));
}

static void print_seconds(struct printer *p, const struct scrape *s)
{
	if (s->any_run)
		real(p, (double)*(const int64_t *)((const char *)s + p->which) / 1000);
}

#define FAMILY(kind, print, which, name, unit, help)                                           \
	{                                                                                      \
		print, which,                                                                  \
		{                                                                              \
			name, FAMILY_##kind, unit, help                                        \
		}                                                                              \
	}
static const struct {
	void (*print)(struct printer *p, const struct scrape *s);
	size_t which; /* an enum reading, or the offset of a member of struct scrape */
	struct family family;
} families[] = {
	FAMILY(COUNTER, print_states, 0, "gua_gpu_state_seconds", "seconds",
		"Time of a card by state; idle_held: held and not used."),
	FAMILY(COUNTER, print_unobserved, 0, "gua_gpu_unobserved_seconds", "seconds",
		"Time of a card without a reading while the recorder ran."),
	FAMILY(COUNTER, print_states, ENERGY, "gua_gpu_energy_joules", "joules",
		"Energy of a card by the state it was in, of the time with known energy."),
	FAMILY(COUNTER, print_identities, 0, "gua_identity_gpu_seconds", "seconds",
		"Shares of cards' active and idle-held time by whose it is; they add up to "
		"that time."),
	FAMILY(COUNTER, print_identities, IDENTITY_SQUATTING, "gua_identity_squatting_seconds",
		"seconds", "Time in which somebody held a card idle that others kept active."),
	FAMILY(GAUGE, print_others, 0, "gua_identities_folded", NULL,
		"Users without a series of their own, whose time is in _other."),
	FAMILY(GAUGE, print_readings, UTIL, "gua_gpu_utilization_ratio", "ratio",
		"Mean utilisation of a card between the last two ticks."),
	FAMILY(GAUGE, print_readings, USED, "gua_gpu_memory_used_bytes", "bytes",
		"Memory in use on a card."),
	FAMILY(GAUGE, print_readings, TOTAL, "gua_gpu_memory_total_bytes", "bytes",
		"Memory of a card."),
	FAMILY(GAUGE, print_readings, POWER, "gua_gpu_power_watts", "watts",
		"Mean power of a card between the last two ticks."),
	FAMILY(GAUGE, print_readings, LIMIT, "gua_gpu_power_limit_watts", "watts",
		"Power limit in force."),
	FAMILY(GAUGE, print_readings, TEMPERATURE, "gua_gpu_temperature_celsius", "celsius",
		"Temperature of a card."),
	FAMILY(GAUGE, print_readings, PROCESSES, "gua_gpu_processes", NULL,
		"Processes that hold a card."),
	FAMILY(GAUGE, print_readings, HELD_SINCE, "gua_gpu_idle_held_since_timestamp_seconds",
		"seconds", "Since when a card is held and not used; 0: it is not."),
	FAMILY(GAUGE, print_readings, SPELLS, "gua_gpu_idle_spells", NULL,
		"Idle spells of processes on a card that go on."),
	FAMILY(GAUGE, print_dcgm, UTIL, "DCGM_FI_DEV_GPU_UTIL", NULL,
		"GPU utilization (in %)."),
	FAMILY(GAUGE, print_dcgm, USED, "DCGM_FI_DEV_FB_USED", NULL,
		"Framebuffer memory used (in MiB)."),
	FAMILY(GAUGE, print_dcgm, TOTAL, "DCGM_FI_DEV_FB_FREE", NULL,
		"Framebuffer memory free (in MiB)."),
	FAMILY(GAUGE, print_dcgm, POWER, "DCGM_FI_DEV_POWER_USAGE", NULL, "Power draw (in W)."),
	FAMILY(GAUGE, print_dcgm, TEMPERATURE, "DCGM_FI_DEV_GPU_TEMP", NULL,
		"GPU temperature (in C)."),
	FAMILY(COUNTER, print_spells_ended, 0, "gua_idle_spells", NULL,
		"Idle spells that ended, by how."),
	FAMILY(COUNTER, print_actions, 0, "gua_policy_actions", NULL,
		"What enforcement did, or would have done."),
	FAMILY(INFO, print_card_info, 0, "gua_gpu", NULL,
		"What a card is; source sim is invented data, capture is of another host."),
	FAMILY(GAUGE, print_count, offsetof(struct scrape, present), "gua_gpus", NULL,
		"Cards and MIG instances that should be observed."),
	FAMILY(GAUGE, print_seconds, offsetof(struct scrape, last_tick_ms),
		"gua_sample_timestamp_seconds", "seconds",
		"Up to when the counters are accounted."),
	FAMILY(GAUGE, print_up, 0, "gua_up", NULL,
		"Whether the recorder runs and its last tick is not too old."),
	FAMILY(INFO, print_recorder, 0, "gua_recorder", NULL,
		"The newest run of the recorder."),
	FAMILY(GAUGE, print_seconds, offsetof(struct scrape, started_ms),
		"gua_recorder_start_timestamp_seconds", "seconds",
		"When the newest run of the recorder began."),
	FAMILY(GAUGE, print_seconds, offsetof(struct scrape, interval_ms),
		"gua_recorder_interval_seconds", "seconds", "Time between two ticks."),
	FAMILY(GAUGE, print_faults, 0, "gua_recorder_faults", NULL,
		"Faults that the recorder reports now; see gua status."),
	FAMILY(COUNTER, print_count, offsetof(struct scrape, events), "gua_events", NULL,
		"Events in the store: lost cards, XIDs, gaps; see gua events."),
	FAMILY(GAUGE, print_count, offsetof(struct scrape, db_bytes), "gua_db_bytes", "bytes",
		"Size of the store with its log."),
	FAMILY(INFO, print_build, 0, "gua_build", NULL, "The program that shows this."),
};

const struct family *exposition_family(const char *name)
{
	size_t i = 0;
	while (strcmp(families[i].family.name, name) != 0)
		i++;
	return &families[i].family;
}

void exposition_print(struct str *out, const struct scrape *s, bool openmetrics)
{
	struct printer p = { .out = out, .openmetrics = openmetrics };
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		p.family = &families[i].family;
		p.begun = false;
		p.which = families[i].which;
		families[i].print(&p, s);
	}
	if (openmetrics)
		str_add(out, "# EOF\n");
	out->failed |= p.labels.failed;
	str_finish(&p.labels);
}
