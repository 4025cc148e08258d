/* Numbers the true names in the order in which they are seen. */
#include "driver/capture/capture_secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

unsigned nvml_secrets_number(struct nvml_secrets *s, int kind, const char *text, size_t len)
{
	unsigned last = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (s->names[i].kind != kind)
			continue;
		last = s->names[i].number;
		if (strlen(s->names[i].text) == len && memcmp(s->names[i].text, text, len) == 0)
			return last;
	}
	char *copy = strndup(text, len);
	if (!copy || !array_one_more(&s->names, s->n)) {
		free(copy);
		return 0;
	}
	s->names[s->n++] = (struct nvml_name){ kind, last + 1, copy };
	return last + 1;
}

static void add_name(enum nvml_secret kind, const char *text, unsigned number, struct str *out)
{
	static const char *const words[] = {
		[NVML_SECRET_SERIAL] = "serial", [NVML_SECRET_HOST] = "host"
	};
	bool gpu = strncmp(text, "GPU-", 4) == 0;
	if (kind == NVML_SECRET_UUID)
		str_addf(out, "%s-00000000-0000-0000-0000-%012u", gpu ? "GPU" : "MIG", number);
	else
		str_addf(out, "%s-%u", words[kind], number);
}

/* The same number of digits. */
static void add_bytes(size_t digits, unsigned number, struct str *out)
{
	char text[16];
	size_t len = (size_t)snprintf(text, sizeof(text), "%04x", number);
	str_add(out, "x");
	str_add_repeat(out, "0", digits > len ? digits - len : 0);
	str_add_bytes(out, text, digits < len ? digits : len);
}

void nvml_secrets_replace(
	struct nvml_secrets *s, enum nvml_secret kind, const char *text, struct str *out)
{
	while (kind != NVML_SECRET_NONE && *text) {
		const char *end = *text == '"' ? strchr(text + 1, '"') : NULL;
		size_t bytes = kind == NVML_SECRET_ID && *text == 'x' ? strcspn(text, " ") : 0;
		if (end && end > text + 1) {
			unsigned number = nvml_secrets_number(
				s, (int)kind, text + 1, (size_t)(end - text - 1));
			str_add(out, "\"");
			add_name(kind, text + 1, number, out);
			str_add(out, "\"");
			text = end + 1;
		} else if (bytes > 1 && strspn(text + 1, "0") < bytes - 1) {
			add_bytes(
				bytes - 1, nvml_secrets_number(s, (int)kind, text, bytes), out);
			text += bytes;
		} else {
			size_t len = end ? 2 : 1;
			str_add_bytes(out, text, len);
			text += len;
		}
	}
	str_add(out, text);
}

void nvml_secrets_finish(struct nvml_secrets *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->names[i].text);
	free(s->names);
	*s = (struct nvml_secrets){ 0 };
}
