/* Reads the files of leases again when their directories change, and decides which leases have
 * ended without a word and which are unknown. */
#include "lease/lease_dir.h"

#include "base/ini.h"
#include "base/options.h"
#include "proc/cgroup.h"
#include "proc/proc.h"
#include "proc/proc_cards.h"
#include "proc/user.h"

/* No directory may have more files, and no lease more cards. */
enum { FILES_MAX = 4096, CARDS_MAX = 256, PROBLEMS_CAP = 4096 };
/* How often cgroups are looked for. */
enum { CGROUP_MS = 5000 };
/* A directory that changed this long ago may change again within the same tick of the file
 * system's clock, so it is read once more. */
enum { RACY_MS = 1000 };
enum { HEARTBEAT_MS = 10000 }; /* where the heartbeat does not say how often it beats */

/* How the files of a directory are written. */
enum form { FORM_LEASE, FORM_JOBSTATS, FORM_MAPPING };

/* The directories, in the order in which they are believed about the same job. */
static const struct place {
	const char *name; /* below the directory of leases, or of the host */
	enum lease_kind kind;
	enum form form;
} places[] = {
	{ "slurm", LEASE_SLURM, FORM_LEASE },
	{ "pod", LEASE_POD, FORM_LEASE },
	{ "/run/gpustat", LEASE_SLURM, FORM_JOBSTATS },
	{ "/var/lib/dcgm-exporter/job-mapping", LEASE_SLURM, FORM_MAPPING },
};
enum { PLACES = sizeof(places) / sizeof(places[0]) };

/* A directory as it was when it was read. */
struct seen {
	bool there, racy;
	bool trusted; /* it could be read, and only those who may can write there */
	dev_t device;
	ino_t inode;
	int64_t changed_ns;   /* of a directory of others: sum over its files, too */
	int64_t answered_ms;  /* time of its heartbeat; -1: there is none */
	int64_t heartbeat_ms; /* how often it beats */
};

/* A lease as its file says it; or a card that gua pick has reserved: its file is locked. */
struct entry {
	struct lease lease;
	size_t place;
	struct str cards; /* as written */
	int numbering;	  /* -1: that of the configuration */
	int64_t written_ms;
	bool watched, has_cgroup, cgroup_gone;
};

enum { PICKS_MAX = 64 };

struct lease_dir {
	struct lease_dir_options o;
	int numbering; /* of the options */
	char path[PATH_MAX];
	int proc;
	int64_t boot_ms;
	char boot_id[BOOT_ID_CAP];
	struct user_names *names; /* NULL: not needed yet */
	struct seen seen[PLACES];
	struct entry *entries;
	size_t n_entries;
	struct proc_card cards[PROC_CARDS_MAX];
	size_t n_cards;
	struct entry *picks; /* of hosts with a scheduler only */
	size_t n_picks;
	bool has_number;    /* a lease names a card by its number */
	int64_t cgroups_ms; /* when cgroups were looked for */
	int64_t next_ms;    /* when a lease ends or becomes unknown by itself */
	size_t n_hidden;
	struct str problems;
	struct leases out;
};

static int find_numbering(const char *word)
{
	return word ? options_choice(LEASE_NUMBERINGS, word) : -1;
}

int lease_dir_open(struct lease_dir **made, const struct lease_dir_options *o, struct err *e)
{
	struct lease_dir *d = calloc(1, sizeof(*d));
	*made = d;
	if (!d)
		return err_memory(e);
	d->o = *o;
	d->numbering = find_numbering(o->numbering);
	d->proc = -1;
	int rc = file_path(d->path, "%s%s", o->path ? "" : o->root,
			 o->path ? o->path : LEASE_DIR_PATH)
			 ? proc_open(&d->proc, o->root, e)
			 : err_set(e, ERR_USAGE, "the path of the leases is too long");
	if (rc) {
		lease_dir_close(d);
		*made = NULL;
		return rc;
	}
	d->boot_ms = proc_boot_ms(d->proc, !*o->root);
	proc_read_boot_id(d->proc, d->boot_id, sizeof(d->boot_id));
	d->cgroups_ms = INT64_MIN;
	return 0;
}

