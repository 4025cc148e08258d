/* Finds jobs, containers, pods and units by the components of a cgroup path. */
#include "proc/cgroup.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"

enum { MAX_COMPONENTS = 64, ID_SHOWN = 12 };

struct path {
	struct piece components[MAX_COMPONENTS];
	size_t n;
};

/* What a row's '%' may match. */
enum id_shape {
	SHAPE_NAME,	 /* any text that is not empty */
	SHAPE_CONTAINER, /* 64 hexadecimal digits; the first 12 are kept */
	SHAPE_POD,	 /* a UUID, with '_' for '-' or without any */
	SHAPE_NUMBER,	 /* decimal digits */
	SHAPE_SLUID,	 /* 's' and 13 digits and capitals: Slurm 26.05's name for a job */
	SHAPE_ALLOC,	 /* a UUID, a dot and a name: a Nomad task */
	SHAPE_TO_DOT, /* digits (and [index]), a dot and more; only the part before the dot is
			 kept */
};

/* Which label a row gives. */
enum label { LABEL_NONE, LABEL_JOB, LABEL_CONTAINER, LABEL_POD, LABEL_UNIT, LABELS };

/* One row per kind of component. `pattern` has a '%' for the part that is kept; a '*' as its
 * first or last character matches anything. */
struct cgroup_rule {
	const char *pattern;
	const char *parent; /* what the parent component must be, '*' as above; NULL: anything;
			       "": this component is the first */
	const char *ancestor; /* what one of the components above must be; NULL: anything */
	enum id_shape shape;
	enum label label;
	const char *tag; /* put before the part that is kept */
};

/* The first row that matches gives its label. Monitors are listed so that they get no label. A
 * unit is used only when no other row matched. */
