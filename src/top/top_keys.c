/* What each key of `gua top` does to its state; sends signals. */
#include <signal.h>
#include <sys/syscall.h>

#include "proc/proc.h"
#include "top/top_state.h"

const struct top_signal top_signals[] = {
	{ "SIGTERM", SIGTERM },
	{ "SIGINT", SIGINT },
	{ "SIGHUP", SIGHUP },
	{ "SIGKILL", SIGKILL },
	{ "SIGSTOP", SIGSTOP },
	{ "SIGCONT", SIGCONT },
	{ "SIGUSR1", SIGUSR1 },
};
const size_t n_top_signals = sizeof(top_signals) / sizeof(top_signals[0]);

int top_keys_send_signal(const struct process_id *id, int number, struct err *e)
{
	int rc = 0;
	if (id->pid <= 1 || id->start_ticks == 0)
		return err_set(e, ERR_WORLD,
			"cannot signal process %u: it cannot be identified", id->pid);
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)id->pid, 0);
	if (fd < 0)
		return err_set(e, ERR_WORLD, "cannot signal process %u: %s", id->pid,
			errno == ESRCH ? "it has ended" : strerror(errno));
	/* A pidfd always refers to the same process: if the start time still matches, it is the
	 * right one. */
	int proc = -1;
	bool same = proc_open(&proc, "", NULL) == 0 &&
		    proc_start_ticks(proc, id->pid) == id->start_ticks;
	if (proc >= 0)
		close(proc);
	if (!same)
		rc = err_set(e, ERR_WORLD,
			"process %u has ended and another process has its pid: not sent",
			id->pid);
	else if (syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) != 0)
		rc = err_set(
			e, ERR_WORLD, "cannot signal process %u: %s", id->pid, strerror(errno));
	close(fd);
	return rc;
}

static enum top_action sort_by(struct top_state *s, const struct holder_column *sort)
{
	s->model.sort = sort;
	s->model.reverse = false;
	/* Show the top of the new order. */
	s->model.first = s->model.selected = 0;
	s->model.key = (struct top_key){ 0 };
	return TOP_ARRANGE;
}

static enum top_action open_page(struct top_state *s, enum top_page page)
{
	s->page = page;
	const struct holder_column *orders[HOLDER_COLUMNS_MAX];
	size_t n = page == TOP_SORT_MENU ? top_pages_orders(orders) : 0;
	s->menu = 0;
	for (size_t i = 0; i < n; i++)
		if (orders[i] == s->model.sort)
			s->menu = i;
	if (page == TOP_USER_MENU)
		top_pages_list_users(s);
	return TOP_NOTHING;
}

static enum top_action open_target(struct top_state *s, enum top_page page)
{
	const struct top_row *row = top_model_row(&s->model);
	if (page == TOP_SIGNAL && s->no_signals) {
		snprintf(s->message, sizeof(s->message), "no signals are sent: %s",
			s->no_signals);
		return TOP_NOTHING;
	}
	if (s->page == TOP_TABLE && !row)
		return TOP_NOTHING;
	if (s->page == TOP_TABLE) {
		s->target = *top_model_row_id(row);
		s->target_card = row->process ? row->process->card : SIZE_MAX;
	}
	s->signal = 0;
	top_history_finish(&s->seen);
	open_page(s, page);
	return page == TOP_DETAILS ? TOP_REFRESH : TOP_NOTHING;
}

static enum top_action press_typing(struct top_state *s, int key)
{
	static const unsigned char heads[] = { 0, 0, 0xC0, 0xE0 };
	char *filter = s->model.filter;
	size_t len = strlen(filter), n = key < 0x80 ? 1 : key < 0x800 ? 2 : 3;
	if (key == TOP_KEY_ENTER || key == TOP_KEY_ESCAPE)
		s->typing = false;
	if (key == TOP_KEY_ESCAPE) {
		filter[0] = '\0';
	} else if (key == TOP_KEY_BACKSPACE) {
		while (len && ((unsigned char)filter[len - 1] & 0xC0) == 0x80)
			len--;
		filter[len ? len - 1 : 0] = '\0';
	} else if (key >= ' ' && key != 0x7F && key < 0x10000 &&
		   len + n < sizeof(s->model.filter)) { /* as UTF-8, if it fits */
		filter[len + n] = '\0';
		for (size_t i = n; i-- > 1; key >>= 6)
			filter[len + i] = (char)(0x80 | (key & 0x3F));
		filter[len] = (char)(heads[n] | key);
	}
	return TOP_ARRANGE;
}

