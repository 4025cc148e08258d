/* The steps of gua install and gua uninstall, each printed as it is done. */
#ifndef GUA_CMD_INSTALL_STEPS_H
#define GUA_CMD_INSTALL_STEPS_H

#include "cmd/installation.h"

struct install_steps {
	struct installation in;
	const char *program; /* path of the program that the unit starts */
	bool dry_run;	     /* print what would be done, and do nothing */
	bool start;	     /* make: start the service too */
	bool purge;	     /* undo: remove the data too, and its user */
};

/* Makes what is missing. What exists and is not on the list is left as it is. */
int install_steps_make(struct install_steps *s, struct err *e);
/* Removes what is on the list, last first. Changed files, directories that are not empty, and
 * the user of remaining data are kept. */
int install_steps_undo(struct install_steps *s, struct err *e);

#endif
