/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html.h"
#include "base/utf8.h"
#include "job/job.h"

#include <stdio.h>

enum {
	FLUSH_AT = 64 << 10,
	MAX_MARKS = 500, /* elements for hidden characters in one text; the rest is unmarked */
};

static void html_flush(struct html *h)
{
	if (h->error == 0)
		h->error = job_write_all(h->fd, buf_data(&h->out), buf_len(&h->out));
	buf_clear(&h->out);
}

void html_markup(struct html *h, struct str markup)
{
	while (h->error == 0 && markup.n) {
		struct str piece = str_prefix(markup, FLUSH_AT);

		h->error = buf_add_str(&h->out, piece);
		markup = str_from_index(markup, piece.n);
		if (buf_len(&h->out) >= FLUSH_AT)
			html_flush(h);
	}
}

void html_constant(struct html *h, const char *text)
{
	html_markup(h, str_from(text));
}

void html_number(struct html *h, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	html_constant(h, text);
}

int html_finish(struct html *h)
{
	html_flush(h);
	buf_done(&h->out);
	return h->error;
}

/* --- text --- */

struct writing {
	struct html *h;
	enum html_form form;
	bool is_marked; /* inside the element for hidden characters */
	unsigned marks;
};

static void html_mark(struct writing *w, bool on)
{
	if (on == w->is_marked)
		return;
	if (on && ++w->marks > MAX_MARKS)
		return;
	w->is_marked = on;
	if (on)
		HTML(w->h, "<u>");
	else
		HTML(w->h, "</u>");
}

static struct str html_entity(char c)
{
	switch (c) {
	case '&':
		return STR("&amp;");
	case '<':
		return STR("&lt;");
	case '>':
		return STR("&gt;");
	case '"':
		return STR("&quot;");
	case '\'':
		return STR("&#39;");
	default:
		return STR_NULL;
	}
}

static void html_hidden(struct writing *w, size_t n, uint32_t c, char byte)
{
	char text[16];

	if (n > 1)
		snprintf(text, sizeof(text), "\\u{%x}", (unsigned)c);
	else
		snprintf(text, sizeof(text), "\\x%02x", (unsigned char)byte);
	html_mark(w, true);
	html_constant(w->h, text);
}

/* Return the length of a colour sequence at the beginning of s, or 0. */
static size_t html_colour_length(struct str s)
{
	size_t n = 2;

	if (!str_starts(s, STR("\x1b[")))
		return 0;
	while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == ';' || s.p[n] == ':'))
		n++;
	return n < s.n && s.p[n] == 'm' ? n + 1 : 0;
}

static bool html_is_hidden(uint32_t c, enum html_form form)
{
	if (form != HTML_TEXT)
		return utf8_is_hidden(c);
	return c != '\n' && c != '\t' && utf8_is_hidden_in_text(c);
}

/* Return how many bytes at the beginning of s can be written unchanged. */
static size_t html_plain_length(struct str s, enum html_form form)
{
	size_t at = 0;

	while (at < s.n) {
		uint32_t c = 0;
		size_t n = utf8_decode(str_from_index(s, at), &c);

		if (n == 0 || html_entity(s.p[at]).n || html_is_hidden(c, form))
			break;
		at += n;
	}
	return at;
}

/* Write the first character of s, which is not plain. Return its length. */
static size_t html_special(struct writing *w, struct str s)
{
	struct str as = html_entity(s.p[0]);
	uint32_t c = 0;
	size_t n;

	if (as.n) {
		html_mark(w, false);
		html_markup(w->h, as);
		return 1;
	}
	if (w->form == HTML_TEXT) {
		n = html_colour_length(s);
		if (n)
			return n;
		if (s.p[0] == '\r') {
			html_mark(w, false);
			if (s.n == 1 || s.p[1] != '\n')
				HTML(w->h, "\n");
			return 1;
		}
	}
	n = utf8_decode(s, &c);
	html_hidden(w, n, c, s.p[0]);
	return n ? n : 1;
}

void html_text(struct html *h, struct str s, enum html_form form)
{
	struct writing w = {.h = h, .form = form};

	while (s.n && h->error == 0) {
		size_t n = html_plain_length(s, form);

		if (n) {
			html_mark(&w, false);
			html_markup(h, str_prefix(s, n));
			s = str_from_index(s, n);
		}
		if (s.n)
			s = str_from_index(s, html_special(&w, s));
	}
	html_mark(&w, false);
}
