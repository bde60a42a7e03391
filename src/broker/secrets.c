/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (INV-SECRET-SCOPE): surrogates in the headers of a request are replaced by
 * the values that they stand for, if the request is in their scope and goes over verified TLS.
 * Foreign credentials are removed. If the token of a GitHub App is not there yet, or that of a
 * login is at its end, the request waits for a new one and is prepared again. */
#include "broker/broker_internal.h"
#include "broker/chain.h"
#include "broker/github.h"
#include "broker/log.h"
#include "broker/refuse.h"
#include "broker/renew.h"
#include "broker/stream.h"
#include "secrets/replace.h"

/* Notes are views into the result, so write them before the edits are applied. */
static int secrets_log_notes(struct stream *s, const struct replace_result *result)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(4096);
	int r = 0;

	for (size_t i = 0; r == 0 && i < result->n_notes; i++) {
		const struct replace_note *n = &result->notes[i];

		switch (n->kind) {
		case REPLACE_NOTE_STRIPPED:
			r = log_stripped(s, n->header);
			break;
		case REPLACE_NOTE_COLLAPSED:
			r = log_collapsed(s, n->header, n->count);
			break;
		case REPLACE_NOTE_WITHHELD:
			buf_clear(&text);
			r = buf_printf(&text, "%s not put into header '%.*s' for %s: %s",
				n->secret_name, STR_FMT(str_prefix(n->header, 64)), s->host.text,
				n->why);
			if (r == 0)
				r = log_withheld(s->broker, buf_str(&text));
			break;
		}
	}
	return r;
}

/* From the last field to the first, so that removals do not move what is still to come. */
static int secrets_apply_edits(struct stream *s, const struct replace_result *result)
{
	for (size_t i = result->n_edits; i-- > 0;) {
		const struct replace_edit *e = &result->edits[i];
		int r = 0;

		if (e->action == REPLACE_DROP)
			http_fields_remove_at(&s->head.fields, (unsigned)i);
		else if (e->action == REPLACE_SET)
			r = http_fields_set_at(&s->head.fields, (unsigned)i, buf_str(&e->value));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Return 0; 1 if s waits and is prepared again later, or was refused; negative with err set. */
static int secrets_use(
	struct stream *s, const struct replace_result *result, struct cloche_err *err)
{
	int r = renew_take(s, result->unknown, result->renewable);

	if (r == 0)
		r = github_take(s, result->unknown, result->live, result->several_live);
	if (r != 0)
		return r < 0 ? err_nomem(err) : r;
	if (secrets_log_notes(s, result) < 0)
		return err_set(err, E_SYSTEM, "the network log cannot be written");
	s->secret |= result->masked > 0; /* may be set already for AWS */
	s->masked = result->masked;
	s->dropped = result->dropped;
	s->collapsed = result->collapsed;
	if (secrets_apply_edits(s, result) < 0)
		return err_set(err, E_PROTOCOL, "a secret cannot be sent in a header");
	return 0;
}

/* Return as secrets_use(). */
static int secrets_put(struct stream *s, struct cloche_err *err)
{
	const struct http_fields *f = &s->head.fields;
	struct header_view headers[HTTP_FIELDS_MAX];
	struct replace_result result = {0};
	struct replace_request req = {.verified_tls = s->scheme == NET_HTTPS,
		.host = &s->host,
		.headers = headers,
		.n_headers = f->n};
	int r;

	for (unsigned i = 0; i < f->n; i++)
		headers[i] = (struct header_view){
			.name = http_fields_name(f, i), .value = http_fields_value(f, i)};
	if (replace_headers(s->broker->secrets, &req, &result) < 0)
		r = err_set(err, E_LIMIT, "the request's headers could not be judged");
	else
		r = secrets_use(s, &result, err);
	replace_result_done(&result);
	return r;
}

static int secrets_prepare(struct stream *s)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r;

	github_expire(s->broker);
	renew_expire(s->broker);
	if (secret_set_count(s->broker->secrets) == 0)
		return 0;
	r = secrets_put(s, &err);
	if (r >= 0)
		return r;
	refuse_upstream(s, 502, "request_not_sent", err.message);
	return -1;
}

const struct filter filter_secrets = {.prepare = secrets_prepare};
