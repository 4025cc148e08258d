/* Recognises words that may carry a secret. */
#include "proc/secret.h"

/* What is cut: everything after `mark` up to the last `until`, or to the end of the text when
 * `until` is 0. Marks match in upper and lower case. */
static const struct cut {
	const char *mark;
	char until;
	bool keep_mark;
	enum secret_text from; /* applies to this kind of text and to those after it */
} cuts[] = {
	{ "://", '@', true, SECRET_LABEL },
	{ ":", '@', true, SECRET_WORD }, /* user:password@host */
	{ "?", 0, false, SECRET_PATH },
	{ "&", 0, false, SECRET_PATH },
	{ "password=", 0, true, SECRET_LABEL },
	{ "passwd=", 0, true, SECRET_LABEL },
	{ "pwd=", 0, true, SECRET_LABEL },
	{ "token=", 0, true, SECRET_LABEL },
	{ "secret=", 0, true, SECRET_LABEL },
	{ "key=", 0, true, SECRET_LABEL },
	{ "auth=", 0, true, SECRET_LABEL },
	{ "credential=", 0, true, SECRET_LABEL },
	{ "credentials=", 0, true, SECRET_LABEL },
	{ "=", 0, false, SECRET_WORD },
};

/* Prefixes of keys of well-known services. A key is recognised at the beginning of any word.
 * Where an ordinary name could begin the same way ("sk-learn-fit.py"), `unbroken` requires
 * letters and digits without a sign between them. */
static const struct key {
	const char *prefix;
	size_t least; /* at least this many bytes follow the prefix */
	bool unbroken;
} keys[] = {
	{ "sk-", 16, true },	 /* OpenAI, Anthropic and many others */
	{ "gsk_", 16, true },	 /* Groq */
	{ "xai-", 16, true },	 /* xAI */
	{ "pplx-", 16, true },	 /* Perplexity */
	{ "hf_", 16, true },	 /* Hugging Face */
	{ "r8_", 16, true },	 /* Replicate */
	{ "nvapi-", 16, false }, /* NVIDIA */
	{ "ghp_", 16, false },	 /* GitHub, and the five after it */
	{ "gho_", 16, false }, { "ghu_", 16, false }, { "ghs_", 16, false },
	{ "ghr_", 16, false }, { "github_pat_", 16, false },
	{ "glpat-", 16, false }, /* GitLab, and the two after it */
	{ "gldt-", 16, false }, { "glrt-", 16, false },
	{ "xoxa-", 10, false }, /* Slack, and the five after it */
	{ "xoxb-", 10, false }, { "xoxp-", 10, false }, { "xoxr-", 10, false },
	{ "xoxs-", 10, false }, { "xapp-", 10, false },
	{ "AKIA", 16, true },				  /* Amazon, and the one after it */
	{ "ASIA", 16, true }, { "AIza", 30, false },	  /* Google, and the one after it */
	{ "ya29.", 16, false }, { "sk_live_", 16, true }, /* Stripe, and the three after it */
	{ "sk_test_", 16, true }, { "rk_live_", 16, true }, { "rk_test_", 16, true },
	{ "npm_", 30, true },	 /* npm */
	{ "pypi-", 32, true },	 /* PyPI */
	{ "dop_v1_", 16, true }, /* DigitalOcean */
	{ "SG.", 16, false },	 /* SendGrid */
	{ "eyJ", 16, true },	 /* a JSON web token */
};

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Returns the length of the key at the start of the text, without its prefix; 0: none. */
static size_t key_length(const struct key *key, const char *text, size_t len)
{
	size_t n = 0, first = 0, run = 0, longest = 0;
	for (; n < len && (is_alnum(text[n]) || (text[n] && strchr("_-.", text[n]))); n++) {
		run = is_alnum(text[n]) ? run + 1 : 0;
		longest = run > longest ? run : longest;
		first += first == n && text[n] != '.';
	}
	return (key->unbroken ? longest : first) >= key->least ? n : 0;
}

/* Finds a key: it is between *from and *to, without its prefix. */
static bool find_key(const char *text, size_t len, size_t *from, size_t *to)
{
	for (size_t i = 0; i < len; i++) {
		if (i > 0 && is_alnum(text[i - 1]))
			continue;
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			size_t n = strlen(keys[k].prefix);
			if (len - i < n || memcmp(text + i, keys[k].prefix, n) != 0)
				continue;
			*from = i + n;
			*to = *from + key_length(&keys[k], text + *from, len - *from);
			if (*to > *from)
				return true;
		}
	}
	return false;
}

bool secret_is_file_name(const char *word, size_t len)
{
	if (len == 0 || word[0] == '-' || word[0] == '+')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(word[i]) && (unsigned char)word[i] < 0x80 &&
			(!word[i] || !strchr("._-+,@%~/", word[i])))
			return false;
	size_t from, to;
	return !find_key(word, len, &from, &to);
}

static size_t apply(const struct cut *cut, char *text, size_t len)
{
	size_t at = 0, n = strlen(cut->mark);
	while (at + n <= len && strncasecmp(text + at, cut->mark, n) != 0)
		at++;
	if (at + n > len)
		return len;
	size_t from = at + n;
	if (!cut->until)
		return cut->keep_mark ? from : at;
	const char *end = memrchr(text + from, cut->until, len - from);
	if (!end)
		return len;
	size_t to = (size_t)(end - text) + 1;
	memmove(text + from, text + to, len - to);
	return len - (to - from);
}

size_t secret_cut(char *text, size_t len, enum secret_text kind)
{
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++)
		if (kind >= cuts[i].from)
			len = apply(&cuts[i], text, len);
	for (size_t from, to; find_key(text, len, &from, &to); len -= to - from)
		memmove(text + from, text + to, len - to);
	return len;
}
