/* The main loop of `gua top`: reads the cards, draws the screen, handles keys. */
#include "top/top.h"

#include "top/top_state.h"

/* CPU use for a single frame is measured over this time. */
#define MEASURE_US 100000
/* How often processes on the screen are measured, and the others. The first is slightly less
 * than three seconds, so that it is every third refresh. */
#define MEASURE_SHOWN_US 2900000
#define MEASURE_OTHERS_US (15 * 1000000LL)
/* How often metrics that change seldom are read. */
#define SELDOM_US (10 * 1000000LL)
/* A healthy driver answers within this time. A refresh waits for it, to draw only once. */
#define PATIENCE_MS 20
/* A driver that has not answered for this long causes a message. */
#define SILENCE_MS 2000
/* How often the message is updated. */
#define SILENCE_EVERY_US 1000000

struct top {
	const struct top_options *options; /* owned by the caller */
	struct top_state state;
	struct top_family family;
	int64_t seldom_us; /* boot time when the metrics that change seldom were read */
	bool *card_on;
	size_t *picked; /* scratch */
	size_t cap_cards;
};

static int choose_cards(struct top *t, struct err *e)
{
	struct top_now *now = &t->state.now;
	if (now->all->n_cards > t->cap_cards) {
		if (!array_resize(&t->card_on, now->all->n_cards) ||
			!array_resize(&t->picked, now->all->n_cards))
			return err_memory(e);
		t->cap_cards = now->all->n_cards;
	}
	int n = filter_cards(t->options->filter, now->all, t->picked, e);
	for (size_t i = 0; i < now->all->n_cards; i++)
		t->card_on[i] = false;
	for (int i = 0; i < n; i++)
		t->card_on[t->picked[i]] =
			filter_on_card(t->options->filter, now->all, t->picked[i]);
	now->card_on = t->card_on;
	return n < 0 ? n : 0;
}

/* Fills the history of the cards from `first` on from the store. No message if the store has
 * nothing. */
static int seed_history(struct top *t, size_t first, struct err *e)
{
	struct top_state *s = &t->state;
	int64_t from = s->now.all->now_ms / 60000 - TOP_HISTORY_MINUTES + 1;
	if (first >= s->now.all->n_cards)
		return 0;
	size_t n = s->now.all->n_cards - first;
	double *pct = calloc(n * TOP_HISTORY_MINUTES, sizeof(*pct));
	if (!pct)
		return err_memory(e);
	const struct past_minutes minutes = { from, TOP_HISTORY_MINUTES, pct };
	live_recent_cards(t->options->live, first, &minutes);
	for (size_t i = 0; i < n * TOP_HISTORY_MINUTES; i++) {
		int64_t minute = from + (int64_t)(i % TOP_HISTORY_MINUTES);
		top_history_add(
			&s->history, first + i / TOP_HISTORY_MINUTES, minute * 60000, pct[i]);
	}
	free(pct);
	return 0;
}

/* Reads the additional data of the details page: the arguments, and the use of the card by
 * minute, from the store and from what this page has seen. `fresh`: there is a new reading. */
static void read_target(struct top *t, bool fresh)
{
	struct top_state *s = &t->state;
	double seen[TOP_DETAIL_MINUTES];
	str_clear(&s->arguments);
	const struct past_minutes minutes = { s->clock_ms / 60000 - TOP_DETAIL_MINUTES + 1,
		TOP_DETAIL_MINUTES, s->use };
	s->use_known =
		live_recent_process(t->options->live, s->target_card, &s->target, &minutes);
	for (size_t i = 0; !s->use_known && i < TOP_DETAIL_MINUTES; i++)
		s->use[i] = NAN;
	const struct present_process *p = top_pages_target(s);
	if (!p)
		return;
	live_process_arguments(t->options->live, p, &s->arguments);
	if (fresh)
		top_history_add(&s->seen, 0, s->now.all->now_ms, p->sm_pct);
	top_history_get(&s->seen, 0, s->clock_ms, seen, TOP_DETAIL_MINUTES);
	for (size_t i = 0; i < TOP_DETAIL_MINUTES; i++) {
		s->use[i] = isnan(s->use[i]) ? seen[i] : s->use[i];
		s->use_known |= !isnan(seen[i]);
	}
}

static int arrange(struct top *t, struct err *e)
{
	return top_model_arrange(&t->state.model, &t->state.now) ? 0 : err_memory(e);
}

