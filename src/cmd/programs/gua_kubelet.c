/* gua-kubelet: asks the kubelet once which pods have devices, for gua-lease, and ends. It
 * writes the answer, a message of protocol buffers, to standard output; or what failed to
 * standard error, with exit status 1. All of the network is curl's: gRPC over a unix socket is
 * a POST of HTTP/2. */
#include <curl/curl.h>

#include "base/base.h"

enum { ANSWER_MAX = 64 << 20, FRAME_HEAD = 5, UNIMPLEMENTED = 12 };

struct answer {
	struct str body;
	int status; /* grpc-status; -1: none */
	char message[128];
};

static size_t take_body(char *bytes, size_t size, size_t n, void *context)
{
	struct answer *a = context;
	if (a->body.len + size * n > ANSWER_MAX)
		return 0;
	str_add_bytes(&a->body, bytes, size * n);
	return a->body.failed ? 0 : size * n;
}

/* Headers and trailers: a call that failed at once has no body, and its status in headers. */
static size_t take_header(char *bytes, size_t size, size_t n, void *context)
{
	static const char status[] = "grpc-status:", message[] = "grpc-message:";
	struct answer *a = context;
	size_t len = size * n;
	char line[256];
	snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : sizeof(line) - 1),
		bytes);
	line[strcspn(line, "\r\n")] = '\0';
	if (strncmp(line, status, sizeof(status) - 1) == 0)
		a->status = atoi(line + sizeof(status) - 1);
	else if (strncmp(line, message, sizeof(message) - 1) == 0)
		str_escape(a->message, sizeof(a->message), line + sizeof(message) - 1,
			strlen(line + sizeof(message) - 1));
	return len;
}

/* An empty request: not compressed, no bytes. */
static CURLcode ask(
	CURL *curl, const char *socket, const char *url, long timeout_ms, struct answer *a)
{
	static const char request[FRAME_HEAD] = { 0 };
	struct curl_slist *headers = curl_slist_append(NULL, "content-type: application/grpc");
	struct curl_slist *all = headers ? curl_slist_append(headers, "te: trailers") : NULL;
	CURLcode bad = all ? CURLE_OK : CURLE_OUT_OF_MEMORY;
	a->status = -1;
	str_clear(&a->body);
#define SET(option, value) bad = bad ? bad : curl_easy_setopt(curl, option, value)
	SET(CURLOPT_URL, url);
	SET(CURLOPT_PROTOCOLS_STR, "http");
	SET(CURLOPT_UNIX_SOCKET_PATH, socket);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	SET(CURLOPT_FRESH_CONNECT, 1L); /* each call is the only one of its connection */
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_TIMEOUT_MS, timeout_ms);
	SET(CURLOPT_HTTPHEADER, all);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_POSTFIELDS, request);
	SET(CURLOPT_POSTFIELDSIZE, (long)sizeof(request));
	SET(CURLOPT_WRITEFUNCTION, take_body);
	SET(CURLOPT_WRITEDATA, (void *)a);
	SET(CURLOPT_HEADERFUNCTION, take_header);
	SET(CURLOPT_HEADERDATA, (void *)a);
#undef SET
	if (!bad)
		bad = curl_easy_perform(curl);
	curl_slist_free_all(headers);
	return bad;
}

int main(int argc, char **argv)
{
	struct answer a = { .status = -1 };
	file_hold_standard();
	long timeout_ms = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	if (timeout_ms <= 0) {
		fputs("usage: gua-kubelet SOCKET MILLISECONDS\n\ngua lease watch kubelet "
		      "starts this program; see man gua-lease.\n",
			stderr);
		return 2;
	}
	CURL *curl = curl_easy_init();
	CURLcode code = CURLE_OUT_OF_MEMORY;
	if (curl)
		code = ask(curl, argv[1], "http://localhost/v1.PodResourcesLister/List",
			timeout_ms, &a);
	/* Before Kubernetes 1.20. The fields that are needed are the same. */
	if (code == CURLE_OK && a.status == UNIMPLEMENTED)
		code = ask(curl, argv[1], "http://localhost/v1alpha1.PodResourcesLister/List",
			timeout_ms, &a);
	/* The message, if the body is one that is not compressed, as its first bytes say. */
	const unsigned char *b = (const unsigned char *)a.body.data;
	size_t have = a.body.len < FRAME_HEAD ? 0 : a.body.len - FRAME_HEAD;
	int status = 1;
	if (code != CURLE_OK)
		fprintf(stderr, "%s\n", curl_easy_strerror(code));
	else if (a.status != 0)
		fprintf(stderr, "the kubelet answered with status %d:%s\n", a.status,
			a.message);
	else if (a.body.len < FRAME_HEAD || b[0] != 0 ||
		 ((size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4]) != have)
		fputs("the kubelet's answer is cut\n", stderr);
	else
		status = fwrite(b + FRAME_HEAD, 1, have, stdout) != have || fflush(stdout) != 0;
	curl_easy_cleanup(curl);
	str_finish(&a.body);
	return status;
}
