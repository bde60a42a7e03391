/* SPDX-License-Identifier: Apache-2.0 */
#include "report/content.h"
#include "base/fd.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_ref(struct content *c, const struct report_source *source, struct str ref,
	struct cloche_err *err)
{
	struct stat st;

	c->fd = source->open(source->user, ref, err);
	if (c->fd == -E_NO_MEMORY)
		return c->fd;
	c->is_missing = c->fd < 0 || fstat(c->fd, &st) < 0;
	if (c->is_missing)
		err_clear(err);
	else
		c->size = (uint64_t)st.st_size;
	return 0;
}

int content_of(struct content *ret, const struct report_source *source, struct str text,
	bool is_ref, struct cloche_err *err)
{
	if (is_ref)
		return open_ref(ret, source, text, err);
	ret->text = text;
	ret->size = text.n;
	return 0;
}

int content_of_args(struct content *ret, const struct report_source *source, const json_t *args,
	const char *key, const char *ref_key, struct cloche_err *err)
{
	struct str text = json_str_at(args, ref_key);
	int r;

	if (text.p)
		return content_of(ret, source, text, true, err);
	r = state_argument_read(args, key, &ret->bytes, &text, err);
	if (r == -E_NO_MEMORY)
		return r;
	err_clear(err);
	return content_of(ret, source, r < 0 ? STR_NULL : text, false, err);
}

struct str content_read(struct content *c, uint64_t at, size_t n)
{
	char *p;

	if (at >= c->size)
		return STR_NULL;
	if (c->fd < 0)
		return str_prefix(str_from_index(c->text, (size_t)at), n);
	n = (size_t)MIN((uint64_t)n, c->size - at);
	buf_clear(&c->bytes);
	if (buf_reserve(&c->bytes, n, &p) < 0)
		return STR_NULL;
	while (buf_len(&c->bytes) < n) {
		ssize_t got = pread(c->fd, p + buf_len(&c->bytes), n - buf_len(&c->bytes),
			(off_t)(at + buf_len(&c->bytes)));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		buf_commit(&c->bytes, (size_t)got);
	}
	return buf_str(&c->bytes);
}

void content_done(struct content *c)
{
	if (c->fd >= 0)
		fd_close(c->fd);
	buf_done(&c->bytes);
	*c = CONTENT_INIT;
}
