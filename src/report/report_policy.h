/* The section of a report about what gua enforce did. */
#ifndef GUA_REPORT_REPORT_POLICY_H
#define GUA_REPORT_REPORT_POLICY_H

#include "model/report.h"

/* Adds it, if a policy.db beside one of the stores has something about the window. */
void report_add_policy(struct report *r, const char *const *paths, size_t n);

#endif
