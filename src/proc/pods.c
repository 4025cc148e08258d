/* Reads names of pods and containers from names of files, when their directories change. */
#include "proc/pods.h"

#include "base/piece.h"

enum { SPACE_MAX = 63, POD_MAX = 253, CONTAINER_MAX = 63, ID_LEN = 64, ID_SHOWN = 12 };
/* A place that changed this long ago may change again within the same tick of the file system's
 * clock. */
enum { RACY_NS = 1000000000 };

/* Beside /proc. The last is a file. */
static const char *const places[PODS_PLACES] = { "../var/log/pods", "../var/log/containers",
	"../run/gua/leases/" PODS_TABLE };
enum { TABLE = PODS_PLACES - 1 };

void pods_init(struct pods *p, int proc, bool recorded)
{
	*p = (struct pods){ .proc = proc, .recorded = recorded };
}

void pods_finish(struct pods *p)
{
	free(p->names);
	*p = (struct pods){ .proc = -1 };
}

/* Whether the text has 1 to `max` of these characters and no others. */
static bool has_only(struct piece text, const char *characters, size_t max)
{
	for (size_t i = 0; i < text.len; i++)
		if (!text.at[i] || !strchr(characters, text.at[i]))
			return false;
	return text.len >= 1 && text.len <= max;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789-"
#define HEX "0123456789abcdef"

static void add(struct pods *p, struct piece id, const char *name)
{
	if (p->n >= PODS_MAX || id.len >= sizeof(p->names->id) ||
		!array_reserve(&p->names, &p->cap, p->n + 1))
		return;
	struct pod_name *entry = &p->names[p->n++];
	snprintf(entry->id, sizeof(entry->id), "%.*s", (int)id.len, id.at);
	str_copy(entry->name, sizeof(entry->name), name);
}

static void add_pod(struct pods *p, struct piece space, struct piece pod, struct piece uid)
{
	char name[LABEL_CAP];
	if (!has_only(space, LOWER, SPACE_MAX) || !has_only(pod, LOWER ".", POD_MAX) ||
		!has_only(uid, HEX "-", 36) || uid.len < 32)
		return;
	snprintf(name, sizeof(name), "%.*s/%.*s", (int)space.len, space.at, (int)pod.len,
		pod.at);
	if (space.len + 1 + pod.len >= sizeof(name))
		snprintf(name + sizeof(name) - 10, 10, "~%.8s", uid.at);
	add(p, uid, name);
}

/* `last` is "CONTAINER-ID.log". */
static void add_container(struct pods *p, struct piece last)
{
	char name[CONTAINER_MAX + 1];
	size_t tail = 1 + ID_LEN + strlen(".log");
	if (last.len <= tail)
		return;
	struct piece container = { last.at, last.len - tail };
	struct piece id = { last.at + container.len + 1, ID_LEN };
	if (last.at[container.len] != '-' || !has_only(container, LOWER, CONTAINER_MAX) ||
		!has_only(id, HEX, ID_LEN))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)container.len, container.at);
	add(p, (struct piece){ id.at, ID_SHOWN }, name);
}

void pods_add(struct pods *p, const char *name, size_t len)
{
	const char *first = len ? memchr(name, '_', len) : NULL;
	const char *last = len ? memrchr(name, '_', len) : NULL;
	if (!first || first == last)
		return;
	struct piece space = { name, (size_t)(first - name) };
	struct piece pod = { first + 1, (size_t)(last - first) - 1 };
	struct piece end = { last + 1, len - (size_t)(last + 1 - name) };
	if (piece_is_like(end, "*.log"))
		add_container(p, end);
	else
		add_pod(p, space, pod, end);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct pod_name *)a)->id, ((const struct pod_name *)b)->id);
}

void pods_sort(struct pods *p)
{
	array_sort(p->names, p->n, compare);
}

static bool is_trusted(const struct pods *p, const struct stat *st)
{
	if (p->recorded)
		return st->st_uid == 0 || st->st_uid == geteuid();
	return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static void read_directory(struct pods *p, int fd)
{
	DIR *dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return;
	}
	for (struct dirent *entry; p->n < PODS_MAX && (entry = readdir(dir)) != NULL;)
		pods_add(p, entry->d_name, strlen(entry->d_name));
	closedir(dir);
}

static void read_table(struct pods *p, int fd, size_t size)
{
	char *bytes = size <= PODS_TABLE_MAX ? malloc(size + 1) : NULL;
	ssize_t n = bytes ? pread(fd, bytes, size, 0) : -1;
	if (n >= 0)
		bytes[n] = '\0';
	for (char *rest = n > 0 ? bytes : NULL, *line; (line = strsep(&rest, "\n")) != NULL;)
		pods_add(p, line, strlen(line));
	free(bytes);
	close(fd);
}

static void read_place(struct pods *p, size_t place)
{
	struct stat st;
	int kind = place == TABLE ? O_NONBLOCK | O_NOCTTY : O_DIRECTORY;
	int fd = openat(p->proc, places[place], O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind);
	if (fd < 0)
		return;
	if (fstat(fd, &st) != 0 || !is_trusted(p, &st) ||
		(place == TABLE && !S_ISREG(st.st_mode)))
		close(fd);
	else if (place == TABLE)
		read_table(p, fd, (size_t)st.st_size);
	else
		read_directory(p, fd);
}

/* Looks at the places; returns whether one has changed since it was read. */
static bool look(struct pods *p)
{
	bool changed = false;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	for (size_t i = 0; i < PODS_PLACES; i++) {
		struct pods_seen s = { 0 };
		const struct pods_seen *b = &p->seen[i];
		struct stat st;
		if (fstatat(p->proc, places[i], &st, AT_SYMLINK_NOFOLLOW) == 0) {
			int64_t now_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
			s = (struct pods_seen){ .there = true,
				.device = st.st_dev,
				.inode = st.st_ino,
				.changed_ns = st.st_mtim.tv_sec * INT64_C(1000000000) +
					      st.st_mtim.tv_nsec };
			s.racy = llabs(now_ns - s.changed_ns) < RACY_NS;
		}
		changed |= s.there != b->there || b->racy || s.device != b->device ||
			   s.inode != b->inode || s.changed_ns != b->changed_ns;
		p->seen[i] = s;
	}
	return changed;
}

static const char *find(struct pods *p, const char *id)
{
	struct pod_name key = { .name = "" };
	str_copy(key.id, sizeof(key.id), id);
	const struct pod_name *found =
		p->n ? bsearch(&key, p->names, p->n, sizeof(key), compare) : NULL;
	return found ? found->name : NULL;
}

/* The name of an id; NULL: it is not known. */
static const char *find_fresh(struct pods *p, const char *id)
{
	const char *name = find(p, id);
	if (name || !look(p))
		return name;
	p->n = 0;
	for (size_t i = 0; i < PODS_PLACES; i++)
		if (p->seen[i].there)
			read_place(p, i);
	pods_sort(p);
	return find(p, id);
}

void pods_describe(struct pods *p, struct process_id *id)
{
	const char *name = *id->pod ? find_fresh(p, id->pod) : NULL;
	const char *colon = strchr(id->container, ':');
	if (!name)
		return;
	str_copy(id->pod, sizeof(id->pod), name);
	name = colon ? find_fresh(p, colon + 1) : NULL;
	size_t used = strlen(id->container);
	if (name)
		snprintf(id->container + used, sizeof(id->container) - used, "/%s", name);
}
