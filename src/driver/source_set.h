/* Several sources as one. The set's cards are its members' cards, one member after the other;
 * cards that a member finds later come at the end, so that a card never changes its place. A
 * card with a UUID that is there already, of another member, is left out: no time is counted
 * twice.
 *
 * A member that fails is down until the next scan, which tries it again: until then its
 * cards are lost, with the driver's code. A member that does not answer in time is late: its
 * call goes on, the others are not kept waiting, and its cards are lost until the call has
 * come back. A call fails only when every member is down.
 * Readings are copied; the arrays that they point to stay the member's. */
#ifndef GUA_DRIVER_SOURCE_SET_H
#define GUA_DRIVER_SOURCE_SET_H

#include "driver/kind.h"

/* Opens all members of a list; its kinds outlive the set. Fails when none of them opens, or
 * when one fails with ERR_USAGE. */
int source_set_open(struct source **s, const struct source_list *list,
	const struct source_options *options, struct err *e);

#endif
