/* Judges how a query ended: each way has its sentence. */
#include "fleet/verdict.h"

#include <string.h>

#include "base/timetext.h"

/* Faults of the connection, and what to do about them. */
static const struct fault {
	CURLcode code;
	enum verdict verdict;
	const char *text;
} faults[] = {
	{ CURLE_COULDNT_RESOLVE_HOST, VERDICT_BAD, "there is no host of that name" },
	{ CURLE_COULDNT_CONNECT, VERDICT_AGAIN, "nothing accepts a connection there" },
	{ CURLE_PARTIAL_FILE, VERDICT_AGAIN,
		"the connection was closed before the whole answer had arrived" },
	{ CURLE_RECV_ERROR, VERDICT_AGAIN, "the connection broke while the answer arrived" },
	{ CURLE_SEND_ERROR, VERDICT_AGAIN, "the connection broke while the query was sent" },
	{ CURLE_GOT_NOTHING, VERDICT_AGAIN, "the connection was closed without an answer" },
	{ CURLE_UNSUPPORTED_PROTOCOL, VERDICT_BAD, "it does not speak HTTP" },
	{ CURLE_WEIRD_SERVER_REPLY, VERDICT_BAD, "it does not speak HTTP" },
	{ CURLE_HTTP2, VERDICT_AGAIN, "the connection broke while the answer arrived" },
	{ CURLE_PEER_FAILED_VERIFICATION, VERDICT_BAD,
		"its certificate is not trusted; --ca names a file with the authority" },
	{ CURLE_SSL_CERTPROBLEM, VERDICT_BAD,
		"the client's certificate or key cannot be used (--cert, --key)" },
	{ CURLE_SSL_CACERT_BADFILE, VERDICT_BAD, "the file of --ca cannot be used" },
	{ CURLE_SSL_CONNECT_ERROR, VERDICT_BAD, "TLS could not be set up" },
	{ CURLE_OUT_OF_MEMORY, VERDICT_BAD, ERR_MEMORY_TEXT },
};

/* A way that has no sentence of its own. */
static const struct fault *find_fault(CURLcode code)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (faults[i].code == code)
			return &faults[i];
	return NULL;
}

static enum verdict judge_fault(const struct outcome *o, struct err *e)
{
	const struct fault *fault = find_fault(o->code);
	char length[32];
	duration_option(length, sizeof(length), o->timeout_ms);
	if (o->code == CURLE_OPERATION_TIMEDOUT) {
		err_set(e, ERR_WORLD,
			"%s: no complete answer within %s; ask for a shorter time, or for more "
			"patience with --timeout",
			o->url, length);
		return VERDICT_BAD;
	}
	err_set(e, ERR_WORLD, "%s: %s", o->url,
		fault ? fault->text : curl_easy_strerror(o->code));
	return fault ? fault->verdict : VERDICT_BAD;
}

static enum verdict judge_redirect(const struct outcome *o, long status, struct err *e)
{
	char *to = NULL;
	curl_easy_getinfo(o->easy, CURLINFO_REDIRECT_URL, &to);
	err_set(e, ERR_WORLD,
		"%s: the engine redirects to %s (HTTP %ld), and gua follows no redirect, so "
		"that credentials go nowhere else; give that address",
		o->url, to ? to : "nowhere", status);
	return VERDICT_BAD;
}

/* What to do about a status. */
static const char *advice(long status)
{
	return status == 401   ? "; give --bearer-file or --basic-file"
	       : status == 403 ? "; the credentials are not allowed to do this"
	       : status == 404 ? "; the URL may need a path, such as /prometheus"
	       : status == 422 ? "; a shorter --since asks for less"
			       : "";
}

static enum verdict judge_status(const struct outcome *o, long status, struct err *e)
{
	bool passes = status == 429 || status == 502 || status == 503 || status == 504;
	const char *says = o->answer->error;
	if (*says)
		err_set(e, ERR_WORLD, "%s: the engine refused the query: %s (HTTP %ld%s%s)%s",
			o->url, says, status, *o->answer->error_type ? ", " : "",
			o->answer->error_type, advice(status));
	else
		err_set(e, ERR_WORLD, "%s: the engine answered with HTTP %ld%s", o->url, status,
			advice(status));
	return passes ? VERDICT_AGAIN : VERDICT_REFUSED;
}

static enum verdict judge_content(const struct outcome *o, struct err *e)
{
	char *type = NULL;
	curl_easy_getinfo(o->easy, CURLINFO_CONTENT_TYPE, &type);
	if (type && strstr(type, "html"))
		err_set(e, ERR_WORLD,
			"%s: the answer is a web page, not JSON; the URL may need a path, such "
			"as /prometheus",
			o->url);
	else
		err_set(e, ERR_WORLD, "%s: the answer is wrong: %s", o->url, o->wrong->text);
	return VERDICT_BAD;
}

enum verdict verdict_of(const struct outcome *o, struct err *e)
{
	long status = 0;
	curl_easy_getinfo(o->easy, CURLINFO_RESPONSE_CODE, &status);
	bool answered = o->code == CURLE_OK || o->code == CURLE_WRITE_ERROR;
	if (!answered)
		return judge_fault(o, e);
	if (status >= 300 && status < 400)
		return judge_redirect(o, status, e);
	if (status != 200)
		return judge_status(o, status, e);
	if (o->wrong->code || o->code == CURLE_WRITE_ERROR)
		return judge_content(o, e);
	if (!o->answer->success) {
		err_set(e, ERR_WORLD, "%s: the engine reports an error: %s", o->url,
			*o->answer->error ? o->answer->error : "it does not say which");
		return VERDICT_REFUSED;
	}
	return VERDICT_GOOD;
}
