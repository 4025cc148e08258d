/* The columns of holders, and what their cells are. */
#include "present/holders.h"

/* Since when it is idle now; -1: active, unknown, or its recorder is silent. */
static int64_t idle_since(const struct holder_row *r)
{
	return r->process->active || r->host->stale ? -1 : r->process->idle_since_ms;
}

/* Since when it was idle when the last recorder ended. What it did later is unknown. */
static int64_t was_idle_since(const struct holder_row *r)
{
	const struct present_process *p = r->process;
	return p->active ? -1 : r->host->stale ? p->idle_since_ms : p->was_idle_since_ms;
}

/* "10 min"; "> 9 s (2 h)": for at least 9 s, and for 2 h when the last recorder ended. */
static void show_idle(struct holder_row *r)
{
	const struct present_process *p = r->process;
	size_t cap = sizeof(r->idle);
	struct brief age = duration_text(present_idle_ms(r->now, p));
	if (p->active)
		str_copy(r->idle, cap, "active");
	else if (p->idle_since_ms < 0)
		str_copy(
			r->idle, cap, r->card->state == CARD_USE_UNKNOWN ? "use unknown" : "-");
	else if (present_was_idle(p))
		snprintf(r->idle, cap, "%s%s (%s%s)", p->idle_longer ? "> " : "", age.text,
			p->was_idle_longer ? "> " : "",
			duration_text(r->host->recorded_until_ms - p->was_idle_since_ms).text);
	else
		snprintf(r->idle, cap, "%s%s", p->idle_longer ? "> " : "", age.text);
}

/* Its most specific name, and the command. */
static void show_what(struct holder_row *r)
{
	const struct present_process *p = r->process;
	const char *label = process_label_of(&p->id), *command = p->id.command;
	const char *context = context_texts[p->context];
	snprintf(r->what, sizeof(r->what), "%s%s%s%s%s%s", *context ? "(" : "", context,
		*context ? ") " : "", label, *label ? " " : "",
		*command ? command
		: *label ? ""
			 : "-");
}

void holders_row_bare(struct holder_row *row, const struct present *now,
	const struct present_process *process)
{
	row->now = now;
	row->process = process;
	row->card = &now->cards[process->card];
	row->host = &now->hosts[row->card->host];
}

void holders_row(struct holder_row *row, const struct present *now,
	const struct present_process *process)
{
	holders_row_bare(row, now, process);
	str_copy(row->label, sizeof(row->label), card_label(&row->card->id).text);
	show_idle(row);
	show_what(row);
}

int64_t holders_idle_order(const struct present_process *p)
{
	if (p->active)
		return INT64_MAX;
	if (present_was_idle(p))
		return p->was_idle_since_ms;
	return p->idle_since_ms < 0 ? INT64_MAX - 1 : p->idle_since_ms;
}

/* The getters. `of` is the offset of a member, or a number that the getter knows. */
#define PROCESS(row) (((const struct holder_row *)(row))->process)

static struct cell or_none(const char *text)
{
	return *text ? table_text(text) : table_number(NAN);
}

static struct cell of_process_text(const void *row, size_t which)
{
	return or_none(process_text(&PROCESS(row)->id, which));
}

static struct cell of_process_known(const void *row, size_t of)
{
	return table_get_known(PROCESS(row), of);
}

static struct cell of_process_double(const void *row, size_t of)
{
	return table_get_double(PROCESS(row), of);
}

static struct cell of_process_chars(const void *row, size_t of)
{
	return table_get_chars(PROCESS(row), of);
}

static struct cell of_card_chars(const void *row, size_t of)
{
	return table_get_chars(((const struct holder_row *)row)->card, of);
}

static struct cell of_card_int(const void *row, size_t of)
{
	const char *card = (const char *)((const struct holder_row *)row)->card;
	return table_known(*(const int *)(const void *)(card + of));
}

static struct cell get_hostname(const void *row, size_t of)
{
	(void)of;
	return table_text(((const struct holder_row *)row)->host->hostname);
}

static struct cell get_user_shown(const void *row, size_t of)
{
	(void)of;
	return table_text(process_shown_user(PROCESS(row)->id.user));
}

static struct cell get_pid(const void *row, size_t of)
{
	(void)of;
	return table_number(PROCESS(row)->id.pid ? PROCESS(row)->id.pid : (double)NAN);
}

static struct cell get_state(const void *row, size_t of)
{
	(void)of;
	return table_text(state_looks[((const struct holder_row *)row)->card->state].key);
}

static struct cell get_memory(const void *row, size_t of)
{
	(void)of;
	return table_number(table_known(PROCESS(row)->mem_bytes).number / 1024);
}

static struct cell get_context(const void *row, size_t of)
{
	(void)of;
	return or_none(context_texts[PROCESS(row)->context]);
}

static struct cell get_active(const void *row, size_t of)
{
	const struct present_process *p = PROCESS(row);
	(void)of;
	return table_number(p->active || p->idle_since_ms >= 0 ? p->active : NAN);
}

static struct cell get_idle_since(const void *row, size_t of)
{
	(void)of;
	return table_known(idle_since(row));
}

