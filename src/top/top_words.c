/* Writes the short texts in the cells of `gua top`. */
#include "top/top_words.h"

#include <math.h>

struct brief top_words_size(int64_t bytes)
{
	double mib = (double)bytes / (1 << 20);
	if (bytes < 0)
		return str_brief("-");
	if (mib < 999.5)
		return str_brief("%.0f MiB", mib);
	if (mib / 1024 < 9999)
		return str_brief("%.*f GiB", mib / 1024 < 99.95, mib / 1024);
	return str_brief("%.0f TiB", mib / 1024 / 1024);
}

struct brief top_words_gib(double bytes)
{
	double gib = bytes / (1 << 30);
	return isnan(gib) ? str_brief("-") : str_brief("%.*f", gib < 99.95, gib);
}

struct brief top_words_span(int64_t ms)
{
	long long s = ms / 1000, minutes = s / 60, hours = minutes / 60, days = hours / 24;
	if (ms < 0)
		return str_brief("-");
	if (minutes == 0)
		return str_brief("%llds", s);
	if (hours == 0)
		return str_brief("%lldm", minutes);
	if (days == 0)
		return str_brief("%lldh%02lldm", hours, minutes % 60);
	return days < 100 ? str_brief("%lldd%02lldh", days, hours % 24)
			  : str_brief("%lldd", days);
}

struct brief top_words_number(double value, const char *unit)
{
	return isnan(value) ? str_brief("-") : str_brief("%.0f%s", value, unit);
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
