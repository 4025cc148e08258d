/* The rules of gua.conf in words. Only for serve/page_policy*.c. */
#ifndef GUA_SERVE_PAGE_POLICY_H
#define GUA_SERVE_PAGE_POLICY_H

#include "base/str.h"
#include "config/config.h"

/* Appends the mode, each rule and each exemption as a sentence. */
void policy_rules_html(struct str *out, const struct config *c);

#endif
