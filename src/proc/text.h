/* The texts that describe a process: their sizes, and a part of one. Longer texts are cut. */
#ifndef GUA_PROC_TEXT_H
#define GUA_PROC_TEXT_H

#include <stddef.h>

enum { USER_CAP = 64, COMMAND_CAP = 256, LABEL_CAP = 128, BOOT_ID_CAP = 40 };

/* A part of the bytes of a file; it is not terminated. */
struct piece {
	const char *at;
	size_t len;
};

#endif