static const struct cgroup_rule rows[] = {
	/* monitors: not the workload */
	{ "libpod-conmon-%", NULL, NULL, SHAPE_NAME, LABEL_NONE, "" },
	{ "crio-conmon-%", NULL, NULL, SHAPE_NAME, LABEL_NONE, "" },
	{ "lxc.monitor.%", NULL, NULL, SHAPE_NAME, LABEL_NONE, "" },
	/* containers */
	{ "docker-%.scope", NULL, NULL, SHAPE_CONTAINER, LABEL_CONTAINER, "docker:" },
	{ "libpod-payload-%", NULL, NULL, SHAPE_CONTAINER, LABEL_CONTAINER, "podman:" },
	{ "libpod-%.scope", NULL, NULL, SHAPE_CONTAINER, LABEL_CONTAINER, "podman:" },
	{ "libpod-%", NULL, NULL, SHAPE_CONTAINER, LABEL_CONTAINER, "podman:" },
	{ "cri-containerd-%.scope", NULL, NULL, SHAPE_CONTAINER, LABEL_CONTAINER,
		"containerd:" },
	{ "*:cri-containerd:%", NULL, NULL, SHAPE_CONTAINER, LABEL_CONTAINER, "containerd:" },
	{ "crio-%.scope", NULL, NULL, SHAPE_CONTAINER, LABEL_CONTAINER, "crio:" },
	{ "crio-%", NULL, NULL, SHAPE_CONTAINER, LABEL_CONTAINER, "crio:" },
	{ "%", "docker", NULL, SHAPE_CONTAINER, LABEL_CONTAINER, "docker:" },
	{ "%", "", NULL, SHAPE_CONTAINER, LABEL_CONTAINER, "docker:" },
	{ "%", NULL, NULL, SHAPE_CONTAINER, LABEL_CONTAINER, "container:" },
	{ "lxc.payload.%", NULL, NULL, SHAPE_NAME, LABEL_CONTAINER, "lxc:" },
	{ "%", "lxc", NULL, SHAPE_NAME, LABEL_CONTAINER, "lxc:" },
	{ "machine-%.scope", NULL, NULL, SHAPE_NAME, LABEL_CONTAINER, "machine:" },
	{ "systemd-nspawn@%.service", NULL, NULL, SHAPE_NAME, LABEL_CONTAINER, "machine:" },
	/* pods */
	{ "*-pod%.slice", NULL, NULL, SHAPE_POD, LABEL_POD, "" },
	{ "*-pod%.slice:*", NULL, NULL, SHAPE_POD, LABEL_POD, "" },
	{ "pod%", NULL, "kubepods*", SHAPE_POD, LABEL_POD, "" },
	/* batch jobs */
	{ "job_%", NULL, "slurm*", SHAPE_NUMBER, LABEL_JOB, "slurm:" },
	{ "job_%", NULL, "*slurmstepd.scope", SHAPE_NUMBER, LABEL_JOB, "slurm:" },
	{ "%", "*slurmstepd.scope", NULL, SHAPE_SLUID, LABEL_JOB, "slurm:" },
	{ "pbspro-%.slice", "pbspro.slice", NULL, SHAPE_NAME, LABEL_JOB, "pbs:" },
	{ "%", "jobid", "pbs_jobs.service", SHAPE_NAME, LABEL_JOB, "pbs:" },
	{ "job.%", NULL, "lsf", SHAPE_TO_DOT, LABEL_JOB, "lsf:" },
	{ "%.scope", NULL, "nomad*", SHAPE_ALLOC, LABEL_JOB, "nomad:" },
	{ "%", NULL, "nomad*", SHAPE_ALLOC, LABEL_JOB, "nomad:" },
	/* units */
	{ "%.service", NULL, NULL, SHAPE_NAME, LABEL_UNIT, "" },
	{ "%.scope", NULL, NULL, SHAPE_NAME, LABEL_UNIT, "" },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_sluid(char c)
{
	return is_digit(c) || (c >= 'A' && c <= 'Z');
}

static bool is_pod(char c)
{
	return is_lower_hex(c) || c == '_' || c == '-';
}

/* Returns how many leading characters are of a kind. */
static size_t span(struct piece text, bool (*is)(char))
{
	size_t n = 0;
	while (n < text.len && is(text.at[n]))
		n++;
	return n;
}

/* Whether the text has the shape. Shortens the text to the part that is kept. */
static bool has_shape(struct piece *text, enum id_shape shape)
{
	size_t n = 0;
	switch (shape) {
	case SHAPE_NAME:
		return text->len > 0;
	case SHAPE_CONTAINER:
		if (text->len != 64 || span(*text, is_lower_hex) != 64)
			return false;
		text->len = ID_SHOWN;
		return true;
	case SHAPE_POD:
		return text->len >= 32 && text->len <= 36 && span(*text, is_pod) == text->len;
	case SHAPE_NUMBER:
		return text->len > 0 && span(*text, is_digit) == text->len;
	case SHAPE_SLUID:
		return text->len == 14 && text->at[0] == 's' &&
		       span((struct piece){ text->at + 1, 13 }, is_sluid) == 13;
	case SHAPE_ALLOC:
		return text->len > 37 && text->at[36] == '.' && text->at[8] == '-' &&
		       span((struct piece){ text->at, 36 }, is_pod) == 36;
	case SHAPE_TO_DOT:
		n = span(*text, is_digit);
		if (n < text->len && text->at[n] == '[')
			for (n++;
				n < text->len && (is_digit(text->at[n]) || text->at[n] == ']');)
				n++;
		if (n == 0 || (n < text->len && text->at[n] != '.'))
			return false;
		text->len = n;
		return true;
	}
	return false;
}

/* Matches a name with a '*' as its first or last character at most. */
static bool is_like(struct piece text, const char *pattern)
{
	size_t n = strlen(pattern);
	if (n && pattern[0] == '*')
		return text.len >= n - 1 &&
		       memcmp(text.at + text.len - (n - 1), pattern + 1, n - 1) == 0;
	if (n && pattern[n - 1] == '*')
		return text.len >= n - 1 && memcmp(text.at, pattern, n - 1) == 0;
	return text.len == n && memcmp(text.at, pattern, n) == 0;
}

/* Removes from the text what the pattern has before '%'. */
static bool strip_head(struct piece *text, const char *head, size_t n)
{
	size_t skip = 0;
	if (n && head[0] == '*') { /* find the last place where the rest of the head matches */
		for (skip = text->len + 1; skip-- > n - 1;)
			if (memcmp(text->at + skip - (n - 1), head + 1, n - 1) == 0)
				break;
		if (skip + 1 < n)
			return false;
	} else {
		if (text->len < n || memcmp(text->at, head, n) != 0)
			return false;
		skip = n;
	}
	*text = (struct piece){ text->at + skip, text->len - skip };
	return true;
}

/* Removes from the text what the pattern has after '%'. */
static bool strip_tail(struct piece *text, const char *tail, size_t n)
{
	if (n && tail[n - 1] == '*') {
		const char *found = memmem(text->at, text->len, tail, n - 1);
		if (!found)
			return false;
		text->len = (size_t)(found - text->at);
		return true;
	}
	if (text->len < n || memcmp(text->at + text->len - n, tail, n) != 0)
		return false;
	text->len -= n;
	return true;
}

static bool is_placed(const struct cgroup_rule *row, const struct path *path, size_t at)
{
	static const struct piece none = { "", 0 };
	if (row->parent && !is_like(at ? path->components[at - 1] : none, row->parent))
		return false;
	if (!row->ancestor)
		return true;
	for (size_t i = 0; i < at; i++)
		if (is_like(path->components[i], row->ancestor))
			return true;
	return false;
}

/* Whether the row matches the component. *kept is the part that its '%' matches. */
static bool row_matches(
	const struct cgroup_rule *row, const struct path *path, size_t at, struct piece *kept)
{
	size_t head = strcspn(row->pattern, "%");
	const char *tail = row->pattern + head + 1;
	*kept = path->components[at];
	return strip_tail(kept, tail, strlen(tail)) && strip_head(kept, row->pattern, head) &&
	       has_shape(kept, row->shape) && is_placed(row, path, at);
}

/* Returns the byte that systemd's "\\xNN" at the start of the text encodes, or -1. */
static int escaped_byte(struct piece text)
{
	static const char digits[] = "0123456789abcdef";
	if (text.len < 4 || text.at[0] != '\\' || text.at[1] != 'x')
		return -1;
	const char *high = memchr(digits, text.at[2], 16),
		   *low = memchr(digits, text.at[3], 16);
	return high && low ? (int)((high - digits) << 4 | (low - digits)) : -1;
}

/* Writes tag and text. Decodes systemd's \xNN, then escapes what is not printable. */
static void write_label(char *dst, const char *tag, struct piece text)
{
	char plain[LABEL_CAP];
	size_t n = 0;
	while (text.len && n < sizeof(plain)) {
		int byte = escaped_byte(text);
		size_t taken = byte >= 0 ? 4 : 1;
		plain[n++] = byte >= 0 ? (char)byte : *text.at;
		text = (struct piece){ text.at + taken, text.len - taken };
	}
	size_t used = text_escape(dst, LABEL_CAP, tag, strlen(tag));
	text_escape(dst + used, LABEL_CAP - used, plain, n);
}

/* Writes a pod's uid as Kubernetes writes it, with dashes. */
static void write_pod(char *dst, struct piece text)
{
	write_label(dst, "", text);
	for (char *c = dst; *c; c++)
		if (*c == '_')
			*c = '-';
}

/* The labels found up to now, and the depth of each match. */
struct search {
	char *texts[LABELS];
	size_t depth[LABELS];
};

/* Sets a label to its new text when this match is deeper than the earlier one. */
static void take(struct search *search, const struct cgroup_rule *row, const struct path *path,
	size_t at, struct piece kept)
{
	char *dst = search->texts[row->label];
	if (!dst || at + 1 <= search->depth[row->label])
		return;
	search->depth[row->label] = at + 1;
	if (row->label == LABEL_POD)
		write_pod(dst, kept);
	else if (row->label == LABEL_UNIT)
		write_label(dst, "", path->components[at]);
	else
		write_label(dst, row->tag, kept);
}

static void match_component(struct search *search, const struct path *path, size_t at)
{
	bool found[LABELS] = { false };
	for (size_t i = 0; i < ROWS; i++) {
		const struct cgroup_rule *row = &rows[i];
		bool any = found[LABEL_JOB] || found[LABEL_CONTAINER] || found[LABEL_POD];
		struct piece kept;
		if (found[row->label] || (row->label == LABEL_UNIT && any))
			continue;
		if (!row_matches(row, path, at, &kept))
			continue;
		if (row->label == LABEL_NONE)
			return;
		found[row->label] = true;
		take(search, row, path, at, kept);
	}
}

/* Splits at slashes. ".." (a path outside our cgroup namespace) is not used. */
static void split_path(struct path *path, struct piece text)
{
	path->n = 0;
	for (size_t i = 0; i < text.len && path->n < MAX_COMPONENTS;) {
		const char *slash = memchr(text.at + i, '/', text.len - i);
		size_t n = slash ? (size_t)(slash - text.at) - i : text.len - i;
		struct piece part = { text.at + i, n };
		if (n && !is_like(part, ".."))
			path->components[path->n++] = part;
		i += n + 1;
	}
}

/* Finds the path in a line "ID:CONTROLLERS:PATH". A removed cgroup has " (deleted)" after it.
 */
static bool path_of_line(struct piece line, struct piece *path)
{
	static const char deleted[] = " (deleted)";
	for (int i = 0; i < 2; i++) {
		const char *colon = line.len ? memchr(line.at, ':', line.len) : NULL;
		if (!colon)
			return false;
		line.len -= (size_t)(colon - line.at) + 1;
		line.at = colon + 1;
	}
	if (line.len == 0 || line.at[0] != '/')
		return false;
	strip_tail(&line, deleted, sizeof(deleted) - 1);
	*path = line;
	return true;
}

void cgroup_parse(const char *bytes, size_t len, struct cgroup_labels *labels)
{
	memset(labels, 0, sizeof(*labels));
	struct search search = {
		.texts = {
			[LABEL_JOB] = labels->job,
			[LABEL_CONTAINER] = labels->container,
			[LABEL_POD] = labels->pod,
			[LABEL_UNIT] = labels->unit,
		},
	};
	struct path path;
	const char *newline; /* a line without a newline was cut, and its last name may be cut
				too */
	for (; (newline = len ? memchr(bytes, '\n', len) : NULL);) {
		size_t n = (size_t)(newline - bytes);
		struct piece text;
		if (path_of_line((struct piece){ bytes, n }, &text)) {
			split_path(&path, text);
			for (size_t at = 0; at < path.n; at++)
				match_component(&search, &path, at);
		}
		bytes += n + 1;
		len -= n + 1;
	}
}
