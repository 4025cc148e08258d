/* The page Policy: the rules, who is watched, what was done. */
#include "serve/page.h"
#include "serve/pages.h"

void page_policy(const struct request *q, struct answer *a)
{
	(void)q;
	page_begin(&a->body, &(struct page_frame){ .place = PLACE_POLICY, .title = "Policy" });
	str_add(&a->body, "<p>No policy is configured: gua records and reports, and ends "
			  "nobody's process.</p>\n");
	page_end(&a->body);
}
