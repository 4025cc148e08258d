/* Reads jobs from scontrol's JSON and from its text. */
#include "lease/slurm_jobs.h"

#include <jansson.h>

#include "lease/slurm_gres.h"

#define NO_TASK 4294967294.0 /* older parsers' number of the task of a job without an array */

/* A job in one of these states has its cards. */
static bool has_cards(const char *state)
{
	static const char *const states[] = { "RUNNING", "SUSPENDED", "COMPLETING",
		"CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING" };
	enum { STATES = sizeof(states) / sizeof(states[0]) };
	return str_place(states, STATES, state) < STATES;
}

/* Hands a job on, if it has cards here. */
static void hand_on(const struct slurm_jobs *j, struct lease_file *job, struct slurm_gres *g)
{
	if (g->cards.len && !g->cards.failed) {
		job->cards = str_text(&g->cards);
		job->share = g->share;
		job->watched = "yes";
		j->take(j->context, job);
	}
	str_finish(&g->cards);
}

/* A number, or {"set": true, "infinite": false, "number": N}; -1: none. */
static double json_amount(const json_t *value)
{
	if (json_is_object(value))
		value = json_is_true(json_object_get(value, "set")) &&
					!json_is_true(json_object_get(value, "infinite"))
				? json_object_get(value, "number")
				: NULL;
	return json_is_number(value) ? json_number_value(value) : -1;
}

static double json_seconds(const json_t *job, const char *key)
{
	double seconds = json_amount(json_object_get(job, key));
	return seconds > 0 ? seconds : NAN;
}

/* "RUNNING", or a list of such words. */
static bool json_has_cards(const json_t *state)
{
	if (json_is_string(state))
		return has_cards(json_string_value(state));
	for (size_t i = 0; i < json_array_size(state); i++) {
		const char *word = json_string_value(json_array_get(state, i));
		if (word && has_cards(word))
			return true;
	}
	return false;
}

static void take_json(const struct slurm_jobs *j, const json_t *job)
{
	char id[32], task[TASK_CAP];
	struct lease_file f = LEASE_FILE_NONE;
	struct slurm_gres g = { 0 };
	const json_t *resources = json_object_get(job, "job_resources");
	json_t *nodes = json_object_get(resources, "nodes");
	if (json_is_object(nodes)) /* newer: an object with the list in it */
		nodes = json_object_get(nodes, "list");
	if (!json_is_string(nodes))
		nodes = json_object_get(job, "nodes");
	double number = json_amount(json_object_get(job, "job_id"));
	double uid = json_amount(json_object_get(job, "user_id"));
	long place =
		json_is_string(nodes) ? slurm_gres_host(json_string_value(nodes), j->node) : -1;
	const char *gres =
		place < 0 ? NULL
			  : json_string_value(json_array_get(
				    json_object_get(job, "gres_detail"), (size_t)place));
	if (!(number > 0 && number <= UINT32_MAX) || !gres ||
		!json_has_cards(json_object_get(job, "job_state")))
		return;
	snprintf(id, sizeof(id), "%.0f", number);
	f.id = id;
	f.uid = uid >= 0 && uid <= UINT32_MAX ? (int64_t)uid : -1;
	f.user = json_string_value(json_object_get(job, "user_name"));
	f.name = json_string_value(json_object_get(job, "name"));
	f.account = json_string_value(json_object_get(job, "account"));
	/* The number of a task of an array as its user knows it: "3_2". */
	double array = json_amount(json_object_get(job, "array_job_id"));
	double t = json_amount(json_object_get(job, "array_task_id"));
	bool is_task = array > 0 && array <= UINT32_MAX && t >= 0 && t < NO_TASK;
	snprintf(task, TASK_CAP, "%.0f_%.0f", array, t);
	f.task = is_task ? task : NULL;
	f.sluid = json_string_value(json_object_get(job, "sluid"));
	f.since_s = json_seconds(job, "start_time");
	f.until_s = json_seconds(job, "end_time");
	slurm_gres_add(&g, gres);
	hand_on(j, &f, &g);
}

/* The fields of a job that are used: each begins a line, or follows others in it. */
enum field {
	JOB_ID,
	ARRAY_JOB,
	ARRAY_TASK,
	JOB_NAME,
	SLUID,
	USER_ID,
	ACCOUNT,
	JOB_STATE,
	START_TIME,
	END_TIME,
	FIELDS,
};
static const struct {
	const char *name;
	bool whole_line; /* the value goes on to the end of the line */
} fields[FIELDS] = {
	[JOB_ID] = { "JobId", false },
	[ARRAY_JOB] = { "ArrayJobId", false },
	[ARRAY_TASK] = { "ArrayTaskId", false },
	[JOB_NAME] = { "JobName", true },
	[SLUID] = { "SLUID", false },
	[USER_ID] = { "UserId", false },
	[ACCOUNT] = { "Account", false },
	[JOB_STATE] = { "JobState", false },
	[START_TIME] = { "StartTime", false },
	[END_TIME] = { "EndTime", false },
};

/* A job in text. */
struct record {
	char *values[FIELDS];
	struct slurm_gres gres;
	bool doubtful; /* a field is there twice, or before its time */
};