/* Measures processes: those on the screen often, the others seldom. If they are sorted by a
 * measured value, all at each refresh. */
static void measure(struct top *t)
{
	const struct top_state *s = &t->state;
	const struct top_model *m = &s->model;
	const struct present_process *target = top_pages_target(s);
	if (s->page == TOP_TABLE)
		for (size_t i = m->first; i < m->n_rows && i < m->first + s->layout.table_rows;
			i++)
			if (m->rows[i].process)
				live_process_measure(t->options->live,
					(size_t)(m->rows[i].process - s->now.all->processes),
					MEASURE_SHOWN_US);
	if (s->page == TOP_DETAILS && target)
		live_process_measure(
			t->options->live, (size_t)(target - s->now.all->processes), 0);
	live_process_measure_all(t->options->live, MEASURE_OTHERS_US);
}

/* Reads what the current page needs, and orders the rows. */
static int prepare_page(struct top *t, bool fresh, struct err *e)
{
	struct top_now *now = &t->state.now;
	const struct holder_column *sort = t->state.model.sort;
	bool by_measure = sort && sort->measured;
	now->parents = NULL;
	now->n_family = 0;
	if (t->state.model.tree && t->options->root)
		top_model_family_read(&t->family, live_reader(t->options->live), now);
	if (t->state.page == TOP_DETAILS)
		read_target(t, fresh);
	if (by_measure)
		live_process_measure_all(t->options->live, 0);
	int rc = arrange(t, e);
	if (rc == 0 && !by_measure)
		measure(t);
	return rc;
}

static int take(struct top *t, struct err *e)
{
	struct top_now *now = &t->state.now;
	now->all = live_present(t->options->live);
	t->state.clock_ms = now->all->now_ms;
	now->filter = t->options->filter;
	/* The rows point into the previous answer, so they are invalid now. */
	t->state.model.n_rows = 0;
	now->parents = NULL;
	now->n_family = 0;
	int rc = choose_cards(t, e);
	if (rc == 0)
		rc = seed_history(t, t->state.history.n_cards, e);
	if (rc)
		return rc;
	/* The note: about the first suspect card, else why the past is not known. */
	char *note = t->state.note;
	str_copy(note, sizeof(t->state.note), now->all->hosts[0].note);
	for (size_t i = now->all->n_cards; i-- > 0;) {
		const struct present_card *c = &now->all->cards[i];
		top_history_add(&t->state.history, i, now->all->now_ms,
			c->values[METRIC_UTILIZATION_GPU]);
		if (c->state == CARD_SUSPECT && now->card_on[i])
			present_suspect_text(note, sizeof(t->state.note), c);
	}
	t->state.driver = now->all->hosts[0].driver;
	t->state.host = now->all->hosts[0].hostname;
	return prepare_page(t, true, e);
}

/* Takes the driver's answer if it comes within `wait_ms`. If the driver is gone or does not
 * answer, shows a message; the last readings stay, and idle times do not grow. */
static int receive(struct top *t, int64_t wait_ms)
{
	struct top_state *s = &t->state;
	struct err e = { 0 };
	int64_t now_ms = clock_wall_ms(t->options->clock);
	int rc = live_take(t->options->live, wait_ms, &e);
	if (rc == ERR_BUSY) {
		int64_t ms = live_silent_ms(t->options->live);
		s->silent_ms = ms < SILENCE_MS ? 0 : ms;
		if (s->silent_ms)
			s->clock_ms = now_ms;
		return rc;
	}
	s->silent_ms = 0;
	if (rc == 0 && take(t, &e) != 0)
		str_copy(s->note, sizeof(s->note), e.text);
	if (rc && !s->fault[0])
		s->fault_since_ms = now_ms;
	if (rc)
		s->clock_ms = now_ms;
	str_copy(s->fault, sizeof(s->fault), rc ? e.text : "");
	return rc;
}

/* Reads everything again. An answer that does not come soon is taken later. */
static void refresh(struct top *t)
{
	struct live *live = t->options->live;
	struct err e = { 0 };
	bool asked = live_silent_ms(live) >= 0;
	int64_t now_us = clock_now(t->options->clock).boot_us;
	bool all = t->state.page == TOP_CARD, seldom = now_us - t->seldom_us >= SELDOM_US;
	live_rest(live, all	 ? NULL
			: seldom ? t->options->card_metrics
				 : t->options->resting_metrics);
	t->seldom_us = all || seldom ? now_us : t->seldom_us;
	live_ask(live);
	if (receive(t, asked ? 0 : PATIENCE_MS) == ERR_BUSY && prepare_page(t, false, &e) != 0)
		str_copy(t->state.message, sizeof(t->state.message), e.text);
}

