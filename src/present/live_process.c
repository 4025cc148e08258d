/* The processes of a live view: their identity and their use. */
#include "proc/proc.h"
#include "present/live_private.h"

/* CPU use over a shorter time says little: ticks are 10 ms. */
#define FIRST_MEASURE_US 100000
/* Memory on the host is read this seldom; slightly less than 12 s. */
#define RESIDENT_US 11500000

static void close_file(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Closes the files that the marks keep open. Marks that were taken over have none. */
static void close_marks(struct live_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		close_file(&list->marks[i].stat_fd);
		close_file(&list->marks[i].statm_fd);
	}
}

void live_process_finish_list(struct live_list *list)
{
	close_marks(list);
	free(list->items);
	free(list->marks);
	*list = (struct live_list){ 0 };
}

static bool reserve(struct live_list *list, size_t n)
{
	if (n <= list->cap)
		return true;
	size_t cap = array_next_cap(list->cap, n), more = cap - list->cap;
	if (list->cap == 0) { /* memory of which only what is used is touched */
		list->items = calloc(cap, sizeof(*list->items));
		list->marks = calloc(cap, sizeof(*list->marks));
		list->cap = list->items && list->marks ? cap : 0;
		return list->cap != 0;
	}
	if (!array_resize(&list->items, cap) || !array_resize(&list->marks, cap))
		return false;
	memset(list->items + list->cap, 0, more * sizeof(*list->items));
	memset(list->marks + list->cap, 0, more * sizeof(*list->marks));
	list->cap = cap;
	return true;
}

/* Makes room for all that the driver lists. */
static int make_room(struct live *l, struct err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n_cards; i++)
		n += l->source->cards[i].n_processes;
	if (!array_reserve(&l->holders, &l->cap_holders, n) || !reserve(&l->before, n + 1))
		return err_memory(e);
	return lives_reserve(&l->lives, n, e);
}

void live_process_move(struct live *l, int64_t step_ms)
{
	for (size_t i = 0; i < l->lives.n; i++)
		live_move(&l->lives.entries[i].id.started_ms, step_ms);
	for (size_t i = 0; i < l->now.n; i++) {
		live_move(&l->now.items[i].held_since_ms, step_ms);
		live_move(&l->now.items[i].last_active_ms, step_ms);
		live_move(&l->now.marks[i].watched_ms, step_ms);
		live_move(&l->now.marks[i].active_ms, step_ms);
	}
	/* All entries must take their identity again. */
	for (size_t i = 0; i < l->now.cap; i++)
		l->now.marks[i].described_ms = -1;
	for (size_t i = 0; i < l->before.cap; i++)
		l->before.marks[i].described_ms = -1;
}

/* Finds the same process on the same card in the last refresh; NULL: it is new. Lists change
 * little, so the search starts after the entry that was found last. */
static const struct present_process *before(struct live *l, const struct present_process *p)
{
	struct live_list *list = &l->before;
	for (size_t i = 0; i < list->n; i++) {
		size_t at = (list->next + i) % list->n;
		const struct present_process *b = &list->items[at];
		if (b->card != p->card || b->id.pid != p->id.pid ||
			b->id.start_ticks != p->id.start_ticks)
			continue;
		list->next = at + 1;
		return b;
	}
	return NULL;
}

/* Whether it is a process of this host, so that /proc has it. */
static bool is_of_host(const struct live *l, const struct present_process *p)
{
	return !l->source->cards[p->card].own_processes;
}

/* Reads CPU time and memory; false if they are not available. statm is read first: if the
 * process still exists after that, the pid was still its own. Without `memory`, that of before
 * is used. */
static bool read_host_use(const struct live *l, const struct present_process *p,
	struct live_mark *mark, bool memory, struct proc_stat *s)
{
	if (!is_of_host(l, p))
		return false;
	int proc = owners_proc(reader_owners(l->reader));
	bool had_stat = mark->stat_fd >= 0, had_statm = mark->statm_fd >= 0;
	if (memory && !had_statm)
		mark->statm_fd = proc_open_file(proc, p->id.pid, "statm");
	if (memory)
		mark->rss_pages =
			mark->statm_fd < 0 ? -1 : proc_read_resident_again(mark->statm_fd);
	if (!had_stat)
		mark->stat_fd = proc_open_file(proc, p->id.pid, "stat");
	bool read = mark->stat_fd >= 0 && proc_read_stat_again(mark->stat_fd, s) == 0;
	if (mark->rss_pages >= 0)
		s->rss_pages = mark->rss_pages;
	if (!had_statm && !file_can_stay_open(mark->statm_fd))
		close_file(&mark->statm_fd);
	if (!had_stat && !file_can_stay_open(mark->stat_fd))
		close_file(&mark->stat_fd);
	return read;
}

