/* Notices as JSON, and as text: expands templates, has built-in ones, and writes digests. */
#include "policy/notice.h"

#include <jansson.h>

#include "base/nearest.h"

const char *const notice_kind_names[NOTICE_KINDS] = { "warning", "again", "final", "ended",
	"not-ended", "digest", "alarm", "test" };

enum member_kind { MEMBER_TEXT, MEMBER_INTEGER, MEMBER_REAL, MEMBER_LINES };

/* clang-format off */
#define MEMBER(name, kind, cap) { #name, kind, offsetof(struct notice, name), cap }
#define TEXT(name) MEMBER(name, MEMBER_TEXT, sizeof(((struct notice *)0)->name))
#define INTEGER(name) MEMBER(name, MEMBER_INTEGER, 0)
#define REAL(name) MEMBER(name, MEMBER_REAL, 0)
/* clang-format on */

static const struct member {
	const char *name;
	enum member_kind kind;
	size_t offset, cap;
} members[] = {
	TEXT(session),
	TEXT(rule),
	TEXT(user),
	INTEGER(uid),
	TEXT(host),
	TEXT(what),
	TEXT(lease),
	TEXT(command),
	INTEGER(pid),
	TEXT(cards),
	TEXT(model),
	INTEGER(mem_bytes),
	INTEGER(made_ms),
	INTEGER(idle_since_ms),
	INTEGER(idle_ms),
	INTEGER(idle_below),
	REAL(idle_gpu_hours),
	REAL(cost),
	TEXT(currency),
	INTEGER(next_ms),
	INTEGER(end_ms),
	TEXT(release),
	TEXT(keep),
	TEXT(explain),
	TEXT(kept),
	INTEGER(freed_bytes),
	TEXT(result),
	INTEGER(count),
	MEMBER(list, MEMBER_LINES, 0),
};
enum { N_MEMBERS = sizeof(members) / sizeof(members[0]) };

static void *member_of(const struct notice *n, const struct member *m)
{
	return (void *)(uintptr_t)((const char *)n + m->offset);
}

void notice_init(struct notice *n, enum notice_kind kind)
{
	memset(n, 0, sizeof(*n));
	n->kind = kind;
	for (size_t i = 0; i < N_MEMBERS; i++) {
		if (members[i].kind == MEMBER_INTEGER)
			*(int64_t *)member_of(n, &members[i]) = -1;
		else if (members[i].kind == MEMBER_REAL)
			*(double *)member_of(n, &members[i]) = (double)NAN;
	}
}

static json_t *lines_json(const char *text)
{
	json_t *lines = *text ? json_array() : json_null();
	for (size_t len; *text; text += len + 1) {
		len = strcspn(text, "\n");
		json_array_append_new(lines, json_stringn(text, len));
	}
	return lines;
}

static json_t *member_json(const struct notice *n, const struct member *m)
{
	if (m->kind == MEMBER_TEXT) {
		const char *text = (const char *)n + m->offset;
		return *text ? json_string(text) : json_null();
	}
	if (m->kind == MEMBER_LINES)
		return lines_json((const char *)n + m->offset);
	if (m->kind == MEMBER_INTEGER)
		return *(int64_t *)member_of(n, m) < 0
			       ? json_null()
			       : json_integer(*(int64_t *)member_of(n, m));
	return isfinite(*(double *)member_of(n, m)) ? json_real(*(double *)member_of(n, m))
						    : json_null();
}

int notice_to_json(const struct notice *n, const struct notice_extra *extra, struct str *out,
	struct err *e)
{
	json_t *object = json_object();
	bool failed = json_object_set_new(
			      object, "kind", json_string(notice_kind_names[n->kind])) != 0;
	for (size_t i = 0; i < N_MEMBERS; i++)
		failed |= json_object_set_new(
				  object, members[i].name, member_json(n, &members[i])) != 0;
	if (extra) {
		failed |= json_object_set_new(object, "subject", json_string(extra->subject)) !=
			  0;
		failed |= json_object_set_new(object, "text", json_string(extra->text)) != 0;
	}
	char *text = failed ? NULL : json_dumps(object, JSON_COMPACT);
	if (text)
		str_add(out, text);
	free(text);
	json_decref(object);
	return failed || !text || out->failed ? err_memory(e) : 0;
}

