/* The table of channels, which of them are configured, and how each delivers: command, login
 * notice, terminals, mail, webhooks. */
#include "policy/channel.h"

#include <jansson.h>
#include <pwd.h>

#include "base/child.h"
#include "base/sha256.h"
#include "base/words.h"

const char *const delivery_names[] = { "delivered", "nobody", "failed" };

/* Finds the next word; false at the end. */
static bool next_word(const char **at, const char **word, size_t *len)
{
	*word = *at + strspn(*at, " \t,");
	*len = strcspn(*word, " \t,");
	*at = *word + *len;
	return *len > 0;
}

static bool is_named(enum channel c, const char *word, size_t len)
{
	const char *name = channel_kinds[c].name;
	return strlen(name) == len && memcmp(name, word, len) == 0;
}

static bool is_listed(enum channel c, const char *list)
{
	const char *word;
	size_t len;
	while (list && next_word(&list, &word, &len))
		if (is_named(c, word, len))
			return true;
	return false;
}

/* The key that the channel needs and that is missing; NULL: none is missing. */
static const char *lacks(enum channel c, const struct config_notices *config)
{
	const struct channel_kind *k = &channel_kinds[c];
	const char *const *value = (const void *)((const char *)config + k->value);
	return k->key && !*value ? k->key : NULL;
}

bool channel_configured(enum channel c, const struct config_notices *config)
{
	return is_listed(c, config->channels) && !lacks(c, config);
}

int channel_check(const struct config_notices *config, struct err *e)
{
	const char *list = config->channels, *word;
	size_t len;
	while (next_word(&list, &word, &len)) {
		int c = 0;
		while (c < CHANNELS && !is_named((enum channel)c, word, len))
			c++;
		if (c == CHANNELS) {
			char names[128] = "";
			for (int i = 0; i < CHANNELS; i++)
				snprintf(names + strlen(names), sizeof(names) - strlen(names),
					"%s%s", i ? ", " : "", channel_kinds[i].name);
			return err_set(e, ERR_USAGE, "channels: '%.*s' is not one of %s",
				(int)len, word, names);
		}
		if (lacks((enum channel)c, config))
			return err_set(e, ERR_USAGE,
				"channels: %s needs %s in the section [notices]",
				channel_kinds[c].name, lacks((enum channel)c, config));
	}
	return 0;
}

bool channel_misses(const struct config_notices *config, char why[CHANNEL_REACH_CAP])
{
	bool sends = access(config->sendmail, X_OK) == 0;
	const char *failed = sends ? NULL : strerror(errno);
	for (int i = 0; i < CHANNELS; i++)
		if (channel_kinds[i].everybody && channel_configured((enum channel)i, config) &&
			(i != CHANNEL_MAIL || sends))
			return false;
	bool terminal = channel_configured(CHANNEL_TERMINAL, config);
	int n = snprintf(why, CHANNEL_REACH_CAP,
		"%s cannot be reached ([notices] channels = %s), so nothing happens to their "
		"sessions; ",
		terminal ? "users without a terminal" : "users", config->channels);
	if (n < 0 || n >= CHANNEL_REACH_CAP)
		return true;
	if (sends)
		str_copy(why + n, (size_t)(CHANNEL_REACH_CAP - n),
			"add mail there, or webhook or command");
	else
		snprintf(why + n, (size_t)(CHANNEL_REACH_CAP - n),
			"add webhook or command there, or mail once %s works: %s",
			config->sendmail, failed);
	return true;
}

/* Runs the administrator's command with the notice as JSON on its standard input. */

/* Finds the user to run the command as: never root. */
static int find_user(struct child_command *c, const char *name, struct err *e)
{
	char memory[4096];
	struct passwd entry, *found = NULL;
	int why = getpwnam_r(name, &entry, memory, sizeof(memory), &found);
	if (!found)
		return err_set(e, ERR_WORLD, "cannot run the command as %s: %s", name,
			why ? strerror(why) : "there is no such user");
	if (found->pw_uid == 0)
		return err_set(
			e, ERR_WORLD, "the command must not run as root; set command_user");
	c->change_user = true;
	c->uid = found->pw_uid;
	c->gid = found->pw_gid;
	return 0;
}

