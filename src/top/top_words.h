/* Short texts for numbers, and the words and styles of states, for `gua top`. */
#pragma once

#include "present/live.h"
#include "top/top_frame.h"

/* "512 MiB", "12.3 GiB", "120 GiB" in at most 8 columns; "-" for -1. */
struct brief top_words_size(int64_t bytes);
/* "0.5", "12.3", "120": GiB in at most 5 columns, under a title with the unit; "-" for NAN. */
struct brief top_words_gib(double bytes);
/* "45s", "12m", "3h20m", "5d02h", "400d" in at most 6 columns; "-" below 0. */
struct brief top_words_span(int64_t ms);
/* A whole number; "-" for NAN. */
struct brief top_words_number(double value, const char *unit);

/* "active", "idle-held", "truly-idle", "lost" ... */
const char *top_words_state(const struct present_card *card);
enum top_style top_words_state_style(const struct present_card *card);
