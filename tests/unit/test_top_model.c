/* The model, the layout and the keys of `gua top`, without a terminal. */
#include "test.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "proc/proc.h"
#include "top/top_state.h"
#include "top/top_words.h"

enum { NOW_MS = 100000000, CARDS_MAX = 64, PROCESSES_MAX = 8 };

/* A small lab: see make_lab(). */
struct lab {
	struct present_card cards[CARDS_MAX];
	struct present_process processes[PROCESSES_MAX];
	struct present_host host;
	struct present now;
	struct top_state state;
};

static struct present_process *add(struct lab *lab, uint32_t pid, size_t card, const char *user,
	const char *command, int64_t mem_bytes)
{
	struct present_process *p = &lab->processes[lab->now.n_processes++];
	*p = (struct present_process){ .card = card,
		.kind = PROCESS_COMPUTE,
		.holder = true,
		.mem_bytes = mem_bytes,
		.sm_pct = NAN,
		.cpu_pct = NAN,
		.rss_bytes = -1,
		.held_since_ms = 0,
		.last_active_ms = -1,
		.idle_since_ms = -1 };
	p->id = (struct process_id){ .pid = pid, .start_ticks = pid, .started_ms = pid };
	strcpy(p->id.user, user);
	strcpy(p->id.command, command);
	return p;
}

static void make_lab(struct lab *lab, size_t n_cards)
{
	*lab = (struct lab){ 0 };
	lab->now = (struct present){ .now_ms = NOW_MS,
		.hosts = &lab->host,
		.n_hosts = 1,
		.cards = lab->cards,
		.n_cards = n_cards,
		.processes = lab->processes };
	lab->state.now.all = &lab->now;
	lab->state.host = "lab";
	lab->state.driver = "1.0";
	for (size_t i = 0; i < n_cards; i++) {
		struct present_card *c = &lab->cards[i];
		c->id = (struct card_id){
			.name = "NVIDIA A100", .index = (int)i, .mig_index = -1
		};
		c->state = CARD_TRULY_IDLE;
		c->state_since_ms = -1;
		metric_clear(c->values, c->texts);
		c->values[METRIC_UTILIZATION_GPU] = 0;
	}
	struct present_process *p = add(lab, 10, 0, "bob", "python a.py", 1000);
	p->active = true;
	p->sm_pct = 50;
	p = add(lab, 20, 1 % n_cards, "alice", "Jupyter", 3000);
	p->idle_since_ms = NOW_MS - 5000;
	strcpy(p->id.notebook, "thesis.ipynb");
	p = add(lab, 30, 0, "carol", "julia", -1);
	p->idle_since_ms = NOW_MS - 9000;
	p->sm_pct = 0;
	add(lab, 40, 1 % n_cards, "bob", "python b.py", 2000)->kind = PROCESS_GRAPHICS;
	lab->processes[3].holder = false;
	lab->processes[3].idle_since_ms = NOW_MS - 99000;
	top_frame_init(&lab->state.frame, 80, true);
	assert_true(top_model_arrange(&lab->state.model, &lab->state.now));
}

static void finish_lab(struct lab *lab)
{
	top_model_finish(&lab->state.model);
	top_frame_finish(&lab->state.frame);
	top_history_finish(&lab->state.history);
	top_history_finish(&lab->state.seen);
	str_finish(&lab->state.arguments);
}

static enum top_action press(struct lab *lab, int key)
{
	return top_keys_press(&lab->state, key, (struct top_spot){ 0 });
}

static enum top_action click(struct lab *lab, size_t line, size_t column)
{
	return top_keys_press(&lab->state, TOP_KEY_CLICK, (struct top_spot){ line, column });
}

/* The pids of the rows, in order: "10 20 30". */
static void expect_rows(struct lab *lab, const char *expected)
{
	char text[256] = "";
	const struct top_model *m = &lab->state.model;
	assert_true(top_model_arrange(&lab->state.model, &lab->state.now));
	for (size_t i = 0; i < m->n_rows; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s%u",
			i ? " " : "", (int)m->rows[i].depth, "--------",
			top_model_row_id(&m->rows[i])->pid);
	assert_string_equal(text, expected);
}