/* The value of NAME=VALUE at `at`; NULL: another name. */
static char *value_of(char *at, const char *name)
{
	size_t len = strlen(name);
	return strncmp(at, name, len) == 0 && at[len] == '=' ? at + len + 1 : NULL;
}

/* "Nodes=LIST CPU_IDs=... Mem=... GRES=...": the cards on some hosts. */
static void read_nodes(struct record *r, char *line, const char *node)
{
	char *list = value_of(line, "Nodes"), *gres = strstr(line, " GRES=");
	r->doubtful |= !r->values[JOB_STATE];
	if (!gres)
		return;
	list[strcspn(list, " ")] = '\0';
	gres += strlen(" GRES=");
	gres[strcspn(gres, " ")] = '\0';
	if (slurm_gres_host(list, node) >= 0)
		slurm_gres_add(&r->gres, gres);
}

/* A line with fields that are separated by blanks. */
static void read_fields(struct record *r, char *line)
{
	for (char *at = line, *next; at && *at; at = next) {
		next = strchr(at, ' ');
		for (size_t i = 0; i < FIELDS; i++) {
			char *value = value_of(at, fields[i].name);
			if (!value)
				continue;
			r->doubtful |= r->values[i] != NULL;
			r->values[i] = value;
			if (fields[i].whole_line)
				next = NULL;
		}
		if (next)
			*next++ = '\0';
	}
}

/* Whether users choose what stands in this line: a path, which may have a newline in it. */
static bool is_free_text(char *line)
{
	static const char *const names[] = { "Comment", "AdminComment", "SystemComment",
		"Command", "SubmitLine", "WorkDir", "StdErr", "StdIn", "StdOut", "Extra",
		"MailUser" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (value_of(line, names[i]))
			return true;
	return false;
}

/* Unix seconds, or a time in UTC; NAN: neither. */
static double read_time(const char *text)
{
	int64_t ms = 0;
	if (!text || !*text)
		return NAN;
	if (text[strspn(text, "0123456789")] == '\0')
		return strtod(text, NULL);
	return strlen(text) == 19 && moment_parse(text, 0, true, &ms, NULL) == 0
		       ? (double)ms / 1000
		       : NAN;
}

static bool is_number(const char *text)
{
	size_t n = text ? strspn(text, "0123456789") : 0;
	return n && n <= 10 && text[n] == '\0';
}

static struct lease_file job_of(const struct record *r, char task[TASK_CAP])
{
	struct lease_file f = LEASE_FILE_NONE;
	char *const *v = r->values, *open = strrchr(v[USER_ID], '(');
	f.id = v[JOB_ID];
	if (open && open[1] >= '0' && open[1] <= '9') { /* name(uid) */
		*open = '\0';
		f.uid = strtoll(open + 1, NULL, 10);
		f.user = v[USER_ID];
	}
	f.name = v[JOB_NAME];
	f.account = v[ACCOUNT] && strcmp(v[ACCOUNT], "(null)") != 0 ? v[ACCOUNT] : NULL;
	if (is_number(v[ARRAY_JOB]) && is_number(v[ARRAY_TASK])) {
		snprintf(task, TASK_CAP, "%s_%s", v[ARRAY_JOB], v[ARRAY_TASK]);
		f.task = task;
	}
	f.sluid = v[SLUID];
	f.since_s = read_time(v[START_TIME]);
	f.until_s = read_time(v[END_TIME]);
	return f;
}

int slurm_jobs_text(
	const struct slurm_jobs *j, const char *id, char *bytes, size_t len, struct err *e)
{
	struct record r = { 0 };
	char **v = r.values, task[TASK_CAP];
	int rc = 0;
	bytes[len] = '\0';
	for (char *rest = bytes, *line; (line = strsep(&rest, "\n")) != NULL;) {
		line += strspn(line, " ");
		if (is_free_text(line))
			break;
		if (value_of(line, "Nodes"))
			read_nodes(&r, line, j->node);
		else
			read_fields(&r, line);
	}
	if (!v[JOB_ID] || !v[USER_ID] || !v[JOB_STATE] || strcmp(v[JOB_ID], id) != 0)
		rc = err_set(e, ERR_WORLD, "the answer is not about job %s", id);
	else if (r.doubtful)
		rc = err_set(e, ERR_WORLD,
			"the answer about job %s has a field twice; its name may be forged",
			id);
	else if (has_cards(v[JOB_STATE])) {
		struct lease_file f = job_of(&r, task);
		hand_on(j, &f, &r.gres);
	}
	str_finish(&r.gres.cards);
	return rc;
}

int slurm_jobs_json(const struct slurm_jobs *j, char *bytes, size_t len, struct err *e)
{
	json_error_t why;
	json_t *root = json_loadb(bytes, len, 0, &why), *jobs = json_object_get(root, "jobs");
	int rc = json_is_array(jobs)
			 ? 0
			 : err_set(e, ERR_WORLD, "the answer is not a list of jobs: %s",
				   root ? "it has no 'jobs'" : why.text);
	for (size_t i = 0; i < json_array_size(jobs); i++)
		take_json(j, json_array_get(jobs, i));
	json_decref(root);
	return rc;
}