static int run(
	const struct channel_job *job, char **argv, struct child_result *r, struct err *e)
{
	struct str json = { 0 };
	const struct notice_extra extra = { str_text(&job->text->subject),
		str_text(&job->text->body) };
	struct child_command command = { .argv = (const char *const *)argv,
		.timeout_ms = job->config->timeout_ms };
	int rc = notice_to_json(job->notice, &extra, &json, e);
	str_add(&json, "\n");
	command.input = str_text(&json);
	command.input_len = json.len;
	bool failed = rc || find_user(&command, job->config->command_user, e) ||
		      child_run(&command, r, e);
	str_finish(&json);
	return failed ? e->code : 0;
}

static enum delivery deliver_by_command(
	const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	struct err e = { 0 };
	struct child_result r = { 0 };
	char **argv = NULL;
	size_t n = 0;
	int rc = words_split(job->config->command, &argv, &n, &e);
	if (rc == 0 && n == 0)
		rc = err_set(&e, ERR_USAGE, "command is empty");
	if (rc == 0)
		rc = run(job, argv, &r, &e);
	if (rc)
		str_copy(why, CHANNEL_WHY_CAP, e.text);
	else if (r.status != 0)
		child_result_text(why, CHANNEL_WHY_CAP, argv[0], &r);
	else
		str_copy(why, CHANNEL_WHY_CAP, argv[0]);
	free(argv);
	return rc == 0 && r.status == 0 ? DELIVERY_DONE : DELIVERY_FAILED;
}

/* Leaves a text that the user reads at the next login: DIRECTORY/USER. */

static int path_of(char *dst, size_t cap, const char *directory, const char *user)
{
	if (!notice_is_plain_user(user))
		return -1;
	int n = snprintf(dst, cap, "%s/%s", directory, user);
	return n > 0 && (size_t)n < cap ? 0 : -1;
}

static enum delivery deliver_by_login(const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	char path[512];
	struct err e = { 0 };
	struct str text = { 0 };
	struct stat st;
	if (path_of(path, sizeof(path), job->config->login_directory, job->notice->user) != 0) {
		snprintf(why, CHANNEL_WHY_CAP, "the user name %s cannot be used as a file name",
			job->notice->user);
		return DELIVERY_NOBODY;
	}
	str_addf(&text, "%s\n%s", str_text(&job->text->subject), str_text(&job->text->body));
	/* open() would follow a link and would wait for the reader of a pipe. */
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		unlink(path);
	int rc = file_replace(path, str_text(&text), text.len, &e);
	/* The directory may be shared by members of a group; the file is for its user. */
	if (rc == 0 && chmod(path, 0644) != 0)
		rc = err_set(&e, ERR_WORLD, "cannot let its user read %s: %s", path,
			strerror(errno));
	str_finish(&text);
	str_copy(why, CHANNEL_WHY_CAP, rc ? e.text : path);
	return rc ? DELIVERY_FAILED : DELIVERY_DONE;
}

int channel_login_clear(const char *directory, const char *user, struct err *e)
{
	char path[512];
	if (path_of(path, sizeof(path), directory, user) != 0)
		return 0;
	if (unlink(path) != 0 && errno != ENOENT)
		return err_set(e, ERR_WORLD, "cannot remove %s: %s", path, strerror(errno));
	return 0;
}

/* Writes to the user's own terminals, as write(1) does: to character devices that belong to the
 * user and accept messages (mesg y), without waiting, and nothing but printable text. */

/* Only the most recently used terminals get the notice: a user of tmux may have dozens. */
enum { MOST_TERMINALS = 4, MOST_LINES = 6, PATH_CAP = 48 };
#define TERMINALS "/dev/pts"

struct terminal {
	char path[PATH_CAP];
	int64_t used_s; /* when a key was last pressed there */
};

/* mesg y: the group tty may write. */
static bool accepts(const struct stat *st, int64_t uid)
{
	return S_ISCHR(st->st_mode) && (int64_t)st->st_uid == uid && (st->st_mode & S_IWGRP);
}