static void expect_sorted(
	struct lab *lab, const struct holder_column *sort, bool reverse, const char *expected)
{
	lab->state.model.sort = sort;
	lab->state.model.reverse = reverse;
	expect_rows(lab, expected);
}

static void test_sorting_puts_the_unknown_last(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	expect_sorted(&lab, holders_sort("card"), false, "10 30 20 40");
	expect_sorted(&lab, holders_sort("card"), true, "20 40 10 30");
	expect_sorted(&lab, holders_sort("user"), false, "20 10 40 30");
	expect_sorted(&lab, holders_sort("pid"), false, "10 20 30 40");
	expect_sorted(&lab, holders_sort("pid"), true, "40 30 20 10");
	expect_sorted(&lab, holders_sort("mem"), false, "20 40 10 30");
	expect_sorted(&lab, holders_sort("mem"), true, "10 40 20 30");
	expect_sorted(&lab, holders_sort("sm"), false, "10 30 20 40");
	expect_sorted(&lab, holders_sort("age"), false, "10 20 30 40");
	expect_sorted(&lab, holders_sort("idle"), false, "30 20 10 40");
	expect_sorted(&lab, holders_sort("what"), true, "20 10 30 40");
	expect_sorted(&lab, holders_sort("command"), false, "30 20 10 40");
	finish_lab(&lab);
}

static void test_filters(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	strcpy(lab.state.model.filter, "PYTHON");
	expect_rows(&lab, "10 40");
	strcpy(lab.state.model.filter, "thesis");
	expect_rows(&lab, "20");
	strcpy(lab.state.model.filter, "40");
	expect_rows(&lab, "40");
	strcpy(lab.state.model.filter, "nothing");
	expect_rows(&lab, "");
	assert_null(top_model_row(&lab.state.model));
	lab.state.model.filter[0] = '\0';
	strcpy(lab.state.model.user, "bob");
	expect_rows(&lab, "10 40");
	lab.state.model.user[0] = '\0';
	const bool second[] = { false, true };
	lab.state.now.card_on = second;
	expect_rows(&lab, "20 40");
	finish_lab(&lab);
}

static void test_the_tree_adds_ancestors_and_ends_circles(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	/* 5 - 7 - (30, 10 - 40); 20 on its own. */
	const struct top_ancestor family[] = { { .id = { .pid = 7 }, .parent = 5 },
		{ .id = { .pid = 5 }, .parent = 1 } };
	const uint32_t parents[] = { 7, 0, 7, 10 }, circle[] = { 40, 0, 0, 10 };
	lab.state.model.tree = true;
	expect_rows(&lab, "10 30 20 40");
	lab.state.now.parents = parents;
	lab.state.now.family = family;
	lab.state.now.n_family = 2;
	expect_rows(&lab, "5 -7 --10 ---40 --30 20");
	lab.state.model.sort = holders_sort("idle");
	expect_rows(&lab, "5 -7 --30 --10 ---40 20");
	lab.state.now.parents = circle;
	lab.state.now.n_family = 0;
	expect_rows(&lab, "30 20 10 40");
	finish_lab(&lab);
}

static void test_the_selection_stays_with_its_process(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	struct top_model *m = &lab.state.model;
	expect_rows(&lab, "10 30 20 40");
	top_model_move(m, 2);
	assert_int_equal(top_model_row_id(top_model_row(m))->pid, 20);
	expect_sorted(&lab, holders_sort("pid"), true, "40 30 20 10");
	assert_int_equal(top_model_row_id(top_model_row(m))->pid, 20);
	/* The pid is another's: the place stays, not the process. */
	lab.processes[1].id.start_ticks++;
	expect_sorted(&lab, holders_sort("pid"), false, "10 20 30 40");
	assert_int_equal(m->selected, 2);
	top_model_move(m, -100);
	assert_int_equal(m->selected, 0);
	top_model_move(m, 100);
	assert_int_equal(m->selected, 3);
	top_model_show(m, 2);
	assert_int_equal(m->first, 2);
	top_model_show(m, 10);
	assert_int_equal(m->first, 0);
	finish_lab(&lab);
}

