/* gua-post: posts one webhook for gua-enforce and ends. It reads the request from its standard
 * input (policy/post.h) and writes one line: what the server answered, or what failed. Exit
 * status 0: the server accepted it; 1: it did not. It is the only program of gua enforce that
 * links curl. */
#include <curl/curl.h>

#include "policy/post.h"

/* Ignores the body of the answer; without this, curl would print it. */
static size_t drop(char *bytes, size_t size, size_t n, void *context)
{
	(void)bytes;
	(void)context;
	return size * n;
}

/* Sends the request; true: the server accepted it. A URL may hold a secret, so no message names
 * it. */
static bool send_it(CURL *curl)
{
	long status = 0;
	CURLcode code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK)
		printf("the webhook failed: %s\n", curl_easy_strerror(code));
	else if (status >= 300 && status < 400)
		printf("the webhook answered with status %ld, a redirect, which is not "
		       "followed\n",
			status);
	else
		printf("the webhook answered with status %ld\n", status);
	return code == CURLE_OK && status >= 200 && status < 300;
}

/* Certificates are checked; a redirect is not followed, because the body is for the URL that
 * the administrator wrote. */
static bool post(const struct post_request *r)
{
	CURL *curl = curl_easy_init();
	struct curl_slist *first = curl_slist_append(NULL, "Content-Type: application/json");
	struct curl_slist *all =
		first && *r->header ? curl_slist_append(first, r->header) : first;
	CURLcode bad = curl && all ? CURLE_OK : CURLE_OUT_OF_MEMORY;
	bool done = false;
#define SET(option, value) bad = bad ? bad : curl_easy_setopt(curl, option, value)
	SET(CURLOPT_HTTPHEADER, all);
	SET(CURLOPT_URL, r->url);
	SET(CURLOPT_PROTOCOLS_STR, "https,http");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_POSTFIELDS, r->body);
	SET(CURLOPT_POSTFIELDSIZE, (long)r->body_len);
	SET(CURLOPT_WRITEFUNCTION, drop);
	SET(CURLOPT_USERAGENT, "gua");
#undef SET
	if (bad)
		puts("the webhook failed: " ERR_MEMORY_TEXT);
	else
		done = send_it(curl);
	curl_easy_cleanup(curl);
	curl_slist_free_all(first);
	return done;
}

int main(int argc, char **argv)
{
	static char bytes[POST_REQUEST_MOST + 1];
	struct post_request request;
	struct err e = { 0 };
	size_t len = 0;
	ssize_t n = argc > 1 || isatty(STDIN_FILENO) ? 0 : 1;
	(void)argv;
	file_hold_standard();
	while (n > 0 && len <= POST_REQUEST_MOST) {
		n = read(STDIN_FILENO, bytes + len, POST_REQUEST_MOST + 1 - len);
		len += n > 0 ? (size_t)n : 0;
		if (n < 0 && errno == EINTR)
			n = 1;
	}
	/* It may be too long, or not readable. */
	if (n != 0 || post_read(&request, bytes, len, &e) != 0) {
		fputs("usage: gua-post\n\ngua enforce starts this program, which posts a "
		      "notice to a webhook. It reads a\nrequest from standard input and is of "
		      "no use in a shell; see man gua-enforce.\n",
			stderr);
		return 2;
	}
	return post(&request) && fflush(stdout) == 0 ? 0 : 1;
}
