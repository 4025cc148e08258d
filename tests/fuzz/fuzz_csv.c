/* A CSV file, record by record. */
#include "fuzz.h"

#include "base/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct csv c;
	size_t line = 0;
	csv_start(&c, text, size);
	while (csv_next(&c)) {
		CHECK(c.n >= 1 && c.n <= CSV_MAX_FIELDS);
		CHECK(c.line > line && c.next_line >= c.line);
		line = c.line;
		for (size_t i = 0; i < c.n; i++)
			CHECK(c.fields[i] >= text &&
				c.fields[i] + strlen(c.fields[i]) <= text + size);
	}
	free(text);
	return 0;
}
