/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation (AWS, "Signature calculations for the Authorization header: Transferring
 * payload in multiple chunks"): each chunk is
 *
 *	size-in-hex ";chunk-signature=" signature CRLF data CRLF
 *
 * The last one has size 0. Trailers may follow there in place of the data, the last of them
 * x-amz-trailer-signature; then an empty line. Each signature covers the one before it, and the
 * first covers the request's. So there are two chains: the room's, which is verified, and the
 * outgoing one. SigV4A's signatures differ in length and are padded with '*'; the chain uses them
 * without the padding. The grammar is taken literally: one spelling, and nothing before, between or
 * after. */
#include "aws/chunks.h"

#include "base/parse.h"
#include <errno.h>
#include <stdio.h>

enum {
	LINE_MAX_N = 8 * 1024, /* of a trailer; a chunk's header is far shorter */
	TRAILERS_MAX = 16 * 1024,
	TRAILERS_N = 32,
	TEXT_MAX = 2048,
	SIZE_DIGITS = 7,        /* hexadecimal digits of AWS_CHUNK_MAX, and one more */
	KEPT_MAX = 1024 * 1024, /* of memory, for the next chunk */
};

enum state { HEADER, DATA, DATA_END, TRAILER, END };

struct signature {
	char text[AWS_SIGNATURE_MAX];
	size_t n;
};

struct aws_chunks {
	struct aws_scope scope;
	char scope_text[AWS_SCOPE_MAX], time[16];
	struct aws_signer *signer[2]; /* the room's, and the real one */
	struct signature last[2];
	bool trailers, same_length, has_decoded_length;
	uint64_t decoded_length, total;

	enum state state;
	size_t left; /* of the data */
	struct buf line, data, text;
	struct buf trailers_raw;  /* the lines as they came; they go on when they are verified */
	struct buf trailer_lines; /* name:value LF */
	struct signature claimed; /* of the current chunk */
	char size[SIZE_DIGITS];
	size_t size_n;
	bool trailers_signed; /* only the empty line is left */
};

enum { ROOM, REAL };

static int malformed(struct cloche_err *err, const char *what)
{
	return err_set(err, E_PROTOCOL, "the body's aws-chunked encoding is malformed: %s", what);
}

/* The error of a buf that could not take something. */
static int not_added(int r, struct cloche_err *err, const char *what)
{
	return r == -E2BIG ? malformed(err, what) : err_nomem(err);
}

static void set_signature(struct signature *to, struct str from)
{
	to->n = MIN(from.n, sizeof(to->text));
	memcpy(to->text, from.p, to->n);
}

static struct str signature_str(const struct signature *s)
{
	return str_make(s->text, s->n);
}

struct aws_chunks *aws_chunks_new(const struct aws_chunks_config *config)
{
	const struct aws_auth *auth = config->auth;
	struct aws_chunks *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->scope = auth->scope;
	c->scope.text = str_make(c->scope_text, auth->scope.text.n);
	memcpy(c->scope_text, auth->scope.text.p, auth->scope.text.n);
	/* The parts are views of the text that was copied. */
	c->scope.date.p = c->scope_text + (auth->scope.date.p - auth->scope.text.p);
	c->scope.service.p = c->scope_text + (auth->scope.service.p - auth->scope.text.p);
	if (auth->scope.region.p)
		c->scope.region.p = c->scope_text + (auth->scope.region.p - auth->scope.text.p);
	memcpy(c->time, auth->time.p, sizeof(c->time));
	c->signer[ROOM] = config->surrogate;
	c->signer[REAL] = config->real;
	set_signature(&c->last[ROOM], config->surrogate_seed);
	set_signature(&c->last[REAL], config->real_seed);
	c->trailers = auth->kind == AWS_PAYLOAD_CHUNKS_TRAILER;
	c->same_length = config->same_length;
	c->has_decoded_length = config->has_decoded_length;
	c->decoded_length = config->decoded_length;
	c->line = BUF_INIT(LINE_MAX_N);
	c->data = BUF_INIT(AWS_CHUNK_MAX);
	c->text = BUF_INIT(TEXT_MAX);
	c->trailers_raw = BUF_INIT(TRAILERS_MAX);
	c->trailer_lines = BUF_INIT(TRAILERS_MAX);
	return c;
}

struct aws_chunks *aws_chunks_free(struct aws_chunks *c)
{
	if (!c)
		return NULL;
	buf_done(&c->line);
	buf_done(&c->data);
	buf_done(&c->text);
	buf_done(&c->trailers_raw);
	buf_done(&c->trailer_lines);
	free(c);
	return NULL;
}

size_t aws_chunks_held(const struct aws_chunks *c)
{
	return c->data.cap;
}

/* --- signatures --- */

/* Makes the text to sign for a chunk (its data) or for the trailers (their lines), after `last`. */
static int chunk_string_to_sign(
	struct aws_chunks *c, bool trailer, const struct signature *last, const char hash[AWS_HEX])
{
	struct str name = aws_algorithm_name(c->scope.algorithm);

	buf_clear(&c->text);
	return buf_printf(&c->text, "%.*s%s\n%.16s\n%.*s\n%.*s\n%s%.*s", STR_FMT(name),
		trailer ? "-TRAILER" : "-PAYLOAD", c->time, STR_FMT(c->scope.text),
		STR_FMT(signature_str(last)), trailer ? "" : AWS_EMPTY_HASH "\n", AWS_HEX, hash);
}

/* Verifies the signature that the room claims, and makes the outgoing one in ret. */
static int sign(struct aws_chunks *c, bool trailer, struct str content, struct signature *ret,
	struct cloche_err *err)
{
	char hash[AWS_HEX];

	aws_sha256_hex(content, hash);
	if (chunk_string_to_sign(c, trailer, &c->last[ROOM], hash) < 0)
		return err_nomem(err);
	if (!aws_signer_check(
		    c->signer[ROOM], &c->scope, buf_str(&c->text), signature_str(&c->claimed)))
		return err_set(err, E_PROTOCOL, "a signature in the body is not that of its %s",
			trailer ? "trailers" : "chunk");
	c->last[ROOM] = c->claimed;
	if (chunk_string_to_sign(c, trailer, &c->last[REAL], hash) < 0)
		return err_nomem(err);
	ret->n = aws_signer_sign(c->signer[REAL], &c->scope, buf_str(&c->text), ret->text);
	if (ret->n == 0)
		return err_set(err, E_INTERNAL, "a chunk cannot be signed");
	c->last[REAL] = *ret;
	return 0;
}

/* Takes a signature as it stands in the body. */
static int take_signature(struct aws_chunks *c, struct str s, struct cloche_err *err)
{
	bool ecdsa = c->scope.algorithm == AWS_ECDSA;
	size_t width = s.n;

	while (ecdsa && s.n > 0 && s.p[s.n - 1] == '*')
		s.n--;
	if (s.n == 0 || width > AWS_ECDSA_WIDTH || (!ecdsa && s.n != AWS_HEX))
		return malformed(err, "a signature's length");
	if (ecdsa && c->same_length && width != AWS_ECDSA_WIDTH)
		return malformed(err, "a signature that is not padded, and a Content-Length");
	set_signature(&c->claimed, s);
	return 0;
}

static int add_signature(struct aws_chunks *c, const struct signature *s, struct buf *out)
{
	bool padded = c->scope.algorithm == AWS_ECDSA;
	int r = buf_add_str(out, signature_str(s));

	for (size_t n = s->n; r == 0 && padded && n < AWS_ECDSA_WIDTH; n++)
		r = buf_add_char(out, '*');
	return r;
}

/* --- chunks --- */

static int chunk_done(struct aws_chunks *c, struct buf *out, struct cloche_err *err)
{
	struct str data = buf_str(&c->data);
	bool last = data.n == 0;
	struct signature s;
	int r = sign(c, false, data, &s, err);

	if (r < 0)
		return r;
	if (buf_add(out, c->size, c->size_n) < 0 ||
		buf_add_str(out, STR(";chunk-signature=")) < 0 || add_signature(c, &s, out) < 0 ||
		buf_add_str(out, STR("\r\n")) < 0 || buf_add_str(out, data) < 0 ||
		(!(last && c->trailers) && buf_add_str(out, STR("\r\n")) < 0))
		return err_nomem(err);
	if (c->data.cap > KEPT_MAX)
		buf_done(&c->data);
	else
		buf_clear(&c->data);
	return 0;
}

static int chunk_parse_header(
	struct aws_chunks *c, struct str line, struct buf *out, struct cloche_err *err)
{
	struct str name = STR(";chunk-signature="), size = str_prefix(line, str_chr(line, ';'));
	uint64_t n;
	int r;

	if (size.n == 0 || parse_hex_u64(size, &n) < 0 || (size.p[0] == '0' && size.n > 1))
		return malformed(err, "a chunk's size");
	if (n > AWS_CHUNK_MAX)
		return err_set(err, E_LIMIT, "a signed chunk of the body is larger than %d bytes",
			AWS_CHUNK_MAX);
	line = str_from_index(line, size.n);
	if (!str_starts(line, name))
		return malformed(err, "a chunk without chunk-signature");
	r = take_signature(c, str_from_index(line, name.n), err);
	if (r < 0)
		return r;
	memcpy(c->size, size.p, size.n);
	c->size_n = size.n;
	c->left = n;
	c->total += n;
	if (c->has_decoded_length &&
		(n > 0 ? c->total > c->decoded_length : c->total != c->decoded_length))
		return malformed(err, "its length is not x-amz-decoded-content-length");
	if (n == 0 && c->trailers) {
		c->state = TRAILER;
		return chunk_done(c, out, err);
	}
	c->state = n > 0 ? DATA : DATA_END;
	return 0;
}

/* --- trailers --- */

/* The received lines, sorted, as they are signed. */
static int sorted_trailers(struct aws_chunks *c, struct buf *ret, struct cloche_err *err)
{
	struct str rest = buf_str(&c->trailer_lines), v[TRAILERS_N];
	size_t n = 0;

	while (rest.n > 0 && n < TRAILERS_N) {
		v[n] = str_prefix(rest, str_chr(rest, '\n') + 1);
		rest = str_from_index(rest, v[n++].n);
	}
	if (rest.n > 0)
		return malformed(err, "too many trailers");
	qsort(v, n, sizeof(*v), aws_compare_texts);
	for (size_t i = 0; i < n; i++)
		if (buf_add_str(ret, v[i]) < 0)
			return err_nomem(err);
	return 0;
}

static int trailers_done(
	struct aws_chunks *c, struct str signature, struct buf *out, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf sorted = BUF_INIT(TRAILERS_MAX);
	struct signature s;
	int r = take_signature(c, signature, err);

	if (r == 0)
		r = sorted_trailers(c, &sorted, err);
	if (r == 0)
		r = sign(c, true, buf_str(&sorted), &s, err);
	if (r < 0)
		return r;
	if (buf_add_str(out, buf_str(&c->trailers_raw)) < 0 ||
		buf_add_str(out, STR("x-amz-trailer-signature:")) < 0 ||
		add_signature(c, &s, out) < 0 || buf_add_str(out, STR("\r\n")) < 0)
		return err_nomem(err);
	c->trailers_signed = true;
	return 0;
}

/* A trailer waits for the signature that covers it, and goes on as it came. */
static int add_trailer(struct aws_chunks *c, struct str line, struct cloche_err *err)
{
	struct str rest = line, name = str_next(&rest, ':'), value = str_trim(rest);
	int r;

	if (name.n == 0 || name.n == line.n || !str_is_all(name, STR_LOWER STR_DIGITS "-_"))
		return malformed(err, "a trailer");
	for (size_t i = 0; i < value.n; i++)
		if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
			return malformed(err, "a trailer's value");
	r = buf_printf(&c->trailer_lines, "%.*s:%.*s\n", STR_FMT(name), STR_FMT(value));
	if (r == 0)
		r = buf_printf(&c->trailers_raw, "%.*s\r\n", STR_FMT(line));
	return r < 0 ? not_added(r, err, "too many trailers") : 0;
}

static int parse_trailer(
	struct aws_chunks *c, struct str line, struct buf *out, struct cloche_err *err)
{
	struct str name = STR("x-amz-trailer-signature:");

	if (c->trailers_signed && line.n > 0)
		return malformed(err, "bytes behind the trailers' signature");
	if (c->trailers_signed) {
		c->state = END;
		return buf_add_str(out, STR("\r\n")) < 0 ? err_nomem(err) : 0;
	}
	if (str_starts(line, name))
		return trailers_done(c, str_from_index(line, name.n), out, err);
	return add_trailer(c, line, err);
}

/* --- bytes --- */

/* Takes bytes up to a line end. Returns 1 if c->line is whole then, without its end. */
static int take_line(struct aws_chunks *c, struct str *in, struct cloche_err *err)
{
	struct str part = str_prefix(*in, str_chr(*in, '\n'));
	bool whole = part.n < in->n;
	int r;

	*in = str_from_index(*in, part.n + whole);
	r = buf_add_str(&c->line, part);
	if (r < 0)
		return not_added(r, err, "a line that is too long");
	if (!whole)
		return 0;
	if (!str_ends(buf_str(&c->line), STR("\r")))
		return malformed(err, "a line's end");
	c->line.tail--;
	return 1;
}

static int take_data(struct aws_chunks *c, struct str *in, struct cloche_err *err)
{
	struct str part = str_prefix(*in, c->left);

	if (buf_add_str(&c->data, part) < 0)
		return err_nomem(err);
	*in = str_from_index(*in, part.n);
	c->left -= part.n;
	if (c->left == 0)
		c->state = DATA_END;
	return 0;
}

static int line_done(struct aws_chunks *c, struct buf *out, struct cloche_err *err)
{
	struct str line = buf_str(&c->line);
	bool last = buf_len(&c->data) == 0;

	if (c->state == HEADER)
		return chunk_parse_header(c, line, out, err);
	if (c->state == TRAILER)
		return parse_trailer(c, line, out, err);
	if (line.n > 0)
		return malformed(err, "a chunk's end");
	c->state = last ? END : HEADER;
	return chunk_done(c, out, err);
}

int aws_chunks_feed(struct aws_chunks *c, struct str in, struct buf *out, struct cloche_err *err)
{
	int r = 0;

	while (r >= 0 && in.n > 0) {
		if (c->state == END)
			return malformed(err, "bytes behind its end");
		if (c->state == DATA) {
			r = take_data(c, &in, err);
			continue;
		}
		r = take_line(c, &in, err);
		if (r > 0) {
			r = line_done(c, out, err);
			buf_clear(&c->line);
		}
	}
	return r < 0 ? r : 0;
}

int aws_chunks_end(struct aws_chunks *c, struct cloche_err *err)
{
	return c->state == END ? 0 : malformed(err, "it ends too early");
}
