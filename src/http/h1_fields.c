/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_internal.h"
#include "http/valid.h"

/* Theory of operation: when the empty line has come, one pass over the fields collects what frames
 * or routes the message (struct facts), and the rules are applied to that. Framing is decided by
 * RFC 9112 6.3; if there is any doubt, the message is refused. */

struct facts {
	struct {
		unsigned n, first; /* number of such fields, index of the first */
	} seen[HTTP_F_X_AMZ + 1];  /* by enum http_field_id; HTTP_F_OTHER is not counted */
	bool same_lengths;
	bool close, keep_alive, upgrade_named, te_trailers;
};

enum h1_error h1_split_field(struct str line, struct str *ret_name, struct str *ret_value)
{
	size_t n = http_span_class(line, HTTP_C_TOKEN);
	struct str value;

	if (n == 0 || n == line.n || line.p[n] != ':')
		return H1_E_FIELD_NAME;
	if (n > HTTP_NAME_MAX)
		return H1_E_FIELD_NAME_TOO_LONG;
	value = str_trim(str_from_index(line, n + 1));
	if (http_span_class(value, HTTP_C_VALUE) < value.n)
		return H1_E_FIELD_VALUE;
	*ret_name = str_prefix(line, n);
	*ret_value = value;
	return H1_E_OK;
}

/* Marks the fields that Connection names (RFC 9110 7.6.1). */
static void nominate(struct http_fields *f, struct str name)
{
	for (int i = http_fields_find(f, name, 0); i >= 0;
		i = http_fields_find(f, name, (unsigned)i + 1))
		f->v[i].hop = true;
}

static enum h1_error h1_fields_connection(
	struct http_fields *f, struct str list, struct facts *facts)
{
	struct str option;

	while (http_list_next(&list, &option)) {
		if (!http_is_token(option))
			return H1_E_CONNECTION;
		if (str_ieq(option, STR("close")))
			facts->close = true;
		else if (str_ieq(option, STR("keep-alive")))
			facts->keep_alive = true;
		else if (str_ieq(option, STR("upgrade")))
			facts->upgrade_named = true;
		else if (!http_may_nominate(option))
			return H1_E_NOMINATION;
		else
			nominate(f, option);
	}
	return H1_E_OK;
}

static enum h1_error collect(struct http_fields *f, struct facts *facts)
{
	*facts = (struct facts){.same_lengths = true};
	for (unsigned i = 0; i < f->n; i++) {
		enum http_field_id id = f->v[i].id;
		struct str value = http_fields_value(f, i);
		enum h1_error e = H1_E_OK;

		if (id == HTTP_F_OTHER) /* most are */
			continue;
		if (facts->seen[id].n++ == 0)
			facts->seen[id].first = i;
		if (id == HTTP_F_TE)
			facts->te_trailers |= http_list_has(value, STR("trailers"));
		else if (id == HTTP_F_CONNECTION)
			e = h1_fields_connection(f, value, facts);
		else if (id == HTTP_F_CONTENT_LENGTH)
			facts->same_lengths &=
				str_eq(value, http_fields_value(f, facts->seen[id].first));
		if (e != H1_E_OK)
			return e;
	}
	return H1_E_OK;
}

/* The value of the first such field; there is one. */
static struct str first_value(
	const struct http_head *h, const struct facts *facts, enum http_field_id id)
{
	return http_fields_value(&h->fields, facts->seen[id].first);
}

/* RFC 9112 3.2: one Host, and the same as in an absolute target. */
static enum h1_error h1_fields_host(struct http_head *h, const struct facts *facts)
{
	struct str value, name;
	uint16_t port, standard;

	if (facts->seen[HTTP_F_HOST].n == 0)
		return H1_E_NO_HOST;
	if (facts->seen[HTTP_F_HOST].n > 1)
		return H1_E_TWO_HOSTS;
	value = first_value(h, facts, HTTP_F_HOST);
	if (http_parse_authority(value, &name, &port) < 0)
		return H1_E_HOST;
	if (h->flags & HTTP_CONNECT)
		return H1_E_OK;
	if (h->flags & HTTP_ABSOLUTE) {
		standard = str_ieq(http_head_scheme(h), STR("https")) ? 443 : 80;
		if (!str_ieq(name, http_head_host(h)) ||
			(port ? port : standard) != (h->port ? h->port : standard))
			return H1_E_TARGET_HOST;
	}
	h->s_host = (struct http_span){
		.at = (uint32_t)(name.p - h->fields.text.mem), .len = (uint32_t)name.n};
	h->port = port;
	return H1_E_OK;
}

static enum h1_error encoding(struct http_head *h, const struct facts *facts)
{
	struct str value = first_value(h, facts, HTTP_F_TRANSFER_ENCODING);

	if (facts->seen[HTTP_F_TRANSFER_ENCODING].n > 1 || !str_ieq(value, STR("chunked")))
		return H1_E_ENCODING;
	if (h->version != HTTP_11)
		return H1_E_ENCODING_10;
	http_head_set_body(h, HTTP_BODY_CHUNKED, 0);
	return H1_E_OK;
}

/* RFC 9110 8.6: a list that repeats one value means that value. *value is not changed if it is not
 * a list. */
static bool is_one_length(struct str *value)
{
	struct str list = *value, element;

	if (str_chr(list, ',') == list.n)
		return true;
	if (!http_list_next(&list, value))
		return false;
	while (http_list_next(&list, &element))
		if (!str_eq(element, *value))
			return false;
	return true;
}

