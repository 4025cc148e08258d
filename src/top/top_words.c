/* Writes the short texts in the cells of `gua top`. */
#include "top/top_words.h"

#include <math.h>
#include <stdio.h>

void top_words_size(char *dst, size_t cap, int64_t bytes)
{
	double mib = (double)bytes / (1 << 20);
	if (bytes < 0)
		snprintf(dst, cap, "-");
	else if (mib < 999.5)
		snprintf(dst, cap, "%.0f MiB", mib);
	else if (mib / 1024 < 99.95)
		snprintf(dst, cap, "%.1f GiB", mib / 1024);
	else if (mib / 1024 < 9999)
		snprintf(dst, cap, "%.0f GiB", mib / 1024);
	else
		snprintf(dst, cap, "%.0f TiB", mib / 1024 / 1024);
}

void top_words_gib(char *dst, size_t cap, double bytes)
{
	double gib = bytes / (1 << 30);
	if (isnan(gib))
		snprintf(dst, cap, "-");
	else
		snprintf(dst, cap, "%.*f", gib < 99.95, gib);
}

void top_words_span(char *dst, size_t cap, int64_t ms)
{
	long long s = ms / 1000, minutes = s / 60, hours = minutes / 60, days = hours / 24;
	if (ms < 0)
		snprintf(dst, cap, "-");
	else if (minutes == 0)
		snprintf(dst, cap, "%llds", s);
	else if (hours == 0)
		snprintf(dst, cap, "%lldm", minutes);
	else if (days == 0)
		snprintf(dst, cap, "%lldh%02lldm", hours, minutes % 60);
	else if (days < 100)
		snprintf(dst, cap, "%lldd%02lldh", days, hours % 24);
	else
		snprintf(dst, cap, "%lldd", days);
}

void top_words_number(char *dst, size_t cap, double value, const char *unit)
{
	if (isnan(value))
		snprintf(dst, cap, "-");
	else
		snprintf(dst, cap, "%.0f%s", value, unit);
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
