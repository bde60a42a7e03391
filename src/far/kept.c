/* SPDX-License-Identifier: Apache-2.0 */
#include "far/kept.h"
#include "base/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 256 * 1024, PERMISSIONS = 0777 };

/* No more than its size when we began: somebody may write to it all the time. */
static int kept_hash(int fd, uint64_t size, char ret[SHA256_HEX_MAX])
{
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	struct sha256 h;
	uint64_t at = 0;

	if (!chunk)
		return -ENOMEM;
	sha256_init(&h);
	while (at < size) {
		ssize_t n = pread(fd, chunk, MIN(size - at, (uint64_t)CHUNK), (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -ESTALE;
		sha256_add(&h, str_make(chunk, (size_t)n));
		at += (uint64_t)n;
	}
	sha256_hex(&h, ret);
	return 0;
}

int far_kept_name(int fd, char ret[FAR_KEPT_BYTES + 1])
{
	char hex[SHA256_HEX_MAX];
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : kept_hash(fd, (uint64_t)st.st_size, hex);

	if (r == 0)
		snprintf(ret, FAR_KEPT_BYTES + 1, "%s-%03o", hex, st.st_mode & PERMISSIONS);
	return r;
}

bool far_kept_is_name(struct str name)
{
	static const char pattern[] = "0123456789abcdef";

	for (size_t i = 0; i < name.n; i++)
		if (i == SHA256_HEX_MAX - 1
				? name.p[i] != '-'
				: !memchr(pattern, name.p[i], i < SHA256_HEX_MAX ? 16 : 8))
			return false;
	return name.n == FAR_KEPT_BYTES;
}