static void test_one_key_brings_idle_holders_to_the_top(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	top_model_move(&lab.state.model, 3);
	assert_int_equal(press(&lab, 'i'), TOP_ARRANGE);
	expect_rows(&lab, "30 20 10 40");
	assert_int_equal(lab.state.model.selected, 0);
	assert_int_equal(press(&lab, 'I'), TOP_ARRANGE);
	expect_rows(&lab, "20 30 10 40");
	finish_lab(&lab);
}

static void test_typing_a_filter(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	const int keys[] = { '/', 'q', 0xE4, TOP_KEY_BACKSPACE, TOP_KEY_BACKSPACE, 'j', 'u',
		'l' };
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_int_not_equal(press(&lab, keys[i]), TOP_QUIT);
	assert_string_equal(lab.state.model.filter, "jul");
	expect_rows(&lab, "30");
	for (int i = 0; i < 200; i++)
		press(&lab, 0x20AC);
	assert_true(strlen(lab.state.model.filter) < sizeof(lab.state.model.filter));
	press(&lab, TOP_KEY_ESCAPE);
	assert_string_equal(lab.state.model.filter, "");
	/* One that was kept with Enter is left in the same way. */
	press(&lab, '/');
	press(&lab, 'j');
	press(&lab, TOP_KEY_ENTER);
	assert_string_equal(lab.state.model.filter, "j");
	assert_int_equal(press(&lab, TOP_KEY_ESCAPE), TOP_ARRANGE);
	assert_string_equal(lab.state.model.filter, "");
	assert_int_equal(press(&lab, 'q'), TOP_QUIT);
	finish_lab(&lab);
}

static void test_a_signal_is_asked_for_twice(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	press(&lab, TOP_KEY_DOWN);
	assert_int_equal(press(&lab, 'k'), TOP_NOTHING);
	assert_int_equal(lab.state.target.pid, 30);
	assert_int_equal(press(&lab, 'n'), TOP_NOTHING);
	press(&lab, TOP_KEY_F0 + 9);
	press(&lab, TOP_KEY_RIGHT);
	assert_string_equal(top_signals[lab.state.signal].name, "SIGINT");
	assert_int_equal(press(&lab, 'y'), TOP_SEND);
	lab.state.no_signals = "read only";
	press(&lab, 'k');
	assert_int_equal(lab.state.page, TOP_TABLE);
	assert_int_equal(press(&lab, 'y'), TOP_NOTHING);
	finish_lab(&lab);
}

static void test_menus_and_the_mouse(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	top_draw(&lab.state, 24, 80);
	press(&lab, 'u');
	press(&lab, TOP_KEY_DOWN);
	press(&lab, TOP_KEY_DOWN);
	assert_int_equal(press(&lab, TOP_KEY_ENTER), TOP_ARRANGE);
	assert_string_equal(lab.state.model.user, "bob");
	lab.state.model.user[0] = '\0';
	press(&lab, TOP_KEY_F0 + 6);
	press(&lab, TOP_KEY_END);
	press(&lab, TOP_KEY_ENTER);
	assert_ptr_equal(lab.state.model.sort, holders_sort("command"));
	expect_rows(&lab, "30 20 10 40");
	size_t third = lab.state.layout.table_at + 2;
	click(&lab, third, 0);
	assert_int_equal(lab.state.model.selected, 2);
	assert_int_equal(click(&lab, third, 0), TOP_REFRESH);
	assert_int_equal(lab.state.page, TOP_DETAILS);
	assert_int_equal(lab.state.target.pid, 10);
	finish_lab(&lab);
}

/* Whoever comes or goes while the menu is open: a line is the user that it was. */
static void test_the_menu_of_users_stays_as_it_was_opened(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	press(&lab, 'u');
	press(&lab, TOP_KEY_DOWN);
	press(&lab, TOP_KEY_DOWN);
	for (size_t i = 0; i < lab.state.now.all->n_processes; i++)
		if (strcmp(lab.processes[i].id.user, "bob") != 0)
			snprintf(lab.processes[i].id.user, USER_CAP, "aaron");
	top_draw(&lab.state, 24, 80);
	assert_non_null(strstr(str_text(&lab.state.frame.text), "alice"));
	press(&lab, TOP_KEY_ENTER);
	assert_string_equal(lab.state.model.user, "bob");
	press(&lab, 'u');
	assert_int_equal(lab.state.menu, 2); /* all users, aaron, bob: the one that is chosen */
	finish_lab(&lab);
}

