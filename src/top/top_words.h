/* Short texts for numbers, and the words and styles of states, for `gua top`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "present/live.h"
#include "top/top_frame.h"

/* "512 MiB", "12.3 GiB", "120 GiB" in at most 8 columns; "-" for -1. */
void top_words_size(char *dst, size_t cap, int64_t bytes);
/* "0.5", "12.3", "120": GiB in at most 5 columns, under a title with the unit; "-" for NAN. */
void top_words_gib(char *dst, size_t cap, double bytes);
/* "45s", "12m", "3h20m", "5d02h", "400d" in at most 6 columns; "-" below 0. */
void top_words_span(char *dst, size_t cap, int64_t ms);
/* A whole number; "-" for NAN. */
void top_words_number(char *dst, size_t cap, double value, const char *unit);

/* "active", "idle-held", "truly-idle", "lost" ... */
const char *top_words_state(const struct present_card *card);
enum top_style top_words_state_style(const struct present_card *card);
