/* The NVIDIA cards as the kernel's part of the driver lists them, without asking its library:
 * which number belongs to which card. */
#pragma once

#include "model/card.h"

enum { PROC_CARDS_MAX = 64 }; /* more cards than any host has */

struct proc_card {
	char pci[PCI_CAP];	  /* sysfs form "0000:17:00.0" */
	char uuid[UUID_CAP];	  /* "": the driver has not asked the card yet */
	char name[CARD_NAME_CAP]; /* "": unknown */
	int64_t minor;		  /* N of /dev/nvidiaN, or -1 */
	bool has_mig;		  /* it is divided into instances */
};

/* Lists the cards of an open /proc (proc_open) that programs may use, by their PCI addresses,
 * which is NVML's order. Returns how many; 0: none, or there is no such driver. */
size_t proc_cards_read(int proc, struct proc_card cards[PROC_CARDS_MAX]);
/* Reads the information about one card; false: it may not be used by programs. */
bool proc_cards_parse(const char *bytes, struct proc_card *card);