/* The head sums up what is listed, and says so when that is not all. */
static void test_the_head_is_of_what_is_listed(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	top_draw(&lab.state, 24, 80);
	assert_null(strstr(str_text(&lab.state.frame.text), "shown"));
	snprintf(lab.state.model.user, USER_CAP, "alice");
	assert_true(top_model_arrange(&lab.state.model, &lab.state.now));
	top_draw(&lab.state, 24, 80);
	assert_non_null(strstr(str_text(&lab.state.frame.text), " 1 of 1 shown holder idle: "));
	finish_lab(&lab);
}

static void test_a_click_on_a_title_sorts(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	top_draw(&lab.state, 24, 80);
	size_t line = lab.state.layout.table_at - 1;
	const struct {
		size_t column;
		const struct holder_column *sort;
	} titles[] = { { 1, holders_sort("card") }, { 4, holders_sort("card") },
		{ 6, holders_sort("user") }, { 79, holders_sort("command") } };
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
		lab.state.model.sort = holders_sort("sm");
		assert_int_equal(click(&lab, line, titles[i].column), TOP_ARRANGE);
		assert_ptr_equal(lab.state.model.sort, titles[i].sort);
		assert_false(lab.state.model.reverse);
	}
	assert_int_equal(click(&lab, line, 79), TOP_ARRANGE);
	assert_true(lab.state.model.reverse);
	assert_int_equal(click(&lab, line, 500), TOP_NOTHING);
	press(&lab, '?');
	click(&lab, line, 1);
	assert_ptr_equal(lab.state.model.sort, holders_sort("command"));
	finish_lab(&lab);
}

/* A menu that is longer than the screen is scrolled: a click takes the line that is seen. */
static void test_a_click_takes_the_line_of_the_menu_that_is_seen(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 2);
	press(&lab, 's');
	top_draw(&lab.state, 14, 80);
	size_t rows = lab.state.layout.table_rows, first = lab.state.layout.table_at;
	const struct holder_column *orders[HOLDER_COLUMNS_MAX];
	size_t n = top_pages_orders(orders);
	assert_true(rows < n);
	for (size_t i = 0; i < n; i++)
		press(&lab, TOP_KEY_DOWN);
	top_draw(&lab.state, 14, 80);
	assert_int_equal(click(&lab, first - 1, 0), TOP_NOTHING);
	assert_int_equal(lab.state.page, TOP_SORT_MENU);
	assert_int_equal(click(&lab, first, 0), TOP_ARRANGE);
	assert_ptr_equal(lab.state.model.sort, orders[n - rows]);
	finish_lab(&lab);
}

/* Where there is no room for bars there are none, and the numbers stay. */
static void test_a_narrow_screen_keeps_the_numbers(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 1);
	lab.cards[0].values[METRIC_UTILIZATION_GPU] = 73;
	lab.state.frame.style.ascii = false;
	top_draw(&lab.state, 24, 40);
	assert_non_null(strstr(str_text(&lab.state.frame.text), "   0   73% "));
	finish_lab(&lab);
}

/* Every size: no more lines than the screen has, none wider, and the keys at the bottom. */
static void test_every_size_is_kept(void **state)
{
	(void)state;
	static const size_t sizes[][2] = { { 24, 80 }, { 50, 200 }, { 10, 40 }, { 60, 300 },
		{ 3, 20 }, { 1, 1 } };
	static const size_t cards[] = { 1, 8, 64 };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) * 3 * 6; i++) {
		struct lab lab;
		const size_t *size = sizes[i / 18];
		make_lab(&lab, cards[i / 6 % 3]);
		lab.state.page = (enum top_page)(i % 6);
		lab.state.target = lab.processes[0].id;
		strcpy(lab.state.note, "a note");
		top_draw(&lab.state, size[0], size[1]);
		assert_true(size[0] < 4 || lab.state.frame.lines == size[0]);
		const char *at = str_text(&lab.state.frame.text);
		for (; *at; at += strcspn(at, "\n") + 1)
			assert_true(strcspn(at, "\n") <= size[1]);
		finish_lab(&lab);
	}
}