int notice_from_json(struct notice *n, const char *bytes, size_t len, struct err *e)
{
	json_error_t why;
	json_t *object = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &why);
	const char *kind = json_string_value(json_object_get(object, "kind"));
	int found = str_place(notice_kind_names, NOTICE_KINDS, kind);
	notice_init(n, NOTICE_WARNING);
	if (found < NOTICE_KINDS) {
		n->kind = (enum notice_kind)found;
		for (size_t i = 0; i < N_MEMBERS; i++) {
			const struct member *m = &members[i];
			const json_t *value = json_object_get(object, m->name);
			if (m->kind == MEMBER_TEXT && json_is_string(value))
				str_escape((char *)n + m->offset, m->cap,
					json_string_value(value), json_string_length(value));
			else if (m->kind == MEMBER_INTEGER && json_is_integer(value))
				*(int64_t *)member_of(n, m) = json_integer_value(value);
			else if (m->kind == MEMBER_REAL && json_is_number(value))
				*(double *)member_of(n, m) = json_number_value(value);
		}
	}
	json_decref(object);
	return found < NOTICE_KINDS ? 0
				    : err_set(e, ERR_WORLD, "a stored notice cannot be read");
}

bool notice_is_plain_user(const char *user)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-";
	return *user && *user != '-' && *user != '.' && user[strspn(user, plain)] == '\0';
}

enum { VALUE_CAP = 1024, TEMPLATE_MOST = 16 * 1024 };

enum fact_kind {
	FACT_TEXT,
	FACT_NUMBER,
	FACT_MOMENT,
	FACT_LENGTH,
	FACT_BYTES,
	FACT_MEMORY,
	FACT_COMMAND,
	FACT_NAME, /* by which the owner knows the session: notebook, job, container, else the
		      command */
	FACT_HOURS,
	FACT_COST,
	FACT_SPENT, /* both */
	FACT_NEXT,
};

#define OF(member) offsetof(struct notice, member)
static const struct fact {
	const char *name;
	enum fact_kind kind;
	size_t offset; /* of the member, for the kinds up to FACT_BYTES */
} facts[] = {
	{ "user", FACT_TEXT, OF(user) },
	{ "uid", FACT_NUMBER, OF(uid) },
	{ "host", FACT_TEXT, OF(host) },
	{ "rule", FACT_TEXT, OF(rule) },
	{ "session", FACT_TEXT, OF(session) },
	{ "what", FACT_TEXT, OF(what) },
	{ "lease", FACT_TEXT, OF(lease) },
	{ "name", FACT_NAME, 0 },
	{ "command", FACT_COMMAND, 0 },
	{ "pid", FACT_NUMBER, OF(pid) },
	{ "cards", FACT_TEXT, OF(cards) },
	{ "model", FACT_TEXT, OF(model) },
	{ "memory", FACT_MEMORY, 0 },
	{ "since", FACT_MOMENT, OF(idle_since_ms) },
	{ "idle", FACT_LENGTH, OF(idle_ms) },
	{ "limit", FACT_NUMBER, OF(idle_below) },
	{ "time", FACT_MOMENT, OF(made_ms) },
	{ "hours", FACT_HOURS, 0 },
	{ "cost", FACT_COST, 0 },
	{ "spent", FACT_SPENT, 0 },
	{ "next", FACT_NEXT, 0 },
	{ "end", FACT_MOMENT, OF(end_ms) },
	{ "release", FACT_TEXT, OF(release) },
	{ "keep", FACT_TEXT, OF(keep) },
	{ "explain", FACT_TEXT, OF(explain) },
	{ "kept", FACT_TEXT, OF(kept) },
	{ "result", FACT_TEXT, OF(result) },
	{ "freed", FACT_BYTES, OF(freed_bytes) },
	{ "count", FACT_NUMBER, OF(count) },
};
#undef OF
enum { N_FACTS = sizeof(facts) / sizeof(facts[0]) };