/* How far a key moves a selection; 0: the key does not move it. */
static long movement(int key, size_t page)
{
	long whole = page ? (long)page : 1;
	const struct {
		int key;
		long by;
	} moves[] = { { TOP_KEY_UP, -1 }, { TOP_KEY_DOWN, 1 }, { TOP_KEY_PAGE_UP, -whole },
		{ TOP_KEY_PAGE_DOWN, whole }, { TOP_KEY_HOME, -1000000 },
		{ TOP_KEY_END, 1000000 }, { TOP_KEY_WHEEL_UP, -3 }, { TOP_KEY_WHEEL_DOWN, 3 } };
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (moves[i].key == key)
			return moves[i].by;
	return 0;
}

static enum top_action choose(struct top_state *s)
{
	const struct holder_column *orders[HOLDER_COLUMNS_MAX];
	bool users = s->page == TOP_USER_MENU;
	s->page = TOP_TABLE;
	if (!users && s->menu < top_pages_orders(orders))
		return sort_by(s, orders[s->menu]);
	str_copy(s->model.user, sizeof(s->model.user), s->menu ? s->users[s->menu - 1] : "");
	return TOP_ARRANGE;
}

static enum top_action press_menu(struct top_state *s, int key, struct top_spot at)
{
	const struct top_layout *l = &s->layout;
	const struct holder_column *orders[HOLDER_COLUMNS_MAX];
	size_t n = s->page == TOP_SORT_MENU ? top_pages_orders(orders) : s->n_users + 1;
	if (key == TOP_KEY_CLICK) { /* chooses the line that it is on */
		size_t line = top_pages_menu_first(s) + at.line - l->table_at;
		if (at.line < l->table_at || at.line >= l->table_at + l->table_rows ||
			line >= n)
			return TOP_NOTHING;
		s->menu = line;
		return choose(s);
	}
	long to = (long)s->menu + movement(key, l->table_rows);
	s->menu = to < 0 ? 0 : (size_t)to >= n ? n - 1 : (size_t)to;
	if (key == TOP_KEY_ENTER)
		return choose(s);
	if (key == TOP_KEY_ESCAPE || key == 'q')
		s->page = TOP_TABLE;
	return TOP_NOTHING;
}

static void scroll_cards(struct top_state *s, long by)
{
	long to = (long)s->first_cards_row + by;
	s->first_cards_row = to < 0 ? 0 : (size_t)to;
}

/* A click on a title sorts by it; one on the title of the order reverses it. A click selects a
 * row, a second one opens it. */
static enum top_action click_table(struct top_state *s, struct top_spot at)
{
	const struct top_layout *l = &s->layout;
	size_t row = s->model.first + at.line - l->table_at;
	if (at.line + 1 == l->table_at) {
		const struct holder_column *sort = top_draw_title_at(s, at.column);
		if (sort && sort != s->model.sort)
			return sort_by(s, sort);
		s->model.reverse ^= sort != NULL;
		return sort ? TOP_ARRANGE : TOP_NOTHING;
	}
	if (at.line < l->table_at || at.line >= l->table_at + l->table_rows ||
		row >= s->model.n_rows)
		return TOP_NOTHING;
	if (row == s->model.selected)
		return open_target(s, TOP_DETAILS);
	top_model_select(&s->model, row);
	return TOP_NOTHING;
}

static enum top_action press_mouse(struct top_state *s, int key, struct top_spot at)
{
	if (key == TOP_KEY_CLICK)
		return click_table(s, at);
	if (at.line + 1 < s->layout.table_at)
		scroll_cards(s, key == TOP_KEY_WHEEL_UP ? -1 : 1);
	else
		top_model_move(&s->model, movement(key, 0));
	return TOP_NOTHING;
}

static enum top_action change_view(struct top_state *s, int key)
{
	switch (key) {
	case 'I':
		s->model.reverse = !s->model.reverse;
		return TOP_ARRANGE;
	case 't':
	case TOP_KEY_F0 + 5:
		s->model.tree = !s->model.tree;
		return TOP_REFRESH;
	case 'm': /* without the mouse, the terminal selects text with it */
		s->mouse = !s->mouse;
		str_copy(s->message, sizeof(s->message),
			s->mouse ? "the mouse sorts, selects and scrolls; m leaves it to the "
				   "terminal"
				 : "the mouse is left to the terminal, to select text; m takes "
				   "it back");
		return TOP_MOUSE;
	case '/':
	case TOP_KEY_F0 + 3:
	case TOP_KEY_F0 + 4:
		s->typing = true;
		return TOP_NOTHING;
	case '[':
	case ']':
		scroll_cards(s, key == '[' ? -1 : 1);
		return TOP_NOTHING;
	case TOP_KEY_LEFT:
		s->shift = s->shift > 8 ? s->shift - 8 : 0;
		return TOP_NOTHING;
	case TOP_KEY_RIGHT:
		s->shift = s->shift < COMMAND_CAP ? s->shift + 8 : s->shift;
		return TOP_NOTHING;
	default:
		top_model_move(&s->model, movement(key, s->layout.table_rows));
		return TOP_NOTHING;
	}
}

