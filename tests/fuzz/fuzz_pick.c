/* The wish in the ticket of a waiting pick, and /proc/locks. */
#include "fuzz.h"

#include <math.h>
#include <sys/sysmacros.h>

#include "pick/pick.h"
#include "proc/proc.h"

/* What was read is written and read again: it must be the same. */
static void check_wish(const char *bytes, size_t size)
{
	struct pick_ask ask, again;
	struct str text = { 0 };
	if (!pick_ask_parse(bytes, size, &ask))
		return;
	CHECK(ask.wish.n >= 1 && ask.wish.n <= PICK_MAX_CARDS);
	CHECK(ask.wish.min_free_bytes >= -1 && ask.wish.free_for_ms >= 0);
	CHECK(isnan(ask.wish.max_util_pct) ||
		(ask.wish.max_util_pct >= 0 && ask.wish.max_util_pct <= 100));
	pick_ask_names(&ask, "GPU-a");
	pick_wish_add(&text, &ask.wish, ask.cards);
	if (text.len < PICK_WISH_CAP) {
		CHECK(pick_ask_parse(text.data, text.len, &again));
		CHECK(again.wish.n == ask.wish.n && strcmp(again.cards, ask.cards) == 0);
	}
	str_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct file_id file = { .device = makedev(0xfe, 0), .inode = 10953662 };
	char *locks = fuzz_text(data, size);
	int64_t pid = proc_parse_locks(locks, &file);
	free(locks);
	CHECK(pid == -1 || (pid > 0 && pid <= INT32_MAX));
	check_wish((const char *)data, size);
	return 0;
}