static void next_text(char dst[VALUE_CAP], const struct notice *n)
{
	struct brief next = moment_text(n->next_ms, false);
	struct brief end = moment_text(n->end_ms, false);
	if (n->next_ms < 0 && n->end_ms < 0)
		str_copy(dst, VALUE_CAP,
			"nothing will be ended; please release what you do not need");
	else if (n->end_ms < 0)
		snprintf(dst, VALUE_CAP, "another notice at %s", next.text);
	else
		snprintf(dst, VALUE_CAP,
			"%s%s%sthe session will be ended at %s at the earliest, unless it uses "
			"the card",
			n->next_ms < 0 ? "" : "another notice at ",
			n->next_ms < 0 ? "" : next.text, n->next_ms < 0 ? "" : "; ", end.text);
}

/* A fact of a notice as text; "" if it is not known. */
static void fact_text(char dst[VALUE_CAP], const struct fact *f, const struct notice *n)
{
	const char *at = (const char *)n + f->offset;
	const char *command = *n->command ? n->command : "process";
	bool hours = f->kind != FACT_COST && isfinite(n->idle_gpu_hours);
	bool cost = f->kind != FACT_HOURS && isfinite(n->cost);
	int64_t number = -1;
	*dst = '\0';
	if (f->kind >= FACT_NUMBER && f->kind <= FACT_BYTES)
		memcpy(&number, at, sizeof(number));
	if (f->kind == FACT_TEXT)
		str_copy(dst, VALUE_CAP, at);
	else if (f->kind == FACT_NUMBER && number >= 0)
		snprintf(dst, VALUE_CAP, "%lld", (long long)number);
	else if (f->kind == FACT_MOMENT && number >= 0)
		str_copy(dst, VALUE_CAP, moment_text(number, false).text);
	else if (f->kind == FACT_LENGTH && number >= 0)
		str_copy(dst, VALUE_CAP, duration_text(number).text);
	else if (f->kind == FACT_BYTES && number >= 0)
		str_copy(dst, VALUE_CAP, size_text((double)number).text);
	else if (f->kind == FACT_MEMORY && !*n->lease) /* a lease holds none */
		str_copy(dst, VALUE_CAP,
			n->mem_bytes < 0 ? "memory of unknown size"
					 : size_text((double)n->mem_bytes).text);
	else if (f->kind == FACT_COMMAND || f->kind == FACT_NAME)
		str_copy(dst, VALUE_CAP, f->kind == FACT_NAME && *n->what ? n->what : command);
	else if (f->kind == FACT_NEXT)
		next_text(dst, n);
	else if (f->kind >= FACT_HOURS) {
		if (hours)
			snprintf(dst, VALUE_CAP, "%.1f GPU-hours%s", n->idle_gpu_hours,
				cost ? ", " : "");
		if (cost)
			snprintf(dst + strlen(dst), VALUE_CAP - strlen(dst), "%.2f %s", n->cost,
				n->currency);
	}
}

void notice_text_finish(struct notice_text *t)
{
	str_finish(&t->subject);
	str_finish(&t->body);
}

static int no_fact(const char *name, size_t len, struct err *e)
{
	if (len == 4 && memcmp(name, "list", len) == 0)
		return err_set(e, ERR_USAGE, "{list} must be alone in its line");
	struct nearest like = nearest_to(name, len);
	for (size_t i = 0; i < N_FACTS; i++)
		nearest_try(&like, facts[i].name);
	return err_set(e, ERR_USAGE, "there is no {%.*s}%s%s%s", (int)(len < 40 ? len : 40),
		name, like.name ? "; did you mean {" : "", like.name ? like.name : "",
		like.name ? "}?" : "");
}

