/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: there is one stage for each coding; the coding that was applied last comes
 * first. A stage takes from the stage before it only what it needs to give some output, so there is
 * one small buffer between two stages, and no stage runs ahead of its reader.
 *
 * Shortcuts of the libraries are avoided if they would make the result depend on how the input is
 * cut: zstd decodes a frame that it sees whole without checking its window, so a frame's header is
 * given to it byte by byte. Its older formats are refused. */
#include "http/coding.h"

#include <brotli/decode.h>
#include <errno.h>
#include <stddef.h>
#include <zlib.h>
#include <zstd.h>

#define BETWEEN (16 * 1024)
#define WINDOW_LOG_MAX 23 /* RFC 9659 */
#define FRAME_HEADER_MAX 18
#define GIVING 64 /* bytes of input per byte of output that are not idle */

struct stage {
	enum coding coding;
	bool begun; /* something was taken */
	bool ended; /* the coding may end here */
	bool full;  /* the output was used up: there may be more */
	uint8_t head[2];
	uint8_t head_n, head_used; /* deflate: of the first two bytes; zstd: of a frame's header */
	z_stream z;
	BrotliDecoderState *br;
	ZSTD_DStream *zstd;
	size_t zstd_charged;
	uint64_t idle;
	char *mem; /* its input, if that comes from another stage */
	struct str pending;
};

struct coding_decoder {
	struct stage stages[CODING_STACK_MAX];
	unsigned n;
	struct coding_budget *budget, unbounded;
	const char *error;
};

/* A header of each block, to know its size when it is given back. */
union block {
	size_t n;
	max_align_t align;
};

static void *take(void *opaque, size_t n)
{
	struct coding_budget *b = opaque;
	union block *block;

	if (b->used > b->max || n > b->max - b->used || n > SIZE_MAX - sizeof(*block))
		return NULL;
	block = malloc(sizeof(*block) + n);
	if (!block)
		return NULL;
	block->n = n;
	b->used += n;
	return block + 1;
}

static void give_back(void *opaque, void *p)
{
	struct coding_budget *b = opaque;
	union block *block = p;

	if (!p)
		return;
	b->used -= block[-1].n;
	free(block - 1);
}

static void *take_items(void *opaque, unsigned items, unsigned size)
{
	return take(opaque, (size_t)items * size);
}

/* zstd allocates its memory itself, so it is counted afterwards. */
static bool charge_zstd(struct stage *st, struct coding_budget *b)
{
	size_t now = st->zstd ? ZSTD_sizeof_DStream(st->zstd) : 0;

	b->used = b->used - st->zstd_charged + now;
	st->zstd_charged = now;
	return b->used <= b->max;
}

static bool coding_begin(struct stage *st, struct coding_budget *b)
{
	st->z = (z_stream){.zalloc = take_items, .zfree = give_back, .opaque = b};
	switch (st->coding) {
	case CODING_GZIP:
		return inflateInit2(&st->z, 15 + 16) == Z_OK;
	case CODING_DEFLATE:
		return inflateInit2(&st->z, 15) == Z_OK;
	case CODING_BR:
		st->br = BrotliDecoderCreateInstance(take, give_back, b);
		return st->br;
	case CODING_ZSTD:
		st->zstd = ZSTD_createDStream();
		return st->zstd &&
		       !ZSTD_isError(ZSTD_DCtx_setParameter(
			       st->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)) &&
		       charge_zstd(st, b);
	case CODING_N:
		break;
	}
	return false;
}

int coding_decoder_new(
	const struct coding_list *list, struct coding_budget *budget, struct coding_decoder **ret)
{
	_cleanup_(coding_decoder_freep) struct coding_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->unbounded.max = SIZE_MAX;
	d->budget = budget ? budget : &d->unbounded;
	for (unsigned i = list->n; i-- > 0;) {
		struct stage *st = &d->stages[d->n++];

		st->coding = list->v[i];
		if (!coding_begin(st, d->budget))
			return -ENOMEM;
		if (d->n > 1) {
			st->mem = malloc(BETWEEN);
			if (!st->mem)
				return -ENOMEM;
		}
	}
	*ret = TAKE_PTR(d);
	return 0;
}

