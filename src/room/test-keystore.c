/* SPDX-License-Identifier: Apache-2.0 */
#include "room/keystore.h"
#include "tap.h"

#define MARKED(text) "-----BEGIN CERTIFICATE-----\n" text "\n-----END CERTIFICATE-----\n"

/* Takes one value with this tag off the front of *s, whose length has to be in its shortest form,
 * and returns its content; an empty view if there is none. */
static struct str take(struct str *s, unsigned char tag)
{
	const unsigned char *p = (const unsigned char *)s->p;
	size_t n, head = 2;
	struct str content;

	if (s->n < 2 || p[0] != tag)
		return STR_NULL;
	n = p[1];
	if (n & 0x80) {
		size_t bytes = n & 0x7f;

		n = 0;
		for (head = 2; head < 2 + bytes && head < s->n; head++)
			n = n << 8 | p[head];
		if (n < 0x80 || p[2] == 0)
			return STR_NULL;
	}
	if (head > s->n || n > s->n - head)
		return STR_NULL;
	content = str_make(s->p + head, n);
	*s = str_make(s->p + head + n, s->n - head - n);
	return content;
}

/* Into the store as far as its list of bags. */
static struct str open_store(struct str store)
{
	struct str pfx = take(&store, 0x30), info, safe;

	check_int(store.n, 0);
	check_str(take(&pfx, 0x02), "\x03");
	info = take(&pfx, 0x30);
	check_int(take(&info, 0x06).n, 9);
	info = take(&info, 0xa0);
	info = take(&info, 0x04);
	safe = take(&info, 0x30);
	info = take(&safe, 0x30);
	check_int(safe.n, 0);
	check_int(take(&info, 0x06).n, 9);
	info = take(&info, 0xa0);
	info = take(&info, 0x04);
	return take(&info, 0x30);
}

static struct str open_bag(struct str *bags)
{
	struct str bag = take(bags, 0x30), cert;

	check_int(take(&bag, 0x06).n, 11);
	cert = take(&bag, 0xa0);
	cert = take(&cert, 0x30);
	check_int(take(&cert, 0x06).n, 10);
	cert = take(&cert, 0xa0);
	check_int(take(&bag, 0x31).n, 0x18); /* trusted */
	check_int(bag.n, 0);
	return take(&cert, 0x04);
}

static void add_whole(struct buf *store, const struct buf *bags)
{
	char head[KEYSTORE_HEAD_MAX];
	size_t n = keystore_head(buf_len(bags), head);

	must(n <= KEYSTORE_HEAD_MAX);
	must(buf_add(store, head, n) == 0 && buf_add_str(store, buf_str(bags)) == 0);
}

static void holds_each_certificate(void)
{
	_cleanup_(buf_donep) struct buf bags = BUF_INIT(1 << 20), store = BUF_INIT(1 << 20);
	struct str list;

	check_int(keystore_add_pem(&bags,
			  STR("# a comment\n" MARKED("aGVsbG8=") "text\n" MARKED("d29y\r\nbGQ="))),
		0);
	add_whole(&store, &bags);
	list = open_store(buf_str(&store));
	check_str(open_bag(&list), "hello");
	check_str(open_bag(&list), "world");
	check_int(list.n, 0);
}

/* If a length takes one more byte, everything around it moves. */
static void lengths_of_all_sizes(void)
{
	static const size_t sizes[] = {1, 90, 91, 92, 93, 94, 126, 127, 128, 129, 200, 249, 252,
		255, 256, 257, 65000, 65430, 65535, 65536, 65537, 300000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_(buf_donep) struct buf pem = BUF_INIT(1 << 20), bags = BUF_INIT(1 << 20);
		_cleanup_(buf_donep) struct buf store = BUF_INIT(1 << 20);
		size_t rest = sizes[i] % 3, whole = sizes[i] / 3;
		struct str list;

		must(buf_add_str(&pem, STR("-----BEGIN CERTIFICATE-----\n")) == 0);
		for (size_t n = 0; n < whole; n++)
			must(buf_add_str(&pem, STR("AAAA\n")) == 0);
		must(rest == 0 || buf_add_str(&pem, rest == 1 ? STR("AA==") : STR("AAA=")) == 0);
		must(buf_add_str(&pem, STR("\n-----END CERTIFICATE-----")) == 0);
		check_int(keystore_add_pem(&bags, buf_str(&pem)), 0);
		add_whole(&store, &bags);
		list = open_store(buf_str(&store));
		check_int(open_bag(&list).n, sizes[i]);
		check_int(list.n, 0);
	}
}

static void odd_text_is_left_out(void)
{
	static const char *const odd[] = {"", "-----BEGIN CERTIFICATE-----",
		"-----BEGIN CERTIFICATE-----\naGVsbG8=", MARKED(""), MARKED("a!b="),
		"-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----"};
	_cleanup_(buf_donep) struct buf bags = BUF_INIT(1 << 20), store = BUF_INIT(1 << 20);
	_cleanup_(buf_donep) struct buf tiny = BUF_INIT(16);
	struct str list;

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		check_int(keystore_add_pem(&bags, str_from(odd[i])), 0);
		check_int(buf_len(&bags), 0);
	}
	check_int(keystore_add_pem(&bags, STR(MARKED("?") MARKED("aGVsbG8="))), 0);
	add_whole(&store, &bags);
	list = open_store(buf_str(&store));
	check_str(open_bag(&list), "hello");
	check(keystore_add_pem(&tiny, STR(MARKED("aGVsbG8="))) < 0);
}

int main(void)
{
	run_test(holds_each_certificate);
	run_test(lengths_of_all_sizes);
	run_test(odd_text_is_left_out);
	return tap_done();
}
