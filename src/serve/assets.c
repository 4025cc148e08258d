/* The files that pages refer to. They are compiled into the program, so nothing has to be
 * installed and nothing is loaded from another site. */
#include "render/html.h"
#include "serve/pages.h"
#include "web_css.h"
#include "web_js.h"
#include "web_svg.h"

void asset_css(const struct request *q, struct answer *a)
{
	(void)q;
	html_style(&a->body, STYLE_TOKENS, STYLE_REPORT);
	str_add(&a->body, web_css);
}

void asset_js(const struct request *q, struct answer *a)
{
	(void)q;
	str_add(&a->body, web_js);
}

void asset_icon(const struct request *q, struct answer *a)
{
	(void)q;
	str_add(&a->body, web_svg);
}
