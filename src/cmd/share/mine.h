/* A user's own time: the word "me" among users, and what to do without a store to read. */
#pragma once

#include "base/options.h"
#include "model/process.h"

/* Replaces the word "me" in a list of users by the caller's name, as the recorder stores it;
 * new texts are in the arena. Sets *found if the word was there. */
int mine_expand(struct text_list *users, struct arena *texts, bool *found, struct err *e);
/* Finds the name of the person who acts: behind sudo and su, the user who logged in. */
int mine_actor(char name[USER_CAP], struct err *e);
/* Adds to the error of a store that may not be read what the caller can do without it. */
void mine_explain(const char *path, struct err *e);
