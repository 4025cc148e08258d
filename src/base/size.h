/* Parses memory sizes from the command line, and prints them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* "20G", "500MiB", "1.5GB", "0": K M G T and KB .. TB are powers of 1000,
 * KiB .. TiB of 1024, B is bytes; a unit is required, except for 0. Refuses negative sizes and
 * more than 2^50. */
int size_parse(const char *text, int64_t *bytes, struct err *e);

enum { SIZE_TEXT_CAP = 32 };
/* "2.5 MiB", "419 MiB", "61.0 GiB"; "-" when it is unknown (negative). */
void size_text(char dst[SIZE_TEXT_CAP], double bytes);
