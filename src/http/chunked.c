/* SPDX-License-Identifier: Apache-2.0 */
#include "http/chunked.h"
#include "base/parse.h"
#include "http/h1_internal.h"
#include "http/valid.h"

#include <errno.h>

/* Theory of operation: a state machine takes the framing byte by byte, and hands out the data of a
 * chunk as views of the input. It accepts RFC 9112 7.1 without what is not needed but helps request
 * smuggling: sizes over 8 digits, a lone LF, and, unless the caller tolerates them, extensions and
 * blanks. Tolerated are ";name", ";name=token" and ";name="quoted"" in printable ASCII, and blanks
 * after the size; they are checked and dropped byte by byte, never kept. */

enum {
	SIZE,        /* a digit, or CR or ";" after at least one */
	EXT_NAME_1,  /* the first byte of an extension's name */
	EXT_NAME,    /* more of it, or "=", ";", CR */
	EXT_VALUE_1, /* the first byte of a token, or a quote */
	EXT_VALUE,   /* more of the token, or ";", CR */
	EXT_QUOTED,  /* within quotes */
	EXT_ESCAPED, /* after a backslash there */
	EXT_AFTER,   /* ";" or CR after the closing quote */
	SIZE_BLANK,  /* more blanks after the size, or CR */
	SIZE_LF,     /* LF after the size and its extensions */
	CHUNK_DATA,
	DATA_CR, /* CR LF after the data */
	DATA_LF,
	TRAILERS,
	ENDED,
	BROKEN,
};

#define SIZE_DIGITS 8

static bool may_be_in_trailers(struct str name)
{
	/* RFC 9110 6.5.1: framing, routing, request modifiers, authentication, response control,
	 * and how to read the content. Names that http_field_id() knows are judged by their id. */
	static const struct str refused[] = {
		{"age", 3},
		{"cache-control", 13},
		{"expires", 7},
		{"location", 8},
		{"max-forwards", 12},
		{"pragma", 6},
		{"range", 5},
		{"retry-after", 11},
		{"vary", 4},
		{"warning", 7},
		{"www-authenticate", 16},
	};
	enum http_field_id id = http_field_id(name);

	if ((id != HTTP_F_OTHER && id != HTTP_F_X_AMZ) ||
		http_field_overrides(name) != HTTP_OVERRIDES_NOTHING)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (str_ieq(name, refused[i]))
			return false;
	return !str_ieq(str_prefix(name, 3), STR("if-")) &&
	       !str_ieq(str_prefix(name, 6), STR("accept")) &&
	       !str_ieq(str_prefix(name, 6), STR("proxy-"));
}

/* '-' and '_' count as the same here, because some servers map field names to variables. */
bool http_is_trailer_name(struct str name)
{
	char plain[HTTP_NAME_MAX];

	if (!http_is_field_name(name))
		return false;
	for (size_t i = 0; i < name.n; i++)
		plain[i] = name.p[i] == '_' ? '-' : name.p[i];
	return may_be_in_trailers(str_make(plain, name.n));
}

void chunked_init(struct chunked_decoder *d, struct http_fields *trailers, bool extensions)
{
	*d = (struct chunked_decoder){.trailers = trailers,
		.extensions = extensions,
		.line = BUF_INIT(HTTP_TRAILERS_MAX)};
	if (trailers)
		http_fields_clear(trailers);
}

void chunked_done(struct chunked_decoder *d)
{
	buf_done(&d->line);
}

static enum chunked_result chunked_broken(struct chunked_decoder *d, enum chunked_error e)
{
	d->error = e;
	d->state = BROKEN;
	return CHUNKED_ERROR;
}

/* The state after byte c of an extension, or of the blanks with which some servers pad the size
 * (RFC 9112 7.1.1; RFC 9110 5.6.4 for the quotes). */
static unsigned after_extension_byte(unsigned state, char c)
{
	bool token = http_char_is(c, HTTP_C_TOKEN), text = c == '\t' || (c >= ' ' && c <= '~');

	switch (state) {
	case SIZE_BLANK:
		return c == '\r' ? SIZE_LF : c == ' ' || c == '\t' ? SIZE_BLANK : BROKEN;
	case EXT_NAME_1:
		return token ? EXT_NAME : BROKEN;
	case EXT_VALUE_1:
		return token ? EXT_VALUE : c == '"' ? EXT_QUOTED : BROKEN;
	case EXT_QUOTED:
		return !text ? BROKEN : c == '"' ? EXT_AFTER : c == '\\' ? EXT_ESCAPED : EXT_QUOTED;
	case EXT_ESCAPED:
		return text ? EXT_QUOTED : BROKEN;
	}
	if (c == '\r')
		return SIZE_LF;
	if (c == ';')
		return EXT_NAME_1;
	if (c == '=' && state == EXT_NAME)
		return EXT_VALUE_1;
	return token && state != EXT_AFTER ? state : BROKEN;
}

static enum chunked_result extension_byte(struct chunked_decoder *d, char c)
{
	d->state = (uint8_t)after_extension_byte(d->state, c);
	if (d->state == BROKEN)
		return chunked_broken(d, CHUNKED_E_EXTENSION);
	if (d->state != SIZE_LF && ++d->extension_bytes > CHUNKED_EXTENSION_MAX)
		return chunked_broken(d, CHUNKED_E_EXTENSION);
	return CHUNKED_MORE;
}

