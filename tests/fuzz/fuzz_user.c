/* What users ask gua enforce, and what it answers, read from any bytes: numbers are in their
 * range, texts can be shown, what is written can be read back, and a line of /etc/subuid never
 * gives a uid to another range than its own. */
#include "fuzz.h"
#include "policy/user_talk.h"

static void check_shown(const char *text)
{
	char safe[4 * USER_ANSWER_MAX];
	str_escape(safe, sizeof(safe), text, strlen(text));
	CHECK(strcmp(safe, text) == 0);
}

static void try_request(const char *bytes, size_t len)
{
	struct user_request r, again;
	struct str out = { 0 };
	if (!user_talk_parse_request(&r, bytes, len))
		return;
	CHECK(len <= USER_REQUEST_MAX && r.ask < USER_ASKS && r.what.pid <= INT32_MAX);
	CHECK(r.ask == USER_ASK_LIST || r.what.pid > 0 || *r.what.lease);
	CHECK(r.ask != USER_ASK_KEEP || (r.for_ms > 0 && r.start_ticks > 0));
	CHECK(r.for_ms <= INT64_MAX / 2);
	check_shown(r.reason);
	user_talk_write_request(&out, &r);
	CHECK(!out.failed && out.len <= USER_REQUEST_MAX);
	CHECK(user_talk_parse_request(&again, out.data, out.len));
	CHECK(memcmp(&r, &again, sizeof(r)) == 0);
	str_finish(&out);
}

static void try_answer(const char *bytes, size_t len)
{
	struct user_answer a, again;
	struct str out = { 0 };
	if (user_talk_parse_answer(&a, bytes, len)) {
		check_shown(a.why);
		for (size_t i = 0; i < a.n_kept; i++) {
			CHECK((a.kept[i].what.pid > 0 || *a.kept[i].what.lease) &&
				a.kept[i].what.pid <= INT32_MAX);
			check_shown(a.kept[i].reason);
		}
		user_talk_write_answer(&out, &a);
		if (out.len <= USER_ANSWER_MAX) {
			CHECK(user_talk_parse_answer(&again, out.data, out.len));
			CHECK(again.ok == a.ok && again.n_kept == a.n_kept);
			CHECK(strcmp(str_text(&again.text), str_text(&a.text)) == 0);
			user_talk_finish_answer(&again);
		}
	}
	user_talk_finish_answer(&a);
	str_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	try_request(bytes, size);
	try_answer(bytes, size);
	uint32_t owner = user_talk_owner(bytes, size, 165536);
	CHECK(owner > 0 && owner <= 165536);
	return 0;
}
