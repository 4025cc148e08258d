/* Compares several sub-tracked runs, each a result of 'sub-track analyze -f json'. */
#include "subtrack/subtrack.h"

enum { MAX_FILE = 64 << 20, MAX_SESSIONS = 64, PATH_NAME_CAP = 2100 };

/* A block of a session, and what it is sorted by. */
struct loaded_block {
	json_t *values;
	char *key;
};

/* A session's parsed file, its blocks in order. */
struct loaded {
	const char *name;
	json_t *file;
	struct loaded_block *blocks;
	size_t n_blocks;
};

/* All sessions, in the order in which they were given. */
struct loaded_sessions {
	const struct loaded *rows;
	size_t n;
	size_t first; /* the first one by name: the others must have its blocks */
	const char *statistic;
};

static const char *block_name(const struct loaded_block *block)
{
	const char *name = json_string_value(json_object_get(block->values, "name"));
	return name ? name : "";
}

/* Splits "path:12" into "path" and 12; -1 for a name without a number. */
static long line_of(const char *name, size_t *base)
{
	const char *colon = strrchr(name, ':');
	*base = strlen(name);
	if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return -1;
	*base = (size_t)(colon - name);
	return strtol(colon + 1, NULL, 10);
}

static int by_key(const void *a, const void *b)
{
	const struct loaded_block *x = a, *y = b;
	return strcmp(x->key, y->key);
}

/* Sorts the blocks by name, in which line numbers count as numbers: as gpu-tracker does, all
 * are written with as many digits as the longest. False: out of memory. */
static bool sort_blocks(struct loaded *l)
{
	size_t base, digits = 0;
	for (size_t i = 0; i < l->n_blocks; i++) {
		const char *name = block_name(&l->blocks[i]);
		size_t own = line_of(name, &base) < 0 ? 0 : strlen(name) - base - 1;
		digits = own > digits ? own : digits;
	}
	for (size_t i = 0; i < l->n_blocks; i++) {
		const char *name = block_name(&l->blocks[i]);
		struct str key = { 0 };
		bool numbered = line_of(name, &base) >= 0;
		str_add_bytes(&key, name, base);
		if (numbered) {
			size_t own = strlen(name) - base - 1;
			str_add(&key, ":");
			str_add_repeat(&key, "0", digits - own);
		}
		str_add(&key, numbered ? name + base + 1 : "");
		l->blocks[i].key = key.data;
		if (key.failed || !key.data)
			return false;
	}
	array_sort(l->blocks, l->n_blocks, by_key);
	return true;
}

static int load(struct loaded *l, const struct subtrack_session *session, struct err *e)
{
	const char *path = session->path;
	char *bytes = NULL, first[2] = "";
	size_t len = 0;
	json_error_t problem;
	*l = (struct loaded){ .name = session->name };
	if (file_check_regular(path, e))
		return e->code;
	if (file_read_at(AT_FDCWD, path, first, sizeof(first)) > 0 &&
		(unsigned char)first[0] == 0x80)
		return err_set(e, ERR_WORLD,
			"%s is a pickle, and loading one runs the code in it; make the result "
			"again with 'sub-track analyze -f json', or convert the pickle as "
			"gua-sub-track(1) shows",
			path);
	if (file_read_all(path, MAX_FILE, &bytes, &len, e))
		return e->code;
	l->file = json_loadb(bytes, len, 0, &problem);
	free(bytes);
	if (!l->file)
		return err_set(e, ERR_WORLD, "%s is not JSON: line %d: %s", path, problem.line,
			problem.text);
	json_t *list = json_object_get(l->file, "code_block_results");
	if (!json_is_array(list) || !json_is_object(json_object_get(l->file, "overall")))
		return err_set(e, ERR_WORLD,
			"%s is not a result of 'sub-track analyze -f json'", path);
	l->blocks = calloc(json_array_size(list) + 1, sizeof(*l->blocks));
	if (!l->blocks)
		return err_memory(e);
	for (; l->n_blocks < json_array_size(list); l->n_blocks++)
		l->blocks[l->n_blocks].values = json_array_get(list, l->n_blocks);
	return sort_blocks(l) ? 0 : err_memory(e);
}

/* A value of one session in a group that is being sorted. */
struct entry {
	const char *name;
	json_t *value;
	size_t order; /* as given */
};

