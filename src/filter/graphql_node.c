/* SPDX-License-Identifier: Apache-2.0 */
/* GitHub's global node ids: PREFIX_ and, in base64, a msgpack array whose second element is the
 * database id of the repository that the object is (in). An id in another form than GitHub writes
 * is refused, so that no server reads another number in it than we do. */
#include "filter/graphql_scope.h"

#include "base/base64.h"
#include <errno.h>
#include <stdint.h>

enum { DECODED_MAX = 512, PREFIX_MAX = 6, DATA_MIN = 4 };

struct pack {
	const unsigned char *p;
	size_t n;
};

static int take_uint(struct pack *in, unsigned size, uint64_t *ret)
{
	uint64_t value = 0;

	if (in->n < size)
		return -EINVAL;
	for (unsigned i = 0; i < size; i++)
		value = value << 8 | in->p[i];
	in->p += size;
	in->n -= size;
	*ret = value;
	return 0;
}

static int skip(struct pack *in, uint64_t n)
{
	if (in->n < n)
		return -EINVAL;
	in->p += n;
	in->n -= n;
	return 0;
}

/* Take one element. Return 0 for an integer that is not negative, 1 for a short string, which is
 * skipped, or -EINVAL. */
static int take_element(struct pack *in, uint64_t *ret)
{
	uint64_t type, n = 0;
	int r = take_uint(in, 1, &type);

	if (r < 0)
		return r;
	if (type <= 0x7f) { /* positive fixint */
		*ret = type;
		return 0;
	}
	if (type >= 0xcc && type <= 0xcf) /* uint 8, 16, 32, 64 */
		return take_uint(in, 1U << (type - 0xcc), ret);
	if (type == 0xd2) { /* int 32 */
		r = take_uint(in, 4, ret);
		return r < 0 || *ret > INT32_MAX ? -EINVAL : 0;
	}
	if (type >= 0xa0 && type <= 0xbf) /* fixstr */
		n = type & 0x1f;
	else if (type != 0xd9 || take_uint(in, 1, &n) < 0) /* str 8 */
		return -EINVAL;
	return skip(in, n) < 0 ? -EINVAL : 1;
}

static int read_pack(struct pack in, uint64_t *ret)
{
	uint64_t head, value = 0, id = 0;

	if (take_uint(&in, 1, &head) < 0 || head < 0x92 || head > 0x9f) /* fixarray, two or more */
		return -EINVAL;
	for (uint64_t i = 0; i < head - 0x90; i++) {
		int r = take_element(&in, &value);

		if (r < 0 || (i == 1 && r != 0))
			return -EINVAL;
		id = i == 1 ? value : id;
	}
	if (in.n > 0)
		return -EINVAL;
	*ret = id;
	return 0;
}

static bool is_upper(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < 'A' || s.p[i] > 'Z')
			return false;
	return s.n > 0;
}

int graphql_node_repository(struct str node_id, uint64_t *ret)
{
	static const struct str outside[] = {STR("U"), STR("O"), STR("T"), STR("BOT"), STR("EMU")};
	size_t n = str_chr(node_id, '_');
	struct str prefix = str_prefix(node_id, n), data = str_from_index(node_id, n + 1);
	_cleanup_(buf_donep) struct buf decoded = BUF_INIT(DECODED_MAX);
	int r;

	if (n > PREFIX_MAX || !is_upper(prefix) || data.n < DATA_MIN)
		return -EINVAL;
	r = base64_decode(&decoded, data);
	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	if (str_is_one_of(prefix, outside, ARRAY_SIZE(outside)))
		return 1;
	/* In the id of a project the second element is its owner's id, which may also be the number
	 * of some repository. */
	if (str_starts(prefix, STR("PVT")))
		return -EINVAL;
	return read_pack(
		(struct pack){(unsigned char *)buf_data(&decoded), buf_len(&decoded)}, ret);
}