struct coding_decoder *coding_decoder_free(struct coding_decoder *d)
{
	if (!d)
		return NULL;
	for (unsigned i = 0; i < d->n; i++) {
		struct stage *st = &d->stages[i];

		(void)inflateEnd(&st->z);
		if (st->br)
			BrotliDecoderDestroyInstance(st->br);
		ZSTD_freeDStream(TAKE_PTR(st->zstd));
		(void)charge_zstd(st, d->budget);
		free(st->mem);
	}
	free(d);
	return NULL;
}

static int fail(struct coding_decoder *d, const char *why)
{
	d->error = why;
	return -EPROTO;
}

/* The head of a zlib stream cannot be that of bare deflate: there it would mean a stored block with
 * bits set in the padding, which no encoder makes. */
static bool is_zlib(const uint8_t head[2])
{
	return (head[0] & 0x0f) == 8 && (head[0] << 8 | head[1]) % 31 == 0;
}

static int inflate_step(struct coding_decoder *d, struct stage *st, struct str *in, char *out,
	size_t size, size_t *ret_n)
{
	z_stream *z = &st->z;
	int r;

	z->next_in = (Bytef *)(uintptr_t)in->p;
	z->avail_in = (uInt)MIN(in->n, (size_t)UINT32_MAX);
	z->next_out = (Bytef *)out;
	z->avail_out = (uInt)MIN(size, (size_t)UINT32_MAX);
	r = inflate(z, Z_NO_FLUSH);
	*in = str_from_index(*in, (size_t)((const char *)z->next_in - in->p));
	*ret_n = (size_t)((char *)z->next_out - out);
	st->ended = r == Z_STREAM_END;
	if (r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR)
		return 0;
	return fail(d, r == Z_MEM_ERROR ? "out of memory" : "broken deflate data");
}

static int gzip_step(struct coding_decoder *d, struct stage *st, struct str *in, char *out,
	size_t size, size_t *ret_n)
{
	if (st->ended && inflateReset(&st->z) != Z_OK) /* one more member */
		return fail(d, "out of memory");
	return inflate_step(d, st, in, out, size, ret_n);
}

/* Some servers send zlib's format, as they should, and some send bare deflate. */
static int deflate_step(struct coding_decoder *d, struct stage *st, struct str *in, char *out,
	size_t size, size_t *ret_n)
{
	struct str held;
	int r;

	if (st->head_n < 2) {
		st->head[st->head_n++] = (uint8_t)in->p[0];
		*in = str_from_index(*in, 1);
		if (st->head_n == 2 && inflateReset2(&st->z, is_zlib(st->head) ? 15 : -15) != Z_OK)
			return fail(d, "out of memory");
		return 0;
	}
	if (st->head_used == 2)
		return inflate_step(d, st, in, out, size, ret_n);
	held = str_make(st->head + st->head_used, 2U - st->head_used);
	r = inflate_step(d, st, &held, out, size, ret_n);
	st->head_used = (uint8_t)(2 - held.n);
	return r;
}

static int br_step(struct coding_decoder *d, struct stage *st, struct str *in, char *out,
	size_t size, size_t *ret_n)
{
	const uint8_t *next_in = (const uint8_t *)in->p;
	uint8_t *next_out = (uint8_t *)out;
	size_t left = size;
	BrotliDecoderResult r =
		BrotliDecoderDecompressStream(st->br, &in->n, &next_in, &left, &next_out, NULL);

	in->p = (const char *)next_in;
	*ret_n = size - left;
	st->ended = r == BROTLI_DECODER_RESULT_SUCCESS;
	if (r != BROTLI_DECODER_RESULT_ERROR)
		return 0;
	return fail(d, BrotliDecoderGetErrorCode(st->br) <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES
			       ? "out of memory"
			       : "broken brotli data");
}

/* Whether c continues the magic number of a frame, or of a skippable frame (RFC 8878 3.1). */
static bool is_magic(struct stage *st, uint8_t c)
{
	static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd}, skip[] = {0x50, 0x2a, 0x4d, 0x18};

	if (st->head_n == 0) {
		st->head[0] = c & 0xf0U;
		return c == frame[0] || st->head[0] == skip[0];
	}
	return c == (st->head[0] == skip[0] ? skip : frame)[st->head_n];
}