static size_t find_terminals(struct terminal list[MOST_TERMINALS], int64_t uid)
{
	size_t n = 0;
	DIR *directory = opendir(TERMINALS);
	struct dirent *entry;
	while (directory && (entry = readdir(directory))) {
		struct terminal t;
		struct stat st;
		if (entry->d_name[strspn(entry->d_name, "0123456789")] ||
			strlen(entry->d_name) > 16)
			continue;
		snprintf(t.path, sizeof(t.path), TERMINALS "/%.16s", entry->d_name);
		if (lstat(t.path, &st) != 0 || !accepts(&st, uid))
			continue;
		t.used_s = st.st_atime;
		/* Keeps the list sorted, the most recently used first. */
		size_t at = n;
		while (at > 0 && list[at - 1].used_s < t.used_s)
			at--;
		if (at == MOST_TERMINALS)
			continue;
		n -= n == MOST_TERMINALS;
		memmove(&list[at + 1], &list[at], (n++ - at) * sizeof(*list));
		list[at] = t;
	}
	if (directory)
		closedir(directory);
	return n;
}

void channel_terminal_text(struct str *out, const struct channel_job *job)
{
	char safe[1024];
	/* A digest is never truncated: the user would not learn of sessions cut off. */
	size_t lines = 0, most = job->notice->kind == NOTICE_DIGEST ? SIZE_MAX : MOST_LINES;
	str_add(out, "\r\n");
	for (const char *at = str_text(&job->text->body); *at && lines < most;) {
		size_t len = strcspn(at, "\n");
		if (len) {
			str_escape(safe, sizeof(safe), at, len);
			str_addf(out, "%s\r\n", safe);
			lines++;
		}
		at += len + (at[len] == '\n');
	}
}

/* Checks the device again once it is open: the path may lead to another device by now. */
static bool write_to(const char *path, int64_t uid, const struct str *text)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	ssize_t n = fstat(fd, &st) == 0 && accepts(&st, uid)
			    ? write(fd, str_text(text), text->len)
			    : -1;
	int why = n < 0 ? errno : EAGAIN; /* a part of it: the buffer is full */
	close(fd);
	errno = why;
	return n == (ssize_t)text->len;
}

static enum delivery deliver_to_terminal(
	const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	struct terminal list[MOST_TERMINALS];
	struct str text = { 0 };
	size_t done = 0, n = job->notice->uid > 0 ? find_terminals(list, job->notice->uid) : 0;
	int failed = 0;
	channel_terminal_text(&text, job);
	for (size_t i = 0; i < n && !text.failed; i++) {
		if (write_to(list[i].path, job->notice->uid, &text))
			done++;
		else
			failed = errno;
	}
	str_finish(&text);
	if (done)
		snprintf(why, CHANNEL_WHY_CAP, "%zu terminal%s", done, done == 1 ? "" : "s");
	else if (n)
		snprintf(why, CHANNEL_WHY_CAP, "cannot write to %s: %s", list[n - 1].path,
			failed == EAGAIN ? "its output is stopped, or nobody reads it"
					 : strerror(failed));
	else
		snprintf(why, CHANNEL_WHY_CAP, "%s has no terminal that accepts messages",
			job->notice->user);
	return done ? DELIVERY_DONE : n ? DELIVERY_FAILED : DELIVERY_NOBODY;
}

/* Sends mail through sendmail's interface, which every mail server has. */

enum { ADDRESS_CAP = 320, ID_CAP = 17, WORD_BYTES = 42 };

static void add_base64(struct str *out, const unsigned char *bytes, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < len; i += 3) {
		unsigned block = (unsigned)bytes[i] << 16;
		block |= i + 1 < len ? (unsigned)bytes[i + 1] << 8 : 0;
		block |= i + 2 < len ? bytes[i + 2] : 0;
		str_addf(out, "%c%c%c%c", digits[block >> 18], digits[block >> 12 & 63],
			i + 1 < len ? digits[block >> 6 & 63] : '=',
			i + 2 < len ? digits[block & 63] : '=');
	}
}

/* Appends a header without line breaks: ASCII unchanged, other text as encoded words of RFC
 * 2047, each with whole characters. */
