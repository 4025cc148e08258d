/* The report as one page of HTML: no script, nothing from elsewhere, light and dark, on paper
 * too. */
#include "render/report.h"
#include "render/style.h"

void report_html(struct str *out, const struct report *r)
{
	str_add(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n<title>gua: ");
	report_html_title(out, r);
	str_add(out, "</title>\n<style>\n");
	style_add(out, STYLE_TOKENS, STYLE_REPORT);
	str_add(out, "</style>\n</head>\n<body>\n"
		     "<a class=\"skip\" href=\"#report\">Skip to the report</a>\n"
		     "<main id=\"report\">\n");
	report_html_body(out, r);
	str_add(out, "</main>\n</body>\n</html>\n");
}
