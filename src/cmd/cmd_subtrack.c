/* gua sub-track: reports what named blocks of code used, from samples of a tracking file. */
#include "cmd/cmd.h"

#include <jansson.h>

#include "subtrack/subtrack.h"

enum { MAX_SESSIONS = 64 };

struct values {
	const char *tracking_file, *sub_file, *output, *format, *config, *statistic;
	struct text_list paths, maps;
};

#define STATISTICS "min|max|mean|std"
#define AT(field) .offset = offsetof(struct values, field)

static const struct option_row options[] = {
	{ OPTION_TEXT, 0, "tf", "FILE", "analyze: the tracking file", AT(tracking_file) },
	{ OPTION_TEXT, 0, "stf", "FILE",
		"analyze: the sub-tracking file; combine: the file to create", AT(sub_file) },
	{ OPTION_LIST, 'p', "path", "PATH",
		"combine: a sub-tracking file, or one directory of them", AT(paths) },
	{ OPTION_LIST, 'm', "map", "NAME=FILE",
		"compare: a result of analyze -f json, and its name", AT(maps) },
	{ OPTION_TEXT, 0, "cconfig", "FILE", "compare: JSON with file_path_map and statistic",
		AT(config) },
	{ OPTION_CHOICE, 0, "stat", "STATISTIC", "compare: min, max, mean (default) or std",
		.choices = STATISTICS, AT(statistic) },
	{ OPTION_TEXT, 'o', "output", "FILE",
		"write the result to FILE (default: standard output)", AT(output) },
	{ OPTION_CHOICE, 'f', "format", "FORMAT", "text (default) or json",
		.choices = "text|json|pickle", AT(format) },
	{ 0 },
};

static bool wants_json(const struct values *v)
{
	return v->format && strcmp(v->format, "json") == 0;
}

static int analyze(const struct command *self, const struct values *v, struct err *e)
{
	struct subtrack s;
	struct str out = { 0 };
	if (!v->tracking_file || !v->sub_file)
		return err_set(e, ERR_USAGE, "analyze needs --tf and --stf");
	if (subtrack_analyze(&s, v->tracking_file, v->sub_file, e))
		return e->code;
	if (wants_json(v))
		subtrack_print_json(&out, &s);
	else
		subtrack_print_text(&out, &s);
	subtrack_finish(&s);
	return cmd_print_to(v->output, self, &out, e);
}

