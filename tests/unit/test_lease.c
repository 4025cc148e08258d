/* The directory of leases: what is believed, what has ended, and which card a number means. */
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "lease/lease_dir.h"
#include "lease/lease_file.h"

#define A "GPU-aaaaaaaa-0000-0000-0000-000000000000"
#define B "GPU-bbbbbbbb-0000-0000-0000-000000000000"
#define BOOT_S 1700000000
#define NOW_MS INT64_C(1700001000000)

/* A tree with a boot time, and the reader of its leases. */
struct world {
	char root[64];
	struct lease_dir *d;
	int64_t now_ms;
};

static const char *path_of(const struct world *w, const char *below)
{
	static char path[1024];
	snprintf(path, sizeof(path), "%s/%s", w->root, below);
	return path;
}

static void touch(const struct world *w, const char *name, int64_t ms)
{
	const struct timespec times[2] = { { ms / 1000, ms % 1000 * 1000000 },
		{ ms / 1000, ms % 1000 * 1000000 } };
	assert_int_equal(utimensat(AT_FDCWD, path_of(w, name), times, AT_SYMLINK_NOFOLLOW), 0);
}

/* Writes a file as it was written at `now_ms`. */
static void put(const struct world *w, const char *name, const char *text)
{
	assert_int_equal(file_make_parent(path_of(w, name), 0755, NULL), 0);
	assert_int_equal(file_replace(path_of(w, name), text, strlen(text), NULL), 0);
	touch(w, name, w->now_ms);
}