/* Take one byte of framing. Return CHUNKED_MORE to go on. */
static enum chunked_result framing_byte(struct chunked_decoder *d, char c)
{
	int digit;

	if (d->state > SIZE && d->state < SIZE_LF)
		return extension_byte(d, c);
	if (d->state == SIZE) {
		if (c == '\r' && d->digits > 0) {
			d->state = SIZE_LF;
			return CHUNKED_MORE;
		}
		if ((c == ';' || c == ' ' || c == '\t') && d->digits > 0 && d->extensions) {
			d->state = c == ';' ? EXT_NAME_1 : SIZE_BLANK;
			d->extension_bytes = 1;
			return CHUNKED_MORE;
		}
		digit = parse_hex_digit(c);
		if (digit < 0 || d->digits == SIZE_DIGITS)
			return chunked_broken(d, CHUNKED_E_SIZE);
		d->left = d->left << 4 | (unsigned)digit;
		d->digits++;
		return CHUNKED_MORE;
	}
	if (c != (d->state == DATA_CR ? '\r' : '\n'))
		return chunked_broken(d, CHUNKED_E_LINE_END);
	if (d->state == SIZE_LF) {
		d->state = d->left ? CHUNK_DATA : TRAILERS;
		d->digits = 0;
	} else {
		d->state = d->state == DATA_CR ? DATA_LF : SIZE;
	}
	return CHUNKED_MORE;
}

static enum h1_error trailer_line(struct chunked_decoder *d, struct str line)
{
	struct str name, value;
	enum h1_error e;
	int r;

	if (line.n < 2 || line.p[line.n - 2] != '\r')
		return H1_E_LINE_END;
	line.n -= 2;
	if (line.n == 0) {
		d->state = ENDED;
		return H1_E_OK;
	}
	if (line.p[0] == ' ' || line.p[0] == '\t')
		return H1_E_FOLD;
	e = h1_split_field(line, &name, &value);
	if (e != H1_E_OK)
		return e;
	if (++d->trailer_count > HTTP_FIELDS_MAX)
		return H1_E_TOO_MANY_FIELDS;
	if (!d->trailers || !http_is_trailer_name(name))
		return H1_E_OK;
	r = http_fields_add(d->trailers, name, value);
	return r < 0 ? H1_E_NO_MEMORY : H1_E_OK;
}

/* Takes up to the next LF of the trailer section. */
static enum chunked_result trailers(struct chunked_decoder *d, struct str *in)
{
	size_t take = str_chr(*in, '\n');
	bool complete = take < in->n;

	take += complete;
	if (take > HTTP_TRAILERS_MAX - d->trailer_bytes) {
		d->trailer_error = H1_E_TRAILERS_TOO_LARGE;
		return chunked_broken(d, CHUNKED_E_TRAILER);
	}
	d->trailer_bytes += take;
	if (buf_add(&d->line, in->p, take) < 0) {
		d->trailer_error = H1_E_NO_MEMORY;
		return chunked_broken(d, CHUNKED_E_TRAILER);
	}
	*in = str_from_index(*in, take);
	if (!complete)
		return CHUNKED_MORE;
	d->trailer_error = trailer_line(d, buf_str(&d->line));
	buf_clear(&d->line);
	if (d->trailer_error != H1_E_OK)
		return chunked_broken(d, CHUNKED_E_TRAILER);
	return CHUNKED_MORE;
}

enum chunked_result chunked_read(struct chunked_decoder *d, struct str *in, struct str *ret_data)
{
	if (d->state == BROKEN)
		return CHUNKED_ERROR;
	while (d->state != ENDED && in->n) {
		enum chunked_result r;

		if (d->state == CHUNK_DATA) {
			size_t n = (size_t)MIN((uint64_t)in->n, d->left);

			*ret_data = str_prefix(*in, n);
			*in = str_from_index(*in, n);
			d->left -= n;
			if (d->left == 0)
				d->state = DATA_CR;
			return CHUNKED_DATA;
		}
		if (d->state == TRAILERS) {
			r = trailers(d, in);
		} else {
			r = framing_byte(d, in->p[0]);
			*in = str_from_index(*in, 1);
		}
		if (r != CHUNKED_MORE)
			return r;
	}
	return d->state == ENDED ? CHUNKED_DONE : CHUNKED_MORE;
}

const char *chunked_error_text(const struct chunked_decoder *d)
{
	static const char *const texts[] = {
		[CHUNKED_E_OK] = "no error",
		[CHUNKED_E_SIZE] = "malformed chunk size, or a chunk extension",
		[CHUNKED_E_EXTENSION] = "malformed or too large chunk extension",
		[CHUNKED_E_LINE_END] = "CR LF missing in chunk framing",
		[CHUNKED_E_TRUNCATED] = "connection ended within a chunked body",
	};

	return d->error == CHUNKED_E_TRAILER ? h1_error_text(d->trailer_error) : texts[d->error];
}
