/* Parses the words of --format into flags. */
#include "view/format.h"

bool format_take(const struct format_word *words, void *to, const char *text)
{
	for (const char *at = text; *at;) {
		size_t len = strcspn(at, ",");
		const struct format_word *w = words;
		while (w->word && (strlen(w->word) != len || strncmp(w->word, at, len) != 0))
			w++;
		if (!w->word)
			return false;
		*(bool *)((char *)to + w->flag) = true;
		at += len + (at[len] == ',');
	}
	return true;
}

void format_list(const struct format_word *words, struct str *out)
{
	for (; words->word; words++)
		str_addf(out, "%s ", words->word);
}
