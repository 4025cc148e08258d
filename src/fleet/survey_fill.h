/* What the files that fill an audit from a survey share. Only for survey*.c. */
#ifndef GUA_FLEET_SURVEY_FILL_H
#define GUA_FLEET_SURVEY_FILL_H

#include "fleet/survey.h"

/* What a counter grew over the window, in thousandths: milliseconds or millijoules. */
int64_t survey_grown(const struct survey *s, const struct meter_row *row, int state);
/* Adds the users, and the breakdown that was asked for. The cards are there already. */
int survey_users(struct survey *s, struct err *e);

#endif