static int zstd_step(struct coding_decoder *d, struct stage *st, struct str *in, char *out,
	size_t size, size_t *ret_n)
{
	bool in_header = st->head_n < FRAME_HEADER_MAX && in->n > 0;
	ZSTD_inBuffer from = {in->p, in_header ? 1 : in->n, 0};
	ZSTD_outBuffer to = {out, size, 0};
	size_t r;

	if (in_header && st->head_n < 4 && !is_magic(st, (uint8_t)in->p[0]))
		return fail(d, "not a zstd frame");
	r = ZSTD_decompressStream(st->zstd, &to, &from);
	*in = str_from_index(*in, from.pos);
	*ret_n = to.pos;
	if (ZSTD_isError(r))
		return fail(d, "broken zstd data, or a window of more than 8 MiB");
	if (!charge_zstd(st, d->budget))
		return fail(d, "out of memory");
	st->ended = r == 0;
	if (st->ended)
		st->head_n = 0;
	else if (in_header)
		st->head_n = (uint8_t)(st->head_n + from.pos);
	return 0;
}

static int decode(struct coding_decoder *d, struct stage *st, struct str *in, char *out,
	size_t size, size_t *ret_n)
{
	switch (st->coding) {
	case CODING_GZIP:
		return gzip_step(d, st, in, out, size, ret_n);
	case CODING_DEFLATE:
		return deflate_step(d, st, in, out, size, ret_n);
	case CODING_BR:
		return br_step(d, st, in, out, size, ret_n);
	case CODING_ZSTD:
		return zstd_step(d, st, in, out, size, ret_n);
	case CODING_N:
		break;
	}
	return -EPROTO;
}

static bool holds_head(const struct stage *st)
{
	return st->coding == CODING_DEFLATE && st->head_n == 2 && st->head_used < 2;
}

/* Take some of *in, or give some output, or both. */
static int step(struct coding_decoder *d, struct stage *st, struct str *in, char *out, size_t size,
	size_t *ret_n)
{
	size_t before = in->n, taken;
	bool held = holds_head(st), more = in->n > 0 || held;
	int r;

	if (st->ended && !more) {
		st->full = false;
		return 0;
	}
	if (st->ended && (st->coding == CODING_DEFLATE || st->coding == CODING_BR))
		return fail(d, "something follows its end");
	st->begun = true;
	r = decode(d, st, in, out, size, ret_n);
	if (r < 0)
		return r;
	taken = before - in->n;
	st->full = *ret_n == size;
	if (more && !held && taken == 0 && *ret_n == 0)
		return fail(d, "it does not go on");
	st->idle += taken;
	st->idle -= MIN(st->idle, GIVING * (uint64_t)*ret_n);
	return st->idle > CODING_IDLE_MAX ? fail(d, "much goes in and nothing comes out") : 0;
}

static int pull(
	struct coding_decoder *d, unsigned k, struct str *in, char *out, size_t size, size_t *ret_n)
{
	struct stage *st = &d->stages[k];
	struct str *from = k ? &st->pending : in;

	for (;;) {
		size_t got = 0;
		int r;

		while (from->n > 0 || st->full || holds_head(st)) {
			r = step(d, st, from, out, size, ret_n);
			if (r < 0 || *ret_n > 0)
				return r;
		}
		if (k == 0)
			return 0;
		r = pull(d, k - 1, in, st->mem, BETWEEN, &got);
		if (r < 0 || got == 0)
			return r;
		st->pending = str_make(st->mem, got);
	}
}

static bool is_complete(const struct coding_decoder *d)
{
	for (unsigned i = 0; i < d->n; i++)
		if (!d->stages[i].ended)
			return !d->stages[0].begun;
	return true;
}

enum coding_result coding_read(
	struct coding_decoder *d, struct str *in, bool last, char *out, size_t size, size_t *ret_n)
{
	size_t n = 0;

	if (d->error || pull(d, d->n - 1, in, out, size, &n) < 0)
		return CODING_BAD;
	*ret_n = n;
	if (n > 0)
		return CODING_DATA;
	if (!last)
		return CODING_MORE;
	if (is_complete(d))
		return CODING_DONE;
	(void)fail(d, "cut off");
	return CODING_BAD;
}

const char *coding_error(const struct coding_decoder *d)
{
	return d->error ? d->error : "no error";
}