int top_open(struct top **out, const struct top_options *o, struct err *e)
{
	struct top *t = calloc(1, sizeof(*t));
	if (!t)
		return err_memory(e);
	t->options = o;
	t->state.no_signals = o->no_signals;
	t->state.model.tree = o->tree;
	t->state.model.sort = holders_sort(o->sort ? o->sort : "idle");
	t->state.mouse = !o->no_mouse;
	top_frame_init(&t->state.frame, 80, o->ascii);
	int rc = live_refresh(o->live, -1, e);
	if (rc == 0)
		rc = take(t, e);
	if (rc) {
		top_close(t);
		return rc;
	}
	*out = t;
	return 0;
}

void top_close(struct top *t)
{
	if (!t)
		return;
	top_model_family_finish(&t->family);
	top_model_finish(&t->state.model);
	top_history_finish(&t->state.history);
	top_history_finish(&t->state.seen);
	top_frame_finish(&t->state.frame);
	str_finish(&t->state.arguments);
	free(t->card_on);
	free(t->picked);
	free(t);
}

int top_once(struct top *t, size_t columns, struct str *out, struct err *e)
{
	if (!clock_is_virtual(t->options->clock)) {
		usleep(MEASURE_US);
		live_process_measure_all(t->options->live, 0);
	}
	int rc = arrange(t, e);
	if (rc)
		return rc;
	top_draw(&t->state, 0, columns);
	top_frame_print(&t->state.frame, out);
	return 0;
}

/* Does what a key asked for; returns false to quit. */
static bool act(struct top *t, struct top_screen *screen, enum top_action action)
{
	struct err e = { 0 };
	if (action == TOP_REFRESH)
		refresh(t);
	if (action == TOP_MOUSE)
		top_screen_mouse(screen, t->state.mouse);
	if (action == TOP_SEND && !t->state.no_signals) {
		struct top_state *s = &t->state;
		const struct top_signal *signal = &top_signals[s->signal];
		if (top_keys_send_signal(&s->target, signal->number, &e) != 0)
			str_copy(s->message, sizeof(s->message), e.text);
		else
			snprintf(s->message, sizeof(s->message), "sent %s to process %u",
				signal->name, s->target.pid);
	}
	if (action == TOP_ARRANGE && arrange(t, &e) != 0)
		str_copy(t->state.message, sizeof(t->state.message), e.text);
	return action != TOP_QUIT;
}

void top_run(struct top *t, struct top_screen *screen)
{
	struct clock real;
	size_t rows, columns;
	struct top_spot at;
	clock_init_real(&real);
	top_screen_mouse(screen, t->state.mouse);
	int64_t delay_us = t->options->delay_ms * 1000;
	int64_t due_us = clock_now(&real).mono_us + delay_us;
	for (bool goes_on = true; goes_on;) {
		top_screen_size(screen, &rows, &columns);
		top_draw(&t->state, rows, columns);
		top_screen_show(screen, &t->state.frame);
		/* Until a key, the end of the interval, or the driver's pending answer. */
		int64_t wait_us = due_us - clock_now(&real).mono_us;
		bool owed = live_silent_ms(t->options->live) >= 0;
		if (owed && wait_us > SILENCE_EVERY_US)
			wait_us = SILENCE_EVERY_US;
		int key =
			top_screen_key(screen, wait_us > 0 ? (int)((wait_us + 999) / 1000) : 0,
				owed ? live_fd(t->options->live) : -1, &at);
		if (key == TOP_KEY_HANGUP)
			return;
		bool had_card = t->state.page == TOP_CARD;
		if (key >= 0)
			goes_on = act(t, screen, top_keys_press(&t->state, key, at));
		bool opened = t->state.page == TOP_CARD && !had_card;
		if (goes_on && (opened || clock_now(&real).mono_us >= due_us)) {
			refresh(t);
			due_us = clock_now(&real).mono_us + delay_us;
		} else if (live_silent_ms(t->options->live) >= 0) {
			receive(t, 0);
		}
	}
}
