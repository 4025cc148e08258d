/* Parses memory sizes from the command line, and prints them. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* "20G", "500MiB", "1.5GB", "0": K M G T and KB .. TB are powers of 1000, KiB .. TiB of 1024, B
 * is bytes; a unit is required, except for 0. Refuses negative sizes and more than 2^50. */
int size_parse(const char *text, int64_t *bytes, struct err *e);

/* "2.5 MiB", "419 MiB", "61.0 GiB"; "-" when it is unknown (negative). */
struct brief size_text(double bytes);
