/* Parses lists of hosts and of generic resources, as scontrol prints them. */
#include "lease/slurm_gres.h"

/* No host has more cards, and no cluster more hosts. */
enum { CARDS_MAX = 256, HOSTS_MAX = 1 << 20, NAME_CAP = 256 };

/* Reads digits, and moves *at behind them; -1: there are none, or too many. */
static long read_number(const char **at)
{
	size_t len = strspn(*at, "0123456789");
	long number = len && len < 10 ? strtol(*at, NULL, 10) : -1;
	*at += len;
	return number;
}

/* "3" or "5-7". */
static long read_range(const char **at, long *last)
{
	long first = *last = read_number(at);
	if (**at == '-') {
		++*at;
		*last = read_number(at);
	}
	return first;
}

/* Parts of cards: 1 whole; n one of n equal parts; 0 a part of unknown size, also when cards
 * differ. */
static void add_card(struct slurm_gres *g, long card, int share)
{
	if (card < 0 || card >= CARDS_MAX)
		return;
	g->share = g->cards.len && g->share != share ? 0 : share;
	str_addf(&g->cards, "%s%ld", g->cards.len ? "," : "", card);
}

/* "0,3-5", up to a parenthesis. "N/A" has none. */
static void add_ranges(struct slurm_gres *g, const char *at, int share)
{
	while (*at >= '0' && *at <= '9') {
		long last, first = read_range(&at, &last);
		for (long card = first; card >= 0 && card <= last && card < CARDS_MAX; card++)
			add_card(g, card, share);
		at += *at == ',';
	}
}

/* "0/5,5/5,-/5": of each card in order, how many parts are used. */
static void add_parts(struct slurm_gres *g, const char *at)
{
	for (long card = 0; *at && *at != ')' && card < CARDS_MAX; card++) {
		long used = read_number(&at);
		at += strspn(at, "-");
		at += *at == '/';
		long all = read_number(&at);
		if (used > 0 && all > 0)
			add_card(g, card, all % used == 0 ? (int)(all / used) : 0);
		at += strcspn(at, ",)");
		at += *at == ',';
	}
}

void slurm_gres_add(struct slurm_gres *g, const char *text)
{
	for (size_t len; *text; text += len, text += *text == ',') {
		/* The end of an item: a comma outside of parentheses. */
		len = 0;
		for (int depth = 0; text[len] && (depth > 0 || text[len] != ','); len++)
			depth += text[len] == '(' ? 1 : text[len] == ')' ? -1 : 0;
		size_t name = strcspn(text, ":(,");
		bool gpu = name == 3 && strncmp(text, "gpu", 3) == 0;
		bool part = (name == 5 && strncmp(text, "shard", 5) == 0) ||
			    (name == 3 && strncmp(text, "mps", 3) == 0);
		const char *index = memmem(text, len, "(IDX:", 5);
		/* A type may be "(null)": what counts is in the last parentheses. */
		const char *open = memrchr(text, '(', len);
		if ((gpu || part) && index)
			add_ranges(g, index + 5, gpu ? 1 : 0);
		else if (part && open)
			add_parts(g, open + 1);
	}
}

/* A search in a list of hosts. */
struct search {
	const char *host;
	long place; /* of the next host */
	bool found;
};

/* Compares the host `head` + what `tail` (of `len` bytes) stands for; brackets in it are
 * replaced by each of their numbers. */
static void try_hosts(struct search *s, const char *head, const char *tail, size_t len)
{
	char name[NAME_CAP];
	const char *open = memchr(tail, '[', len);
	const char *close = open ? memchr(open, ']', len - (size_t)(open - tail)) : NULL;
	size_t plain = open ? (size_t)(open - tail) : len;
	if (!close) {
		int n = snprintf(name, sizeof(name), "%s%.*s", head, (int)plain, tail);
		s->found = n > 0 && (size_t)n < sizeof(name) && strcmp(name, s->host) == 0;
		s->place += !s->found;
		return;
	}
	size_t rest = len - (size_t)(close + 1 - tail);
	for (const char *at = open + 1; at < close;) {
		size_t width = strspn(at, "0123456789");
		long last, first = read_range(&at, &last);
		for (long i = first; i >= 0 && i <= last; i++) {
			int n = snprintf(name, sizeof(name), "%s%.*s%0*ld", head, (int)plain,
				tail, (int)width, i);
			if (n > 0 && (size_t)n < sizeof(name))
				try_hosts(s, name, close + 1, rest);
			if (s->found || s->place >= HOSTS_MAX)
				return;
		}
		at += strcspn(at, ",]");
		at += *at == ',';
	}
}

long slurm_gres_host(const char *list, const char *host)
{
	struct search s = { .host = host };
	for (size_t len; *list && s.place < HOSTS_MAX; list += len, list += *list == ',') {
		/* The end of an item: a comma outside of brackets. */
		len = strcspn(list, ",[");
		while (list[len] == '[') {
			len += strcspn(list + len, "]");
			len += strcspn(list + len, ",[");
		}
		try_hosts(&s, "", list, len);
		if (s.found)
			return s.place;
	}
	return -1;
}