static void measure(struct live *l, size_t process, int64_t now_us, int64_t every_us)
{
	struct present_process *p = &l->now.items[process];
	struct live_mark *mark = &l->now.marks[process];
	int64_t before_ticks = mark->ticks, before_us = mark->at_us;
	struct proc_stat s;
	/* It was read only once: compute its CPU use as soon as possible. */
	if (before_ticks >= 0 && isnan(p->cpu_pct) && every_us > FIRST_MEASURE_US)
		every_us = FIRST_MEASURE_US;
	if (before_us && now_us - before_us < every_us)
		return;
	bool memory = every_us == 0 || !mark->rss_us || now_us - mark->rss_us >= RESIDENT_US;
	mark->ticks = -1;
	mark->at_us = now_us;
	if (memory)
		mark->rss_us = now_us;
	p->cpu_pct = NAN;
	p->rss_bytes = -1;
	if (!read_host_use(l, p, mark, memory, &s) || s.start_ticks != p->id.start_ticks)
		return;
	p->rss_bytes = s.rss_pages < 0 ? -1 : s.rss_pages * l->page_bytes;
	mark->ticks = s.user_ticks + s.system_ticks;
	if (before_ticks >= 0 && mark->at_us > before_us)
		p->cpu_pct = (double)(mark->ticks - before_ticks) / (double)l->ticks_per_s *
			     1e8 / (double)(mark->at_us - before_us);
}

void live_process_measure(struct live *l, size_t process, int64_t every_us)
{
	measure(l, process, clock_now(l->clock).boot_us, every_us);
}

void live_process_measure_all(struct live *l, int64_t every_us)
{
	int64_t now_us = clock_now(l->clock).boot_us;
	for (size_t i = 0; i < l->now.n; i++)
		measure(l, i, now_us, every_us);
}

/* Copies what is known of the process from the last refresh. */
static void remember(struct live *l, struct present_process *p)
{
	const struct present_process *b = before(l, p);
	const struct card_reading *r = &l->source->cards[p->card];
	struct live_mark *mark = &l->now.marks[p - l->now.items];
	const struct live_mark listed = *mark;
	*mark = (struct live_mark){ .watched_ms = l->now_ms,
		.active_ms = -1,
		.stat_fd = -1,
		.statm_fd = -1,
		.ticks = -1 };
	if (b) {
		struct live_mark *old = &l->before.marks[b - l->before.items];
		p->held_since_ms = b->held_since_ms;
		p->last_active_ms = b->last_active_ms;
		p->cpu_pct = b->cpu_pct;
		p->rss_bytes = b->rss_bytes;
		*mark = *old;
		old->stat_fd = old->statm_fd = -1;
		/* The driver has no newer sample: the last values stay. */
		if (!r->n_samples) {
			p->sm_pct = b->sm_pct;
			memcpy(p->engine_pct, b->engine_pct, sizeof(p->engine_pct));
			p->active = b->active;
		}
	} else if (l->refreshed) {
		p->held_since_ms = l->now_ms;
	} else if (r->n_samples) {
		mark->watched_ms = live_sample_ms(l, p->card, 0);
	}
	mark->described_ms = listed.described_ms;
	mark->user = listed.user;
}

/* Sets the identity, which is the largest part of an entry. Lists seldom change: usually the
 * entry already has the identity of the same process. A brief description may have become a
 * better one. */
static void identify(
	struct present_process *p, struct live_mark *mark, const struct process_entry *entry)
{
	if (p->id.pid == entry->id.pid && p->id.start_ticks == entry->id.start_ticks &&
		mark->described_ms == entry->first_seen_ms &&
		strcmp(p->id.command, entry->id.command) == 0 &&
		strcmp(p->id.user, entry->id.user) == 0)
		return;
	p->id = entry->id;
	mark->described_ms = entry->first_seen_ms;
}

static void add_process(struct live *l, size_t card, const struct card_process *listed)
{
	const struct card_reading *r = &l->source->cards[card];
	uint32_t life = lives_find(&l->lives, listed->pid, r->own_processes, l->now_ms);
	if (life == LIFE_NONE)
		return;
	struct present_process *p = &l->now.items[l->now.n];
	struct live_mark *mark = &l->now.marks[l->now.n++];
	identify(p, mark, &l->lives.entries[life]);
	mark->user = l->lives.lives[life].user;
	p->card = card;
	p->kind = listed->kind;
	p->mem_bytes = listed->mem_bytes;
}

/* How much a process used its card since the previous drain. A process without a record had no
 * use, of the kinds that this driver reports. */
