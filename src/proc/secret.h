/* Keeps passwords, keys and code in other people's command lines out of what is stored and
 * shown. Nothing can recognise every secret, so little is kept: names of files, and words from
 * which everything is cut that usually carries credentials. */
#pragma once

#include "base/base.h"

/* Whether the word looks like the name of a file or module: letters (also those of UTF-8),
 * digits and the signs . _ - + , @ % ~ / and no sign of an option (- or +) at its start. A URL,
 * an assignment and most code have other signs. A key of a well-known service ("ghp_...") is
 * not a file name. */
bool secret_is_file_name(const char *word, size_t len);

/* The kind of a text decides what is cut from it. */
enum secret_text { SECRET_LABEL, SECRET_PATH, SECRET_WORD };

/* Cuts credentials from the text, in place: the user part of a URL and the value after
 * "password=", "token=" and the like, and keys of well-known services; of a path also the query
 * of a URL; of a word also the value after any "=", and what is between ':' and '@'. Returns
 * the new length. */
size_t secret_cut(char *text, size_t len, enum secret_text kind);
