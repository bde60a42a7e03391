/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: base ipc sync */
/* The state of a copy has names from another machine. What is read of a file has only clean paths,
 * and is the same when it is written and read once more. The digest in the head would keep a fuzzer
 * out, so its records also come behind a head that fits them. */
#include "base/fd.h"
#include "sync/state.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HEAD = 128 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static int new_file(void)
{
	int fd = memfd_create("state", MFD_CLOEXEC);

	require(fd >= 0);
	return fd;
}

static void put_head(int fd, const uint8_t *records, size_t n)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(HEAD);
	struct wire_out out = wire_out(&b);
	uint8_t digest[SHA256_BYTES];
	struct sha256 h;
	char *rest;

	sha256_init(&h);
	sha256_add(&h, str_make(records, n));
	sha256_bytes(&h, digest);
	require(buf_add(&b, "cloche-sync 1\n\0", 16) == 0);
	wire_put_int(&out, SYNC_WHOLE, 8);
	wire_put_int(&out, HEAD, 8);
	wire_put_int(&out, n, 8);
	require(buf_add(&b, digest, sizeof(digest)) == 0);
	n = buf_room(&b);
	require(buf_reserve(&b, n, &rest) == 0);
	memset(rest, 0, n);
	buf_commit(&b, n);
	require(fd_write_all(fd, buf_data(&b), buf_len(&b)) == 0);
}

static void check_again(const struct sync_state *s)
{
	_cleanup_(sync_state_donep) struct sync_state again = {0};
	_cleanup_fd_ int fd = new_file();

	require(sync_state_write(fd, s, NULL) == 0);
	require(sync_state_read(fd, &again, NULL) == 0);
	require(again.phase == s->phase && HASH_COUNT(again.nodes) == HASH_COUNT(s->nodes));
	for (struct sync_node *n = s->nodes; n; n = n->hh.next) {
		const struct sync_node *m = sync_state_find(&again, str_from(n->path));

		require(sync_path_is_clean(str_from(n->path)));
		require(m && m->before.type == n->before.type && m->before.size == n->before.size);
		require(memcmp(m->before.digest, n->before.digest, SHA256_BYTES) == 0);
	}
}

static void check_file(int fd)
{
	_cleanup_(sync_state_donep) struct sync_state s = {0};
	struct cloche_err err = CLOCHE_ERR_INIT;
	int r = sync_state_read(fd, &s, &err);

	require(r == 0 || err.message[0]);
	if (r == 0)
		check_again(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_fd_ int plain = new_file(), headed = new_file();

	require(fd_write_all(plain, data, size) == 0);
	check_file(plain);
	put_head(headed, data, size);
	require(fd_write_all(headed, data, size) == 0);
	check_file(headed);
	return 0;
}
