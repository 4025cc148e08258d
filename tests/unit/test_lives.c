/* Process lives: reused pids, zombies, processes that are not in /proc, places that are used
 * again. */
#include "test.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/source.h"
#include "proc/lives.h"

/* A source that knows its processes itself: one pid, whose start time a test sets. */
struct fake {
	struct source source;
	uint64_t start_ticks; /* 0: no such process */
};

static bool describe(struct source *s, uint32_t pid, struct process_id *id)
{
	struct fake *fake = (struct fake *)s;
	if (!fake->start_ticks)
		return false;
	id->start_ticks = fake->start_ticks;
	snprintf(id->user, sizeof(id->user), "user%u", pid);
	return true;
}

static const struct source_ops told_ops = { .name = "fake", .describe = describe };
static const struct source_ops proc_ops = { .name = "fake" };

static void ask(struct lives *l, struct fake *fake)
{
	l->source = &fake->source;
	l->describe = fake->source.ops->describe;
}

static void test_a_reused_pid_is_another_life(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct lives l;
	struct fake fake = { .source.ops = &told_ops, .start_ticks = 100 };
	assert_int_equal(lives_init(&l, NULL, false, &e), 0);
	ask(&l, &fake);
	uint32_t first = lives_find(&l, 7, true, 1000);
	assert_int_equal(lives_find(&l, 7, true, 2000), first);
	fake.start_ticks = 200;
	uint32_t second = lives_find(&l, 7, true, 3000);
	assert_int_not_equal(first, second);
	assert_int_equal(l.entries[first].ended_ms, 3000);
	assert_int_equal(l.entries[second].ended_ms, -1);
	assert_int_equal(l.lives[first].user, l.lives[second].user);
	lives_finish(&l);
}

/* Without a reader a pid of this host is all that is known. */
static void test_a_pid_that_nobody_describes(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct lives l;
	struct fake fake = { .source.ops = &proc_ops };
	assert_int_equal(lives_init(&l, NULL, false, &e), 0);
	ask(&l, &fake);
	lives_expect(&l, 1);
	lives_ask(&l);
	uint32_t life = lives_find(&l, 1, false, 1000);
	assert_int_equal(l.entries[life].id.pid, 1);
	assert_int_equal(l.entries[life].id.start_ticks, 0);
	assert_int_equal(l.entries[life].id.uid, -1);
	lives_sweep(&l, 1000);
	assert_int_equal(lives_find(&l, 1, false, 2000), life);
	lives_sweep(&l, 3000);
	assert_int_equal(l.entries[life].ended_ms, 3000);
	lives_finish(&l);
}

static void test_a_place_is_used_again_only_after_it_was_stored(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct lives l;
	struct fake fake = { .source.ops = &told_ops, .start_ticks = 1 };
	assert_int_equal(lives_init(&l, NULL, false, &e), 0);
	ask(&l, &fake);
	uint32_t first = lives_find(&l, 7, true, 1000);
	fake.start_ticks = 2;
	uint32_t second = lives_find(&l, 7, true, 2000);
	lives_forget_ended(&l);
	assert_int_equal(lives_find(&l, 8, true, 3000), first);
	assert_int_not_equal(first, second);
	for (uint32_t pid = 100; pid < 1100; pid++)
		assert_int_not_equal(lives_find(&l, pid, true, 4000), LIFE_NONE);
	assert_int_equal(lives_find(&l, 8, true, 5000), first);
	lives_finish(&l);
}

static void test_who_is_not_in_proc_lives_as_long_as_it_is_listed(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct lives l;
	struct fake fake = { .source.ops = &told_ops };
	assert_int_equal(lives_init(&l, NULL, false, &e), 0);
	ask(&l, &fake);
	uint32_t dead = lives_find(&l, 7, true, 1000);
	assert_string_equal(l.entries[dead].id.user, "_dead");
	lives_sweep(&l, 1000);
	assert_int_equal(l.entries[dead].ended_ms, -1);
	lives_sweep(&l, 2000);
	assert_int_equal(l.entries[dead].ended_ms, 2000);
	lives_finish(&l);
}

static void test_a_pidfd_tells_the_end_and_a_zombie_stays_itself(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct lives l;
	struct reader *reader = NULL;
	struct fake fake = { .source.ops = &proc_ops };
	assert_int_equal(reader_open(&reader, "", 0, &e), 0);
	assert_int_equal(lives_init(&l, reader, true, &e), 0);
	ask(&l, &fake);
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	uint32_t i = lives_find(&l, (uint32_t)child, false, 1000);
	struct pollfd exits = { .fd = l.exits_fd, .events = POLLIN };
	assert_int_equal(lives_next_exited(&l, 1500), LIFE_NONE);
	kill(child, SIGKILL);
	assert_int_equal(poll(&exits, 1, 60000), 1);
	assert_int_equal(lives_next_exited(&l, 2000), i);
	assert_int_equal(lives_next_exited(&l, 2500), LIFE_NONE);
	assert_int_equal(poll(&exits, 1, 0), 0);
	/* Not waited for: a zombie, which the driver may still list. */
	assert_int_equal(lives_find(&l, (uint32_t)child, false, 3000), i);
	assert_int_equal(l.entries[i].ended_ms, -1);
	waitpid(child, NULL, 0);
	lives_sweep(&l, 4000);
	assert_int_equal(l.entries[i].ended_ms, 2000);
	lives_finish(&l);
	reader_close(reader);
}

