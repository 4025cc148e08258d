/* Writes the short texts in the cells of `gua top`. */
#include "top/top_words.h"

/* Rounds as printf(3) does, which would be much of the cost of a frame. */
static struct brief rounded(double value, const char *unit)
{
	return str_whole(llrint(value), unit);
}

/* With one decimal if it is less than 100. Ten times a number of bytes is exact. */
static struct brief with_tenths(double value, const char *unit)
{
	if (value >= 99.95)
		return rounded(value, unit);
	int64_t tenths = llrint(value * 10);
	char rest[16] = { '.', (char)('0' + tenths % 10) };
	str_copy(rest + 2, sizeof(rest) - 2, unit);
	return str_whole(tenths / 10, rest);
}

struct brief top_words_size(int64_t bytes)
{
	double mib = (double)bytes / (1 << 20);
	if (bytes < 0)
		return str_brief("-");
	if (mib < 999.5)
		return rounded(mib, " MiB");
	if (mib / 1024 < 9999)
		return with_tenths(mib / 1024, " GiB");
	return rounded(mib / 1024 / 1024, " TiB");
}

struct brief top_words_gib(double bytes)
{
	return isnan(bytes) ? str_brief("-") : with_tenths(bytes / (1 << 30), "");
}

struct brief top_words_span(int64_t ms)
{
	long long s = ms / 1000, minutes = s / 60, hours = minutes / 60, days = hours / 24;
	if (ms < 0)
		return str_brief("-");
	if (minutes == 0)
		return str_whole(s, "s");
	if (hours == 0)
		return str_whole(minutes, "m");
	if (days == 0)
		return str_brief("%lldh%02lldm", hours, minutes % 60);
	return days < 100 ? str_brief("%lldd%02lldh", days, hours % 24) : str_whole(days, "d");
}

struct brief top_words_number(double value, const char *unit)
{
	return isnan(value) ? str_brief("-") : rounded(value, unit);
}

static const enum top_style status_styles[CARD_STATUS_COUNT] = {
	[CARD_STATUS_OK] = TOP_PLAIN,
	[CARD_STATUS_LOST] = TOP_LOST,
	[CARD_STATUS_ASLEEP] = TOP_DIM,
	[CARD_STATUS_DENIED] = TOP_LOST,
};

const char *top_words_state(const struct present_card *card)
{
	return card->status == CARD_STATUS_OK ? state_looks[card->state].word
					      : card_status_names[card->status];
}

enum top_style top_words_state_style(const struct present_card *card)
{
	return card->status == CARD_STATUS_OK ? TOP_STATE + card->state
					      : status_styles[card->status];
}
