/* Notices: as JSON, as texts by templates, and as what each channel sends. */
#include "test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/tell.h"
#include "policy/channel.h"
#include "policy/notice.h"

#define MINUTE INT64_C(60000)
#define NINE INT64_C(1794992400000) /* Wed 2026-11-18 09:00 UTC */

static struct notice example(enum notice_kind kind)
{
	struct notice n;
	notice_init(&n, kind);
	strcpy(n.session, "41233.77");
	strcpy(n.rule, "batch");
	strcpy(n.user, "alice");
	n.uid = 1001;
	strcpy(n.host, "gpu07");
	strcpy(n.what, "experiments/exp1.ipynb");
	strcpy(n.command, "python train.py");
	n.pid = 41233;
	strcpy(n.cards, "3");
	n.mem_bytes = INT64_C(38) << 30;
	n.made_ms = NINE + 60 * MINUTE;
	n.idle_since_ms = NINE;
	n.idle_ms = 60 * MINUTE;
	n.next_ms = NINE + 105 * MINUTE;
	n.end_ms = NINE + 120 * MINUTE;
	strcpy(n.release, "kill 41233");
	strcpy(n.keep, "gua keep 41233 --for 4h --reason TEXT");
	strcpy(n.explain, "gua enforce explain 41233");
	return n;
}

static struct notice_text expand(const struct notice *n, const char *template)
{
	struct notice_text t;
	struct err e = { 0 };
	const struct notice_template from = { "warning.txt", template, strlen(template) };
	assert_int_equal(notice_expand(&t, n, &from, &e), 0);
	return t;
}

