/* Declarations that the files of the library share. */
#pragma once

#include "base/base.h"

#define API __attribute__((visibility("default")))

/* Copies a struct that begins with its size to a caller's, which may be shorter or longer. */
void gua_hand_struct(void *to, size_t to_size, const void *from, size_t from_size);