static void find_use(struct live *l, struct present_process *p)
{
	const struct card_reading *r = &l->source->cards[p->card];
	const struct process_util *record = reading_process_util(r, p->id.pid);
	p->cpu_pct = NAN;
	p->rss_bytes = -1;
	p->held_since_ms = p->last_active_ms = p->idle_since_ms = p->was_idle_since_ms = -1;
	p->active = p->idle_longer = p->was_idle_longer = false;
	p->sm_pct = reading_process_pct(r, p->id.pid);
	for (unsigned i = 0; i < ENGINE_COUNT; i++)
		p->engine_pct[i] = r->process_util_known && i < r->n_engines ? 0 : NAN;
	if (record)
		memcpy(p->engine_pct, record->engine_pct, sizeof(p->engine_pct));
	remember(l, p);
}

static int compare_pids(const void *a, const void *b)
{
	const struct card_process *const *x = a, *const *y = b;
	return array_compare((*x)->pid, (*y)->pid);
}

/* Adds the processes of a card by pid. Without memory, in the order of the source. */
static void add_processes(struct live *l, size_t card)
{
	const struct card_reading *r = &l->source->cards[card];
	const struct card_process **order = calloc(r->n_processes + 1, sizeof(void *));
	for (size_t i = 0; order && i < r->n_processes; i++)
		order[i] = &r->processes[i];
	if (order)
		qsort(order, r->n_processes, sizeof(void *), compare_pids);
	for (size_t i = 0; i < r->n_processes; i++)
		add_process(l, card, order ? order[i] : &r->processes[i]);
	free(order);
}

static void recall(void *context, const struct process_id *id)
{
	struct live *l = context;
	lives_recall(&l->lives, id, l->now_ms);
}

int live_process_list(struct live *l, struct err *e)
{
	int rc = make_room(l, e);
	if (rc)
		return rc;
	struct live_list list = l->before;
	l->before = l->now;
	l->now = list;
	l->now.n = l->before.next = 0;
	l->lives.source = l->source;
	l->lives.describe = l->source->ops->describe;
	lives_check(&l->lives, l->now_ms);
	/* All new processes are described at once. */
	for (size_t i = 0; i < l->n_cards; i++) {
		const struct card_reading *r = &l->source->cards[i];
		bool readable = r->status == CARD_STATUS_OK && r->processes_known;
		l->cards[i].processes_known = readable;
		for (size_t k = 0; readable && !r->own_processes && k < r->n_processes; k++)
			lives_expect(&l->lives, r->processes[k].pid);
	}
	/* A view that opens finds most of them described in the store. */
	if (!l->refreshed && l->lives.n_expected && l->past.trusted)
		past_recall(&l->past, owners_boot_id(reader_owners(l->reader)), recall, l);
	lives_ask(&l->lives);
	for (size_t i = 0; i < l->n_cards; i++) {
		l->cards[i].first_process = l->now.n;
		if (l->cards[i].processes_known)
			add_processes(l, i);
		l->cards[i].n_processes = l->now.n - l->cards[i].first_process;
	}
	lives_sweep(&l->lives, l->now_ms);
	lives_forget_ended(&l->lives);
	return 0;
}

void live_process_use(struct live *l)
{
	for (size_t i = 0; i < l->now.n; i++)
		find_use(l, &l->now.items[i]);
	close_marks(&l->before);
}

void live_process_arguments(struct live *l, const struct present_process *p, struct str *out)
{
	char bytes[PROC_ARGUMENTS_CAP], safe[PROC_ARGUMENTS_CAP];
	/* A process belongs to its real uid here, as with ps: that user started it. */
	bool may_see = l->viewer_uid == 0 || (p->id.uid >= 0 && p->id.uid == l->viewer_uid);
	if (!is_of_host(l, p) || !may_see) {
		for (const char *at = p->id.command; *(at += strspn(at, " "));) {
			size_t len = strcspn(at, " ");
			str_add_bytes(out, at, len);
			str_add_bytes(out, "", 1);
			at += len;
		}
		return;
	}
	ssize_t n = -1;
	if (p->id.start_ticks != 0)
		n = reader_arguments(l->reader, &p->id, bytes, sizeof(bytes));
	struct proc_arguments a = { .bytes = bytes, .len = n < 0 ? 0 : (size_t)n };
	size_t arg_len = 0;
	const char *arg = NULL;
	while (proc_next_argument(&a, &arg, &arg_len)) {
		size_t safe_len = str_escape(safe, sizeof(safe), arg, arg_len);
		str_add_bytes(out, safe, safe_len);
		str_add_bytes(out, "", 1);
	}
}