static void test_json(void **state)
{
	(void)state;
	struct notice n = example(NOTICE_FINAL), back;
	struct str json = { 0 };
	struct err e = { 0 };
	n.cost = 12.5;
	assert_int_equal(notice_to_json(&n, NULL, &json, &e), 0);
	assert_int_equal(notice_from_json(&back, json.data, json.len, &e), 0);
	assert_true(isnan(back.idle_gpu_hours) && isnan(n.idle_gpu_hours));
	back.idle_gpu_hours = n.idle_gpu_hours = 0;
	assert_memory_equal(&n, &back, sizeof(n));
	str_finish(&json);
	static const char *const bad[] = { "", "{}", "[]", "{\"kind\":\"x\"}", "{\"kind\":1}",
		"{\"kind\":\"final\"" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(
			notice_from_json(&back, bad[i], strlen(bad[i]), &e), ERR_WORLD);
	/* Wrong types are unknown, and texts are made safe. */
	const char *odd =
		"{\"kind\":\"test\",\"pid\":\"x\",\"cost\":[],\"user\":\"a\\u001bb\"}";
	assert_int_equal(notice_from_json(&back, odd, strlen(odd), &e), 0);
	assert_int_equal(back.pid, -1);
	assert_string_equal(back.user, "a\\x1Bb");
}

static void test_names(void **state)
{
	(void)state;
	struct notice n = example(NOTICE_WARNING);
	struct notice_text t = expand(&n, "Subject: {host} {cards}\n\n{user} {{x} {memory} "
					  "{idle}\nno {cost} here\n\nlast "
					  "\t\r\n");
	assert_string_equal(str_text(&t.subject), "gpu07 3");
	assert_string_equal(str_text(&t.body), "alice {x} 38.0 GiB 1 h 0 min\n\nlast\n");
	notice_text_finish(&t);
	n.cost = 3.456;
	strcpy(n.currency, "EUR");
	t = expand(&n, "Subject: x\n\nno {cost} here");
	assert_string_equal(str_text(&t.body), "no 3.46 EUR here\n");
	notice_text_finish(&t);
}

static void test_next(void **state)
{
	(void)state;
	struct notice n = example(NOTICE_WARNING);
	struct notice_text t = expand(&n, "Subject: x\n\n{next}");
	assert_string_equal(str_text(&t.body),
		"another notice at Wed 2026-11-18 10:45; the "
		"session will be ended at Wed 2026-11-18 "
		"11:00 at the earliest, unless it uses the card\n");
	notice_text_finish(&t);
	n.next_ms = n.end_ms = -1;
	t = expand(&n, "Subject: x\n\n{next}");
	assert_string_equal(str_text(&t.body),
		"nothing will be ended; please release what you do not need\n");
	notice_text_finish(&t);
}

static void is_refused(const char *template, const char *why)
{
	struct notice n = example(NOTICE_WARNING);
	struct notice_text t;
	struct err e = { 0 };
	const struct notice_template from = { "warning.txt", template, strlen(template) };
	assert_int_equal(notice_expand(&t, &n, &from, &e), ERR_USAGE);
	assert_string_equal(e.text, why);
}

static void test_wrong_templates(void **state)
{
	(void)state;
	is_refused("Subject: x\n\nfine\nHi {usr}\n",
		"warning.txt:4: there is no {usr}; did you mean {user}?");
	is_refused("Subject: {zzzzzzz}\n\nx\n", "warning.txt:1: there is no {zzzzzzz}");
	is_refused("Subject: x\n\nHi {user\n",
		"warning.txt:3: a { has no }; write {{ for a brace");
	is_refused("Hello\n\nx\n", "warning.txt:1: the first line must be 'Subject: ...'");
	is_refused("Subject: x\nx\n", "warning.txt:2: the second line must be empty");
	is_refused("Subject: x\n", "warning.txt: there is no text");
	is_refused("", "warning.txt: there is no text");
	is_refused("Subject: x\n\nall: {list}\n",
		"warning.txt:3: {list} must be alone in its line");
}

/* Names of processes and templates reach terminals and mails: no control character does. */
static void test_hostile_values(void **state)
{
	(void)state;
	struct notice n = example(NOTICE_WARNING);
	strcpy(n.command, "py\033]0;x\007\r\nBcc: all@example.org\n\nx{user}");
	struct notice_text t = expand(&n, "Subject: your {command}\n\n\033[2Jyour {command}\n");
	assert_null(strpbrk(str_text(&t.subject), "\r\n\033\007"));
	assert_non_null(strstr(str_text(&t.subject), "x{user}"));
	assert_null(strpbrk(str_text(&t.body), "\r\033\007"));
	const struct config_notices config = { .mail_from = "gua@example.org\nBcc: x" };
	const struct channel_job job = { &n, &t, &config, NULL };
	struct str mail = { 0 };
	channel_mail_text(&mail, &job, "alice@example.org\nBcc: y");
	char *end = strstr(mail.data, "\n\n");
	assert_non_null(end);
	*end = '\0';
	assert_null(strstr(mail.data, "\nBcc"));
	str_finish(&mail);
	notice_text_finish(&t);
}

static size_t lines_in(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void test_built_in_texts(void **state)
{
	(void)state;
	for (int kind = 0; kind < NOTICE_KINDS; kind++) {
		struct notice n = example((enum notice_kind)kind);
		struct notice_text t;
		struct err e = { 0 };
		n.count = 3;
		n.freed_bytes = 1 << 30;
		n.cost = 2;
		strcpy(n.currency, "EUR");
		strcpy(n.result, "done");
		assert_int_equal(notice_write(&t, &n, "/nonexistent", &e), 0);
		assert_true(lines_in(str_text(&t.body)) <= 15);
		assert_true(t.subject.len > 0 && t.subject.len < 100);
		assert_null(strchr(str_text(&t.body), '{'));
		notice_text_finish(&t);
	}
}

/* What a person reads: what is held, since when, what it cost, what comes, how to release it
 * and how to keep it. */
static void test_a_built_in_text(void **state)
{
	(void)state;
	struct notice n = example(NOTICE_WARNING);
	struct notice_text t;
	struct err e = { 0 };
	n.idle_gpu_hours = 1;
	assert_int_equal(notice_write(&t, &n, "/nonexistent", &e), 0);
	assert_string_equal(str_text(&t.subject),
		"[gua] gpu07: you have held card 3 idle for 1 h 0 min: "
		"experiments/exp1.ipynb");
	assert_string_equal(str_text(&t.body),
		"Your python train.py (pid 41233) holds 38.0 GiB on card 3 of gpu07\n"
		"and has not used it since Wed 2026-11-18 09:00.\n"
		"What happens next: another notice at Wed 2026-11-18 10:45; the session will "
		"be ended "
		"at Wed 2026-11-18 11:00 at the earliest, unless it uses the card\n"
		"Release it: kill 41233\n"
		"Keep it:    gua keep 41233 --for 4h --reason TEXT\n"
		"Held idle so far: 1.0 GPU-hours\n"
		"What it is: experiments/exp1.ipynb\n"
		"Why: rule batch; 'gua enforce explain 41233' shows the evidence\n");
	notice_text_finish(&t);
	n.kind = NOTICE_FINAL;
	n.cost = 2.5;
	strcpy(n.currency, "EUR");
	strcpy(n.kept, "until Wed 2026-11-18 08:00 (data)");
	assert_int_equal(notice_write(&t, &n, "/nonexistent", &e), 0);
	assert_string_equal(str_text(&t.body),
		"Your python train.py (pid 41233) will be ended at Wed 2026-11-18 11:00. Save "
		"your work.\n"
		"It holds 38.0 GiB on card 3 of gpu07, unused since Wed 2026-11-18 09:00.\n"
		"If it uses the card before then, or you keep it, it will not be ended.\n"
		"Release it: kill 41233\n"
		"Keep it:    gua keep 41233 --for 4h --reason TEXT\n"
		"Held idle so far: 1.0 GPU-hours, 2.50 EUR\n"
		"What it is: experiments/exp1.ipynb\n"
		"Kept before: until Wed 2026-11-18 08:00 (data); 'gua keep' lists what you "
		"keep\n"
		"Why: rule batch; 'gua enforce explain 41233' shows the evidence\n");
	notice_text_finish(&t);
}

/* A template with a mistake is reported, and the notice goes out all the same. */
static void test_own_templates(void **state)
{
	(void)state;
	char directory[] = "/tmp/gua-notices-XXXXXX", path[64];
	struct notice n = example(NOTICE_FINAL);
	struct notice_text t;
	struct err e = { 0 };
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/final.txt", directory);
	FILE *file = fopen(path, "w");
	fputs("Subject: ours\n\nHi {user}\n", file);
	fclose(file);
	assert_int_equal(notice_write(&t, &n, directory, &e), 0);
	assert_string_equal(str_text(&t.body), "Hi alice\n");
	notice_text_finish(&t);
	file = fopen(path, "w");
	fputs("Subject: ours\n\nHi {nobody}\n", file);
	fclose(file);
	assert_int_equal(notice_write(&t, &n, directory, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "/final.txt:3: there is no {nobody}"));
	assert_non_null(strstr(str_text(&t.body), "Save your work"));
	notice_text_finish(&t);
	unlink(path);
	rmdir(directory);
}

static void test_mail(void **state)
{
	(void)state;
	struct notice n = example(NOTICE_WARNING);
	struct notice_text t = expand(&n, "Subject: {host}\n\nbody\n.\nmore\n");
	const struct config_notices config = { .mail_from = "gua@x.org",
		.mail_reply_to = "help@x.org" };
	const struct channel_job job = { &n, &t, &config, NULL };
	struct str mail = { 0 };
	channel_mail_text(&mail, &job, "alice@x.org");
	assert_string_equal(mail.data,
		"From: gua@x.org\nTo: alice@x.org\nReply-To: help@x.org\nSubject: gpu07\n"
		"Date: Wed, 18 Nov 2026 10:00:00 +0000\n"
		"Message-ID: <gua.db033423e91976f4.warning.1794996000000@gpu07>\n"
		"References: <gua.db033423e91976f4@gpu07>\n"
		"Auto-Submitted: auto-generated\nMIME-Version: 1.0\n"
		"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n"
		"body\n.\nmore\n");
	str_finish(&mail);
	notice_text_finish(&t);
	strcpy(n.host, "g\xc3\xbc");
	t = expand(&n, "Subject: {host}\n\nbody\n");
	channel_mail_text(&mail, &job, "alice@x.org");
	assert_non_null(strstr(mail.data, "\nSubject: =?UTF-8?B?Z8O8?=\n"));
	str_finish(&mail);
	notice_text_finish(&t);
}

static void test_terminal(void **state)
{
	(void)state;
	struct notice n = example(NOTICE_WARNING);
	struct notice_text t = expand(&n, "Subject: x\n\n1\n\n2\xc2\x9b"
					  "31m\n3\n4\n5\n6\n7\n");
	const struct channel_job job = { &n, &t, NULL, NULL };
	struct str out = { 0 };
	channel_terminal_text(&out, &job);
	assert_string_equal(out.data, "\r\n1\r\n2\\xC2\\x9B31m\r\n3\r\n4\r\n5\r\n6\r\n");
	str_finish(&out);
	notice_text_finish(&t);
}

static json_t *webhook(const struct notice *n, const char *kind)
{
	struct notice_text t =
		expand(n, "Subject: <{command}> & ```\n\n<!channel> {command}\n");
	struct config_notices config = { .webhook_kind = kind };
	const struct channel_job job = { n, &t, &config, NULL };
	struct str body = { 0 };
	struct err e = { 0 };
	assert_int_equal(channel_webhook_body(&body, &job, &e), 0);
	json_t *json = json_loads(body.data, 0, NULL);
	assert_non_null(json);
	str_finish(&body);
	notice_text_finish(&t);
	return json;
}

static void test_webhooks(void **state)
{
	(void)state;
	struct notice n = example(NOTICE_WARNING);
	strcpy(n.command, "a\"b");
	json_t *json = webhook(&n, "generic");
	assert_string_equal(json_string_value(json_object_get(json, "kind")), "warning");
	assert_int_equal(json_integer_value(json_object_get(json, "pid")), 41233);
	assert_string_equal(
		json_string_value(json_object_get(json, "text")), "<!channel> a\"b\n");
	assert_true(json_is_null(json_object_get(json, "cost")));
	json_decref(json);
	json = webhook(&n, "slack");
	const char *text = json_string_value(json_object_get(json, "text"));
	assert_string_equal(text, "```\n&lt;a\"b&gt; &amp; '''\n\n&lt;!channel&gt; a\"b\n```");
	assert_true(json_is_false(json_object_get(json, "link_names")));
	json_decref(json);
	json = webhook(&n, "mattermost");
	text = json_string_value(json_object_get(json, "text"));
	assert_string_equal(text, "```\n<a\"b> & '''\n\n<!channel> a\"b\n```");
	json_decref(json);
}

/* The text of each line of a card, which must not be Markdown. */
static void read_card(json_t *json, struct str *out)
{
	json_t *attachment = json_array_get(json_object_get(json, "attachments"), 0);
	json_t *body = json_object_get(json_object_get(attachment, "content"), "body");
	size_t i;
	json_t *block;
	assert_true(json_array_size(body) > 1);
	json_array_foreach(body, i, block)
	{
		json_t *run = json_array_get(json_object_get(block, "inlines"), 0);
		assert_string_equal(
			json_string_value(json_object_get(block, "type")), "RichTextBlock");
		assert_string_equal(json_string_value(json_object_get(run, "type")), "TextRun");
		str_addf(out, "%s\n", json_string_value(json_object_get(run, "text")));
	}
}

/* A command's name can be anything; in a chat it calls nobody and is no link. */
static void test_hostile_names_in_chats(void **state)
{
	(void)state;
	static const char *const kinds[] = { "slack", "mattermost", "teams" };
	static const char hostile[] = "@channel @Here @ALL <!everyone> <@U1> [x](http://evil) "
				      "<http://evil|x> ```\n``` **b** <at>x</at>";
	for (size_t i = 0; i < 3; i++) {
		struct notice n = example(NOTICE_FINAL);
		struct str text = { 0 };
		strcpy(n.command, hostile);
		json_t *json = webhook(&n, kinds[i]);
		if (i == 2)
			read_card(json, &text);
		else
			str_add(&text, json_string_value(json_object_get(json, "text")));
		if (i != 2) {
			assert_null(strcasestr(str_text(&text), "@channel"));
			assert_null(strcasestr(str_text(&text), "@here"));
			assert_null(strcasestr(str_text(&text), "@all"));
			assert_non_null(strstr(str_text(&text), "@\xe2\x80\x8b"
								"channel"));
			/* One fence around all, and none within. */
			assert_memory_equal(str_text(&text), "```\n", 4);
			assert_ptr_equal(strstr(str_text(&text) + 3, "```"),
				str_text(&text) + text.len - 3);
		}
		if (i == 0)
			assert_null(strpbrk(str_text(&text), "<>"));
		assert_null(strpbrk(str_text(&text), "\r\033"));
		str_finish(&text);
		json_decref(json);
	}
}

/* Every part has its line, however long its names are, and on a terminal, too. */
static void test_digest(void **state)
{
	(void)state;
	struct notice digest, part = example(NOTICE_WARNING);
	struct notice_text t;
	struct str out = { 0 };
	struct err e = { 0 };
	notice_init(&digest, NOTICE_DIGEST);
	notice_add_part(&digest, &part);
	part.kind = NOTICE_FINAL;
	part.end_ms -= MINUTE;
	part.release[0] = '\0';
	notice_add_part(&digest, &part);
	part.kind = NOTICE_ENDED;
	strcpy(part.result, "it ended\n");
	notice_add_part(&digest, &part);
	assert_string_equal(digest.list,
		"your experiments/exp1.ipynb (pid 41233) holds 38.0 GiB on card 3; unused "
		"since Wed 2026-11-18 09:00; it will be ended at Wed 2026-11-18 11:00 at the "
		"earliest, unless it uses the "
		"card; release it: kill 41233\n"
		"LAST NOTICE: your experiments/exp1.ipynb (pid 41233) will be ended at Wed "
		"2026-11-18 "
		"10:59; it holds 38.0 GiB on card 3, unused since Wed 2026-11-18 09:00\n"
		"your experiments/exp1.ipynb (pid 41233) was ended; it had held card 3 without "
		"using "
		"it since Wed 2026-11-18 09:00; it ended\\x0A\n");
	assert_int_equal(digest.count, 3);
	assert_int_equal(digest.end_ms, NINE + 119 * MINUTE);
	assert_string_equal(digest.user, "alice");
	memset(part.command, 'x', sizeof(part.command) - 1);
	memset(part.result, 'y', sizeof(part.result) - 1);
	for (int i = 0; i < NOTICE_PARTS_MOST; i++)
		notice_add_part(&digest, &part);
	assert_int_equal(digest.count, NOTICE_PARTS_MOST);
	assert_int_equal(lines_in(digest.list), NOTICE_PARTS_MOST);
	const struct notice_template mute = { "digest.txt", "Subject: x\n\n{count}\n", 21 };
	assert_int_equal(notice_expand(&t, &digest, &mute, &e), ERR_USAGE);
	assert_string_equal(e.text, "digest.txt: a digest needs the line {list}");
	assert_int_equal(notice_write(&t, &digest, "/nonexistent", &e), 0);
	const struct channel_job job = { &digest, &t, NULL, NULL };
	channel_terminal_text(&out, &job);
	assert_true(lines_in(str_text(&out)) > NOTICE_PARTS_MOST);
	str_finish(&out);
	assert_int_equal(notice_to_json(&digest, NULL, &out, &e), 0);
	json_t *json = json_loads(str_text(&out), 0, NULL);
	assert_int_equal(json_array_size(json_object_get(json, "list")), NOTICE_PARTS_MOST);
	json_decref(json);
	str_finish(&out);
	notice_text_finish(&t);
}

static void test_login(void **state)
{
	(void)state;
	char directory[] = "/tmp/gua-login-XXXXXX", path[64], why[CHANNEL_WHY_CAP];
	assert_non_null(mkdtemp(directory));
	struct notice n = example(NOTICE_WARNING);
	struct notice_text t = expand(&n, "Subject: x\n\ny\n");
	const struct config_notices config = { .login_directory = directory };
	const struct channel_job job = { &n, &t, &config, NULL };
	struct err e = { 0 };
	struct stat st;
	snprintf(path, sizeof(path), "%s/alice", directory);
	assert_int_equal(channel_kinds[CHANNEL_LOGIN].deliver(&job, why), DELIVERY_DONE);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(channel_login_clear(directory, "alice", &e), 0);
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(channel_login_clear(directory, "alice", &e), 0);
	static const char *const odd[] = { "../alice", "uid:12", "", "-x", ".x", "a b" };
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		strcpy(n.user, odd[i]);
		assert_int_equal(
			channel_kinds[CHANNEL_LOGIN].deliver(&job, why), DELIVERY_NOBODY);
	}
	assert_int_equal(rmdir(directory), 0);
	strcpy(n.user, "alice");
	assert_int_equal(channel_kinds[CHANNEL_LOGIN].deliver(&job, why), DELIVERY_FAILED);
	notice_text_finish(&t);
}

static void test_channels(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct config_notices c = { .channels = "mail, webhook" };
	assert_true(channel_configured(CHANNEL_MAIL, &c));
	assert_false(channel_configured(CHANNEL_WEBHOOK, &c));
	assert_false(channel_configured(CHANNEL_TERMINAL, &c));
	assert_int_equal(channel_check(&c, &e), ERR_USAGE);
	assert_string_equal(
		e.text, "channels: webhook needs webhook_url in the section [notices]");
	c.webhook_url = "https://x.org";
	assert_int_equal(channel_check(&c, &e), 0);
	assert_true(channel_configured(CHANNEL_WEBHOOK, &c));
	c.channels = "mail pigeon";
	assert_int_equal(channel_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "'pigeon' is not one of"));
	assert_true(channel_kinds[CHANNEL_MAIL].counts && !channel_kinds[CHANNEL_LOGIN].counts);
}

