/* Names of pods and containers, a line each: only characters that Kubernetes allows come out.
 */
#include "fuzz.h"

#include "proc/pods.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-./~";
	struct pods p;
	char *text = fuzz_text(data, size), *rest = text, *line;
	pods_init(&p, -1, true);
	while ((line = strsep(&rest, "\n")) != NULL)
		pods_add(&p, line, strlen(line));
	pods_sort(&p);
	for (size_t i = 0; i < p.n; i++) {
		CHECK(strspn(p.names[i].name, allowed) == strlen(p.names[i].name));
		CHECK(*p.names[i].name && strlen(p.names[i].name) < LABEL_CAP);
		CHECK(i == 0 || strcmp(p.names[i - 1].id, p.names[i].id) <= 0);
	}
	pods_finish(&p);
	free(text);
	return 0;
}
