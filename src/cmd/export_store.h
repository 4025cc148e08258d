/* gua export --format store: a part of a store, as a store. */
#ifndef GUA_CMD_EXPORT_STORE_H
#define GUA_CMD_EXPORT_STORE_H

#include "export/export.h"
#include "store/store_list.h"

/* Writes it to standard output. ERR_USAGE: there are several stores, or a terminal would get
 * it. */
int export_store(const struct store_list *stores, struct export_window window, struct err *e);

#endif
