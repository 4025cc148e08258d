/* What most files use: the C library, errors, texts, arrays, files and clocks. A header
 * includes this one, and a .c file has it through its own header. The headers that are named
 * here include what they need themselves. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/moment.h"
#include "base/size.h"
#include "base/str.h"
