/* Finds jobs, containers, pods and units by the components of a cgroup path. */
#include "proc/cgroup.h"

#include "proc/proc_parse.h"

enum { MAX_COMPONENTS = 64, ID_SHOWN = 12 };

struct path {
	struct piece components[MAX_COMPONENTS];
	size_t n;
	size_t base;	   /* index of the first name that its manager chose: see find_zone() */
	bool users;	   /* a user chose the components from `base` on */
	bool outside;	   /* of our cgroup namespace: the components above are not known */
	int64_t slice_uid; /* of "/user.slice/user-UID.slice/...", or -1 */
	struct piece session; /* N of ".../user-UID.slice/session-N.scope", or empty */
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

/* Which label a row sets. */
enum label { LABEL_NONE, LABEL_JOB, LABEL_CONTAINER, LABEL_POD, LABEL_UNIT, LABELS };

/* What must be above a component so that it is believed. Only the place of a name shows who
 * chose it: the system's service manager makes the slices from the root on, and root makes the
 * directories at the root. The owner of a unit, container or job may make directories of any
 * name in it. */
enum place {
	IN_SLICES, /* nothing but slices */
	IN_UNIT,   /* slices, and one unit, which is the parent */
	BELOW_TOP, /* anything */
	OUTSIDE,   /* the same, in a path from outside of our cgroup namespace: its first name
		      is beside one of the cgroups that we are in, which managers make */
	ANYWHERE,  /* the same, even where users choose the names */
};

/* One row per kind of component. `pattern` has a '%' for the part that is kept; a '*' as its
 * first or last character matches anything. */
struct cgroup_rule {
	const char *pattern;
	enum place place;
	const char *top;    /* what the first component must be, '*' as above; NULL: anything */
	const char *parent; /* what the parent must be; "": there is none */
	enum id_shape shape;
	enum label label;
	const char *tag; /* put before the part that is kept */
	bool rootless;	 /* also below a user's own service manager */
};

#define CONTAINER_ID SHAPE_CONTAINER, LABEL_CONTAINER
#define CONTAINER_NAME SHAPE_NAME, LABEL_CONTAINER
#define POD_ID SHAPE_POD, LABEL_POD

/* The first row that matches gives its label. Monitors are listed so that they get no label. A
 * unit is used only when no other row matched. */
static const struct cgroup_rule rows[] = {
	/* monitors: not the workload */
	{ "libpod-conmon-%", IN_SLICES, NULL, NULL, SHAPE_NAME, LABEL_NONE, "", true },
	{ "crio-conmon-%", IN_SLICES, NULL, NULL, SHAPE_NAME, LABEL_NONE, "", false },
	{ "lxc.monitor.%", BELOW_TOP, NULL, "", SHAPE_NAME, LABEL_NONE, "", false },
	/* containers and pods beside ours */
	{ "*-pod%.slice:*", OUTSIDE, NULL, "", POD_ID, "", false },
	{ "*:cri-containerd:%", OUTSIDE, NULL, "", CONTAINER_ID, "containerd:", false },
	{ "%", OUTSIDE, NULL, "", CONTAINER_ID, "container:", false },
	/* containers */
	{ "docker-%.scope", IN_SLICES, NULL, NULL, CONTAINER_ID, "docker:", true },
	{ "libpod-payload-%", IN_UNIT, NULL, "*.service", CONTAINER_ID, "podman:", true },
	{ "libpod-%.scope", IN_SLICES, NULL, NULL, CONTAINER_ID, "podman:", true },
	{ "libpod-%", BELOW_TOP, "libpod_parent", NULL, CONTAINER_ID, "podman:", false },
	{ "cri-containerd-%.scope", IN_SLICES, NULL, NULL, CONTAINER_ID, "containerd:", false },
	{ "*:cri-containerd:%", IN_UNIT, "system.slice", "*containerd.service", CONTAINER_ID,
		"containerd:", false },
	{ "*:cri-containerd:%", IN_UNIT, "system.slice", "k3s*", CONTAINER_ID,
		"containerd:", false },
	{ "*:cri-containerd:%", IN_UNIT, "system.slice", "rke2*", CONTAINER_ID,
		"containerd:", false },
	{ "crio-%.scope", IN_SLICES, NULL, NULL, CONTAINER_ID, "crio:", false },
	{ "crio-%", BELOW_TOP, "kube*", NULL, CONTAINER_ID, "crio:", false },
	{ "%", BELOW_TOP, "docker", NULL, CONTAINER_ID, "docker:", false },
	{ "%", BELOW_TOP, NULL, "", CONTAINER_ID, "docker:", false },
	{ "%", BELOW_TOP, "ecs", NULL, CONTAINER_ID, "container:", false },
	{ "%", BELOW_TOP, "kube*", NULL, CONTAINER_ID, "container:", false },
	{ "lxc.payload.%", BELOW_TOP, NULL, "", CONTAINER_NAME, "lxc:", false },
	{ "%", IN_UNIT, "lxc", "lxc", CONTAINER_NAME, "lxc:", false },
	{ "machine-%.scope", IN_SLICES, "machine.slice", NULL, CONTAINER_NAME,
		"machine:", false },
	{ "systemd-nspawn@%.service", IN_SLICES, "machine.slice", NULL, CONTAINER_NAME,
		"machine:", false },
	/* pods */
	{ "*-pod%.slice", IN_SLICES, "kube*", NULL, POD_ID, "", false },
	{ "*-pod%.slice:*", IN_UNIT, "system.slice", "*containerd.service", POD_ID, "", false },
	{ "*-pod%.slice:*", IN_UNIT, "system.slice", "k3s*", POD_ID, "", false },
	{ "*-pod%.slice:*", IN_UNIT, "system.slice", "rke2*", POD_ID, "", false },
	{ "pod%", BELOW_TOP, "kube*", NULL, POD_ID, "", false },
	/* batch jobs */
	{ "job_%", BELOW_TOP, "slurm*", NULL, SHAPE_NUMBER, LABEL_JOB, "slurm:", false },
	{ "job_%", IN_UNIT, "system.slice", "*slurmstepd.scope", SHAPE_NUMBER, LABEL_JOB,
		"slurm:", false },
	{ "%", IN_UNIT, "system.slice", "*slurmstepd.scope", SHAPE_SLUID, LABEL_JOB,
		"slurm:", false },
	{ "pbspro-%.slice", IN_SLICES, "pbspro.slice", NULL, SHAPE_NAME, LABEL_JOB,
		"pbs:", false },
	{ "%", BELOW_TOP, "pbs_jobs.service", "jobid", SHAPE_NAME, LABEL_JOB, "pbs:", false },
	{ "job.%", BELOW_TOP, "lsf", NULL, SHAPE_TO_DOT, LABEL_JOB, "lsf:", false },
	{ "%.scope", BELOW_TOP, "nomad*", NULL, SHAPE_ALLOC, LABEL_JOB, "nomad:", false },
	{ "%", BELOW_TOP, "nomad*", NULL, SHAPE_ALLOC, LABEL_JOB, "nomad:", false },
	/* units */
	{ "%.service", ANYWHERE, NULL, NULL, SHAPE_NAME, LABEL_UNIT, "", true },
	{ "%.scope", ANYWHERE, NULL, NULL, SHAPE_NAME, LABEL_UNIT, "", true },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

#define DIGITS "0123456789"
#define LOWER_HEX DIGITS "abcdef"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Whether the text has the shape; shortens the text to the part that is kept. */
static bool has_shape(struct piece *text, enum id_shape shape)
{
	size_t n = 0;
	switch (shape) {
	case SHAPE_NAME:
		return text->len > 0;
	case SHAPE_CONTAINER:
		if (text->len != 64 || piece_span(*text, LOWER_HEX) != 64)
			return false;
		text->len = ID_SHOWN;
		return true;
	case SHAPE_POD:
		return text->len >= 32 && text->len <= 36 &&
		       piece_span(*text, LOWER_HEX "_-") == text->len;
	case SHAPE_NUMBER:
		return text->len > 0 && piece_span(*text, DIGITS) == text->len;
	case SHAPE_SLUID:
		return text->len == 14 && text->at[0] == 's' &&
		       piece_span((struct piece){ text->at + 1, 13 }, DIGITS CAPITALS) == 13;
	case SHAPE_ALLOC:
		return text->len > 37 && text->at[36] == '.' && text->at[8] == '-' &&
		       piece_span((struct piece){ text->at, 36 }, LOWER_HEX "_-") == 36;
	case SHAPE_TO_DOT:
		n = piece_span(*text, DIGITS);
		if (n < text->len && text->at[n] == '[')
			n += 1 + piece_span(piece_skip(*text, n + 1), DIGITS "]");
		if (n == 0 || (n < text->len && text->at[n] != '.'))
			return false;
		text->len = n;
		return true;
	}
	return false;
}

/* Removes from the text what the pattern has before '%'; false: it does not begin so. */
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
	*text = piece_skip(*text, skip);
	return true;
}

/* Removes from the text what the pattern has after '%'; false: it does not end so. */
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

/* Whether all components from the base on, before `end`, are slices. */
static bool are_slices(const struct path *path, size_t end)
{
	for (size_t i = path->base; i < end; i++)
		if (!piece_is_like(path->components[i], "*.slice"))
			return false;
	return true;
}

/* Whether the first component is `top`. If we are a pod, "kubepods" is one of the dots of the
 * path of another pod: "/../../burstable/podUID/ID", or "/../podUID/ID". */
static bool is_top(const struct path *path, const char *top)
{
	struct piece first = path->components[path->base];
	if (path->outside && strcmp(top, "kube*") == 0 &&
		(piece_is_like(first, "burstable") || piece_is_like(first, "besteffort") ||
			piece_is_like(first, "pod*")))
		return true;
	return piece_is_like(first, top);
}

static bool is_placed(const struct cgroup_rule *row, const struct path *path, size_t at)
{
	static const struct piece none = { "", 0 };
	if (row->place == ANYWHERE)
		return true;
	if (at < path->base || (path->users && !row->rootless) ||
		(row->place == OUTSIDE && !path->outside))
		return false;
	if (row->top && !is_top(path, row->top))
		return false;
	struct piece parent = at > path->base ? path->components[at - 1] : none;
	if (row->parent && !piece_is_like(parent, row->parent))
		return false;
	if (row->place == IN_UNIT)
		return at > path->base && are_slices(path, at - 1);
	return row->place != IN_SLICES || are_slices(path, at);
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
		plain[n++] = byte >= 0 ? (char)byte : *text.at;
		text = piece_skip(text, byte >= 0 ? 4 : 1);
	}
	size_t used = str_escape(dst, LABEL_CAP, tag, strlen(tag));
	str_escape(dst + used, LABEL_CAP - used, plain, n);
}