static struct cell get_idle_ms(const void *row, size_t of)
{
	const struct holder_row *r = row;
	int64_t since_ms = idle_since(r);
	(void)of;
	return table_number(since_ms < 0 ? NAN : (double)(r->now->now_ms - since_ms));
}

static struct cell get_idle_longer(const void *row, size_t of)
{
	(void)of;
	return table_number(idle_since(row) >= 0 && PROCESS(row)->idle_longer);
}

static struct cell get_was_idle(const void *row, size_t of)
{
	(void)of;
	return table_known(was_idle_since(row));
}

static struct cell get_was_longer(const void *row, size_t of)
{
	const struct holder_row *r = row;
	bool longer = r->host->stale ? r->process->idle_longer : r->process->was_idle_longer;
	(void)of;
	return table_number(was_idle_since(r) >= 0 && longer);
}

/* C, G, M (MPS) or X (both C and G). */
static struct cell get_kind(const void *row, size_t of)
{
	unsigned kind = PROCESS(row)->kind;
	bool compute = kind & (PROCESS_COMPUTE | PROCESS_MPS),
	     graphics = kind & PROCESS_GRAPHICS;
	(void)of;
	return table_text(compute && graphics  ? "X"
			  : kind & PROCESS_MPS ? "M"
			  : compute	       ? "C"
			  : graphics	       ? "G"
					       : "-");
}

static struct cell get_host_memory(const void *row, size_t of)
{
	(void)of;
	return table_number(table_known(PROCESS(row)->rss_bytes).number / 1024);
}

/* On the card since then; if that is unknown, since its start at the earliest. */
static struct cell get_since(const void *row, size_t of)
{
	const struct present_process *p = PROCESS(row);
	(void)of;
	return table_known(p->held_since_ms >= 0 ? p->held_since_ms : p->id.started_ms);
}

#define KEY(name, what, getter) .key = name, .kind = COLUMN_##what, .get = getter
#define SHOWN(name, what, getter) .title = name, .kind = COLUMN_##what, .get = getter
#define OF(type, member) .of = offsetof(struct type, member)
#define TOP(place, title, width, from, word, name)                                             \
	.top = place, .top_title = title, .top_width = width, .top_from = from,                \
	.sort_word = word, .sort_name = name
#define TEXT(name, which)                                                                      \
	{                                                                                      \
		.column = { KEY(name, TEXT, of_process_text), .of = which }                    \
	}