static void add_header(struct str *out, const char *name, const char *text)
{
	char safe[1024];
	size_t len = str_escape(safe, sizeof(safe), text, strlen(text));
	str_addf(out, "%s:", name);
	if (str_plain(safe) == len)
		str_addf(out, " %s", safe);
	for (size_t at = 0, n; str_plain(safe) != len && at < len; at += n) {
		unsigned code;
		for (n = 0; at + n < len;) {
			size_t step = str_utf8_char(safe + at + n, len - at - n, &code);
			if (n + (step ? step : 1) > WORD_BYTES)
				break;
			n += step ? step : 1;
		}
		str_add(out, at ? "\n =?UTF-8?B?" : " =?UTF-8?B?");
		add_base64(out, (const unsigned char *)safe + at, n);
		str_add(out, "?=");
	}
	str_add(out, "\n");
}

void channel_mail_text(struct str *out, const struct channel_job *job, const char *to)
{
	const struct notice *n = job->notice;
	const struct config_notices *c = job->config;
	char id[ID_CAP], host[NOTICE_HOST_CAP];
	/* The id of the mail thread about one session: a hash, because a session key may have
	 * any characters. */
	unsigned char digest[SHA256_SIZE];
	char key[LABEL_CAP + NOTICE_HOST_CAP + 32];
	snprintf(key, sizeof(key), "%s %s %lld", n->host, n->session,
		(long long)n->idle_since_ms);
	sha256(digest, key, strlen(key));
	for (size_t i = 0; i < ID_CAP / 2; i++)
		snprintf(id + 2 * i, 3, "%02x", digest[i]);
	/* The host name as part of a message id: plain letters only. */
	size_t used = 0;
	for (const char *p = n->host; *p && used + 1 < sizeof(host); p++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-",
			    *p))
			host[used++] = *p;
	host[used] = '\0';
	if (!used)
		str_copy(host, sizeof(host), "localhost");
	if (c->mail_from)
		add_header(out, "From", c->mail_from);
	add_header(out, "To", to);
	if (c->mail_reply_to)
		add_header(out, "Reply-To", c->mail_reply_to);
	add_header(out, "Subject", str_text(&job->text->subject));
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
		"Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t seconds = (time_t)(n->made_ms / 1000);
	struct tm t;
	if (n->made_ms >= 0 && gmtime_r(&seconds, &t))
		str_addf(out, "Date: %s, %02d %s %d %02d:%02d:%02d +0000\n", days[t.tm_wday],
			t.tm_mday, months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min,
			t.tm_sec);
	str_addf(out, "Message-ID: <gua.%s.%s.%lld@%s>\n", id, notice_kind_names[n->kind],
		(long long)n->made_ms, host);
	str_addf(out, "References: <gua.%s@%s>\n", id, host);
	str_add(out, "Auto-Submitted: auto-generated\n"
		     "MIME-Version: 1.0\n"
		     "Content-Type: text/plain; charset=utf-8\n"
		     "Content-Transfer-Encoding: 8bit\n\n");
	str_add(out, str_text(&job->text->body));
}

static enum delivery deliver_by_mail(const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	char to[ADDRESS_CAP];
	struct str text = { 0 };
	struct err e = { 0 };
	struct child_result r;
	const char *user = job->notice->user, *domain = job->config->mail_domain;
	if (!notice_is_plain_user(user)) {
		snprintf(why, CHANNEL_WHY_CAP,
			"the user name %s cannot be used as a mail address", user);
		return DELIVERY_NOBODY;
	}
	snprintf(to, sizeof(to), "%s%s%s", user, domain ? "@" : "", domain ? domain : "");
	channel_mail_text(&text, job, to);
	const char *argv[] = { job->config->sendmail, "-i", "-t", NULL };
	const struct child_command command = { .argv = argv,
		.input = str_text(&text),
		.input_len = text.len,
		.timeout_ms = job->config->timeout_ms };
	int rc = text.failed ? err_memory(&e) : child_run(&command, &r, &e);
	str_finish(&text);
	if (rc)
		str_copy(why, CHANNEL_WHY_CAP, e.text);
	else if (r.status != 0)
		child_result_text(why, CHANNEL_WHY_CAP, argv[0], &r);
	else
		snprintf(why, CHANNEL_WHY_CAP, "to %.200s", to);
	return rc == 0 && r.status == 0 ? DELIVERY_DONE : DELIVERY_FAILED;
}