static int not_hidden(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Combines the files that are named, or all of one directory, in the order of their names. */
static int combine(const struct values *v, struct err *e)
{
	struct dirent **names = NULL;
	const char *folder = v->paths.n ? v->paths.items[0] : NULL;
	if (!v->sub_file || !folder)
		return err_set(e, ERR_USAGE, "combine needs --stf and -p");
	int n = v->paths.n > 1 ? -1 : scandir(folder, &names, not_hidden, alphasort);
	if (n < 0 && (v->paths.n > 1 || errno == ENOTDIR))
		return subtrack_combine(v->sub_file, v->paths.items, v->paths.n, e);
	if (n < 0)
		return err_set(e, ERR_WORLD, "cannot read the directory %s: %s", folder,
			strerror(errno));
	char(*paths)[PATH_MAX] = calloc((size_t)n + 1, sizeof(*paths));
	const char **list = calloc((size_t)n + 1, sizeof(*list));
	int rc = paths && list ? 0 : err_memory(e);
	for (int i = 0; i < n; i++) {
		if (rc == 0) {
			snprintf(paths[i], PATH_MAX, "%s/%s", folder, names[i]->d_name);
			list[i] = paths[i];
		}
		free(names[i]);
	}
	free(names);
	if (rc == 0)
		rc = subtrack_combine(v->sub_file, list, (size_t)n, e);
	free(paths);
	free(list);
	return rc;
}

/* The results to compare. */
struct session_list {
	struct subtrack_session items[MAX_SESSIONS];
	size_t n;
	struct arena names; /* of those that the command line names */
};

/* Finds the sessions: those of the configuration file, overridden by those of the command line.
 * The other strings stay in `config`. */
static int find_sessions(
	const struct values *v, const json_t *config, struct session_list *list, struct err *e)
{
	const char *name;
	json_t *path;
	json_object_foreach(json_object_get(config, "file_path_map"), name, path)
	{
		if (!json_is_string(path) || list->n == MAX_SESSIONS)
			return err_set(e, ERR_USAGE,
				"%s: file_path_map must name up to %d files", v->config,
				MAX_SESSIONS);
		list->items[list->n++] =
			(struct subtrack_session){ name, json_string_value(path) };
	}
	for (size_t i = 0; i < v->maps.n; i++) {
		const char *equals = strchr(v->maps.items[i], '=');
		if (!equals || equals == v->maps.items[i] || !equals[1])
			return err_set(
				e, ERR_USAGE, "-m takes NAME=FILE, not '%s'", v->maps.items[i]);
		const char *own = arena_textf(&list->names, "%.*s",
			(int)(equals - v->maps.items[i]), v->maps.items[i]);
		if (!own)
			return err_memory(e);
		size_t at = 0;
		while (at < list->n && strcmp(list->items[at].name, own) != 0)
			at++;
		if (at == MAX_SESSIONS)
			return err_set(e, ERR_USAGE, "more than %d results", MAX_SESSIONS);
		list->n += at == list->n;
		list->items[at] = (struct subtrack_session){ own, equals + 1 };
	}
	return list->n ? 0
		       : err_set(e, ERR_USAGE,
				 "compare needs results: -m NAME=FILE or --cconfig");
}

/* Without a file, it is an empty object. */
static int load_config(json_t **config, const char *path, struct err *e)
{
	json_error_t problem;
	if (path && file_check_regular(path, e) != 0)
		return e->code;
	*config = path ? json_load_file(path, 0, &problem) : json_object();
	if (json_is_object(*config))
		return 0;
	return err_set(e, ERR_USAGE, "--cconfig %s: %s", path,
		*config ? "not a JSON object" : problem.text);
}

static int compare(const struct command *self, const struct values *v, struct err *e)
{
	struct session_list list = { 0 };
	struct subtrack_comparison c = { .sessions = list.items };
	json_t *config = NULL;
	int rc = load_config(&config, v->config, e);
	const char *statistic = json_string_value(json_object_get(config, "statistic"));
	c.statistic = v->statistic ? v->statistic : statistic ? statistic : "mean";
	if (!rc && options_choice(STATISTICS, c.statistic) < 0)
		rc = err_set(e, ERR_USAGE, "'%s' is not a statistic; use min, max, mean or std",
			c.statistic);
	if (!rc)
		rc = find_sessions(v, config, &list, e);
	c.n = list.n;
	if (!rc)
		rc = subtrack_compare(&c, e);
	if (!rc) {
		struct str out = { 0 };
		const char *line = str_text(&c.warnings);
		for (size_t n; (n = strcspn(line, "\n")) > 0; line += n + (line[n] == '\n'))
			log_warning("%.*s", (int)n, line);
		if (wants_json(v))
			subtrack_print_comparison_json(&out, c.result);
		else
			subtrack_print_comparison(&out, c.result);
		rc = cmd_print_to(v->output, self, &out, e);
	}
	arena_finish(&list.names);
	str_finish(&c.warnings);
	json_decref(c.result);
	json_decref(config);
	return rc;
}

static int run(const struct call *call, struct err *e)
{
	const struct values *v = call->values;
	const char *action = call->operands[0] && !call->operands[1] ? call->operands[0] : "";
	if (v->format && strcmp(v->format, "pickle") == 0)
		return err_set(e, ERR_USAGE,
			"pickle files are not written, because loading one runs the code in "
			"it; use -f json, which compare reads");
	if (strcmp(action, "combine") == 0)
		return combine(v, e);
	if (strcmp(action, "analyze") == 0)
		return analyze(call->self, v, e);
	if (strcmp(action, "compare") == 0)
		return compare(call->self, v, e);
	return err_set(e, ERR_USAGE, "give an action: combine, analyze or compare");
}

const struct command cmd_subtrack = {
	.name = "sub-track",
	.summary = "report what named blocks of code used: combine, analyze, compare",
	.usage = "combine|analyze|compare [OPTIONS]",
	.details = "The files are written by 'gua track --tf' and by SubTracker of the Python "
		   "module.",
	.options = options,
	.values_size = sizeof(struct values),
	.operands = "combine|analyze|compare",
	.run = run,
};