static void test_many_cards_share_lines_and_scroll(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 64);
	top_draw(&lab.state, 24, 80);
	assert_int_equal(lab.state.layout.cards_a_line, 3);
	assert_true(lab.state.layout.table_rows >= 8);
	assert_non_null(strstr(str_text(&lab.state.frame.text), "1 to 27 of 64"));
	for (int i = 0; i < 100; i++)
		press(&lab, ']');
	top_draw(&lab.state, 24, 80);
	assert_non_null(strstr(str_text(&lab.state.frame.text), "\n  63 "));
	assert_null(strstr(str_text(&lab.state.frame.text), "\n   0 "));
	top_draw(&lab.state, 100, 80);
	assert_int_equal(lab.state.layout.cards_a_line, 3);
	top_draw(&lab.state, 120, 80);
	assert_int_equal(lab.state.layout.cards_a_line, 1);
	finish_lab(&lab);
}

static void test_names_are_never_formats(void **state)
{
	(void)state;
	struct lab lab;
	make_lab(&lab, 1);
	strcpy(lab.processes[0].id.command, "%s%n%d");
	strcpy(lab.processes[0].id.user, "%n");
	top_draw(&lab.state, 24, 80);
	assert_non_null(strstr(str_text(&lab.state.frame.text), "%s%n%d"));
	lab.state.page = TOP_DETAILS;
	lab.state.target = lab.processes[0].id;
	top_draw(&lab.state, 24, 80);
	assert_non_null(strstr(str_text(&lab.state.frame.text), "%s%n%d"));
	finish_lab(&lab);
}

static void test_history(void **state)
{
	(void)state;
	struct top_history h = { 0 };
	double pct[3];
	top_history_add(&h, 1, 60000 * 1000, 10);
	top_history_add(&h, 1, 60000 * 1000 + 59999, 20);
	top_history_add(&h, 1, 60000 * 1001, NAN);
	top_history_add(&h, 1, 60000LL * 1002, 100);
	/* Also a card without a reading is known: the store is asked once about it. */
	top_history_add(&h, 7, 60000LL * 1002, NAN);
	assert_int_equal(h.n_cards, 8);
	top_history_get(&h, 1, 60000LL * 1002, pct, 3);
	assert_true(pct[0] == 15 && isnan(pct[1]) && pct[2] == 100);
	/* A minute that lies a whole ring back is another. */
	top_history_get(&h, 1, 60000LL * (1002 + TOP_HISTORY_MINUTES), pct, 3);
	assert_true(isnan(pct[0]) && isnan(pct[2]));
	finish_lab(&(struct lab){ .state.history = h });
}

static void expect_words(int64_t ms, const char *span, int64_t bytes, const char *size)
{
	assert_string_equal(top_words_span(ms).text, span);
	assert_string_equal(top_words_size(bytes).text, size);
}

static void test_short_words(void **state)
{
	(void)state;
	expect_words(-1, "-", -1, "-");
	expect_words(0, "0s", 0, "0 MiB");
	expect_words(59999, "59s", 999LL << 20, "999 MiB");
	expect_words(60000, "1m", 1000LL << 20, "1.0 GiB");
	expect_words(3600000, "1h00m", 1LL << 30, "1.0 GiB");
	expect_words(86399999, "23h59m", 99LL << 30, "99.0 GiB");
	expect_words(86400000, "1d00h", 141LL << 30, "141 GiB");
	expect_words(86400000LL * 400, "400d", 20000LL << 30, "20 TiB");
	assert_string_equal(top_words_gib(NAN).text, "-");
	assert_string_equal(top_words_number(NAN, "%").text, "-");
}