static int by_value(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	double p = json_number_value(x->value), q = json_number_value(y->value);
	if (json_is_null(x->value) != json_is_null(y->value))
		return json_is_null(x->value) - json_is_null(y->value);
	if (p != q)
		return p > q ? 1 : -1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* In place of a block: all of the run. */
#define OVERALL SIZE_MAX

/* The statistics that a session has of a block: of one measurement, or of its compute time
 * (measurement NULL). */
static const json_t *stats_of(const struct loaded *l, size_t block, const char *measurement)
{
	const json_t *all = block == OVERALL
				    ? json_object_get(l->file, "overall")
				    : json_object_get(l->blocks[block].values,
					      measurement ? "resource_usage" : "compute_time");
	return measurement ? json_object_get(all, measurement) : all;
}

/* { session: value } in ascending order, equal ones as given; unknown last. */
static json_t *group(const struct loaded_sessions *s, size_t block, const char *measurement)
{
	struct entry entries[MAX_SESSIONS] = { 0 };
	json_t *result = json_object();
	for (size_t i = 0; i < s->n; i++) {
		json_t *value = json_object_get(
			stats_of(&s->rows[i], block, measurement), s->statistic);
		entries[i] = (struct entry){ s->rows[i].name,
			json_is_number(value) ? value : json_null(), i };
	}
	qsort(entries, s->n, sizeof(*entries), by_value);
	for (size_t i = 0; i < s->n; i++)
		json_object_set_new(result, entries[i].name, json_copy(entries[i].value));
	return result;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* { block: { session: value } } of one measurement, or of the compute time. */
static json_t *compare_blocks(const struct loaded_sessions *s, const char *measurement)
{
	json_t *result = json_object();
	for (size_t b = 0; b < s->rows[s->first].n_blocks; b++) {
		char name[PATH_NAME_CAP];
		/* The block's name, or "a -> b -> c" where line numbers moved: the different
		 * names, sorted. */
		const char *names[MAX_SESSIONS] = { 0 };
		for (size_t i = 0; i < s->n; i++)
			names[i] = block_name(&s->rows[i].blocks[b]);
		qsort(names, s->n, sizeof(names[0]), by_text);
		int at = snprintf(name, PATH_NAME_CAP, "%s", names[0]);
		for (size_t i = 1; i < s->n && at > 0 && at < PATH_NAME_CAP; i++)
			if (strcmp(names[i], names[i - 1]) != 0)
				at += snprintf(name + at, (size_t)(PATH_NAME_CAP - at),
					" -> %s", names[i]);
		json_object_set_new(result, name, group(s, b, measurement));
	}
	return result;
}

static int check_session(
	const struct loaded *l, const struct loaded *first, struct str *warnings, struct err *e)
{
	if (l->n_blocks != first->n_blocks)
		return err_set(e, ERR_WORLD,
			"%s has %zu code blocks and %s has %zu: they cannot be compared",
			first->name, first->n_blocks, l->name, l->n_blocks);
	for (size_t b = 0; b < l->n_blocks; b++) {
		const char *own = block_name(&l->blocks[b]);
		const char *other = block_name(&first->blocks[b]);
		char safe_own[PATH_NAME_CAP], safe_other[PATH_NAME_CAP];
		size_t own_base = 0, other_base = 0;
		bool own_line = line_of(own, &own_base) >= 0;
		if (own_line != (line_of(other, &other_base) >= 0) || own_base != other_base ||
			memcmp(own, other, own_base) != 0)
			return err_set(e, ERR_WORLD,
				"code block %s of %s has no match in %s: there it is %s", other,
				first->name, l->name, own);
		if (strcmp(own, other) == 0)
			continue;
		/* The blocks differ in their line numbers only. */
		str_escape(safe_own, sizeof(safe_own), own, strlen(own));
		str_escape(safe_other, sizeof(safe_other), other, strlen(other));
		str_addf(warnings, "code block %s of %s is compared with %s of %s\n", safe_own,
			l->name, safe_other, first->name);
	}
	return 0;
}

int subtrack_compare(struct subtrack_comparison *c, struct err *e)
{
	size_t n = c->n;
	struct loaded loaded[MAX_SESSIONS] = { 0 };
	if (n == 0 || n > MAX_SESSIONS)
		return err_set(e, ERR_USAGE, "give 1 to %d results to compare", MAX_SESSIONS);
	struct loaded_sessions all = { loaded, n, 0, c->statistic };
	for (size_t i = 1; i < n; i++)
		if (strcmp(c->sessions[i].name, c->sessions[all.first].name) < 0)
			all.first = i;
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++)
		rc = load(&loaded[i], &c->sessions[i], e);
	for (size_t i = 0; !rc && i < n; i++)
		rc = check_session(&loaded[i], &loaded[all.first], &c->warnings, e);
	if (!rc) {
		const struct loaded *first = &loaded[all.first];
		json_t *overall = json_object(), *usage = json_object(), *unused;
		const char *measurement;
		json_object_foreach(
			json_object_get(first->file, "overall"), measurement, unused)
		{
			json_object_set_new(
				overall, measurement, group(&all, OVERALL, measurement));
			if (first->n_blocks)
				json_object_set_new(
					usage, measurement, compare_blocks(&all, measurement));
		}
		c->result = json_object();
		json_object_set_new(c->result, "overall_resource_usage", overall);
		json_object_set_new(c->result, "code_block_resource_usage", usage);
		json_object_set_new(
			c->result, "code_block_compute_time", compare_blocks(&all, NULL));
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < loaded[i].n_blocks; k++)
			free(loaded[i].blocks[k].key);
		free(loaded[i].blocks);
		json_decref(loaded[i].file);
	}
	return rc;
}