/* The labels found so far. */
struct search {
	char *texts[LABELS];
	size_t unit_depth; /* the deepest unit wins */
	bool inside;	   /* in a container or job, which chooses the names below it */
	bool contained;	   /* in a container, which may have a service manager of its own */
};

/* The outermost manager comes first, and the first match counts. */
static void take(struct search *search, const struct cgroup_rule *row, const struct path *path,
	size_t at, struct piece kept)
{
	char *dst = search->texts[row->label];
	if (row->label == LABEL_UNIT) {
		if (at + 1 > search->unit_depth)
			write_label(dst, "", path->components[at]);
		search->unit_depth = at + 1 > search->unit_depth ? at + 1 : search->unit_depth;
	} else if (!*dst) {
		write_label(dst, row->tag, kept);
		/* Kubernetes writes a pod's uid with dashes. */
		for (char *c = dst; *c && row->label == LABEL_POD; c++)
			*c = *c == '_' ? '-' : *c;
	}
}

static void match_component(struct search *search, const struct path *path, size_t at)
{
	bool found[LABELS] = { false };
	/* A unit belongs to the system's service manager, which puts nothing but slices above
	 * it, or to that of a user or container, whose units are only claims anyway. A job, or
	 * a service that was given its cgroup (Delegate=), can make any name below it. */
	bool can_be_unit = path->users || search->contained || are_slices(path, at);
	for (size_t i = 0; i < ROWS; i++) {
		const struct cgroup_rule *row = &rows[i];
		bool any = found[LABEL_JOB] || found[LABEL_CONTAINER] || found[LABEL_POD];
		struct piece kept;
		if (found[row->label] || (row->label == LABEL_UNIT && any) ||
			(search->inside && row->label != LABEL_UNIT) ||
			(row->label == LABEL_UNIT && !can_be_unit))
			continue;
		if (!row_matches(row, path, at, &kept))
			continue;
		if (row->label == LABEL_NONE)
			return;
		found[row->label] = true;
		take(search, row, path, at, kept);
	}
	search->inside |= found[LABEL_JOB] || found[LABEL_CONTAINER];
	search->contained |= found[LABEL_CONTAINER];
}

