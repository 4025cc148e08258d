/* What the files that fill an audit from a survey share. Only for survey*.c. */
#ifndef GUA_FLEET_SURVEY_FILL_H
#define GUA_FLEET_SURVEY_FILL_H

#include "fleet/survey.h"

/* The identity of time that no user has: the audit works it out. */
#define NOBODY "_unknown"

/* What a counter grew over the window, in thousandths: milliseconds or millijoules. */
int64_t survey_grown(const struct survey *s, const struct meter_row *row, int state);
/* Adds the users, and the breakdown that was asked for. The cards are there already. */
int survey_users(struct survey *s, struct err *e);
/* Adds to the hours what the sums at full hours did not show: what a lost store had counted,
 * and the differences between snapshots. */
void survey_settle_hours(struct survey *s);
/* The hours and days of the users that the audit is restricted to, instead of the cards'. */
int survey_user_hours(struct survey *s, struct err *e);

#endif
