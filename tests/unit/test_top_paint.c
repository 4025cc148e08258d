/* What is sent to a terminal, looked at by a terminal that knows five sequences. */
#include "test.h"

#include <stdio.h>

#include "top/top_frame.h"

enum { ROWS = 12, COLUMNS = 40, CELL = 8 };

/* Sequences of this terminal. */
enum { STYLE = 1, OFF, CLEAR, ERASE, MOVE };

struct terminal {
	char cells[ROWS][COLUMNS][CELL]; /* a character; "" behind a wide one */
	enum top_style styles[ROWS][COLUMNS];
	size_t line, column;
	enum top_style style;
};

static void add_move(struct str *out, size_t line, size_t column)
{
	char bytes[] = { MOVE, (char)(line + 1), (char)(column + 1) };
	str_add_bytes(out, bytes, sizeof(bytes));
}

static void make_pen(struct top_pen *pen)
{
	*pen = (struct top_pen){ .move = add_move };
	for (size_t i = 1; i < TOP_STYLES; i++)
		str_addf(&pen->on[i], "%c%c", STYLE, (int)i);
	str_addf(&pen->off, "%c", OFF);
	str_addf(&pen->clear, "%c", CLEAR);
	str_addf(&pen->erase, "%c", ERASE);
}

static void empty(struct terminal *t, size_t line, size_t from)
{
	for (size_t i = from; i < COLUMNS; i++) {
		strcpy(t->cells[line][i], " ");
		t->styles[line][i] = TOP_PLAIN;
	}
}

/* Shows one character at the cursor; returns its bytes. */
static size_t write_char(struct terminal *t, const char *text, size_t len)
{
	unsigned code = 0;
	char one[CELL] = "";
	size_t n = str_utf8_char(text, len, &code);
	assert_in_range(n, 1, 4);
	memcpy(one, text, n);
	size_t wide = str_columns(one);
	assert_true(t->line < ROWS && t->column + wide <= COLUMNS);
	strcpy(t->cells[t->line][t->column], one);
	for (size_t i = 0; i < wide; i++)
		t->styles[t->line][t->column + i] = t->style;
	if (wide == 2)
		t->cells[t->line][t->column + 1][0] = '\0';
	t->column += wide;
	return n;
}

static void receive(struct terminal *t, const struct str *sent)
{
	for (size_t i = 0; i < sent->len;) {
		const char *at = sent->data + i;
		switch (*at) {
		case STYLE:
			assert_int_equal(t->style, TOP_PLAIN);
			t->style = (enum top_style)at[1];
			i += 2;
			break;
		case OFF:
			t->style = TOP_PLAIN;
			i++;
			break;
		case CLEAR:
			for (size_t line = 0; line < ROWS; line++)
				empty(t, line, 0);
			i++;
			break;
		case ERASE:
			assert_int_equal(t->style, TOP_PLAIN);
			empty(t, t->line, t->column);
			i++;
			break;
		case MOVE:
			t->line = (size_t)at[1] - 1;
			t->column = (size_t)at[2] - 1;
			i += 3;
			break;
		default:
			i += write_char(t, at, sent->len - i);
		}
	}
	assert_int_equal(t->style, TOP_PLAIN);
}

/* What the frame means, by its text alone. */
static void assert_shows(const struct terminal *t, const struct top_frame *f)
{
	struct terminal wanted = { 0 };
	for (size_t line = 0; line < ROWS; line++)
		empty(&wanted, line, 0);
	for (size_t i = 0; i < f->n_spans; i++) {
		const struct top_span *span = &f->spans[i];
		if (span->style == TOP_NEWLINE) {
			assert_int_equal(span->column, wanted.column);
			wanted.line++;
			wanted.column = 0;
			continue;
		}
		assert_int_equal(span->column, wanted.column);
		wanted.style = span->style;
		for (size_t k = 0; k < span->len;)
			k += write_char(&wanted, f->text.data + span->from + k, span->len - k);
	}
	assert_memory_equal(t->styles, wanted.styles, sizeof(t->styles));
	for (size_t line = 0; line < ROWS; line++)
		for (size_t column = 0; column < COLUMNS; column++)
			assert_string_equal(t->cells[line][column], wanted.cells[line][column]);
}

static unsigned next_random(unsigned *seed, unsigned below)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 16) % below;
}

static void draw_random(struct top_frame *f, unsigned *seed)
{
	static const char *const words[] = { "", "a", "12.5", "idle for 3 h", "…", "█▁", "中文",
		"é", "a command that is too long for its column" };
	top_frame_start(f, COLUMNS);
	for (unsigned line = next_random(seed, ROWS + 1); line > 0; line--) {
		for (unsigned n = next_random(seed, 7); n > 0; n--) {
			enum top_style style = (enum top_style)next_random(seed, 4);
			const char *word =
				words[next_random(seed, sizeof(words) / sizeof(words[0]))];
			size_t width = next_random(seed, 12);
			if (next_random(seed, 2))
				top_frame_add_field(
					f, style, word, width, next_random(seed, 2));
			else if (next_random(seed, 2))
				top_frame_add(f, style, word);
			else
				top_frame_fill(f, style, f->used + width);
		}
		top_frame_end_line(f);
	}
}

static void test_any_frame_after_any_other(void **state)
{
	(void)state;
	struct terminal t = { 0 };
	struct top_painting shown = { 0 };
	struct top_frame f;
	struct top_pen pen;
	struct str sent = { 0 };
	unsigned seed = 7;
	make_pen(&pen);
	top_frame_init(&f, COLUMNS, false);
	memset(t.cells, 'x', sizeof(t.cells));
	for (size_t i = 0; i < 3000; i++) {
		draw_random(&f, &seed);
		str_clear(&sent);
		top_frame_paint(&shown, &f, &pen, &sent);
		receive(&t, &sent);
		assert_shows(&t, &f);
		if (i % 100 == 99) {
			shown.known = false;
			memset(t.cells, 'x', sizeof(t.cells));
		}
	}
	top_frame_finish(&f);
	top_frame_finish_painting(&shown);
	top_frame_finish_pen(&pen);
	str_finish(&sent);
}

static void draw_row(struct top_frame *f, const char *age)
{
	top_frame_start(f, COLUMNS);
	top_frame_add_field(f, TOP_PLAIN, "python", 10, true);
	top_frame_add_field(f, TOP_PLAIN, age, 6, false);
	top_frame_add_field(f, TOP_PLAIN, "train.py", 20, true);
	top_frame_end_line(f);
}

static void test_only_what_has_changed_is_sent(void **state)
{
	(void)state;
	struct top_painting shown = { 0 };
	struct top_frame f;
	struct top_pen pen;
	struct str sent = { 0 };
	make_pen(&pen);
	top_frame_init(&f, COLUMNS, false);
	draw_row(&f, "9s");
	top_frame_paint(&shown, &f, &pen, &sent);
	str_clear(&sent);
	draw_row(&f, "9s");
	top_frame_paint(&shown, &f, &pen, &sent);
	assert_int_equal(sent.len, 0);
	draw_row(&f, "10s");
	top_frame_paint(&shown, &f, &pen, &sent);
	const char wanted[] = { MOVE, 1, 11, ' ', ' ', ' ', '1', '0', 's' };
	assert_int_equal(sent.len, sizeof(wanted));
	assert_memory_equal(sent.data, wanted, sizeof(wanted));
	top_frame_finish(&f);
	top_frame_finish_painting(&shown);
	top_frame_finish_pen(&pen);
	str_finish(&sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_frame_after_any_other),
		cmocka_unit_test(test_only_what_has_changed_is_sent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
