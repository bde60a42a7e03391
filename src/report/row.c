/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the page. They are grouped in sections, so that a browser can skip those out of sight. */
#include "base/utf8.h"
#include "report/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static void draw_time(struct report *r, uint64_t usec)
{
	uint64_t since = r->survey.start_usec && usec > r->survey.start_usec
				 ? usec - r->survey.start_usec
				 : 0;
	uint64_t s = since / 1000000;
	char text[64];

	if (r->is_on_top)
		return;
	HTML(&r->html, "<time>");
	if (usec) {
		if (s >= 3600)
			snprintf(text, sizeof(text), "+%" PRIu64 ":%02u:%02u", s / 3600,
				(unsigned)(s / 60 % 60), (unsigned)(s % 60));
		else
			snprintf(text, sizeof(text), "+%u:%02u.%03u", (unsigned)(s / 60),
				(unsigned)(s % 60), (unsigned)(since / 1000 % 1000));
		html_constant(&r->html, text);
	}
	HTML(&r->html, "</time> ");
}

static void row_open(struct report *r)
{
	if (r->is_on_top)
		return;
	if (r->in_section && r->rows == REPORT_ROWS)
		rows_end(r);
	if (!r->in_section)
		HTML(&r->html, "<section>\n");
	r->in_section = true;
	r->rows++;
}

void rows_end(struct report *r)
{
	if (r->in_section)
		HTML(&r->html, "</section>\n");
	r->in_section = false;
	r->rows = 0;
}

static void row_classes(struct report *r, enum row_kind kind, bool is_bad)
{
	static const char letters[] = "acfnso";
	char name[] = {letters[kind], '\0'};

	if (r->is_on_top) {
		HTML(&r->html, " class=t");
		return;
	}
	HTML(&r->html, " class=\"e ");
	html_constant(&r->html, name);
	if (is_bad)
		HTML(&r->html, " bad");
	HTML(&r->html, "\"");
}

void row_begin(struct report *r, enum row_kind kind, bool is_bad, bool is_open, uint64_t usec)
{
	row_open(r);
	HTML(&r->html, "<details");
	row_classes(r, kind, is_bad);
	if (is_open)
		HTML(&r->html, " open");
	HTML(&r->html, "><summary>");
	draw_time(r, usec);
}

void row_begin_plain(struct report *r, enum row_kind kind, uint64_t usec)
{
	row_open(r);
	HTML(&r->html, "<div");
	row_classes(r, kind, false);
	HTML(&r->html, ">");
	draw_time(r, usec);
}

void row_body(struct report *r)
{
	HTML(&r->html, "</summary>");
}

void row_end(struct report *r)
{
	HTML(&r->html, "</details>\n");
}

void row_end_plain(struct report *r)
{
	HTML(&r->html, "</div>\n");
}

/* --- numbers --- */

void draw_duration(struct html *h, uint64_t usec)
{
	uint64_t s = usec / 1000000;
	char text[64];

	if (s == 0)
		snprintf(text, sizeof(text), "%u ms", (unsigned)(usec / 1000));
	else if (s < 60)
		snprintf(
			text, sizeof(text), "%u.%u s", (unsigned)s, (unsigned)(usec / 100000 % 10));
	else if (s < 3600)
		snprintf(text, sizeof(text), "%u min %u s", (unsigned)(s / 60), (unsigned)(s % 60));
	else
		snprintf(text, sizeof(text), "%" PRIu64 " h %u min", s / 3600,
			(unsigned)(s / 60 % 60));
	html_constant(h, text);
}

void draw_size(struct html *h, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double n = (double)bytes;
	char text[64];
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(text, sizeof(text), "%u B", (unsigned)bytes);
	} else {
		for (n /= 1024; n >= 1024 && i + 1 < ARRAY_SIZE(units); i++)
			n /= 1024;
		snprintf(text, sizeof(text), "%.1f %s", n, units[i]);
	}
	html_constant(h, text);
}

void draw_exec(struct html *h, uint64_t number)
{
	HTML(h, " <small>#");
	html_number(h, number);
	HTML(h, "</small>");
}

void draw_money(struct html *h, double usd)
{
	char text[64];

	snprintf(text, sizeof(text), "$%.4f", usd >= 0 && usd < 1e9 ? usd : 0);
	html_constant(h, text);
}

/* --- texts --- */

size_t report_take(struct report *r, size_t n)
{
	n = (size_t)MIN((uint64_t)n, r->texts);
	r->texts -= n;
	return n;
}

struct str text_prefix(struct str s, size_t n)
{
	bool is_cut = n < s.n;

	s = str_prefix(s, n);
	for (size_t i = 1; is_cut && i <= 3 && i <= s.n; i++)
		if ((s.p[s.n - i] & 0xc0) == 0xc0) {
			if (utf8_decode(str_from_index(s, s.n - i), NULL) == 0)
				s.n -= i;
			break;
		}
	return s;
}

/* Return the last n bytes of s, without the rest of a character that was cut. */
static struct str text_suffix(struct str s, size_t n)
{
	s = str_from_index(s, s.n - n);
	for (int i = 0; i < 3 && s.n && (s.p[0] & 0xc0) == 0x80; i++)
		s = str_from_index(s, 1);
	return s;
}

void draw_left_out(struct html *h, uint64_t n)
{
	HTML(h, "\n<i>");
	draw_size(h, n);
	HTML(h, " are not shown here</i>\n");
}

void draw_text(struct report *r, struct str text)
{
	size_t n = report_take(r, MIN(text.n, (size_t)2 * REPORT_PIECE));
	size_t head = n < text.n ? n / 2 : n;

	HTML(&r->html, "<pre>\n");
	html_text(&r->html, text_prefix(text, head), HTML_TEXT);
	if (n < text.n) {
		draw_left_out(&r->html, text.n - n);
		html_text(&r->html, text_suffix(text, n - head), HTML_TEXT);
	}
	HTML(&r->html, "</pre>");
}

void draw_json(struct report *r, const json_t *value)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT((size_t)STATE_LINE_MAX);

	if (json_text_write(&text, value, 2) < 0)
		r->html.error = r->html.error ? r->html.error : -ENOMEM;
	else
		draw_text(r, buf_str(&text));
}