/* Handles a key while a card is selected; false: the key is one of the table. The cards are
 * above the first process. */
static bool press_cards(struct top_state *s, int key)
{
	size_t n = 0;
	while (top_draw_card_at(s, n) != SIZE_MAX)
		n++;
	if (!s->on_cards && key == TOP_KEY_UP && s->model.selected == 0 && n) {
		s->on_cards = true;
		s->card_row = n - 1;
		return true;
	}
	if (!s->on_cards)
		return false;
	size_t card = top_draw_card_at(s, s->card_row);
	if (key == TOP_KEY_UP && s->card_row > 0)
		s->card_row--;
	else if (key == TOP_KEY_DOWN && s->card_row + 1 < n)
		s->card_row++;
	else if (key == TOP_KEY_ENTER && card != SIZE_MAX) {
		s->target_card = card;
		open_page(s, TOP_CARD);
	} else if (key != TOP_KEY_UP) {
		s->on_cards = false;
		return key == TOP_KEY_DOWN || key == TOP_KEY_ESCAPE;
	}
	return true;
}

static enum top_action press_table(struct top_state *s, int key)
{
	if (press_cards(s, key))
		return TOP_NOTHING;
	static const struct {
		char key;
		const char *sort;
	} orders[] = { { 'i', "idle" }, { 'P', "sm" }, { 'M', "mem" }, { 'T', "age" },
		{ 'c', "card" } };
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (orders[i].key == key)
			return sort_by(s, holders_sort(orders[i].sort));
	switch (key) {
	case 'q':
	case TOP_KEY_F0 + 10:
		return TOP_QUIT;
	case '?':
	case 'h':
	case TOP_KEY_F0 + 1:
		return open_page(s, TOP_HELP);
	case 's':
	case TOP_KEY_F0 + 6:
		return open_page(s, TOP_SORT_MENU);
	case 'u':
		return open_page(s, TOP_USER_MENU);
	case 'k':
	case TOP_KEY_F0 + 9:
		return open_target(s, TOP_SIGNAL);
	case TOP_KEY_ENTER:
		return open_target(s, TOP_DETAILS);
	case TOP_KEY_ESCAPE: /* shows all processes again */
		s->model.filter[0] = s->model.user[0] = '\0';
		return TOP_ARRANGE;
	case 'r':
		return TOP_REFRESH;
	default:
		return change_view(s, key);
	}
}

enum top_action top_keys_press(struct top_state *s, int key, struct top_spot at)
{
	bool mouse =
		key == TOP_KEY_CLICK || key == TOP_KEY_WHEEL_UP || key == TOP_KEY_WHEEL_DOWN;
	if (key == TOP_KEY_RESIZE)
		return TOP_NOTHING;
	s->message[0] = '\0';
	if (s->typing && !mouse)
		return press_typing(s, key);
	if (s->page == TOP_SORT_MENU || s->page == TOP_USER_MENU)
		return press_menu(s, key, at);
	if (s->page == TOP_SIGNAL) {
		if (key == TOP_KEY_LEFT || key == TOP_KEY_RIGHT) {
			size_t by = key == TOP_KEY_RIGHT ? 1 : n_top_signals - 1;
			s->signal = (s->signal + by) % n_top_signals;
			return TOP_NOTHING;
		}
		s->page = TOP_TABLE;
		if (key == 'y' || key == 'Y')
			return TOP_SEND;
		str_copy(s->message, sizeof(s->message), "no signal was sent");
		return TOP_NOTHING;
	}
	if (s->page == TOP_TABLE)
		return mouse ? press_mouse(s, key, at) : press_table(s, key);
	if (s->page == TOP_DETAILS && (key == 'k' || key == TOP_KEY_F0 + 9))
		return open_target(s, TOP_SIGNAL);
	s->page = TOP_TABLE;
	return TOP_NOTHING;
}