static enum h1_error h1_fields_length(struct http_head *h, const struct facts *facts)
{
	struct str value = first_value(h, facts, HTTP_F_CONTENT_LENGTH);
	uint64_t n;

	if (facts->seen[HTTP_F_CONTENT_LENGTH].n > 1 && (h->is_request || !facts->same_lengths))
		return H1_E_TWO_LENGTHS;
	if (!h->is_request && !is_one_length(&value))
		return H1_E_TWO_LENGTHS;
	if (http_parse_length(value, &n) < 0)
		return H1_E_LENGTH;
	http_head_set_body(h, HTTP_BODY_LENGTH, n);
	return H1_E_OK;
}

static void upgrade(struct http_head *h, const struct facts *facts)
{
	const struct http_fields *f = &h->fields;

	if (facts->seen[HTTP_F_HTTP2_SETTINGS].n)
		h->flags |= HTTP_H2C;
	if (!facts->seen[HTTP_F_UPGRADE].n)
		return;
	for (unsigned i = facts->seen[HTTP_F_UPGRADE].first; i < f->n; i++)
		if (f->v[i].id == HTTP_F_UPGRADE &&
			http_list_has(http_fields_value(f, i), STR("h2c")))
			h->flags |= HTTP_H2C;
	if (!facts->upgrade_named || h->version != HTTP_11)
		return;
	h->flags |= HTTP_UPGRADE;
	if (facts->seen[HTTP_F_UPGRADE].n == 1 &&
		str_ieq(first_value(h, facts, HTTP_F_UPGRADE), STR("websocket")))
		h->flags |= HTTP_UPGRADE_WS;
}

static enum h1_error h1_fields_finish_request(struct http_head *h, const struct facts *facts)
{
	bool has_length = facts->seen[HTTP_F_CONTENT_LENGTH].n,
	     has_encoding = facts->seen[HTTP_F_TRANSFER_ENCODING].n;
	unsigned expects = facts->seen[HTTP_F_EXPECT].n;
	enum h1_error e = h1_fields_host(h, facts);

	if (e != H1_E_OK)
		return e;
	if (has_length && has_encoding)
		return H1_E_LENGTH_AND_ENCODING;
	if (has_encoding)
		e = encoding(h, facts);
	else if (has_length)
		e = h1_fields_length(h, facts);
	if (e != H1_E_OK)
		return e;
	/* RFC 9110 10.1.1: ignore 100-continue if there is no body, or from HTTP/1.0. */
	if (expects == 1 && str_ieq(first_value(h, facts, HTTP_F_EXPECT), STR("100-continue"))) {
		if (h->version == HTTP_11 && h->body != HTTP_BODY_NONE)
			h->flags |= HTTP_EXPECT_CONTINUE;
	} else if (expects) {
		h->flags |= HTTP_EXPECT_OTHER;
	}
	upgrade(h, facts);
	return H1_E_OK;
}

/* RFC 9112 6.3 rule 1: no body, whatever the fields say. */
static void drop_body(struct http_head *h, const struct facts *facts)
{
	h->body = HTTP_BODY_NONE;
	if (h->status >= 200 && h->status != 204)
		return;
	/* RFC 9110 8.6: a length with 1xx or 204 means nothing. But a server that sends one may
	 * send the bytes too, and they must not be taken for the next response. */
	if (facts->seen[HTTP_F_TRANSFER_ENCODING].n || h->content_length)
		h->flags &= ~(unsigned)HTTP_KEEP_ALIVE;
	h->flags &= ~(unsigned)HTTP_HAS_LENGTH;
	h->content_length = 0;
}

/* RFC 9112 6.3 for responses. */
static enum h1_error h1_fields_finish_response(
	struct http_head *h, const struct facts *facts, unsigned opt)
{
	bool has_length = facts->seen[HTTP_F_CONTENT_LENGTH].n,
	     has_encoding = facts->seen[HTTP_F_TRANSFER_ENCODING].n;
	enum h1_error e = H1_E_OK;

	if (opt & H1_TO_HEAD)
		h->flags |= HTTP_TO_HEAD;
	if (h->status == 101) {
		upgrade(h, facts);
		if (!(opt & H1_UPGRADE_ASKED) || !(h->flags & HTTP_UPGRADE))
			return H1_E_SWITCHING;
	}
	h->body = HTTP_BODY_CLOSE;
	if (has_length)
		e = h1_fields_length(h, facts);
	if (e == H1_E_OK && has_encoding)
		e = encoding(h, facts);
	if (e != H1_E_OK)
		return e;
	if (has_length && has_encoding)
		h->flags &= ~(unsigned)HTTP_KEEP_ALIVE;
	if (h->status < 200 || h->status == 204 || h->status == 304 || (opt & H1_TO_HEAD))
		drop_body(h, facts);
	if (h->body == HTTP_BODY_CLOSE)
		h->flags &= ~(unsigned)HTTP_KEEP_ALIVE;
	return H1_E_OK;
}

enum h1_error h1_finish(struct h1_parser *p)
{
	struct http_head *h = p->head;
	struct facts facts;
	enum h1_error e = collect(&h->fields, &facts);

	if (e != H1_E_OK)
		return e;
	/* RFC 9112 9.3. */
	if (!facts.close && (h->version == HTTP_11 || facts.keep_alive))
		h->flags |= HTTP_KEEP_ALIVE;
	if (facts.te_trailers)
		h->flags |= HTTP_TE_TRAILERS;
	return p->is_request ? h1_fields_finish_request(h, &facts)
			     : h1_fields_finish_response(h, &facts, p->opt);
}
