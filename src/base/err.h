/* Errors: the text is written where the failure is found, is passed up unchanged, and is
 * printed once, in cmd/. The caller owns the struct; functions that can fail return 0 or one of
 * these codes. */
#pragma once

/* The kind of an error decides the exit status: see err_exit_code(). */
enum err_code {
	ERR_USAGE = -1, /* the user's mistake: a wrong option, duration, scenario line ... */
	ERR_WORLD = -2, /* the system failed: no driver, disk full, not our file ... */
	ERR_BUSY = -3, /* the system failed, and trying again may help: locked store, driver not
			  ready */
	ERR_NOTHING = -4, /* what was asked for is not there: no card, no such card */
};

struct err {
	int code;	/* 0 or an enum err_code */
	int number;	/* the driver's own code behind it; 0: none */
	char text[512]; /* one sentence without a final newline; already safe for a terminal */
};

/* Fills `e` (may be NULL) and returns `code`, so that callers can `return err_set(...)`.
 * Control characters and invalid UTF-8 in the formatted text are escaped. */
int err_set(struct err *e, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The message for every allocation that failed. */
#define ERR_MEMORY_TEXT "out of memory"

/* Fills `e` (may be NULL) for an allocation that failed. Returns ERR_WORLD. */
int err_memory(struct err *e);

/* Notes the driver's code in `e` (may be NULL). Returns the code of the error. */
int err_number(struct err *e, int code, int number);

/* Puts "PREFIX: " before the present text. Returns e->code. */
int err_prefix(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns 2 for ERR_USAGE, 0 for no error, and 1 for all others. */
int err_exit_code(int code);