/* Whoever holds memory that no process explains is one life while it is seen. */
static void test_the_unknown(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct lives l;
	struct fake fake = { .source.ops = &told_ops, .start_ticks = 1 };
	assert_int_equal(lives_init(&l, NULL, false, &e), 0);
	ask(&l, &fake);
	uint32_t known = lives_find(&l, 7, true, 1000);
	uint32_t unknown = lives_unknown(&l, 1000);
	assert_int_not_equal(unknown, known);
	assert_int_equal(lives_unknown(&l, 2000), unknown);
	assert_string_equal(l.entries[unknown].id.user, "_unknown");
	assert_int_equal(l.entries[unknown].id.pid, 0);
	assert_int_equal(l.entries[unknown].id.started_ms, -1);
	lives_find(&l, 7, true, 2000);
	lives_sweep(&l, 2000);
	assert_int_equal(l.entries[unknown].ended_ms, -1);
	lives_sweep(&l, 3000);
	assert_int_equal(l.entries[unknown].ended_ms, 3000);
	assert_int_equal(l.entries[known].ended_ms, -1);
	/* Later it is another life with the same name. */
	uint32_t later = lives_unknown(&l, 4000);
	assert_int_not_equal(later, unknown);
	assert_int_equal(l.lives[later].user, l.lives[unknown].user);
	lives_finish(&l);
}

/* A record of one that has ended takes nothing from a life of the same pid. */
static void test_one_that_nobody_saw(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct lives l;
	struct fake fake = { .source.ops = &told_ops, .start_ticks = 1 };
	assert_int_equal(lives_init(&l, NULL, false, &e), 0);
	ask(&l, &fake);
	uint32_t now = lives_find(&l, 7, true, 5000);
	uint32_t before = lives_add_ended(&l, 7, 1000, 4000);
	assert_int_not_equal(now, before);
	assert_int_equal(l.entries[before].id.pid, 7);
	assert_int_equal(l.entries[before].id.started_ms, 1000);
	assert_int_equal(l.entries[before].first_seen_ms, 1000);
	assert_int_equal(l.entries[before].last_seen_ms, 4000);
	assert_int_equal(l.entries[before].ended_ms, 4000);
	assert_true(l.entries[before].dirty);
	assert_int_equal(lives_find(&l, 7, true, 6000), now);
	/* Its place is kept for as long as it is needed. */
	l.lives[before].kept = true;
	lives_forget_ended(&l);
	assert_true(l.lives[before].used);
	lives_forget_ended(&l);
	assert_false(l.lives[before].used);
	assert_true(l.lives[now].used);
	lives_finish(&l);
}

/* Two processes of one user, of which the first was seen before the user's name was known. */
static void test_a_name_that_comes_late(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct lives l;
	struct reader *nameless = NULL, *named = NULL;
	struct fake fake = { .source.ops = &proc_ops };
	char root[4000], proc[4096], dir[] = "/tmp/gua-lives-XXXXXX", link[64];
	snprintf(root, sizeof(root), "%s/tests/roots/login", getenv("GUA_SOURCE_ROOT"));
	snprintf(proc, sizeof(proc), "%s/proc", root);
	assert_non_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s/proc", dir);
	assert_int_equal(symlink(proc, link), 0);
	assert_int_equal(reader_open(&nameless, dir, 0, &e), 0);
	assert_int_equal(reader_open(&named, root, 0, &e), 0);
	assert_int_equal(lives_init(&l, nameless, false, &e), 0);
	ask(&l, &fake);
	uint32_t alice = lives_find(&l, 4201, false, 1000000);
	uint32_t bob = lives_find(&l, 4203, false, 1000000);
	lives_sweep(&l, 1000000);
	assert_string_equal(l.entries[alice].id.user, "uid:1000");
	assert_string_equal(l.entries[bob].id.user, "uid:1001");
	l.entries[alice].dirty = l.entries[bob].dirty = false;
	l.reader = named;
	uint32_t other = lives_find(&l, 4202, false, 1001000);
	assert_string_equal(l.entries[alice].id.user, "alice");
	assert_int_equal(l.lives[alice].user, l.lives[other].user);
	assert_true(l.entries[alice].dirty);
	lives_sweep(&l, 1001000);
	assert_string_equal(l.entries[bob].id.user, "uid:1001"); /* not asked again yet */
	lives_sweep(&l, 1060000);
	assert_string_equal(l.entries[bob].id.user, "bob");
	assert_true(l.entries[bob].dirty);
	assert_int_not_equal(l.lives[bob].user, l.lives[other].user);
	lives_finish(&l);
	reader_close(nameless);
	reader_close(named);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pid_that_nobody_describes),
		cmocka_unit_test(test_a_reused_pid_is_another_life),
		cmocka_unit_test(test_a_place_is_used_again_only_after_it_was_stored),
		cmocka_unit_test(test_who_is_not_in_proc_lives_as_long_as_it_is_listed),
		cmocka_unit_test(test_a_pidfd_tells_the_end_and_a_zombie_stays_itself),
		cmocka_unit_test(test_the_unknown),
		cmocka_unit_test(test_one_that_nobody_saw),
		cmocka_unit_test(test_a_name_that_comes_late),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
