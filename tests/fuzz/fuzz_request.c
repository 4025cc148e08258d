/* The request layer of the web server: the first line is the target of a request, the next ones
 * are its Host, Accept and Authorization headers. Nothing here may crash, and what is accepted
 * has only whole characters. */
#include "config/settings.h"
#include "fuzz.h"
#include "serve/gate.h"
#include "serve/route.h"

#define TOKEN "0123456789abcdef"

/* Cuts off the next line; "" at the end. */
static char *next_line(char **at)
{
	char *line = *at, *end = strchr(line, '\n');
	*at = end ? end + 1 : line + strlen(line);
	if (end)
		*end = '\0';
	return line;
}

static void check_text(const char *text)
{
	unsigned code_point;
	for (size_t len = strlen(text), n; len; text += n, len -= n) {
		n = str_utf8_char(text, len, &code_point);
		CHECK(n > 0 && code_point >= 0x20);
	}
}

static void try_request(const char *target)
{
	struct request q;
	struct err e = { 0 };
	struct report_params p;
	char *store[] = { NULL };
	struct store_list stores = { .paths = store };
	struct config config = { .currency = "USD" };
	struct serve_world world = { .stores = &stores, .config = &config };
	if (request_parse(&q, target, strlen(target), &e) == 0) {
		q.world = &world;
		q.now_ms = INT64_C(1793606400000);
		for (size_t i = 0; i < q.n_parts; i++)
			check_text(q.parts[i]);
		for (size_t i = 0; i < q.n_params; i++) {
			check_text(q.params[i].name);
			check_text(q.params[i].value);
		}
		route_find(route_table, &q);
		if (request_read_report(&p, &q, true, &e) == 0)
			CHECK(p.asked.question.since_ms <= p.asked.question.until_ms);
	}
	check_text(e.text);
	request_finish(&q);
}

static void try_client(const char *host, const char *accept, const char *authorization)
{
	static const char lines[] = "ann:" TOKEN "\nbob:" TOKEN "b";
	struct secrets *secrets = NULL;
	struct err e = { 0 };
	char user[SECRET_NAME_CAP];
	CHECK(secrets_parse(&secrets, "file", lines, strlen(lines), &e) == 0);
	const struct config_serve conf = { .host_names = "gpu" };
	const struct gate gate = { .conf = &conf, .secrets = secrets };
	const struct gate_client client = {
		.host = host, .authorization = authorization, .user = host
	};
	enum gate_verdict verdict = gate_check(&gate, &client, user);
	CHECK(verdict != GATE_PASS || *user);
	CHECK(verdict != GATE_PASS || strstr(authorization, "earer") ||
		strstr(authorization, "asic") || strstr(authorization, " "));
	request_accept(accept);
	secrets_free(secrets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *at = text, shown[64];
	const char *target = next_line(&at), *host = next_line(&at);
	const char *accept = next_line(&at), *authorization = next_line(&at);
	try_request(target);
	try_client(host, accept, authorization);
	request_target_shown(shown, sizeof(shown), target);
	CHECK(strlen(shown) < sizeof(shown));
	free(text);
	return 0;
}
