/* SPDX-License-Identifier: Apache-2.0 */
/* Everything around the rows. The policy allows only this page's one script and one style, by their
 * digests. No other script, image or connection is possible, whatever the rows contain. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "report/internal.h"

#include <errno.h>

extern const char report_css[], report_js[];

static void draw_digest(struct report *r, const char *text)
{
	_cleanup_(buf_donep) struct buf encoded = BUF_INIT(64);
	char hex[SHA256_HEX_MAX], bytes[SHA256_BYTES];

	sha256_text(str_from(text), hex);
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

		bytes[i] = (char)strtoul(digits, NULL, 16);
	}
	if (base64_encode(&encoded, str_make(bytes, SHA256_BYTES)) < 0 || !buf_cstr(&encoded)) {
		r->html.error = -ENOMEM;
		return;
	}
	html_markup(&r->html, buf_str(&encoded));
}

static void draw_policy(struct report *r)
{
	HTML(&r->html, "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
		       "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
		       "trusted-types 'none'; script-src 'sha256-");
	draw_digest(r, report_js);
	HTML(&r->html, "'; style-src 'sha256-");
	draw_digest(r, report_css);
	HTML(&r->html, "'\">\n<meta name=referrer content=no-referrer>\n"
		       "<meta name=viewport content=\"width=device-width\">\n");
}

/* --- the head --- */

static void fact_begin(struct report *r, const char *name)
{
	HTML(&r->html, "<div><dt>");
	html_constant(&r->html, name);
	HTML(&r->html, "</dt><dd>");
}

static void fact_end(struct report *r)
{
	HTML(&r->html, "</dd></div>\n");
}

static void text_fact(struct report *r, const char *name, const char *text)
{
	if (!text)
		return;
	fact_begin(r, name);
	html_text(&r->html, text_prefix(str_from(text), 500), HTML_LINE);
	fact_end(r);
}

/* "12", or "12, 3 failed". */
static void count_fact(
	struct report *r, const char *name, uint64_t n, uint64_t bad, const char *how)
{
	if (n == 0)
		return;
	fact_begin(r, name);
	html_number(&r->html, n);
	if (bad) {
		HTML(&r->html, ", <mark>");
		html_number(&r->html, bad);
		HTML(&r->html, " ");
		html_constant(&r->html, how);
		HTML(&r->html, "</mark>");
	}
	fact_end(r);
}

static void draw_agent_facts(struct report *r)
{
	const struct survey *v = &r->survey;

	if (!v->has_agent)
		return;
	text_fact(r, "Agent", v->driver);
	text_fact(r, "Model", v->model);
	text_fact(r, "Outcome", v->outcome);
	count_fact(r, "Turns", v->turns, 0, NULL);
	if (v->has_cost) {
		fact_begin(r, "Cost");
		draw_money(&r->html, v->cost_usd);
		fact_end(r);
	}
}

static void draw_facts(struct report *r)
{
	const struct survey *v = &r->survey;
	char began[CLOCK_ISO_MAX + 1] = "";

	HTML(&r->html, "<dl>\n");
	draw_agent_facts(r);
	if (v->start_usec) {
		clock_format_utc(v->start_usec, began);
		/* A blank, so that the line may be broken there. */
		began[str_chr(str_from(began), 'T')] = ' ';
		text_fact(r, "Began", began);
		fact_begin(r, "Took");
		draw_duration(&r->html, v->end_usec - v->start_usec);
		fact_end(r);
	}
	count_fact(r, "Commands", v->commands, v->failed, "failed");
	count_fact(r, "Files changed", v->changed_files, 0, NULL);
	count_fact(r, "Files elsewhere", v->own_files, 0, NULL);
	count_fact(r, "Requests", v->requests, v->refused, "refused");
	text_fact(r, "Provider", v->provider);
	text_fact(r, "Ended", v->reason);
	HTML(&r->html, "</dl>\n");
}

static void draw_name(struct report *r)
{
	const char *name = r->survey.name ? r->survey.name : r->source->id;

	html_text(&r->html, text_prefix(str_from(*name ? name : "a log"), 200), HTML_LINE);
}

static void draw_tools(struct report *r)
{
	HTML(&r->html, "<form hidden>\n<input type=search placeholder=\"Search\" "
		       "aria-label=\"Search\" autocomplete=off spellcheck=false>\n"
		       "<output></output>\n"
		       "<label><input type=checkbox checked value=a>agent</label>\n"
		       "<label><input type=checkbox checked value=c>commands</label>\n"
		       "<label><input type=checkbox checked value=f>files</label>\n"
		       "<label><input type=checkbox checked value=n>requests</label>\n"
		       "<label><input type=checkbox checked value=s>other</label>\n");
	if (r->survey.own_files + r->survey.telemetry > 0)
		HTML(&r->html,
			"<label><input type=checkbox value=o>files elsewhere, telemetry</label>\n");
	HTML(&r->html, "<button type=button name=bad>Next problem</button>\n"
		       "<button type=button name=open>Open all</button>\n"
		       "<button type=button name=close>Close all</button>\n</form>\n");
}

int page_begin(struct report *r, struct cloche_err *err)
{
	int e;

	HTML(&r->html, "<!DOCTYPE html>\n<html lang=en><head>\n<meta charset=utf-8>\n");
	draw_policy(r);
	HTML(&r->html, "<title>cloche: ");
	html_text(&r->html, str_from(*r->source->id ? r->source->id : "a log"), HTML_LINE);
	HTML(&r->html, "</title>\n<style>");
	html_constant(&r->html, report_css);
	HTML(&r->html, "</style>\n</head><body>\n<header><h1>");
	draw_name(r);
	HTML(&r->html, "</h1>\n");
	if (r->survey.command && *r->survey.command) {
		HTML(&r->html, "<p><code>");
		html_text(&r->html, str_from(r->survey.command), HTML_LINE);
		HTML(&r->html, "</code></p>\n");
	}
	e = summary_draw(r, err);
	draw_facts(r);
	HTML(&r->html, "</header>\n");
	draw_tools(r);
	HTML(&r->html, "<main>\n");
	return e;
}

void page_end(struct report *r)
{
	HTML(&r->html, "</main>\n<footer>");
	html_number(&r->html, r->survey.operations);
	HTML(&r->html, " entries. Written by cloche from its operation log.</footer>\n<script>");
	html_constant(&r->html, report_js);
	HTML(&r->html, "</script>\n</body></html>\n");
}