static void open_world(struct world *w, const char *numbering)
{
	*w = (struct world){ .root = "/tmp/gua-lease-XXXXXX", .now_ms = NOW_MS };
	umask(022);
	assert_non_null(mkdtemp(w->root));
	put(w, "proc/stat", "cpu  1\nbtime 1700000000\n");
	put(w, "proc/sys/kernel/random/boot_id", "this-boot\n");
	const struct lease_dir_options o = { .root = w->root, .numbering = numbering };
	assert_int_equal(lease_dir_open(&w->d, &o, NULL), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static void close_world(struct world *w)
{
	lease_dir_close(w->d);
	nftw(w->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const struct leases *read_at(struct world *w, int64_t after_ms)
{
	w->now_ms = NOW_MS + after_ms;
	return lease_dir_read(w->d, w->now_ms);
}

static void test_a_lease(void **state)
{
	(void)state;
	struct world w;
	open_world(&w, "auto");
	assert_false(read_at(&w, 0)->has_source);
	assert_int_equal(read_at(&w, 0)->n, 0);
	put(&w, "run/gua/leases/slurm/4",
		"id = 4\nuser = alice\nuid = 1000\ncards = " A "," B "::3\nshare = 2\n"
		"since = 1700000900.250\nuntil = 1700002000\nname = big\naccount = vision\n");
	put(&w, "run/gua/leases/pod/ns%2Fp%5Cu001b",
		"id = \"ns/p\\u001b\"\nuid = 7\ncards = MIG-1\n");
	const struct leases *all = read_at(&w, 1000);
	assert_true(all->has_source);
	assert_int_equal(all->n, 2);
	const struct lease *l = &all->v[0];
	assert_int_equal(l->kind, LEASE_SLURM);
	assert_string_equal(l->id, "4");
	assert_string_equal(l->owner, "alice");
	assert_string_equal(l->job_name, "big");
	assert_string_equal(l->account, "vision");
	assert_int_equal(l->share, 2);
	assert_int_equal(l->since_ms, INT64_C(1700000900250));
	assert_int_equal(l->until_ms, INT64_C(1700002000000));
	assert_int_equal(l->unknown_since_ms, -1);
	assert_int_equal(l->n_cards, 2);
	assert_string_equal(all->cards[l->first_card].uuid, A);
	assert_string_equal(all->cards[l->first_card + 1].uuid, B);
	/* Without a beginning: when it was written; without a name: its number. */
	l = &all->v[1];
	assert_int_equal(l->kind, LEASE_POD);
	assert_string_equal(l->owner, "uid:7");
	assert_int_equal(l->since_ms, NOW_MS);
	assert_int_equal(l->until_ms, -1);
	assert_int_equal(l->share, 1);
	assert_string_equal(all->cards[l->first_card].uuid, "MIG-1");
	uint64_t generation = all->generation;
	assert_int_equal(read_at(&w, 60000)->generation, generation);
	unlink(path_of(&w, "run/gua/leases/pod/ns%2Fp%5Cu001b"));
	all = read_at(&w, 60000);
	assert_int_equal(all->n, 1);
	assert_int_not_equal(all->generation, generation);
	close_world(&w);
}

static void test_only_those_who_may_write_are_believed(void **state)
{
	(void)state;
	struct world w;
	static const char lease[] = "id = 4\nuser = alice\ncards = " A "\n";
	open_world(&w, "auto");
	put(&w, "elsewhere", lease);
	put(&w, "run/gua/leases/slurm/.hidden", lease);
	put(&w, "run/gua/leases/slurm/no-cards", "id = no-cards\n");
	put(&w, "run/gua/leases/slurm/no-id", "cards = " A "\n");
	put(&w, "run/gua/leases/slurm/4.Xy12Zw", lease); /* left by a writer that was killed */
	put(&w, "run/gua/leases/slurm/writable", lease);
	chmod(path_of(&w, "run/gua/leases/slurm/writable"), 0666);
	mkfifo(path_of(&w, "run/gua/leases/slurm/fifo"), 0644);
	mkdir(path_of(&w, "run/gua/leases/slurm/directory"), 0755);
	char target[128];
	snprintf(target, sizeof(target), "%s/elsewhere", w.root);
	assert_int_equal(symlink(target, path_of(&w, "run/gua/leases/slurm/link")), 0);
	int large = open(path_of(&w, "run/gua/leases/slurm/large"), O_CREAT | O_WRONLY, 0644);
	assert_int_equal(ftruncate(large, INT64_C(1) << 40), 0);
	close(large);
	put(&w, "run/gua/leases/other/4", lease);
	assert_int_equal(read_at(&w, 0)->n, 0);
	assert_true(read_at(&w, 0)->has_source);
	const char *problems = lease_dir_problems(w.d);
	assert_non_null(strstr(problems, "slurm/no-cards: it names no card\n"));
	assert_non_null(strstr(problems, "slurm/no-id: it needs an id"));
	assert_non_null(strstr(problems, "slurm/writable: another user owns it"));
	assert_non_null(strstr(problems, "slurm/fifo: not a regular file\n"));
	assert_non_null(strstr(problems, "slurm/link: not a regular file\n"));
	assert_non_null(strstr(problems, "slurm/large: it is too large\n"));
	assert_non_null(strstr(problems, "slurm/4.Xy12Zw: it is not named after its id\n"));
	assert_null(strstr(problems, "hidden"));
	assert_int_equal(lease_dir_hidden(w.d), 0);
	/* A directory that others may write to is no source at all. */
	put(&w, "run/gua/leases/slurm/4", lease);
	assert_int_equal(read_at(&w, 0)->n, 1);
	chmod(path_of(&w, "run/gua/leases/slurm"), 0777);
	put(&w, "run/gua/leases/slurm/6", lease);
	assert_int_equal(read_at(&w, 0)->n, 0);
	assert_false(read_at(&w, 0)->has_source);
	chmod(path_of(&w, "run/gua/leases/slurm"), 0755);
	chmod(path_of(&w, "run/gua/leases"), 01777);
	put(&w, "run/gua/leases/slurm/7", lease);
	assert_false(read_at(&w, 0)->has_source);
	close_world(&w);
}

static void test_ends_without_a_word(void **state)
{
	(void)state;
	struct world w;
	open_world(&w, "auto");
	put(&w, "run/gua/leases/slurm/1", "id = 1\ncards = " A "\nuntil = 1700001060\n");
	put(&w, "run/gua/leases/slurm/2", "id = 2\ncards = " A "\nuntil = 1700001060\n");
	put(&w, "run/gua/leases/slurm/3", "id = 3\nsluid = s1\ncards = " A "\n");
	put(&w, "run/gua/leases/slurm/4", "id = 4\nuid = 9\ncards = " A "\n");
	put(&w, "run/gua/leases/slurm/5", "id = 5\nboot = another\ncards = " A "\n");
	put(&w, "run/gua/leases/slurm/6", "id = 6\ncards = " A "\n");
	touch(&w, "run/gua/leases/slurm/6", BOOT_S * INT64_C(1000) - 1);
	put(&w, "run/gua/leases/slurm/7", "id = 7\nboot = this-boot\ncards = " A "\n");
	touch(&w, "run/gua/leases/slurm/7", BOOT_S * INT64_C(1000) - 1);
	put(&w, "sys/fs/cgroup/system.slice/slurmstepd.scope/job_2/x", "");
	put(&w, "sys/fs/cgroup/system.slice/vm_slurmstepd.scope/s1/x", "");
	put(&w, "sys/fs/cgroup/freezer/slurm_vm/uid_9/job_4/x", "");
	/* 5 and 6 are older than this boot; 7 has no cgroup, which proves nothing. */
	const struct leases *all = read_at(&w, 0);
	assert_int_equal(all->n, 5);
	assert_string_equal(all->v[4].id, "7");
	assert_int_equal(read_at(&w, 59999)->n, 5);
	/* 1 ends at its time; 2 lives on. */
	all = read_at(&w, 60000);
	assert_int_equal(all->n, 4);
	assert_string_equal(all->v[0].id, "2");
	static const char *const gone[] = { "system.slice/slurmstepd.scope/job_2",
		"system.slice/vm_slurmstepd.scope/s1", "freezer/slurm_vm/uid_9/job_4" };
	for (size_t i = 0; i < 3; i++) {
		char below[128];
		snprintf(below, sizeof(below), "sys/fs/cgroup/%s/x", gone[i]);
		unlink(path_of(&w, below));
		*strrchr(below, '/') = '\0';
		assert_int_equal(rmdir(path_of(&w, below)), 0);
		assert_int_equal(read_at(&w, 70000 + (int64_t)i * 5000)->n, 3 - i);
	}
	/* The next step of 2 makes its cgroup again. */
	put(&w, "sys/fs/cgroup/system.slice/slurmstepd.scope/job_2/x", "");
	all = read_at(&w, 85000);
	assert_int_equal(all->n, 2);
	assert_string_equal(all->v[0].id, "2");
	close_world(&w);
}

static void test_a_silent_watcher(void **state)
{
	(void)state;
	struct world w;
	open_world(&w, "auto");
	put(&w, "run/gua/leases/slurm/1", "id = 1\ncards = " A "\nwatched = yes\n");
	put(&w, "run/gua/leases/slurm/2", "id = 2\ncards = " B "\n");
	put(&w, "run/gua/leases/slurm/.heartbeat", "every = 20s\n");
	assert_int_equal(read_at(&w, 60000)->v[0].unknown_since_ms, -1);
	const struct leases *all = read_at(&w, 60001);
	assert_int_equal(all->v[0].unknown_since_ms, NOW_MS);
	assert_int_equal(all->v[1].unknown_since_ms, -1);
	touch(&w, "run/gua/leases/slurm/.heartbeat", NOW_MS + 61000);
	assert_int_equal(read_at(&w, 61000)->v[0].unknown_since_ms, -1);
	/* Nothing says how often it answers, or that it does. */
	unlink(path_of(&w, "run/gua/leases/slurm/.heartbeat"));
	assert_int_equal(read_at(&w, 61000)->v[0].unknown_since_ms, NOW_MS);
	close_world(&w);
}

/* Slurm may remove the cgroup of a job between two steps. */
static void test_a_watcher_knows_better_than_a_cgroup(void **state)
{
	(void)state;
	static const char cgroup[] = "sys/fs/cgroup/system.slice/slurmstepd.scope/job_1";
	struct world w;
	open_world(&w, "auto");
	put(&w, "run/gua/leases/slurm/1", "id = 1\ncards = " A "\nwatched = yes\n");
	put(&w, "run/gua/leases/slurm/.heartbeat", "every = 20s\n");
	put(&w, "sys/fs/cgroup/system.slice/slurmstepd.scope/job_1/x", "");
	assert_int_equal(read_at(&w, 0)->n, 1);
	unlink(path_of(&w, "sys/fs/cgroup/system.slice/slurmstepd.scope/job_1/x"));
	assert_int_equal(rmdir(path_of(&w, cgroup)), 0);
	assert_int_equal(read_at(&w, 10000)->n, 1);
	assert_int_equal(read_at(&w, 60000)->n, 1);
	assert_int_equal(read_at(&w, 60001)->n, 0); /* silent */
	close_world(&w);
}

static void put_card(const struct world *w, const char *pci, const char *uuid, int minor)
{
	char name[128], text[256];
	snprintf(name, sizeof(name), "proc/driver/nvidia/gpus/%s/information", pci);
	snprintf(text, sizeof(text),
		"Model: \t\t NVIDIA A100\nGPU UUID: \t %s\nDevice Minor: \t %d\n"
		"GPU Excluded:\t No\n",
		uuid, minor);
	put(w, name, text);
}

/* Reads the leases again, and returns the UUID of the card of the lease `id`. */
static const char *card_of(struct world *w, const char *id)
{
	const struct leases *all = read_at(w, w->now_ms - NOW_MS + 5000);
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].id, id) == 0)
			return all->cards[all->v[i].first_card].uuid;
	return "no such lease";
}

static void test_numbers(void **state)
{
	(void)state;
	struct world w;
	open_world(&w, "auto");
	put(&w, "run/gua/leases/slurm/1", "id = 1\ncards = 1\n");
	put(&w, "run/gua/leases/slurm/2", "id = 2\ncards = 0\nnumbering = nvml\n");
	put(&w, "run/gua/leases/slurm/3", "id = 3\ncards = 1\nnumbering = minor\n");
	assert_string_equal(card_of(&w, "1"), "");
	assert_non_null(lease_dir_numbering_problem(w.d));
	put_card(&w, "0000:65:00.0", B, 1);
	put_card(&w, "0000:17:00.0", A, 0);
	assert_string_equal(card_of(&w, "1"), B);
	assert_null(lease_dir_numbering_problem(w.d));
	/* Minor numbers in another order: only a lease that says which they are counts. */
	put_card(&w, "0000:65:00.0", B, 0);
	put_card(&w, "0000:17:00.0", A, 1);
	assert_string_equal(card_of(&w, "1"), "");
	assert_string_equal(card_of(&w, "2"), A);
	assert_string_equal(card_of(&w, "3"), A);
	assert_non_null(strstr(lease_dir_numbering_problem(w.d), "minor numbers"));
	put_card(&w, "0000:17:00.0", "GPU-????", 1);
	assert_string_equal(card_of(&w, "2"), "");
	/* Instances have numbers of their own. */
	put_card(&w, "0000:17:00.0", A, 1);
	assert_string_equal(card_of(&w, "2"), A);
	put(&w, "proc/driver/nvidia/capabilities/gpu1/mig/gi3/access", "");
	assert_string_equal(card_of(&w, "2"), "");
	close_world(&w);
}

static void test_files_of_others(void **state)
{
	(void)state;
	struct world w;
	open_world(&w, "auto");
	put(&w, "run/gpustat/0", "247609 223456\n");
	put(&w, "run/gpustat/" A, "247609 223456\n");
	put(&w, "run/gpustat/MIG-2", "9\n");
	put(&w, "var/lib/dcgm-exporter/job-mapping/1", "31\n32\n");
	put(&w, "var/lib/dcgm-exporter/job-mapping/README", "33\n");
	put(&w, "var/lib/dcgm-exporter/job-mapping/2.1", "9");
	put_card(&w, "0000:17:00.0", A, 0);
	put_card(&w, "0000:65:00.0", B, 1);
	const struct leases *all = read_at(&w, 0);
	assert_true(all->has_source);
	assert_int_equal(all->n, 4);
	assert_string_equal(all->v[0].id, "247609");
	assert_int_equal(all->v[0].uid, 223456);
	assert_int_equal(all->v[0].n_cards, 1);
	assert_string_equal(all->cards[all->v[0].first_card].uuid, A);
	for (size_t i = 1; i <= 2; i++) { /* both on one card */
		assert_int_equal(all->v[i].share, 0);
		assert_string_equal(all->v[i].owner, "_unknown");
		assert_string_equal(all->cards[all->v[i].first_card].uuid, B);
	}
	/* Both directories name it: the first is believed. */
	assert_string_equal(all->v[3].id, "9");
	assert_string_equal(all->cards[all->v[3].first_card].uuid, "MIG-2");
	/* Written in place, so that the directory does not change. */
	int fd = open(path_of(&w, "run/gpustat/MIG-2"), O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "77 1\n", 5), 5);
	close(fd);
	touch(&w, "run/gpustat", NOW_MS);
	touch(&w, "run/gpustat/MIG-2", NOW_MS + 1000);
	all = read_at(&w, 1000);
	assert_string_equal(all->v[3].id, "77");
	/* Emptied in place, and filled again much later. */
	assert_int_equal(truncate(path_of(&w, "run/gpustat/MIG-2"), 0), 0);
	touch(&w, "run/gpustat/MIG-2", NOW_MS + 2000);
	assert_int_equal(read_at(&w, 2000)->n, 4); /* the other directory's counts again */
	assert_string_equal(all->v[3].id, "9");
	fd = open(path_of(&w, "run/gpustat/MIG-2"), O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "78 1\n", 5), 5);
	close(fd);
	touch(&w, "run/gpustat/MIG-2", NOW_MS + 9000);
	read_at(&w, 8000);
	all = read_at(&w, 9000);
	assert_int_equal(all->n, 5);
	assert_string_equal(all->v[3].id, "78");
	close_world(&w);
}

