/* Names that a capture has in the place of true ones: the same one for the same. */
#ifndef GUA_DRIVER_CAPTURE_CAPTURE_SECRETS_H
#define GUA_DRIVER_CAPTURE_CAPTURE_SECRETS_H

#include "base/str.h"
#include "driver/nvml/nvml_calls.h"

/* Zero at first. */
struct nvml_secrets {
	struct nvml_name {
		int kind; /* enum nvml_secret, or a caller's own */
		unsigned number;
		char *text; /* the true one */
	} * names;
	size_t n;
};

/* The number of a true name, from 1 on; 0: out of memory. */
unsigned nvml_secrets_number(struct nvml_secrets *s, int kind, const char *text, size_t len);
/* Appends the words of `text`, with the secret ones replaced: texts in quotation marks, or
 * bytes. */
void nvml_secrets_replace(
	struct nvml_secrets *s, enum nvml_secret kind, const char *text, struct str *out);
void nvml_secrets_finish(struct nvml_secrets *s);

#endif