static void drop_entries(struct entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		str_finish(&entries[i].cards);
	free(entries);
}

void lease_dir_close(struct lease_dir *d)
{
	if (!d)
		return;
	file_close(d->proc);
	drop_entries(d->entries, d->n_entries);
	drop_entries(d->picks, d->n_picks);
	user_names_free(d->names);
	str_finish(&d->problems);
	free(d->out.v);
	free(d->out.cards);
	free(d);
}

static void complain(struct lease_dir *d, const char *place, const char *file, const char *why)
{
	char safe[NAME_MAX * 4];
	str_escape(safe, sizeof(safe), file, strlen(file));
	if (d->problems.len < PROBLEMS_CAP)
		str_addf(&d->problems, "%s%s%s: %s\n", place, *safe ? "/" : "", safe, why);
}

/* Whether only root, or the user to whom root gave the directory, can write there. */
static bool is_trusted(const struct stat *st, uid_t also)
{
	return (st->st_uid == 0 || st->st_uid == also) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static int64_t to_ms(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Writes the path of a place; false: it is too long. */
static bool find_place(const struct lease_dir *d, size_t place, char path[PATH_MAX])
{
	bool own = places[place].form == FORM_LEASE;
	return file_path(
		path, "%s%s%s", own ? d->path : d->o.root, own ? "/" : "", places[place].name);
}

static void count_change(struct seen *s, const struct stat *st)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	s->changed_ns += st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
	s->racy |= llabs(to_ms(now) - to_ms(st->st_mtim)) < RACY_MS;
}

/* Looks at a directory without reading it. */
static struct seen look(struct lease_dir *d, size_t place, const struct seen *before)
{
	struct seen s = { .answered_ms = -1,
		.heartbeat_ms = before->heartbeat_ms,
		.trusted = before->trusted };
	char path[PATH_MAX], beat[PATH_MAX + sizeof(LEASE_DIR_HEARTBEAT)];
	struct stat st;
	if (!find_place(d, place, path) || lstat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return s;
	s.there = true;
	s.device = st.st_dev;
	s.inode = st.st_ino;
	count_change(&s, &st);
	if (places[place].form != FORM_LEASE) {
		/* Others rewrite their files in place, which does not change the directory:
		 * each file counts, also one that names no job now. */
		DIR *dir = opendir(path);
		for (struct dirent *file; dir && (file = readdir(dir)) != NULL;)
			if (file->d_name[0] != '.' && fstatat(dirfd(dir), file->d_name, &st,
							      AT_SYMLINK_NOFOLLOW) == 0)
				count_change(&s, &st);
		if (dir)
			closedir(dir);
		return s;
	}
	snprintf(beat, sizeof(beat), "%s/" LEASE_DIR_HEARTBEAT, path);
	if (lstat(beat, &st) == 0 && S_ISREG(st.st_mode))
		s.answered_ms = to_ms(st.st_mtim);
	return s;
}

/* A file that was opened safely: its bytes, and when it was written. */
struct content {
	char bytes[LEASE_FILE_MAX + 1];
	size_t len;
	int64_t written_ms;
};

/* Reads a regular file of a trusted user. NULL, or why it could not. */
static const char *read_file(
	struct lease_dir *d, int dir, const char *name, uid_t owner, struct content *c)
{
	struct stat st;
	const char *why = NULL;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return "not a regular file";
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t n = -1;
	if (fd < 0) {
		d->n_hidden += errno == EACCES;
		return strerror(errno);
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || !is_trusted(&st, owner))
		why = "another user owns it or may write to it";
	else if (st.st_size >= LEASE_FILE_MAX)
		why = "it is too large";
	else if ((n = read(fd, c->bytes, LEASE_FILE_MAX)) < 0)
		why = strerror(errno);
	close(fd);
	c->len = n < 0 ? 0 : (size_t)n;
	c->bytes[c->len] = '\0';
	c->written_ms = to_ms(st.st_mtim);
	return why;
}

/* Adds an entry with these cards. If memory runs out, reading goes on with the others. */
static void add_entry(
	struct entry **all, size_t *n, const struct entry *entry, const char *cards)
{
	if (!array_one_more(all, *n))
		return;
	(*all)[*n] = *entry;
	str_add(&(*all)[(*n)++].cards, cards);
}

/* For a lease that has only the number of its user. */
static void name_owner(struct lease_dir *d, struct lease *l)
{
	if (*l->owner)
		return;
	if (l->uid < 0)
		str_copy(l->owner, sizeof(l->owner), USER_UNKNOWN);
	else if (*d->o.root || (!d->names && user_names_new(&d->names, user_find_system, NULL,
						     USER_DEADLINE_MS, NULL) != 0))
		snprintf(l->owner, sizeof(l->owner), "uid:%lld", (long long)l->uid);
	else
		user_names_get(d->names, (uint32_t)l->uid, clock_monotonic_us(), l->owner,
			sizeof(l->owner));
}

/* Whether the file is from before this boot. */
static bool is_old(const struct lease_dir *d, const char *boot_id, int64_t written_ms)
{
	if (boot_id && *boot_id && *d->boot_id)
		return strcmp(boot_id, d->boot_id) != 0;
	return d->boot_ms >= 0 && written_ms < d->boot_ms;
}

static void take_lease(struct lease_dir *d, size_t place, const char *name, struct content *c)
{
	struct lease_file f;
	struct err e = { 0 };
	if (lease_file_parse(c->bytes, c->len, &f, &e) != 0) {
		complain(d, places[place].name, name, e.text);
		return;
	}
	/* What a writer that was killed has left has another name. */
	char own_name[LEASE_FILE_NAME_CAP];
	if (!lease_file_name(own_name, f.id) || strcmp(name, own_name) != 0) {
		complain(d, places[place].name, name, "it is not named after its id");
		return;
	}
	if (is_old(d, f.boot, c->written_ms))
		return;
	struct entry entry = { .lease = lease_file_lease(&f, places[place].kind, c->written_ms),
		.place = place,
		.numbering = find_numbering(f.numbering),
		.written_ms = c->written_ms,
		.watched = f.watched && strcmp(f.watched, "yes") == 0 };
	name_owner(d, &entry.lease);
	add_entry(&d->entries, &d->n_entries, &entry, f.cards);
}

/* A card of a job, in a file of others that is named after the card. */
static void take_card(struct lease_dir *d, size_t place, const char *card,
	const struct lease_file *f, int64_t written_ms)
{
	for (size_t i = 0; i < d->n_entries; i++) {
		struct entry *known = &d->entries[i];
		if (known->place != place || strcmp(known->lease.id, f->id) != 0)
			continue;
		str_addf(&known->cards, ",%s", card);
		if (written_ms < known->lease.since_ms)
			known->lease.since_ms = written_ms;
		return;
	}
	struct entry entry = { .lease = lease_file_lease(f, places[place].kind, written_ms),
		.place = place,
		.numbering = -1,
		.written_ms = written_ms };
	name_owner(d, &entry.lease);
	add_entry(&d->entries, &d->n_entries, &entry, card);
}

/* "JOB UID" of jobstats; or the lines of a job mapping: a job each, which share the card. */
static void take_foreign(struct lease_dir *d, size_t place, const char *card, struct content *c)
{
	char *rest = c->bytes, *line;
	bool jobstats = places[place].form == FORM_JOBSTATS;
	const char *second_line = strpbrk(c->bytes, "\n");
	bool several = !jobstats && second_line && second_line[strspn(second_line, "\r\n ")];
	if (is_old(d, NULL, c->written_ms))
		return;
	while ((line = strsep(&rest, "\n")) != NULL) {
		struct lease_file f = LEASE_FILE_NONE;
		char name[LEASE_FILE_NAME_CAP], *end = NULL;
		f.id = strtok_r(line, " \t\r", &end);
		const char *uid = jobstats ? strtok_r(NULL, " \t\r", &end) : NULL;
		if (!f.id || !lease_file_name(name, f.id))
			continue;
		if (uid && strspn(uid, "0123456789") == strlen(uid) && strlen(uid) < 10)
			f.uid = strtoll(uid, NULL, 10);
		f.share = several ? 0 : 1;
		take_card(d, place, card, &f, c->written_ms);
		if (jobstats)
			return;
	}
}

static void take_file(
	struct lease_dir *d, size_t place, const struct stat *dir, int fd, const char *name)
{
	static const char mapped[] = "0123456789.";
	struct content c;
	bool own = places[place].form == FORM_LEASE;
	bool beats = own && strcmp(name, LEASE_DIR_HEARTBEAT) == 0;
	if ((*name == '.' && !beats) ||
		(places[place].form == FORM_MAPPING && name[strspn(name, mapped)]))
		return;
	const char *why = read_file(d, fd, name, dir->st_uid, &c);
	if (why)
		complain(d, places[place].name, name, why);
	else if (beats) {
		struct ini ini;
		struct ini_item item;
		ini_start(&ini, c.bytes, c.len);
		d->seen[place].heartbeat_ms = HEARTBEAT_MS;
		while (ini_next(&ini, &item))
			if (item.kind == INI_PAIR && strcmp(item.first, "every") == 0)
				(void)duration_parse(
					item.second, &d->seen[place].heartbeat_ms, NULL);
	} else if (own)
		take_lease(d, place, name, &c);
	else
		take_foreign(d, place, name, &c);
}

/* Why the open directory of a place is not believed; NULL: it is. */
static const char *distrust(const struct lease_dir *d, size_t place, const struct stat *st)
{
	struct stat parent;
	/* A recorded tree belongs to the user who recorded it. */
	if (places[place].form != FORM_LEASE)
		return is_trusted(st, *d->o.root ? geteuid() : 0)
			       ? NULL
			       : "others than root may write to it";
	if (stat(d->path, &parent) != 0 || !is_trusted(&parent, geteuid()))
		return "others than root may write to the directory above it";
	return is_trusted(st, st->st_uid) ? NULL : "others than its owner may write to it";
}

static void read_place(struct lease_dir *d, size_t place)
{
	char path[PATH_MAX];
	struct stat st;
	size_t n = 0;
	int fd = find_place(d, place, path)
			 ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			 : -1;
	const char *why =
		fd < 0 || fstat(fd, &st) != 0 ? strerror(errno) : distrust(d, place, &st);
	DIR *dir = why ? NULL : fdopendir(fd);
	d->seen[place].trusted = dir != NULL;
	if (!dir) {
		complain(d, places[place].name, "", why ? why : ERR_MEMORY_TEXT);
		file_close(fd);
		return;
	}
	for (struct dirent *entry; n < FILES_MAX && (entry = readdir(dir)) != NULL; n++)
		take_file(d, place, &st, fd, entry->d_name);
	if (n == FILES_MAX)
		complain(d, places[place].name, "", "it has too many files");
	closedir(dir);
}

static bool is_number(const char *card)
{
	return card[strspn(card, "0123456789.")] == '\0';
}

/* By kind and id; of several about one job, the one that is believed is first. A pick has an
 * entry for each of its cards. */
static int compare_leases(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = x->lease.kind != y->lease.kind ? (int)x->lease.kind - (int)y->lease.kind
						   : strcmp(x->lease.id, y->lease.id);
	order = order ? order : array_compare((int64_t)x->place, (int64_t)y->place);
	return order ? order : strcmp(str_text(&x->cards), str_text(&y->cards));
}

/* Reads everything again. What was seen of a job's cgroup is kept. */
static void read_all(struct lease_dir *d)
{
	struct entry *before = d->entries;
	size_t n_before = d->n_entries;
	d->entries = NULL;
	d->n_entries = d->n_hidden = 0;
	str_clear(&d->problems);
	for (size_t i = 0; i < PLACES; i++)
		if (d->seen[i].there)
			read_place(d, i);
	for (size_t i = 0; i < d->n_entries; i++)
		for (size_t b = 0; b < n_before; b++)
			if (before[b].place == d->entries[i].place &&
				before[b].lease.since_ms == d->entries[i].lease.since_ms &&
				strcmp(before[b].lease.id, d->entries[i].lease.id) == 0) {
				d->entries[i].has_cgroup = before[b].has_cgroup;
				d->entries[i].cgroup_gone = before[b].cgroup_gone;
			}
	drop_entries(before, n_before);
	array_sort(d->entries, d->n_entries, compare_leases);
	d->has_number = false;
	for (size_t i = 0; i < d->n_entries; i++) {
		const char *list = str_text(&d->entries[i].cards);
		char card[UUID_CAP];
		while (lease_file_card(&list, card))
			d->has_number |= is_number(card);
	}
	d->cgroups_ms = INT64_MIN;
}

static bool has_cgroup(const struct entry *n, const glob_t *jobs)
{
	for (size_t i = 0; i < jobs->gl_pathc; i++) {
		const char *name = strrchr(jobs->gl_pathv[i], '/') + 1;
		if ((strncmp(name, "job_", 4) == 0 && strcmp(name + 4, n->lease.id) == 0) ||
			(*n->lease.sluid && strcmp(name, n->lease.sluid) == 0))
			return true;
	}
	return false;
}

/* Looks for jobs that have come or gone, and for the cards that numbers mean. Returns whether
 * anything has changed. */
static bool look_around(struct lease_dir *d)
{
	glob_t jobs;
	bool changed = false;
	cgroup_find_slurm(d->o.root, &jobs);
	for (size_t i = 0; i < d->n_entries; i++) {
		struct entry *n = &d->entries[i];
		if (n->lease.kind != LEASE_SLURM)
			continue;
		bool there = has_cgroup(n, &jobs), gone = n->has_cgroup && !there;
		changed |= n->cgroup_gone != gone || (there && !n->has_cgroup);
		n->cgroup_gone = gone;
		n->has_cgroup |= there;
	}
	globfree(&jobs);
	if (d->has_number)
		d->n_cards = proc_cards_read(d->proc, d->cards);
	return changed || d->has_number;
}

/* Whether the directory, which may be NULL, has a file that is not hidden. */
static bool has_file(DIR *dir)
{
	const struct dirent *file;
	bool has = false;
	while (dir && !has && (file = readdir(dir)) != NULL)
		has = file->d_name[0] != '.';
	if (dir)
		rewinddir(dir);
	return has;
}

/* Adds a card that a process has reserved; `before`: what was found the last time. */
static void add_pick(struct lease_dir *d, struct entry *entry, const char *uuid,
	const struct entry *before, size_t n_before)
{
	for (size_t i = 0; i < n_before; i++)
		if (strcmp(before[i].lease.id, entry->lease.id) == 0 &&
			strcmp(str_text(&before[i].cards), uuid) == 0)
			entry->lease.since_ms = before[i].lease.since_ms;
	name_owner(d, &entry->lease);
	add_entry(&d->picks, &d->n_picks, entry, uuid);
}

/* Reads the lock files of gua pick, which are named UUID.UID. The kernel says who has locked
 * them; what is in them does not count. `before`: those of the last time. */
static void read_picks(
	struct lease_dir *d, const struct entry *before, size_t n_before, int64_t now_ms)
{
	char path[PATH_MAX];
	struct stat st;
	struct idmap locked = { 0 };
	DIR *dir = file_path(path, "%s/run/lock/gua", d->o.root) ? opendir(path) : NULL;
	/* Most hosts have no pick, and need not read all locks. */
	bool any = has_file(dir) && proc_locked_inodes(d->proc, &locked) && locked.n;
	for (struct dirent *file;
		any && d->n_picks < PICKS_MAX && (file = readdir(dir)) != NULL;) {
		/* Any user may make any number of files here. */
		if (idmap_get(&locked, (int64_t)file->d_ino) == IDMAP_NONE)
			continue;
		struct lock_owner owner;
		size_t len = strcspn(file->d_name, ".");
		char uuid[UUID_CAP], card[UUID_CAP], id[32];
		if (!file->d_name[len] || len >= UUID_CAP || !strchr("GM", file->d_name[0]))
			continue;
		snprintf(uuid, sizeof(uuid), "%.*s", (int)len, file->d_name);
		const char *list = uuid; /* any user may make a file of any name here */
		if (!lease_file_card(&list, card) || strcmp(card, uuid) != 0 ||
			fstatat(dirfd(dir), file->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			!S_ISREG(st.st_mode) ||
			strtoll(file->d_name + len + 1, NULL, 10) != (long long)st.st_uid)
			continue;
		int64_t pid = proc_lock_pid(d->proc, &(struct file_id){ st.st_dev, st.st_ino });
		struct lease_file f = LEASE_FILE_NONE;
		snprintf(id, sizeof(id), "%lld", (long long)pid);
		f.id = id;
		/* Any user may lock the file of another. */
		f.uid = proc_lock_owner(&owner, d->proc, pid) ? owner.uid : st.st_uid;
		struct entry entry = { .lease = lease_file_lease(&f, LEASE_PICK, now_ms),
			.numbering = -1 };
		if (pid > 0)
			add_pick(d, &entry, uuid, before, n_before);
	}
	if (dir)
		closedir(dir);
	idmap_finish(&locked);
}

static bool has_source(const struct lease_dir *d)
{
	bool has = false;
	for (size_t i = 0; i < PLACES; i++)
		has |= d->seen[i].there && d->seen[i].trusted;
	return has;
}

/* Returns whether there are picks, or were. */
static bool look_at_picks(struct lease_dir *d, int64_t now_ms)
{
	struct entry *before = d->picks;
	size_t n_before = d->n_picks;
	d->picks = NULL;
	d->n_picks = 0;
	if (has_source(d))
		read_picks(d, before, n_before, now_ms);
	drop_entries(before, n_before);
	array_sort(d->picks, d->n_picks, compare_leases);
	return n_before || d->n_picks;
}

/* The moment after which a watcher counts as silent. */
static int64_t silent_ms(const struct lease_dir *d, const struct entry *n, int64_t *answered_ms)
{
	const struct seen *s = &d->seen[n->place];
	*answered_ms = s->answered_ms < 0 ? n->written_ms : s->answered_ms;
	return *answered_ms +
	       LEASE_DIR_MISSED * (s->heartbeat_ms > 0 ? s->heartbeat_ms : HEARTBEAT_MS);
}

static const char *numbering_problem(const struct lease_dir *d, int numbering)
{
	if (d->n_cards == 0)
		return "the driver does not list its cards";
	for (size_t i = 0; i < d->n_cards; i++) {
		if (d->cards[i].has_mig)
			return "a card is divided into MIG instances, which have numbers of "
			       "their own";
		if (numbering != NUMBERING_NVML && numbering != NUMBERING_MINOR &&
			d->cards[i].minor != (int64_t)i)
			return "the minor numbers of the cards are not in the order of their "
			       "PCI addresses; say in gua.conf what numbers mean: [leases] "
			       "numbering";
	}
	return NULL;
}

const char *lease_dir_numbering_problem(struct lease_dir *d)
{
	d->n_cards = proc_cards_read(d->proc, d->cards);
	return numbering_problem(d, d->numbering);
}

/* The UUID of a card that a lease names by a number; "": which one is not known. */
static const char *card_of(const struct lease_dir *d, int numbering, const char *number)
{
	char *end = NULL;
	long long n = strtoll(number, &end, 10);
	numbering = numbering >= 0 ? numbering : d->numbering;
	if (*end || numbering_problem(d, numbering))
		return "";
	for (size_t i = 0; i < d->n_cards; i++)
		if ((numbering == NUMBERING_MINOR ? d->cards[i].minor : (int64_t)i) == n)
			return d->cards[i].uuid;
	return "";
}

/* Appends the cards of the last lease. The prolog of jobstats writes the number of a card and
 * its UUID: then only the UUID counts. */
static bool add_cards(const struct lease_dir *d, const struct entry *n, struct leases *out)
{
	struct lease *l = &out->v[out->n - 1];
	const char *list = str_text(&n->cards);
	char card[UUID_CAP];
	bool has_uuid = false;
	while (lease_file_card(&list, card))
		has_uuid |= !is_number(card);
	bool skip_numbers = has_uuid && places[n->place].form == FORM_JOBSTATS;
	if (!l->n_cards)
		l->first_card = out->n_cards;
	list = str_text(&n->cards);
	while (l->n_cards < CARDS_MAX && lease_file_card(&list, card)) {
		if (is_number(card) && skip_numbers)
			continue;
		if (!array_one_more(&out->cards, out->n_cards))
			return false;
		struct lease_card *c = &out->cards[out->n_cards++];
		memset(c, 0, sizeof(*c));
		str_copy(c->uuid, sizeof(c->uuid),
			is_number(card) ? card_of(d, n->numbering, card) : card);
		l->n_cards++;
	}
	return true;
}

/* Whether a lease is still there; says when that may change. Slurm may remove the cgroup of a
 * job between two of its steps, and make it again: a watcher that answers knows better. */
static bool is_there(struct lease_dir *d, const struct entry *n, int64_t now_ms, bool answers)
{
	int64_t until_ms = n->lease.until_ms;
	if (n->cgroup_gone && !answers)
		return false;
	if (until_ms < 0 || (n->has_cgroup && !n->cgroup_gone))
		return true;
	if (now_ms < until_ms && until_ms < d->next_ms)
		d->next_ms = until_ms;
	return now_ms < until_ms;
}

/* Makes the leases at `now_ms` from what the files say. False: out of memory. */
static bool make_leases(struct lease_dir *d, struct leases *out, int64_t now_ms)
{
	d->next_ms = INT64_MAX;
	out->has_source = has_source(d);
	for (size_t i = 0; i < d->n_entries + d->n_picks; i++) {
		const struct entry *n =
			i < d->n_entries ? &d->entries[i] : &d->picks[i - d->n_entries];
		const struct lease *last = out->n ? &out->v[out->n - 1] : NULL;
		bool again = last && last->kind == n->lease.kind &&
			     strcmp(last->id, n->lease.id) == 0;
		int64_t answered_ms = 0,
			silent = n->watched ? silent_ms(d, n, &answered_ms) : 0;
		if (again && n->lease.kind != LEASE_PICK) /* another place has said it */
			continue;
		if (!is_there(d, n, now_ms, n->watched && now_ms <= silent))
			continue;
		if (!again && !array_one_more(&out->v, out->n))
			return false;
		if (!again)
			memcpy(&out->v[out->n++], &n->lease, sizeof(n->lease));
		if (n->watched && now_ms > silent)
			out->v[out->n - 1].unknown_since_ms = answered_ms;
		else if (n->watched && silent < d->next_ms)
			d->next_ms = silent + 1;
		if (!add_cards(d, n, out))
			return false;
	}
	return true;
}

static bool are_equal(const struct leases *a, const struct leases *b)
{
	return a->has_source == b->has_source && a->n == b->n && a->n_cards == b->n_cards &&
	       (!a->n || memcmp(a->v, b->v, a->n * sizeof(*a->v)) == 0) &&
	       (!a->n_cards || memcmp(a->cards, b->cards, a->n_cards * sizeof(*a->cards)) == 0);
}

const struct leases *lease_dir_read(struct lease_dir *d, int64_t now_ms)
{
	bool changed = false, answered = false;
	for (size_t i = 0; i < PLACES; i++) {
		struct seen s = look(d, i, &d->seen[i]);
		const struct seen *a = &d->seen[i];
		changed |= a->there != s.there || a->racy || a->device != s.device ||
			   a->inode != s.inode || a->changed_ns != s.changed_ns;
		answered |= d->seen[i].answered_ms != s.answered_ms;
		d->seen[i] = s;
	}
	if (changed)
		read_all(d);
	bool old = now_ms < d->cgroups_ms || now_ms - CGROUP_MS >= d->cgroups_ms;
	if (old) {
		changed |= d->n_entries && look_around(d);
		changed |= look_at_picks(d, now_ms);
		d->cgroups_ms = now_ms;
	}
	if (!changed && !answered && now_ms < d->next_ms)
		return &d->out;
	struct leases out = { .generation = d->out.generation + 1 };
	bool made = make_leases(d, &out, now_ms);
	if (!made || are_equal(&out, &d->out)) {
		free(out.v);
		free(out.cards);
		return &d->out;
	}
	free(d->out.v);
	free(d->out.cards);
	d->out = out;
	return &d->out;
}

size_t lease_dir_hidden(const struct lease_dir *d)
{
	return d->n_hidden;
}

const char *lease_dir_problems(const struct lease_dir *d)
{
	return str_text(&d->problems);
}

/* Writes the path of a lease's file. */
static int find_file(char path[PATH_MAX], const char *dir, enum lease_kind kind, const char *id,
	struct err *e)
{
	char name[LEASE_FILE_NAME_CAP];
	if (!lease_file_name(name, id))
		return err_set(e, ERR_USAGE, "'%s' is not the id of a lease", id);
	return file_path(path, "%s/%s/%s", dir, lease_kind_names[kind], name)
		       ? 0
		       : err_set(e, ERR_USAGE, "the path %s is too long", dir);
}

static bool is_written(const char *path, const struct str *text)
{
	char there[LEASE_FILE_MAX];
	struct stat st;
	if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	ssize_t n = file_read_at(AT_FDCWD, path, there, sizeof(there));
	return n == (ssize_t)text->len && memcmp(there, text->data, text->len) == 0;
}

int lease_dir_put(const char *dir, enum lease_kind kind, const struct lease_file *f,
	bool private, struct err *e)
{
	char path[PATH_MAX];
	struct str text = { 0 };
	int rc = find_file(path, dir, kind, f->id, e);
	mode_t mask = umask(022);
	if (rc == 0)
		rc = file_make_parent(path, 0755, e);
	umask(private ? 027 : 022);
	lease_file_add(&text, f);
	if (rc == 0 && text.failed)
		rc = err_memory(e);
	if (rc == 0 && text.len >= LEASE_FILE_MAX)
		rc = err_set(e, ERR_USAGE, "the lease has too many cards");
	/* A file that is not touched does not make readers read all of them again. */
	if (rc == 0 && !is_written(path, &text))
		rc = file_replace_entry(path, str_text(&text), text.len, e);
	umask(mask);
	str_finish(&text);
	return rc;
}

int lease_dir_remove(const char *dir, enum lease_kind kind, const char *id, struct err *e)
{
	char path[PATH_MAX];
	int rc = find_file(path, dir, kind, id, e);
	if (rc == 0 && unlink(path) != 0 && errno != ENOENT)
		return err_set(e, ERR_WORLD, "cannot remove %s: %s", path, strerror(errno));
	return rc;
}