/* Halves are what two ways of rounding differ in. */
static void test_numbers_are_rounded_as_by_printf(void **state)
{
	(void)state;
	for (int64_t i = 0; i < 20000; i++) {
		const int64_t bytes = i * 53687091 + (i % 3 - 1), sixteenth = i << 26;
		const int64_t all[] = { bytes < 0 ? 0 : bytes, sixteenth };
		for (size_t k = 0; k < 2; k++) {
			double gib = (double)all[k] / (1 << 30);
			assert_string_equal(top_words_gib((double)all[k]).text,
				str_brief("%.*f", gib < 99.95, gib).text);
		}
		double half = (double)i / 2;
		assert_string_equal(
			top_words_number(half, "W").text, str_brief("%.0fW", half).text);
	}
}

/* Without the check of the start time this test would end itself. */
static void test_a_pid_of_another_is_not_signalled(void **state)
{
	(void)state;
	struct err e = { 0 };
	int proc = -1;
	assert_int_equal(proc_open(&proc, "", &e), 0);
	struct process_id id = { .pid = (uint32_t)getpid() };
	id.start_ticks = proc_start_ticks(proc, id.pid);
	close(proc);
	assert_int_equal(top_keys_send_signal(&id, 0, &e), 0);
	id.start_ticks++;
	assert_int_equal(top_keys_send_signal(&id, SIGKILL, &e), ERR_WORLD);
	assert_non_null(strstr(e.text, "another process"));
	id.start_ticks = 0;
	assert_int_equal(top_keys_send_signal(&id, SIGKILL, &e), ERR_WORLD);
	id = (struct process_id){ .pid = 0, .start_ticks = 1 };
	assert_int_equal(top_keys_send_signal(&id, SIGKILL, &e), ERR_WORLD);
}

/* Every state can be told from the others by its word, and by its colour or weight. */
static void test_states_differ(void **state)
{
	(void)state;
	char codes[STATE_LOOKS][STATE_CODES_CAP];
	for (size_t i = 0; i < CARD_SHOWN_STATES; i++) {
		const struct present_card card = { .state = (enum card_state)i };
		state_codes(codes[i], i);
		assert_string_equal(top_words_state(&card), state_looks[i].word);
		assert_int_equal(top_words_state_style(&card), TOP_STATE + (int)i);
		size_t listed = 0;
		for (size_t k = 0; k < CARD_SHOWN_STATES; k++)
			listed += state_order[k] == i;
		assert_int_equal(listed, 1);
		for (size_t k = 0; k < i; k++) {
			assert_string_not_equal(codes[i], codes[k]);
			assert_string_not_equal(state_looks[i].key, state_looks[k].key);
			assert_string_not_equal(state_looks[i].word, state_looks[k].word);
		}
	}
	assert_string_equal(codes[CARD_IDLE_HELD], "1;33");
	assert_string_equal(codes[CARD_UNOBSERVED], "2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sorting_puts_the_unknown_last),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_the_tree_adds_ancestors_and_ends_circles),
		cmocka_unit_test(test_the_selection_stays_with_its_process),
		cmocka_unit_test(test_one_key_brings_idle_holders_to_the_top),
		cmocka_unit_test(test_typing_a_filter),
		cmocka_unit_test(test_a_signal_is_asked_for_twice),
		cmocka_unit_test(test_menus_and_the_mouse),
		cmocka_unit_test(test_the_menu_of_users_stays_as_it_was_opened),
		cmocka_unit_test(test_the_head_is_of_what_is_listed),
		cmocka_unit_test(test_a_click_takes_the_line_of_the_menu_that_is_seen),
		cmocka_unit_test(test_a_click_on_a_title_sorts),
		cmocka_unit_test(test_a_narrow_screen_keeps_the_numbers),
		cmocka_unit_test(test_every_size_is_kept),
		cmocka_unit_test(test_many_cards_share_lines_and_scroll),
		cmocka_unit_test(test_names_are_never_formats),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_short_words),
		cmocka_unit_test(test_numbers_are_rounded_as_by_printf),
		cmocka_unit_test(test_states_differ),
		cmocka_unit_test(test_a_pid_of_another_is_not_signalled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
