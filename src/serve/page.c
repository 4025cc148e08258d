/* Writes the frame of HTML pages. */
#include "serve/page.h"

#include "render/html.h"
#include "version.h"

static const struct page_link places[PLACES] = {
	[PLACE_NOW] = { "Now", "/" },
	[PLACE_AUDIT] = { "Audit", "/audit" },
	[PLACE_POLICY] = { "Policy", "/policy" },
	[PLACE_ME] = { "For me", "/me" },
};

static void add_head(struct str *out, const struct page_frame *f)
{
	str_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		     "<meta name=\"viewport\" content=\"width=device-width, "
		     "initial-scale=1\">\n"
		     "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
	html_text(out, f->title);
	str_add(out, " - gua</title>\n<link rel=\"icon\" type=\"image/svg+xml\" "
		     "href=\"/assets/gua.svg\">\n"
		     "<link rel=\"stylesheet\" href=\"/assets/gua.css\">\n"
		     "<script src=\"/assets/gua.js\" defer></script>\n</head>\n");
}

static void add_link(struct str *out, const struct page_link *l, const char *attributes)
{
	str_add(out, "<li><a href=\"");
	html_text(out, l->href);
	str_addf(out, "\"%s>", attributes);
	html_text(out, l->text);
	str_add(out, "</a></li>");
}

static void add_places(struct str *out, enum page_place current)
{
	str_add(out, "<header class=\"top\"><a class=\"brand\" href=\"/\">gua</a>"
		     "<nav aria-label=\"Pages\"><ul>");
	for (int i = PLACE_NOW; i < PLACES; i++)
		add_link(out, &places[i],
			current == (enum page_place)i ? " aria-current=\"page\"" : "");
	str_add(out, "</ul></nav></header>\n");
}

static void add_crumbs(struct str *out, const struct page_frame *f)
{
	if (!f->crumbs[0].text)
		return;
	str_add(out, "<nav class=\"crumbs\" aria-label=\"Path to this page\"><ol>");
	for (const struct page_link *l = f->crumbs; l->text; l++)
		add_link(out, l, "");
	str_add(out, "<li aria-current=\"page\">");
	html_text(out, f->title);
	str_add(out, "</li></ol></nav>\n");
}

/* Adds the links to other formats. With the script, the print link prints; without it, the
 * link leads to the page without navigation. */
static void add_formats(struct str *out, const struct page_frame *f)
{
	if (!f->formats[0].text)
		return;
	str_add(out, "<nav class=\"formats\" aria-label=\"This page in other formats\"><ul>");
	for (const struct page_link *l = f->formats; l->text; l++)
		add_link(out, l, "");
	str_add(out, "</ul></nav>\n");
}

void page_begin(struct str *out, const struct page_frame *f)
{
	add_head(out, f);
	str_addf(out,
		"<body class=\"%s\">\n<a class=\"skip\" href=\"#main\">Skip to the "
		"content</a>\n",
		f->paper ? "page on_paper" : "page");
	html_patterns(out);
	if (!f->paper) {
		add_places(out, f->place);
		add_crumbs(out, f);
		add_formats(out, f);
	}
	str_add(out, "<main id=\"main\" tabindex=\"-1\">\n<h1>");
	html_text(out, f->title);
	str_add(out, "</h1>\n");
}

void page_end(struct str *out)
{
	str_add(out, "</main>\n<footer class=\"foot\"><p>gua " GUA_VERSION
		     ", GPU usage audit. <code>man gua</code> explains the words, <code>man "
		     "gua-serve</code> the pages.</p></footer>\n</body>\n</html>\n");
}