/* Locks of gua pick count on hosts with a scheduler, while the kernel knows their process. */
static void test_picks(void **state)
{
	(void)state;
	struct world w;
	char locks[512], text[512];
	struct stat a, b, c;
	open_world(&w, "auto");
	snprintf(text, sizeof(text), "run/lock/gua/" A ".%u", (unsigned)geteuid());
	put(&w, text, "whatever it says");
	assert_int_equal(stat(path_of(&w, text), &a), 0);
	snprintf(text, sizeof(text), "run/lock/gua/" B ".%u", (unsigned)geteuid());
	put(&w, text, "");
	assert_int_equal(stat(path_of(&w, text), &b), 0);
	put(&w, "run/lock/gua/" A ".4242", ""); /* not of the user that it names */
	put(&w, "run/lock/gua/choosing", "");
	snprintf(text, sizeof(text), "run/lock/gua/G\033[1m.%u", (unsigned)geteuid());
	put(&w, text, "");
	assert_int_equal(stat(path_of(&w, text), &c), 0);
	snprintf(locks, sizeof(locks),
		"1: FLOCK  ADVISORY  WRITE 77 %02x:%02x:%llu 0 EOF\n"
		"2: FLOCK  ADVISORY  WRITE 77 %02x:%02x:%llu 0 EOF\n"
		"3: FLOCK  ADVISORY  WRITE 78 %02x:%02x:%llu 0 EOF\n",
		major(a.st_dev), minor(a.st_dev), (unsigned long long)a.st_ino, major(b.st_dev),
		minor(b.st_dev), (unsigned long long)b.st_ino, major(c.st_dev), minor(c.st_dev),
		(unsigned long long)c.st_ino);
	put(&w, "proc/locks", locks);
	assert_int_equal(read_at(&w, 0)->n, 0);
	put(&w, "run/gua/leases/slurm/4", "id = 4\nuser = alice\ncards = " B "\n");
	const struct leases *all = read_at(&w, 10000); /* at once: a list is one reading */
	assert_int_equal(all->n, 2);
	const struct lease *pick = &all->v[1];
	assert_int_equal(pick->kind, LEASE_PICK);
	assert_string_equal(pick->id, "77");
	assert_int_equal(pick->uid, geteuid());
	assert_int_equal(pick->since_ms, NOW_MS + 10000);
	assert_int_equal(pick->n_cards, 2);
	assert_string_equal(all->cards[pick->first_card].uuid, A);
	uint64_t generation = all->generation;
	assert_int_equal(read_at(&w, 20000)->generation, generation);
	/* Another user has locked the files: it is not their owner's pick. */
	put(&w, "proc/77/stat", "77 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
	put(&w, "proc/77/status", "Name:\tx\nUid:\t4242\t4242\t4242\t4242\n");
	assert_int_equal(read_at(&w, 25000)->v[1].uid, 4242);
	put(&w, "proc/locks", "");
	assert_int_equal(read_at(&w, 30000)->n, 1);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_lease),
		cmocka_unit_test(test_only_those_who_may_write_are_believed),
		cmocka_unit_test(test_ends_without_a_word),
		cmocka_unit_test(test_a_silent_watcher),
		cmocka_unit_test(test_a_watcher_knows_better_than_a_cgroup),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_files_of_others),
		cmocka_unit_test(test_picks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