static void test_backoff(void **state)
{
	(void)state;
	static const int64_t minutes[] = { 0, 1, 2, 4, 8, 16, 32, 60, 60 };
	for (int64_t i = 0; i < 9; i++)
		assert_int_equal(tell_next_ms(i, NINE), NINE + minutes[i] * MINUTE);
	assert_int_equal(tell_next_ms(INT64_MAX, NINE), NINE + 60 * MINUTE);
	static const struct {
		int64_t waiting, sent;
		enum tell_plan plan;
	} cases[] = {
		{ 0, 0, TELL_WAIT },
		{ 1, 0, TELL_EACH },
		{ 2, 0, TELL_EACH },
		{ 3, 0, TELL_DIGEST },
		{ 2, 1, TELL_DIGEST },
		{ 1, 3, TELL_EACH },
		{ 2, 3, TELL_DIGEST },
		{ 1, 4, TELL_WAIT },
		{ 9, 5, TELL_WAIT },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			tell_decide(cases[i].waiting, cases[i].sent, 4), cases[i].plan);
}

int main(void)
{
	setenv("TZ", "UTC", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_wrong_templates),
		cmocka_unit_test(test_hostile_values),
		cmocka_unit_test(test_built_in_texts),
		cmocka_unit_test(test_a_built_in_text),
		cmocka_unit_test(test_own_templates),
		cmocka_unit_test(test_mail),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_webhooks),
		cmocka_unit_test(test_hostile_names_in_chats),
		cmocka_unit_test(test_digest),
		cmocka_unit_test(test_login),
		cmocka_unit_test(test_channels),
		cmocka_unit_test(test_backoff),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