/* Rows with a key stand in the order of JSON and CSV. */
static const struct holder_column all[] = {
	{ .column = { KEY("host", TEXT, get_hostname) } },
	{ .column = { KEY("user", TEXT, of_process_chars), OF(present_process, id.user) } },
	{ .column = { KEY("uid", COUNT, of_process_known), OF(present_process, id.uid) } },
	{ .column = { KEY("pid", COUNT, get_pid), .title = "pid" },
		.text = 3,
		.page = 7,
		.page_title = "pid",
		.order = "pid",
		TOP(3, "PID", 7, 0, "pid", "process id"),
		.look = HOLDER_PID },
	{ .column = { KEY("card", COUNT, of_card_int), OF(present_card, id.index) } },
	{ .column = { KEY("mig_index", COUNT, of_card_int), OF(present_card, id.mig_index) } },
	{ .column = { KEY("uuid", TEXT, of_card_chars), OF(present_card, id.uuid) } },
	{ .column = { KEY("card_state", TEXT, get_state) } },
	{ .column = { KEY("mem_bytes", KIB, get_memory), .title = "memory" },
		.text = 4,
		.page = 3,
		.page_title = "memory",
		.order = "memory",
		.down = true,
		TOP(5, "MEM", 8, 0, "mem", "memory on the card") },
	{ .column = { KEY("context", TEXT, get_context) } },
	{ .column = { KEY("active", BOOL, get_active) } },
	{ .column = { KEY("sm_pct", USE, of_process_double), OF(present_process, sm_pct) },
		.down = true,
		TOP(6, "SM%", 3, 0, "sm", "use of the card"),
		.look = HOLDER_SM },
	{ .column = { KEY("idle_since", MOMENT, get_idle_since) } },
	{ .column = { KEY("idle_seconds", MS, get_idle_ms) } },
	{ .column = { KEY("idle_is_lower_bound", BOOL, get_idle_longer) } },
	{ .column = { KEY("was_idle_since", MOMENT, get_was_idle) } },
	{ .column = { KEY("was_idle_is_lower_bound", BOOL, get_was_longer) } },
	{ .column = { KEY("last_active", MOMENT, of_process_known),
		  OF(present_process, last_active_ms) } },
	{ .column = { KEY("held_since", MOMENT, of_process_known),
		  OF(present_process, held_since_ms) },
		.page = 6,
		.page_title = "on the GPU since",
		.order = "since" },
	{ .column = { KEY("started", MOMENT, of_process_known),
		  OF(present_process, id.started_ms) },
		TOP(9, "AGE", 6, 0, "age", "age") },
	{ .column = { KEY("command", TEXT, of_process_text), .of = PROCESS_COMMAND },
		TOP(12, "COMMAND", 0, 0, "command", "command"),
		.look = HOLDER_COMMAND },
	TEXT("notebook", PROCESS_NOTEBOOK),
	TEXT("notebook_path", PROCESS_NOTEBOOK_PATH),
	TEXT("job", PROCESS_JOB),
	TEXT("job_name", PROCESS_JOB_NAME),
	TEXT("job_task", PROCESS_JOB_TASK),
	TEXT("account", PROCESS_ACCOUNT),
	TEXT("container", PROCESS_CONTAINER),
	TEXT("pod", PROCESS_POD),
	TEXT("unit", PROCESS_UNIT),
	{ .column = { KEY("login", TEXT, of_process_text), .of = PROCESS_LOGIN,
		  .title = "login", .optional = true },
		.text = 7 },
	TEXT("session", PROCESS_SESSION),
	TEXT("parents", PROCESS_PARENTS),
	TEXT("python_env", PROCESS_PYTHON_ENV),
	{ .column = { KEY("tag", TEXT, of_process_text), .of = PROCESS_TAG, .title = "tag",
		  .optional = true, .width = -20 },
		.text = 8 },
	/* Only for people. */
	{ .column = { SHOWN("user", TEXT, get_user_shown), .width = -14 },
		.text = 1,
		.page = 1,
		.page_title = "user",
		.order = "user",
		TOP(2, "USER", 0, 0, "user", "user"),
		.look = HOLDER_USER },
	{ .column = { SHOWN("card", TEXT, table_get_chars), OF(holder_row, label) },
		.text = 2,
		.page = 2,
		.page_title = "GPU",
		.order = "card",
		TOP(1, "CARD", 4, 0, "card", "card"),
		.look = HOLDER_CARD },
	{ .column = { SHOWN("idle for", TEXT, table_get_chars), OF(holder_row, idle) },
		.text = 5,
		.page = 4,
		.page_title = "idle for",
		.order = "idle",
		.down = true,
		TOP(10, "IDLE", 7, 0, "idle", "idle for"),
		.look = HOLDER_IDLE },
	{ .column = { SHOWN("since", MOMENT, get_since), .optional = true }, .text = 6 },
	{ .column = { SHOWN("what", TEXT, table_get_chars), OF(holder_row, what), .width = 24,
		  .flexible = true },
		.text = 9,
		.page = 5,
		.page_title = "what",
		.order = "what",
		TOP(11, "WHAT", 0, 110, "what", "notebook, job, container"),
		.look = HOLDER_WHAT },
	{ .column = { SHOWN("type", TEXT, get_kind) }, TOP(4, "T", 1, 76, NULL, NULL) },
	{ .column = { SHOWN("CPU", USE, of_process_double), OF(present_process, cpu_pct) },
		.down = true,
		TOP(7, "CPU%", 5, 0, "cpu", "CPU use"),
		.measured = true },
	{ .column = { SHOWN("host memory", KIB, get_host_memory) },
		.down = true,
		TOP(8, "HOST", 8, 90, "host", "host memory"),
		.measured = true },
	{ .page = 8, .page_title = "to release it", .look = HOLDER_RELEASE },
};
enum { ALL = sizeof(all) / sizeof(all[0]) };
_Static_assert((int)ALL <= (int)HOLDER_COLUMNS_MAX, "HOLDER_COLUMNS_MAX is too small");

/* The columns that have a place there, in its order; `place_of` is the offset of that member.
 */
static size_t by_place(const struct holder_column *columns[HOLDER_COLUMNS_MAX], size_t place_of)
{
	size_t n = 0;
	for (int place = 1; place <= ALL; place++)
		for (const struct holder_column *c = all; c < all + ALL; c++)
			if (*(const int *)(const void *)((const char *)c + place_of) == place)
				columns[n++] = c;
	return n;
}

size_t holders_text_columns(struct column columns[HOLDER_COLUMNS_MAX])
{
	const struct holder_column *found[HOLDER_COLUMNS_MAX];
	size_t n = by_place(found, offsetof(struct holder_column, text));
	for (size_t i = 0; i < n; i++)
		columns[i] = found[i]->column;
	return n;
}

size_t holders_data_columns(struct column columns[HOLDER_COLUMNS_MAX], bool host)
{
	size_t n = 0;
	for (size_t i = host ? 0 : 1; i < ALL; i++)
		if (all[i].column.key)
			columns[n++] = all[i].column;
	return n;
}

size_t holders_page_columns(const struct holder_column *columns[HOLDER_COLUMNS_MAX])
{
	return by_place(columns, offsetof(struct holder_column, page));
}

size_t holders_top_columns(const struct holder_column *columns[HOLDER_COLUMNS_MAX])
{
	return by_place(columns, offsetof(struct holder_column, top));
}

const struct holder_column *holders_sort(const char *word)
{
	for (size_t i = 0; i < ALL; i++)
		if (all[i].sort_word && strcmp(all[i].sort_word, word) == 0)
			return &all[i];
	return NULL;
}
