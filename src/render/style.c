/* The stylesheet of pages, embedded. */
#include "render/style.h"

#include "page_css.h"
#include "report_css.h"
#include "states_css.h"
#include "tokens_css.h"

static const char *const parts[STYLE_PARTS] = {
	[STYLE_TOKENS] = tokens_css,
	[STYLE_STATES] = states_css,
	[STYLE_PAGE] = page_css,
	[STYLE_REPORT] = report_css,
};

void style_add(struct str *out, enum style_part first, enum style_part last)
{
	for (int part = first; part <= (int)last; part++)
		str_add(out, parts[part]);
}