/* Reads the UID of a component such as "user-UID.slice"; -1: it is not one. */
static int64_t uid_within(struct piece text, const char *head, const char *tail)
{
	uint64_t uid = 0;
	bool found = strip_head(&text, head, strlen(head)) &&
		     strip_tail(&text, tail, strlen(tail)) && text.len &&
		     piece_span(text, DIGITS) == text.len &&
		     (text.len == 1 || text.at[0] != '0') &&
		     proc_parse_number(text.at, text.len, &uid) && uid < UINT32_MAX;
	return found ? (int64_t)uid : -1;
}

/* The N of "session-N.scope", which the login manager chooses: a number, or a letter and a
 * number. Empty: it is not one. */
static struct piece session_of(struct piece text)
{
	bool found = strip_head(&text, "session-", 8) && strip_tail(&text, ".scope", 6) &&
		     text.len < SESSION_CAP &&
		     piece_span(text, DIGITS CAPITALS "abcdefghijklmnopqrstuvwxyz") == text.len;
	return found ? text : (struct piece){ "", 0 };
}

/* Finds which part of the tree the path is in. Only the system's service manager makes and
 * fills /user.slice/user-UID.slice: the kernel lets a process be moved only by those who may
 * write to the new cgroup and to the nearest one above both. The manager hands
 * "user@UID.service" in it over to that user, who chooses every name below it and cannot leave
 * it. Outside of our cgroup namespace nothing shows that such a slice is the system's. */