/* Expands {name} at `at`; returns what follows it, or NULL with an error. */
static const char *expand_fact(
	struct str *out, const struct notice *n, struct piece line, bool *known, struct err *e)
{
	char value[VALUE_CAP], safe[VALUE_CAP];
	const char *name = line.at + 1, *close = memchr(line.at, '}', line.len);
	if (!close) {
		err_set(e, ERR_USAGE, "a { has no }; write {{ for a brace");
		return NULL;
	}
	size_t len = (size_t)(close - name);
	for (size_t i = 0; i < N_FACTS; i++) {
		if (strlen(facts[i].name) != len || memcmp(facts[i].name, name, len) != 0)
			continue;
		fact_text(value, &facts[i], n);
		str_escape(safe, sizeof(safe), value, strlen(value));
		str_add(out, safe);
		*known = *known && *safe;
		return close + 1;
	}
	no_fact(name, len, e);
	return NULL;
}

/* Expands one line; returns 1 if it is left out because a fact is unknown. */
static int expand_line(
	struct str *out, const struct notice *n, struct piece line, struct err *e)
{
	const char *at = line.at, *end = line.at + line.len;
	bool known = true;
	while (at < end) {
		size_t left = (size_t)(end - at);
		char safe[32];
		if (*at != '{' || (left > 1 && at[1] == '{')) {
			unsigned code;
			size_t len = str_utf8_char(at, left, &code);
			len = len ? len : 1;
			str_escape(safe, sizeof(safe), at, len);
			str_add(out, *at == '\t' ? "        " : safe);
			at += *at == '{' ? 2 : (ptrdiff_t)len;
			continue;
		}
		at = expand_fact(out, n, (struct piece){ at, left }, &known, e);
		if (!at)
			return e->code;
	}
	return known ? 0 : 1;
}

/* Takes the next line of the rest, without line end and trailing blanks. */
static bool next_line(struct piece *rest, struct piece *line)
{
	if (!rest->len)
		return false;
	*line = piece_cut(rest, '\n');
	while (line->len && strchr(" \t\r", line->at[line->len - 1]))
		line->len--;
	return true;
}

/* The subject is used even if a fact in it is unknown: a mail needs one. */
static int expand_subject(
	struct notice_text *t, const struct notice *n, struct piece line, struct err *e)
{
	static const char key[] = "Subject:";
	if (!piece_is_like(line, "Subject:*") || line.len < sizeof(key))
		return err_set(e, ERR_USAGE, "the first line must be 'Subject: ...'");
	line = piece_skip(line, sizeof(key) - 1);
	int rc = expand_line(&t->subject, n, piece_skip(line, piece_span(line, " ")), e);
	return rc < 0 ? rc : 0;
}

static bool is_list(struct piece line)
{
	return piece_is_like(line, "{list}");
}

static int expand_body(
	struct notice_text *t, const struct notice *n, struct piece line, struct err *e)
{
	struct str one = { 0 };
	if (is_list(line)) {
		/* The parts of a digest, one line each. */
		const char *list = n->list;
		char safe[NOTICE_LINE_CAP];
		for (size_t len; *list; list += len + (list[len] == '\n')) {
			len = strcspn(list, "\n");
			str_escape(safe, sizeof(safe), list, len);
			str_addf(&t->body, "- %s\n", safe);
		}
		return 0;
	}
	int rc = expand_line(&one, n, line, e);
	if (rc == 0) {
		str_add_bytes(&t->body, str_text(&one), one.len);
		str_add(&t->body, "\n");
	}
	str_finish(&one);
	return rc < 0 ? rc : 0;
}

int notice_expand(struct notice_text *t, const struct notice *n,
	const struct notice_template *from, struct err *e)
{
	struct piece rest = { from->text, from->len }, line;
	size_t number = 0;
	/* A digest must list its sessions, or users would not learn about them. */
	bool lacks_list = n->kind == NOTICE_DIGEST;
	int rc = 0;
	*t = (struct notice_text){ 0 };
	while (rc == 0 && next_line(&rest, &line)) {
		number++;
		if (number == 1)
			rc = expand_subject(t, n, line, e);
		else if (number == 2 && line.len)
			rc = err_set(e, ERR_USAGE, "the second line must be empty");
		else if (number > 2)
			rc = expand_body(t, n, line, e);
		lacks_list = lacks_list && !is_list(line);
		if (rc)
			err_prefix(e, "%s:%zu", from->name, number);
	}
	if (rc == 0 && number < 3)
		rc = err_set(e, ERR_USAGE, "%s: there is no text", from->name);
	if (rc == 0 && lacks_list)
		rc = err_set(e, ERR_USAGE, "%s: a digest needs the line {list}", from->name);
	if (rc == 0 && (t->subject.failed || t->body.failed))
		rc = err_memory(e);
	if (rc)
		notice_text_finish(t);
	return rc;
}

