/* Prints nested values as text, JSON or CSV. */
#include "render/outline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "render/rows.h"

enum { NAME_CAP = 96, PATH_CAP = 256 };

static void add(struct outline *o, struct outline_item item)
{
	if (array_reserve(&o->items, &o->cap, o->n + 1))
		o->items[o->n++] = item;
	else
		o->failed = true;
}

void outline_open(struct outline *o, const char *key, const char *label)
{
	add(o, (struct outline_item){ OUTLINE_OPEN, key, label, NAN, NULL });
}

void outline_close(struct outline *o)
{
	add(o, (struct outline_item){ OUTLINE_CLOSE, "", "", NAN, NULL });
}

void outline_real(struct outline *o, const char *key, const char *label, double number)
{
	add(o, (struct outline_item){ OUTLINE_REAL, key, label, number, NULL });
}

void outline_count(struct outline *o, const char *key, const char *label, int64_t number)
{
	double known = number < 0 ? NAN : (double)number;
	add(o, (struct outline_item){ OUTLINE_COUNT, key, label, known, NULL });
}

void outline_text(struct outline *o, const char *key, const char *label, const char *text)
{
	add(o, (struct outline_item){ OUTLINE_TEXT, key, label, NAN, text });
}

void outline_finish(struct outline *o)
{
	free(o->items);
	*o = (struct outline){ 0 };
}

/* The name with the outline's word replaced; the case of the first letter is kept. */
static const char *spell(char *dst, const struct outline *o, const char *name)
{
	const char *found = NULL;
	size_t len = o->replace[0] ? strlen(o->replace[0]) : 0;
	for (const char *at = name; len && *at && !found; at++)
		if (strncasecmp(at, o->replace[0], len) == 0)
			found = at;
	if (!found)
		return name;
	snprintf(dst, NAME_CAP, "%.*s%c%s%s", (int)(found - name), name, *found,
		o->replace[1] + 1, found + len);
	return dst;
}

/* Reals have up to three decimals, without trailing zeros, but always a point. */
static void value_text(char *dst, size_t cap, const struct outline_item *item)
{
	bool real = item->kind == OUTLINE_REAL;
	json_number_text(dst, cap, item->number, real ? 3 : 0);
	size_t len = strlen(dst);
	if (len == 0)
		snprintf(dst, cap, "unknown");
	else if (real && !strchr(dst, '.') && len + 2 < cap)
		memcpy(dst + len, ".0", 3);
}

void outline_print_text(struct str *out, const struct outline *o)
{
	size_t depth = 0;
	char name[NAME_CAP], value[64];
	for (size_t i = 0; i < o->n; i++) {
		const struct outline_item *item = &o->items[i];
		if (item->kind == OUTLINE_CLOSE) {
			depth--;
			continue;
		}
		str_add_repeat(out, "   ", depth);
		str_addf(out, "%s:", spell(name, o, item->label));
		if (item->kind == OUTLINE_OPEN) {
			depth++;
		} else if (item->kind == OUTLINE_TEXT) {
			str_addf(out, " %s", item->text ? item->text : "unknown");
		} else {
			value_text(value, sizeof(value), item);
			str_addf(out, " %s", value);
		}
		str_add(out, "\n");
	}
	out->failed |= o->failed;
}

void outline_print_json(struct json *j, const struct outline *o)
{
	char name[NAME_CAP];
	for (size_t i = 0; i < o->n; i++) {
		const struct outline_item *item = &o->items[i];
		const char *key = spell(name, o, item->key);
		if (item->kind == OUTLINE_OPEN)
			json_open(j, key, '{');
		else if (item->kind == OUTLINE_CLOSE)
			json_close(j, '}');
		else if (item->kind == OUTLINE_TEXT)
			json_text(j, key, item->text);
		else
			json_number(j, key, item->number, item->kind == OUTLINE_REAL ? 9 : 0);
	}
	j->out->failed |= o->failed;
}

void outline_print_csv(struct str *out, const struct outline *o)
{
	char path[PATH_CAP] = "", name[NAME_CAP], value[64];
	str_add(out, "key,value\r\n");
	for (size_t i = 0; i < o->n; i++) {
		const struct outline_item *item = &o->items[i];
		size_t len = strlen(path);
		if (item->kind == OUTLINE_CLOSE) {
			char *dot = strrchr(path, '.');
			*(dot ? dot : path) = '\0';
			continue;
		}
		snprintf(path + len, sizeof(path) - len, "%s%s", len ? "." : "",
			spell(name, o, item->key));
		if (item->kind == OUTLINE_OPEN)
			continue;
		json_number_text(
			value, sizeof(value), item->number, item->kind == OUTLINE_REAL ? 9 : 0);
		rows_own_text(out, path);
		str_add(out, ",");
		rows_own_text(out, item->kind == OUTLINE_TEXT ? item->text : value);
		str_add(out, "\r\n");
		path[len] = '\0';
	}
	out->failed |= o->failed;
}
