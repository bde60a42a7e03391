/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: unpack jail base */
/* A layer is a stranger's. Whatever it holds, nothing comes to be beside its tree, the tree can be
 * removed, and a layer that is refused says why. */
#include "base/fd.h"
#include "fs/fs.h"
#include "unpack/unpack.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

/* What lies in a directory, "." and ".." too. */
static unsigned count(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	require(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *place = getenv("CLOCHE_TEST_FAST_DIR");
	struct cloche_err err = CLOCHE_ERR_INIT;
	char base[256], tree[300], digest[SHA256_HEX_MAX];
	struct unpack_counts n;
	int archive = memfd_create("layer", MFD_CLOEXEC),
	    owners = memfd_create("owners", MFD_CLOEXEC);
	int fd;

	snprintf(base, sizeof(base), "%s/cloche-fuzz-XXXXXX", place ? place : "/tmp");
	require(mkdtemp(base) && archive >= 0 && owners >= 0);
	snprintf(tree, sizeof(tree), "%s/t", base);
	require(mkdir(tree, 0755) == 0 && fd_write_all(archive, data, size) == 0);
	require(lseek(archive, 0, SEEK_SET) == 0);
	fd = open(tree, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (unpack_layer(archive, fd, owners, MOST_BYTES, digest, &n, &err) < 0)
		require(err.message[0] != '\0');
	require(count(base) == 3);
	fd_close(fd);
	fd_close(archive);
	fd_close(owners);
	require(fs_remove_tree(AT_FDCWD, base) == 0);
	return 0;
}