/* The built-in templates. A terminal shows the first six lines. */

#define RELEASE_AND_KEEP                                                                       \
	"Release it: {release}\n"                                                              \
	"Keep it:    {keep}\n"

#define MORE                                                                                   \
	"Use counts from {limit} % of a card on, and any of an encoder or decoder\n"           \
	"Held idle so far: {spent}\n"                                                          \
	"What it is: {what}\n"                                                                 \
	"Kept before: {kept}; 'gua keep' lists what you keep\n"                                \
	"Why: rule {rule}; '{explain}' shows the evidence\n"

static const char *const texts[NOTICE_KINDS] = {
	[NOTICE_WARNING] =
		"Subject: [gua] {host}: you have held card {cards} idle for {idle}: {name}\n\n"
		"Your {command} (pid {pid}) holds {memory} on card {cards} of {host}\n"
		"Your {lease} keeps card {cards} of {host} from others\n"
		"and has not used it since {since}.\n"
		"What happens next: {next}\n" RELEASE_AND_KEEP MORE,
	[NOTICE_AGAIN] =
		"Subject: [gua] {host}: second notice, card {cards} held idle for {idle}: "
		"{name}\n\n"
		"Your {command} (pid {pid}) still holds {memory} on card {cards} of {host}\n"
		"Your {lease} still keeps card {cards} of {host} from others\n"
		"and has not used it since {since}.\n"
		"What happens next: {next}\n" RELEASE_AND_KEEP MORE,
	[NOTICE_FINAL] =
		"Subject: [gua] {host}: last notice, your {name} will be ended at {end}\n\n"
		"Your {command} (pid {pid}) will be ended at {end}. Save your work.\n"
		"Your {lease} will be ended at {end}, with all that it runs.\n"
		"It holds {memory} on card {cards} of {host}, unused since {since}.\n"
		"The cards of {lease}, {cards} of {host}, are unused since {since}.\n"
		"If it uses the card before then, or you keep it, it will not be "
		"ended.\n" RELEASE_AND_KEEP MORE,
	[NOTICE_ENDED] = "Subject: [gua] {host}: your {name} was ended\n\n"
			 "Your {command} (pid {pid}) on {host} was ended: it had held card "
			 "{cards}\n"
			 "Your {lease} on {host} was ended: it had card {cards}\n"
			 "without using it since {since}.\n"
			 "Result: {result}\n"
			 "Memory given back: {freed}\n"
			 "Held idle: {spent}\n"
			 "What it was: {what}\n"
			 "Why: rule {rule}\n",
	[NOTICE_NOT_ENDED] =
		"Subject: [gua] {host}: your {name} was not ended\n\n"
		"Your {command} (pid {pid}) on {host} was to be ended, and was not.\n"
		"Your {lease} on {host} was to be ended, and was not.\n"
		"Reason: {result}\n"
		"It has held card {cards} without using it since {since}.\n" RELEASE_AND_KEEP
		"What it is: {what}\n"
		"Why: rule {rule}; '{explain}' shows the evidence\n",
	[NOTICE_DIGEST] =
		"Subject: [gua] {host}: {count} notices in one\n\n"
		"This replaces {count} notices about your sessions on {host}:\n"
		"{list}\n"
		"Keep one: gua keep PID --for 4h --reason TEXT (of a lease: slurm:4)\n"
		"Why: 'gua enforce explain PID' shows the rule and the evidence\n",
	[NOTICE_ALARM] =
		"Subject: [gua] {host}: enforcement has stopped\n\n"
		"gua enforce on {host} ended nothing, and an administrator must look.\n"
		"Reason: {result}\n"
		"'gua enforce status' and 'gua enforce log' say more.\n",
	[NOTICE_TEST] = "Subject: [gua] {host}: a test\n\n"
			"This is a test of the notices of gua on {host}, for {user}.\n"
			"Nothing is wrong, and nothing will be ended.\n",
};

