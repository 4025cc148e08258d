/* Writes the frame of HTML pages. */
#include "serve/page.h"

#include "render/html.h"

void page_begin(struct str *out, const struct request *q, const char *title)
{
	(void)q;
	str_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		     "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	html_text(out, title);
	str_add(out, " - gua</title>\n</head>\n<body>\n<h1>");
	html_text(out, title);
	str_add(out, "</h1>\n");
}

void page_end(struct str *out, const struct request *q)
{
	(void)q;
	str_add(out, "</body>\n</html>\n");
}