static void find_zone(struct path *path)
{
	path->base = 0;
	path->users = false;
	path->slice_uid = -1;
	path->session = (struct piece){ "", 0 };
	for (size_t i = 0; path->outside && !path->users && i < path->n; i++) {
		path->users =
			are_slices(path, i) && piece_is_like(path->components[i], "user@*");
		path->base = path->users ? i + 1 : 0;
	}
	if (path->outside || path->n < 2 || !piece_is_like(path->components[0], "user.slice"))
		return;
	path->slice_uid = uid_within(path->components[1], "user-", ".slice");
	path->users = path->n > 2 && piece_is_like(path->components[2], "user@*");
	if (path->users)
		path->base = 3;
	else if (path->slice_uid >= 0 && path->n > 2)
		path->session = session_of(path->components[2]);
}

/* Splits at slashes. A path that begins with ".." is outside of our cgroup namespace: each is
 * one of the cgroups that we are in, and names nothing. The kernel writes none further on. */
static void split_path(struct path *path, struct piece text)
{
	path->n = 0;
	path->outside = false;
	while (text.len && path->n < MAX_COMPONENTS) {
		struct piece part = piece_cut(&text, '/');
		bool up = piece_is_like(part, "..");
		if (up && path->n) {
			path->n = 0;
			break;
		}
		path->outside |= up;
		if (part.len && !up)
			path->components[path->n++] = part;
	}
	find_zone(path);
}