/* gua-post has a deadline of its own, and is killed this long after it. */
enum { KILL_MS = 500, SECRET_MOST = 4096, HEADER_CAP = HMAC_HEX_CAP + 64 };

/* Writes "X-Gua-Signature: sha256=HEX", with which a receiver that knows the secret can
 * check that the message is ours. "" without a secret. */
static int sign(char header[HEADER_CAP], const struct channel_job *job, const struct str *body,
	struct err *e)
{
	struct file_content file = { 0 };
	char hex[HMAC_HEX_CAP];
	const char *path = job->config->webhook_secret;
	*header = '\0';
	if (!path)
		return 0;
	if (file_read_regular(path, SECRET_MOST, &file, e))
		return e->code;
	if (file.st.st_mode & S_IROTH) {
		free(file.data);
		return err_set(e, ERR_WORLD, "others can read the secret in %s; chmod o-r %s",
			path, path);
	}
	while (file.len && strchr("\r\n", file.data[file.len - 1]))
		file.len--;
	const struct hmac_key key = { file.data, file.len };
	sha256_hmac_hex(hex, &key, str_text(body), body->len);
	explicit_bzero(file.data, file.len);
	free(file.data);
	snprintf(header, HEADER_CAP, "X-Gua-Signature: sha256=%s", hex);
	return 0;
}

static int post(
	const struct channel_job *job, const char *path, struct child_result *r, struct err *e)
{
	struct str body = { 0 }, request = { 0 };
	char header[HEADER_CAP];
	const char *argv[] = { path, NULL };
	int64_t limit = job->config->timeout_ms;
	limit = limit < POST_LONGEST_MS ? limit : POST_LONGEST_MS;
	int rc = channel_webhook_body(&body, job, e);
	if (rc == 0)
		rc = sign(header, job, &body, e);
	if (rc == 0)
		rc = post_write(&request,
			&(struct post_request){ .timeout_ms = limit,
				.url = job->config->webhook_url,
				.header = header,
				.body = str_text(&body),
				.body_len = body.len },
			e);
	const struct child_command command = { .argv = argv,
		.env = job->post->env,
		.input = str_text(&request),
		.input_len = request.len,
		.timeout_ms = limit + KILL_MS };
	if (rc == 0)
		rc = child_run(&command, r, e);
	str_finish(&body);
	str_finish(&request);
	return rc;
}

static enum delivery deliver_by_webhook(
	const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	struct err e = { 0 };
	struct child_result r = { .status = -1 };
	const char *path = job->post ? job->post->path : NULL;
	int rc = path ? post(job, path, &r, &e)
		      : err_set(&e, ERR_WORLD,
				"the program gua-post, which sends webhooks, is not installed; "
				"build gua with libcurl");
	if (rc)
		str_copy(why, CHANNEL_WHY_CAP, e.text);
	else if (r.status == 0 || r.status == 1)
		str_copy(why, CHANNEL_WHY_CAP, r.output);
	else
		child_result_text(why, CHANNEL_WHY_CAP, "gua-post", &r);
	return rc == 0 && r.status == 0 ? DELIVERY_DONE : DELIVERY_FAILED;
}

/* Builds the JSON that each receiving service expects. */

/* Adds text in which no name notifies anybody and nothing closes a code fence: a zero-width
 * space follows an @ that would notify everybody, and a backtick becomes an apostrophe. */
static void add_calm(struct str *out, const char *text)
{
	static const char *const crowds[] = { "all", "channel", "everyone", "here" };
	for (; *text; text++) {
		str_add_bytes(out, *text == '`' ? "'" : text, 1);
		for (size_t i = 0; *text == '@' && i < sizeof(crowds) / sizeof(crowds[0]); i++)
			if (strncasecmp(text + 1, crowds[i], strlen(crowds[i])) == 0) {
				str_add(out, "\xe2\x80\x8b");
				break;
			}
	}
}

/* Adds the whole notice as a fenced code block, in which no character is markup and nothing
 * becomes a link; only the fence itself has a meaning. */
