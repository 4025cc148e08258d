/* What settings.c and apply.c share. */
#ifndef GUA_CONFIG_SETTINGS_PRIVATE_H
#define GUA_CONFIG_SETTINGS_PRIVATE_H

#include "config/settings.h"

/* Adds an error with a text that is safe to print. What does not fit is dropped. */
void settings_add_error(struct settings *s, size_t file, size_t line, const char *text);
/* Whether both are the same text, or both NULL. */
bool settings_same_text(const char *a, const char *b);

#endif
