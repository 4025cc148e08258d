/* Rounds shares down, and gives the units that are left to the parts that lost most. */
#include "base/shares.h"

#include <assert.h>

/* Returns the part that is furthest below its exact share, to give it a unit; or, with `take`,
 * the part that is furthest above it. */
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

/* A part that is being rounded. */
struct fraction {
	size_t at;
	double rest; /* what rounding down cut off */
};

static int compare_fractions(const void *x, const void *y)
{
	const struct fraction *a = x, *b = y;
	if (a->rest != b->rest)
		return a->rest > b->rest ? -1 : 1;
	return a->at < b->at ? -1 : 1;
}

bool shares_fit(const double *parts, size_t n, int64_t whole, int64_t *fitted)
{
	struct fraction *fractions = calloc(n + 1, sizeof(*fractions));
	if (!fractions || n == 0) {
		free(fractions);
		return n == 0;
	}
	int64_t missing = whole;
	for (size_t i = 0; i < n; i++) {
		/* A sum that should be whole may be slightly below a whole number. */
		double down = floor(parts[i] + 1e-6);
		fractions[i] = (struct fraction){ i, parts[i] - down };
		fitted[i] = (int64_t)down;
		missing -= fitted[i];
	}
	/* Give out the units that are missing, or take back those that are too many. */
	size_t largest = 0;
	qsort(fractions, n, sizeof(*fractions), compare_fractions);
	for (size_t i = 0; i < n && missing > 0; i++, missing--)
		fitted[fractions[i].at]++;
	for (size_t i = n; i-- > 0 && missing < 0; missing++)
		fitted[fractions[i].at]--;
	for (size_t i = 1; i < n; i++)
		largest = parts[i] > parts[largest] ? i : largest;
	fitted[largest] += missing;
	free(fractions);
	return true;
}
