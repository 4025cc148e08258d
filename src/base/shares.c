/* Rounds shares down, and gives what is left to the parts that lost most. */
#include "base/shares.h"

#include <assert.h>
#include <math.h>

/* The part that is furthest below its exact share or, to take a unit away, furthest above
 * it. */
static size_t most_owed(const double *exact, const size_t *shares, size_t n, bool take)
{
	size_t best = 0;
	for (size_t i = 1; i < n; i++) {
		double owed = exact[i] - (double)shares[i];
		double best_owed = exact[best] - (double)shares[best];
		if (take ? (shares[i] > 1 && (shares[best] <= 1 || owed < best_owed))
			 : owed > best_owed)
			best = i;
	}
	return best;
}

void shares_divide(const double *parts, size_t n, size_t units, bool visible, size_t *shares)
{
	double sum = 0, exact[SHARES_MAX] = { 0 };
	size_t given = 0;
	assert(n <= SHARES_MAX);
	for (size_t i = 0; i < n; i++)
		sum += parts[i];
	for (size_t i = 0; i < n; i++) {
		exact[i] = sum > 0 ? parts[i] / sum * (double)units : 0;
		shares[i] = (size_t)exact[i];
		if (visible && shares[i] == 0 && parts[i] > 0)
			shares[i] = 1;
		given += shares[i];
	}
	for (; sum > 0 && given < units; given++)
		shares[most_owed(exact, shares, n, false)]++;
	for (; given > units; given--)
		shares[most_owed(exact, shares, n, true)]--;
}

void shares_round(const double *parts, size_t n, double *shares)
{
	size_t tenths[SHARES_MAX];
	double sum = 0;
	shares_divide(parts, n, 1000, false, tenths);
	for (size_t i = 0; i < n; i++)
		sum += parts[i];
	for (size_t i = 0; i < n; i++)
		shares[i] = sum > 0 ? (double)tenths[i] / 1000 : (double)NAN;
}