int notice_write(
	struct notice_text *t, const struct notice *n, const char *directory, struct err *e)
{
	char path[512];
	const char *own = texts[n->kind];
	struct file_content file = { 0 };
	struct err unread = { 0 };
	snprintf(path, sizeof(path), "%s/%s.txt", directory, notice_kind_names[n->kind]);
	int rc = file_read_regular(path, TEMPLATE_MOST, &file, &unread);
	if (rc == 0) {
		const struct notice_template theirs = { path, file.data, file.len };
		rc = notice_expand(t, n, &theirs, e);
		free(file.data);
		if (rc == 0)
			return 0;
	} else {
		rc = file.error ? 0 : err_set(e, ERR_WORLD, "%s", unread.text);
	}
	const struct notice_template built_in = { "built-in", own, strlen(own) };
	struct err ours = { 0 };
	int mine = notice_expand(t, n, &built_in, &ours);
	return rc ? rc : mine;
}

/* Digests: one notice that stands for several. */

/* The line of a part, in pieces. A piece with an unknown fact is left out. */
static const char *const lines[NOTICE_KINDS] = {
	[NOTICE_WARNING] = "Subject: x\n\n"
			   "your {name} (pid {pid}) holds {memory} on card {cards}\n"
			   "your {lease} keeps card {cards} from others\n"
			   "unused since {since}\n"
			   "it will be ended at {end} at the earliest, unless it uses the "
			   "card\n"
			   "release it: {release}\n",
	[NOTICE_FINAL] = "Subject: x\n\n"
			 "LAST NOTICE: your {name} (pid {pid}) will be ended at {end}\n"
			 "LAST NOTICE: your {lease} will be ended at {end}\n"
			 "it holds {memory} on card {cards}, unused since {since}\n"
			 "its card {cards} is unused since {since}: {lease}\n"
			 "release it: {release}\n",
	[NOTICE_ENDED] = "Subject: x\n\n"
			 "your {name} (pid {pid}) was ended\n"
			 "your {lease} was ended\n"
			 "it had held card {cards} without using it since {since}\n"
			 "{result}\n",
	[NOTICE_NOT_ENDED] = "Subject: x\n\n"
			     "your {name} (pid {pid}) was to be ended, and was not\n"
			     "your {lease} was to be ended, and was not\n"
			     "{result}\n"
			     "it has held card {cards} without using it since {since}\n"
			     "release it: {release}\n",
};

/* Adds the lines of a text as one line, with semicolons between them. */
static void add_line(struct notice *digest, const char *text)
{
	struct str joined = { 0 };
	char line[NOTICE_LINE_CAP];
	size_t used = strlen(digest->list);
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		str_add(&joined, joined.len ? "; " : "");
		str_add_bytes(&joined, text, len);
	}
	str_copy(line, sizeof(line) - 1, str_text(&joined));
	str_finish(&joined);
	snprintf(digest->list + used, sizeof(digest->list) - used, "%s\n", line);
}

void notice_add_part(struct notice *digest, const struct notice *part)
{
	const char *line = lines[part->kind] ? lines[part->kind] : lines[NOTICE_WARNING];
	const struct notice_template from = { "built-in", line, strlen(line) };
	struct notice_text text;
	struct err e = { 0 };
	if (digest->count >= NOTICE_PARTS_MOST || notice_expand(&text, part, &from, &e) != 0)
		return;
	add_line(digest, str_text(&text.body));
	if (digest->count < 1) {
		str_copy(digest->user, sizeof(digest->user), part->user);
		str_copy(digest->host, sizeof(digest->host), part->host);
		digest->uid = part->uid;
	}
	digest->count = digest->count < 0 ? 1 : digest->count + 1;
	if (part->end_ms >= 0 && (digest->end_ms < 0 || part->end_ms < digest->end_ms))
		digest->end_ms = part->end_ms;
	notice_text_finish(&text);
}
