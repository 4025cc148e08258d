/* The sessions that gua enforce run ends: connects the judgement (policy/enforcer.h) with
 * ending (policy/endings.h). Every step becomes a row of policy.db, and people are told the
 * result. Only for gua-enforce. */
#ifndef GUA_CMD_ENFORCE_END_H
#define GUA_CMD_ENFORCE_END_H

#include <poll.h>

#include "cmd/enforce.h"
#include "policy/endings.h"
#include "policy/enforcer.h"

struct enforce_end;

/* `enforcer` is borrowed; its file may be opened and closed in between. */
int enforce_end_open(struct enforce_end **out, const struct enforce *x,
	struct enforcer *enforcer, struct err *e);
void enforce_end_close(struct enforce_end *x);

/* For enforcer_hooks.after: holds, begins to end, lets go. The context is a struct enforce_end.
 */
void enforce_end_after(void *context, const struct enforcer_step *step);
/* After the hooks of a pass: says in one line which processes cannot be ended. */
void enforce_end_passed(struct enforce_end *x);
/* Sessions that another run began to end, or whose result was lost: nobody ends them now, so
 * they are spared. */
int enforce_end_left(struct enforce_end *x, int64_t now_ms, struct err *e);

/* Does what is due, and stores what came of it. */
void enforce_end_step(struct enforce_end *x);
/* For poll(2), as endings_fds() and endings_wait_ms(). */
enum { ENFORCE_END_FDS = ENDINGS_MOST + 2 };
size_t enforce_end_fds(const struct enforce_end *x, struct pollfd *fds);
int64_t enforce_end_wait_ms(const struct enforce_end *x);
/* Whether a session is being ended; results that cannot be stored are not waited for. */
bool enforce_end_is_asking(const struct enforce_end *x); /* as endings_is_asking() */
bool enforce_end_is_busy(const struct enforce_end *x);

#endif