static void add_fenced(struct str *out, const struct channel_job *job)
{
	str_add(out, "```\n");
	add_calm(out, str_text(&job->text->subject));
	str_add(out, "\n\n");
	add_calm(out, str_text(&job->text->body));
	str_add(out, "```");
}

/* Slack replaces & < > before it looks for fences. */
static json_t *slack(const struct channel_job *job)
{
	struct str plain = { 0 }, text = { 0 };
	add_fenced(&plain, job);
	for (const char *at = str_text(&plain); *at; at++) {
		if (*at == '&')
			str_add(&text, "&amp;");
		else if (*at == '<')
			str_add(&text, "&lt;");
		else if (*at == '>')
			str_add(&text, "&gt;");
		else
			str_add_bytes(&text, at, 1);
	}
	json_t *object = json_pack("{s:s, s:b, s:b, s:b}", "text", str_text(&text),
		"link_names", 0, "unfurl_links", 0, "unfurl_media", 0);
	str_finish(&plain);
	str_finish(&text);
	return object;
}

static json_t *mattermost(const struct channel_job *job)
{
	struct str text = { 0 };
	add_fenced(&text, job);
	json_t *object = json_pack("{s:s,s:s}", "username", "gua", "text", str_text(&text));
	str_finish(&text);
	return object;
}

/* One line of a card. A TextBlock would be Markdown, in which a name can be a link; a
 * RichTextBlock is not. Without "entities", <at> notifies nobody. */
static json_t *card_line(const char *line, size_t len, bool subject)
{
	return json_pack("{s:s, s:s, s:[{s:s, s:s%, s:s}]}", "type", "RichTextBlock", "spacing",
		"None", "inlines", "type", "TextRun", "text", line, len,
		subject ? "weight" : "fontType", subject ? "Bolder" : "Monospace");
}

static json_t *teams(const struct channel_job *job)
{
	json_t *lines = json_array();
	const char *at = str_text(&job->text->subject);
	json_array_append_new(lines, card_line(at, strlen(at), true));
	at = str_text(&job->text->body);
	for (size_t len; *at; at += len + (at[len] == '\n')) {
		len = strcspn(at, "\n");
		/* An empty line would have no height. */
		json_array_append_new(lines, card_line(len ? at : " ", len ? len : 1, false));
	}
	return json_pack("{s:s, s:[{s:s, s:{s:s, s:s, s:o}}]}", "type", "message",
		"attachments", "contentType", "application/vnd.microsoft.card.adaptive",
		"content", "type", "AdaptiveCard", "version", "1.4", "body", lines);
}

static const struct {
	const char *kind;
	json_t *(*make)(const struct channel_job *job);
} makers[] = {
	{ "slack", slack },
	{ "mattermost", mattermost },
	{ "teams", teams },
};

int channel_webhook_body(struct str *out, const struct channel_job *job, struct err *e)
{
	const struct notice_extra extra = { str_text(&job->text->subject),
		str_text(&job->text->body) };
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		if (strcmp(makers[i].kind, job->config->webhook_kind) != 0)
			continue;
		json_t *object = makers[i].make(job);
		char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
		str_add(out, text ? text : "");
		json_decref(object);
		free(text);
		return text && !out->failed ? 0 : err_memory(e);
	}
	return notice_to_json(job->notice, &extra, out, e);
}

#define NEEDS(member) .key = #member, .value = offsetof(struct config_notices, member)
const struct channel_kind channel_kinds[CHANNELS] = {
	[CHANNEL_TERMINAL] = { "terminal", .deliver = deliver_to_terminal, .counts = true },
	[CHANNEL_MAIL] = { "mail", .deliver = deliver_by_mail, .counts = true,
		.everybody = true, .alarms = true },
	[CHANNEL_WEBHOOK] = { "webhook", .deliver = deliver_by_webhook, .counts = true,
		.everybody = true, .alarms = true, NEEDS(webhook_url) },
	[CHANNEL_COMMAND] = { "command", .deliver = deliver_by_command, .counts = true,
		.everybody = true, .alarms = true, NEEDS(command) },
	[CHANNEL_LOGIN] = { "login", .deliver = deliver_by_login },
};
