/* Fills answers with error pages and error objects. */
#include "serve/answer.h"

#include "render/html.h"
#include "render/json.h"
#include "serve/page.h"

const char *answer_status_words(int status)
{
	static const struct {
		int status;
		const char *words;
	} known[] = {
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 421, "Misdirected Request" },
		{ 429, "Too Many Requests" },
		{ 503, "Service Unavailable" },
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].status == status)
			return known[i].words;
	return "Error";
}

void answer_fail(struct answer *a, const struct request *q, int status, const char *sentence)
{
	str_finish(&a->body);
	a->body = (struct str){ 0 };
	a->status = status;
	if (q->media == MEDIA_HTML) {
		a->type = TYPE_HTML;
		page_begin(
			&a->body, &(struct page_frame){ .title = answer_status_words(status) });
		html_addf(&a->body, "<p>%s</p>\n", sentence);
		page_end(&a->body);
	} else if (q->media == MEDIA_JSON) {
		a->type = TYPE_JSON;
		struct json j = { .out = &a->body, .lines = 1 };
		json_open(&j, NULL, '{');
		json_text(&j, "schema", "gua-error-1");
		json_number(&j, "status", status, 0);
		json_text(&j, "error", sentence);
		json_close(&j, '}');
	} else {
		a->type = TYPE_TEXT;
		str_addf(&a->body, "%s\n", sentence);
	}
}

enum { RETRY_S = 5 };

void answer_sentence(char dst[ERR_TEXT_CAP], const struct err *e)
{
	size_t n = 0;
	for (const char *c = e->text; *c; c++) {
		bool begins = c == e->text || c[-1] == ' ';
		if (begins && c[0] == '-' && c[1] == '-' && c[2] >= 'a' && c[2] <= 'z')
			c += 2;
		dst[n++] = *c;
	}
	dst[n] = '\0';
}

void answer_err(struct answer *a, const struct request *q, const struct err *e)
{
	char sentence[ERR_TEXT_CAP];
	int status = e->code == ERR_USAGE ? 400 : e->code == ERR_NOTHING ? 404 : 503;
	answer_sentence(sentence, e);
	answer_fail(a, q, status, status == 503 ? e->text : sentence);
	a->retry_s = status == 503 ? RETRY_S : 0;
}
