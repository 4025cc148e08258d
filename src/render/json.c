/* Writes JSON item by item. */
#include "render/json.h"

void json_number_text(char *dst, size_t cap, double number, int decimals)
{
	if (!isfinite(number)) {
		str_copy(dst, cap, "");
		return;
	}
	char text[400];
	int n = snprintf(text, sizeof(text), "%.*f", decimals, number);
	if (decimals > 0)
		while (n > 1 && text[n - 1] == '0')
			text[--n] = '\0';
	if (n > 1 && text[n - 1] == '.')
		text[--n] = '\0';
	str_copy(dst, cap, strcmp(text, "-0") == 0 ? "0" : text);
}

static void new_line(struct json *j)
{
	str_add(j->out, "\n");
	str_add_repeat(j->out, "  ", (size_t)j->depth);
}

/* Appends a quoted string. Escaped names have no controls, but are escaped here anyway. */
static void add_quoted(struct str *out, const char *text)
{
	str_add(out, "\"");
	for (const char *c = text; *c; c++) {
		if (*c == '"' || *c == '\\')
			str_addf(out, "\\%c", *c);
		else if ((unsigned char)*c < 0x20)
			str_addf(out, "\\u%04x", (unsigned)*c);
		else
			str_add_bytes(out, c, 1);
	}
	str_add(out, "\"");
}

static void begin_item(struct json *j, const char *key)
{
	if (j->more)
		str_add(j->out, ",");
	if (j->depth > 0 && j->depth <= j->lines)
		new_line(j);
	else if (j->more)
		str_add(j->out, " ");
	j->more = true;
	if (!key)
		return;
	add_quoted(j->out, key);
	str_add(j->out, ": ");
}

void json_open(struct json *j, const char *key, char kind)
{
	begin_item(j, key);
	str_add_bytes(j->out, &kind, 1);
	j->depth++;
	j->more = false;
}

void json_close(struct json *j, char kind)
{
	j->depth--;
	if (j->more && j->depth < j->lines)
		new_line(j);
	str_add_bytes(j->out, &kind, 1);
	if (j->depth == 0)
		str_add(j->out, "\n");
	j->more = true;
}

void json_number(struct json *j, const char *key, double number, int decimals)
{
	char text[400];
	json_number_text(text, sizeof(text), number, decimals);
	begin_item(j, key);
	str_add(j->out, *text ? text : "null");
}

void json_known(struct json *j, const char *key, int64_t number)
{
	json_number(j, key, number < 0 ? NAN : (double)number, 0);
}

void json_exact(struct json *j, const char *key, double number)
{
	char text[32];
	str_exact_number(text, sizeof(text), number);
	begin_item(j, key);
	str_add(j->out, *text ? text : "null");
}

void json_text(struct json *j, const char *key, const char *text)
{
	begin_item(j, key);
	if (text)
		add_quoted(j->out, text);
	else
		str_add(j->out, "null");
}

void json_label(struct json *j, const char *key, const char *text)
{
	json_text(j, key, text && *text ? text : NULL);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin_item(j, key);
	str_add(j->out, value ? "true" : "false");
}

void json_moment(struct json *j, const char *key, int64_t ms)
{
	json_text(j, key, ms < 0 ? NULL : moment_iso(ms).text);
}
