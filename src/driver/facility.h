/* How a source does each of its jobs: which call it uses, and whether that works. */
#ifndef GUA_DRIVER_FACILITY_H
#define GUA_DRIVER_FACILITY_H

#include <stdbool.h>

/* How one job of the source is done: for the log and `gua doctor`. */
struct facility {
	const char *job; /* "utilisation", "process list", "energy" ... */
	const char *how; /* the symbol or way in use: "nvmlDeviceGetMemoryInfo_v2" */
	bool fallback;	 /* not the preferred way */
	bool works;	 /* false: no way works; `how` says why */
	char note[96];	 /* which cards, or the code that made it fall back; may be "" */
};

#endif
