/* Sends mail through sendmail's interface, which every mail server has. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/child.h"
#include "base/hmac.h"
#include "policy/channel.h"

enum { ADDRESS_CAP = 320, ID_CAP = 17, WORD_BYTES = 42 };

/* A name for the thread of mails about one session: a hash, because a key may be anything. */
static void thread_id(char dst[ID_CAP], const struct notice *n)
{
	unsigned char digest[SHA256_SIZE];
	char key[LABEL_CAP + NOTICE_HOST_CAP + 32];
	snprintf(key, sizeof(key), "%s %s %lld", n->host, n->session,
		(long long)n->idle_since_ms);
	sha256(digest, key, strlen(key));
	for (size_t i = 0; i < ID_CAP / 2; i++)
		snprintf(dst + 2 * i, 3, "%02x", digest[i]);
}

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

/* A header's text, without line breaks: ASCII as it is, else as words of RFC 2047, each of
 * whole characters. */
static void add_header(struct str *out, const char *name, const char *text)
{
	char safe[1024];
	size_t len = text_escape(safe, sizeof(safe), text, strlen(text));
	str_addf(out, "%s:", name);
	if (text_plain(safe) == len)
		str_addf(out, " %s", safe);
	for (size_t at = 0, n; text_plain(safe) != len && at < len; at += n) {
		unsigned code;
		for (n = 0; at + n < len;) {
			size_t step = utf8_char(safe + at + n, len - at - n, &code);
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

static void add_date(struct str *out, int64_t ms)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
		"Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t seconds = (time_t)(ms / 1000);
	struct tm t;
	if (ms < 0 || !gmtime_r(&seconds, &t))
		return;
	str_addf(out, "Date: %s, %02d %s %d %02d:%02d:%02d +0000\n", days[t.tm_wday], t.tm_mday,
		months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

/* The host as a part of a message's id: plain letters only. */
static void id_host(char *dst, size_t cap, const char *host)
{
	size_t n = 0;
	for (const char *p = host; *p && n + 1 < cap; p++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-",
			    *p))
			dst[n++] = *p;
	dst[n] = '\0';
	if (!n)
		text_copy(dst, cap, "localhost");
}

void channel_mail_text(struct str *out, const struct channel_job *job, const char *to)
{
	const struct notice *n = job->notice;
	const struct config_notices *c = job->config;
	char id[ID_CAP], host[NOTICE_HOST_CAP];
	thread_id(id, n);
	id_host(host, sizeof(host), n->host);
	if (c->mail_from)
		add_header(out, "From", c->mail_from);
	add_header(out, "To", to);
	if (c->mail_reply_to)
		add_header(out, "Reply-To", c->mail_reply_to);
	add_header(out, "Subject", str_text(&job->text->subject));
	add_date(out, n->made_ms);
	str_addf(out, "Message-ID: <gua.%s.%s.%lld@%s>\n", id, notice_kind_names[n->kind],
		(long long)n->made_ms, host);
	str_addf(out, "References: <gua.%s@%s>\n", id, host);
	str_add(out, "Auto-Submitted: auto-generated\n"
		     "MIME-Version: 1.0\n"
		     "Content-Type: text/plain; charset=utf-8\n"
		     "Content-Transfer-Encoding: 8bit\n\n");
	str_add(out, str_text(&job->text->body));
}

static bool find_address(char dst[ADDRESS_CAP], const struct channel_job *job)
{
	const char *user = job->notice->user, *domain = job->config->mail_domain;
	if (!notice_is_plain_user(user))
		return false;
	snprintf(dst, ADDRESS_CAP, "%s%s%s", user, domain ? "@" : "", domain ? domain : "");
	return true;
}

enum delivery channel_mail(const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	char to[ADDRESS_CAP];
	struct str text = { 0 };
	struct err e = { 0 };
	struct child_result r;
	if (!find_address(to, job)) {
		snprintf(why, CHANNEL_WHY_CAP, "%s is not a name that has an address",
			job->notice->user);
		return DELIVERY_NOBODY;
	}
	channel_mail_text(&text, job, to);
	const char *argv[] = { job->config->sendmail, "-i", "-t", NULL };
	const struct child_command command = { .argv = argv,
		.input = str_text(&text),
		.input_len = text.len,
		.timeout_ms = job->config->timeout_ms };
	int rc = text.failed ? err_memory(&e) : child_run(&command, &r, &e);
	str_finish(&text);
	if (rc)
		text_copy(why, CHANNEL_WHY_CAP, e.text);
	else if (r.status != 0)
		child_result_text(why, CHANNEL_WHY_CAP, argv[0], &r);
	else
		snprintf(why, CHANNEL_WHY_CAP, "to %.200s", to);
	return rc == 0 && r.status == 0 ? DELIVERY_DONE : DELIVERY_FAILED;
}
