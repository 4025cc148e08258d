/* The escape that keeps foreign bytes off terminals. The first byte is the room there is. */
#include "fuzz.h"

static void check_escape(const char *bytes, size_t len, size_t cap)
{
	char *out = malloc(cap);
	CHECK(out);
	size_t n = str_escape(out, cap, bytes, len);
	CHECK(n < cap && out[n] == '\0' && strlen(out) == n);
	for (size_t i = 0; i < n; i++)
		CHECK((unsigned char)out[i] >= 0x20 && out[i] != 0x7f);
	unsigned code_point = 0;
	for (size_t i = 0; i < n;) {
		size_t step = str_utf8_char(out + i, n - i, &code_point);
		CHECK(step > 0);
		CHECK(code_point < 0x80 || code_point >= 0xA0);
		i += step;
	}
	check_safe(out);
	CHECK(str_columns(out) <= 2 * n);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	check_escape((const char *)data + 1, size - 1, (size_t)data[0] + 1);
	check_escape((const char *)data + 1, size - 1, 4 * size + 1);
	return 0;
}