/* Finds the path in a line "ID:CONTROLLERS:PATH". A removed cgroup has " (deleted)" behind. */
static bool path_of_line(struct piece line, struct piece *path)
{
	static const char deleted[] = " (deleted)";
	piece_cut(&line, ':');
	piece_cut(&line, ':');
	if (line.len == 0 || line.at[0] != '/')
		return false;
	strip_tail(&line, deleted, sizeof(deleted) - 1);
	*path = line;
	return true;
}

/* Whether the line is of the hierarchy in which the service manager keeps its units: "0::" in
 * version 2, "N:name=systemd:" in version 1. */
static bool is_of_manager(struct piece line)
{
	struct piece rest = piece_skip(line, piece_span(line, DIGITS));
	return strip_head(&line, "0::", 3) || strip_head(&rest, ":name=systemd:", 14);
}

static void parse_line(
	struct search *search, struct piece line, struct cgroup_labels *labels, bool *differs)
{
	struct path path;
	struct piece text;
	if (!path_of_line(line, &text))
		return;
	split_path(&path, text);
	search->inside = search->contained = false;
	for (size_t at = 0; at < path.n; at++)
		match_component(search, &path, at);
	if (path.slice_uid < 0 || !is_of_manager(line))
		return;
	*differs |= labels->slice_uid >= 0 && labels->slice_uid != path.slice_uid;
	labels->slice_uid = *differs ? -1 : path.slice_uid;
	if (!*labels->session)
		str_escape(labels->session, SESSION_CAP, path.session.at, path.session.len);
}

void cgroup_parse(const char *bytes, size_t len, struct cgroup_labels *labels)
{
	*labels = (struct cgroup_labels){ .slice_uid = -1 };
	struct search search = {
		.texts = {
			[LABEL_JOB] = labels->job,
			[LABEL_CONTAINER] = labels->container,
			[LABEL_POD] = labels->pod,
			[LABEL_UNIT] = labels->unit,
		},
	};
	bool differs = false;
	struct piece rest = { bytes, len }, line;
	/* A line without a newline was cut, and its last name may be cut too. */
	while (line = piece_cut(&rest, '\n'), rest.at)
		parse_line(&search, line, labels, &differs);
}

/* Appends what matches one of the patterns below the cgroups of the host. */
static void find_all(const char *root, const char *const *patterns, size_t n, glob_t *found)
{
	*found = (glob_t){ 0 };
	for (size_t i = 0; i < n; i++) {
		char path[PATH_MAX];
		if (file_path(path, "%s/sys/fs/cgroup/%s", root, patterns[i]))
			glob(path, GLOB_NOSORT | GLOB_BRACE | (i ? GLOB_APPEND : 0), NULL,
				found);
	}
}

void cgroup_find_slurm(const char *root, glob_t *found)
{
	/* A slurmd that may run beside others, as Debian's, has its node's name in them. */
	static const char *const places[] = { "system.slice/*slurmstepd.scope/*",
		"{freezer,memory,cpuset}/slurm*/uid_*/job_*" };
	find_all(root, places, sizeof(places) / sizeof(places[0]), found);
}

void cgroup_find_pods(const char *root, glob_t *found)
{
	static const char *const places[] = {
		"{,memory/,systemd/}{,kubelet.slice/kubelet-}kubepods.slice/{,*.slice/"
		"}*-pod*.slice",
		"{,memory/,systemd/}{,kubelet/}kubepods/{,burstable/,besteffort/}pod*",
	};
	find_all(root, places, sizeof(places) / sizeof(places[0]), found);
}
