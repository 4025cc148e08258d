/* Reads and writes the keys of a lease's file, and the names of its cards. */
#include "lease/lease_file.h"

#include "base/ini.h"
#include "base/options.h"

#define AT(member) .offset = offsetof(struct lease_file, member)
enum { TEXT_CAP = 512 }; /* of a text that is written: more than is read of any */
#define SECONDS_MAX 1e11 /* the year 5138: milliseconds of it are exact */

static const struct option_row keys[] = {
	{ OPTION_MAYBE, .name = "id", AT(id) },
	{ OPTION_MAYBE, .name = "user", AT(user) },
	{ OPTION_COUNT, .name = "uid", AT(uid), .max = UINT32_MAX },
	{ OPTION_MAYBE, .name = "cards", AT(cards) },
	{ OPTION_CHOICE, .name = "numbering", .choices = LEASE_NUMBERINGS, AT(numbering) },
	{ OPTION_COUNT, .name = "share", AT(share), .max = 1000 },
	{ OPTION_REAL, .name = "since", AT(since_s), .max = SECONDS_MAX },
	{ OPTION_REAL, .name = "until", AT(until_s), .max = SECONDS_MAX },
	{ OPTION_MAYBE, .name = "name", AT(name) },
	{ OPTION_MAYBE, .name = "account", AT(account) },
	{ OPTION_MAYBE, .name = "task", AT(task) },
	{ OPTION_MAYBE, .name = "sluid", AT(sluid) },
	{ OPTION_MAYBE, .name = "boot", AT(boot) },
	{ OPTION_CHOICE, .name = "watched", .choices = "yes|no", AT(watched) },
	{ 0 },
};

static int set_key(struct lease_file *f, const struct ini_item *item, struct err *e)
{
	for (const struct option_row *row = keys; row->name; row++)
		if (strcmp(row->name, item->first) == 0 && *item->second)
			return options_set_one(
				row, &(struct written){ item->first, item->second }, f, e);
	return 0;
}

int lease_file_parse(char *bytes, size_t len, struct lease_file *f, struct err *e)
{
	struct ini ini;
	struct ini_item item;
	char name[LEASE_FILE_NAME_CAP], card[UUID_CAP];
	*f = (struct lease_file)LEASE_FILE_NONE;
	ini_start(&ini, bytes, len);
	while (ini_next(&ini, &item)) {
		if (item.kind != INI_PAIR)
			return err_set(e, ERR_USAGE, "line %zu: %s", item.line,
				item.kind == INI_WRONG ? item.first : "a section");
		if (set_key(f, &item, e) != 0)
			return err_prefix(e, "line %zu", item.line);
	}
	const char *cards = f->cards ? f->cards : "";
	if (!f->id || !lease_file_name(name, f->id))
		return err_set(
			e, ERR_USAGE, "it needs an id of at most %d characters", LABEL_CAP - 1);
	return lease_file_card(&cards, card) ? 0 : err_set(e, ERR_USAGE, "it names no card");
}

/* In quotes, because a value may have a # or quotes in it. A text that a user chose is cut, so
 * that it does not make the file too large. */
static void add_text(struct str *out, const char *text, bool is_list)
{
	char safe[LEASE_FILE_MAX];
	str_escape(safe, is_list ? sizeof(safe) : TEXT_CAP, text, strlen(text));
	str_add(out, "\"");
	for (const char *at = safe; *at; at++)
		str_addf(out, "%s%c", strchr("\"\\", *at) ? "\\" : "", *at);
	str_add(out, "\"\n");
}

void lease_file_add(struct str *out, const struct lease_file *f)
{
	for (const struct option_row *row = keys; row->name; row++) {
		const void *at = (const char *)f + row->offset;
		const char *text = NULL;
		char number[32] = "";
		if (row->kind == OPTION_REAL && !isnan(*(const double *)at))
			snprintf(number, sizeof(number), "%.3f", *(const double *)at);
		else if (row->kind == OPTION_COUNT && *(const int64_t *)at >= 0)
			snprintf(number, sizeof(number), "%lld",
				(long long)*(const int64_t *)at);
		else if (row->kind == OPTION_MAYBE || row->kind == OPTION_CHOICE)
			text = *(const char *const *)at;
		text = *number ? number : text;
		if (!text || !*text)
			continue;
		str_addf(out, "%s = ", row->name);
		add_text(out, text, row->offset == offsetof(struct lease_file, cards));
	}
}

static void escape_into(char *dst, size_t cap, const char *text)
{
	str_escape(dst, cap, text ? text : "", text ? strlen(text) : 0);
}

static int64_t to_ms(double seconds, int64_t otherwise)
{
	return isnan(seconds) ? otherwise : llround(seconds * 1000);
}

struct lease lease_file_lease(
	const struct lease_file *f, enum lease_kind kind, int64_t written_ms)
{
	struct lease lease;
	memset(&lease, 0, sizeof(lease)); /* also between members: leases are compared */
	lease.kind = kind;
	lease.uid = f->uid;
	lease.share = f->share < 0 ? 1 : (unsigned)f->share;
	lease.since_ms = to_ms(f->since_s, written_ms);
	lease.until_ms = to_ms(f->until_s, -1);
	lease.unknown_since_ms = -1;
	escape_into(lease.id, sizeof(lease.id), f->id);
	escape_into(lease.owner, sizeof(lease.owner), f->user);
	escape_into(lease.job_name, sizeof(lease.job_name), f->name);
	escape_into(lease.account, sizeof(lease.account), f->account);
	escape_into(lease.task, sizeof(lease.task), f->task);
	escape_into(lease.sluid, sizeof(lease.sluid), f->sluid);
	return lease;
}

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+"

bool lease_file_name(char name[LEASE_FILE_NAME_CAP], const char *id)
{
	size_t len = 0;
	char safe[LABEL_CAP * 4];
	str_escape(safe, sizeof(safe), id, strlen(id));
	if (!*id || strlen(id) >= LABEL_CAP || strcmp(safe, id) != 0)
		return false;
	for (const char *at = id; *at; at++) {
		/* A name that begins with a dot is not a lease. */
		bool plain = strchr(PLAIN, *at) && !(at == id && *at == '.');
		int n = snprintf(name + len, LEASE_FILE_NAME_CAP - len, plain ? "%c" : "%%%02X",
			(unsigned char)*at);
		if (n < 0 || (size_t)n >= LEASE_FILE_NAME_CAP - len)
			return false;
		len += (size_t)n;
	}
	return true;
}

bool lease_file_card(const char **list, char card[UUID_CAP])
{
	while (**list) {
		const char *at = *list + strspn(*list, ", ");
		size_t whole = strcspn(at, ", "), len = strspn(at, PLAIN "/:");
		const char *part = memmem(at, whole, "::", 2);
		*list = at + whole;
		if (len < whole || whole == 0 || whole >= UUID_CAP)
			continue;
		snprintf(card, UUID_CAP, "%.*s", (int)(part ? (size_t)(part - at) : whole), at);
		if (*card)
			return true;
	}
	return false;
}
