/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the names of all blobs and layers of the index are gathered and sorted, and
 * everything else is removed. A layer is renamed before it is removed, so that a crash leaves no
 * incomplete layer under its name. */
#include "base/fd.h"
#include "fs/fs.h"
#include "image/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Digests, one behind the other, each with its terminator. */
enum { USED_BYTES = IMAGE_HEX + 1, USED_MAX = IMAGE_MAX_ENTRIES * (IMAGE_MAX_LAYERS + 2) };

static int used_add(struct buf *used, const char *hex)
{
	return buf_add(used, hex, USED_BYTES);
}

static int used_compare(const void *a, const void *b)
{
	return memcmp(a, b, IMAGE_HEX);
}

static void used_sort(struct buf *used)
{
	if (buf_len(used))
		qsort(buf_data(used), buf_len(used) / USED_BYTES, USED_BYTES, used_compare);
}

static bool used_has(const struct buf *used, const char *hex)
{
	return buf_len(used) &&
	       bsearch(hex, buf_data(used), buf_len(used) / USED_BYTES, USED_BYTES, used_compare);
}

static int used_add_image(struct image_store *s, const char *hex, struct buf *blobs,
	struct buf *layers, struct cloche_err *err)
{
	_cleanup_(image_config_donep) struct image_config c = IMAGE_CONFIG_NULL;
	struct image_manifest m;
	int r = image_store_manifest(s, hex, &m, err);

	if (r == 0)
		r = image_store_config_of(s, &m, &c, err);
	if (r < 0)
		return err_wrap(err, r, "image sha256:%s", hex);
	r = used_add(blobs, hex);
	if (r == 0)
		r = used_add(blobs, m.config.hex);
	for (size_t i = 0; r == 0 && i < m.layers_n; i++) {
		r = used_add(blobs, m.layers[i].hex);
		if (r == 0)
			r = used_add(layers, c.diff_ids[i]);
	}
	return r < 0 ? err_nomem(err) : 0;
}

/* Return false if a room uses the layer. */
static bool remove_layer(int layers, const char *name)
{
	_cleanup_fd_ int fd = openat(layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char gone[IMAGE_TEMP_NAME];

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	image_temp_name(gone);
	if (renameat(layers, name, layers, gone) == 0)
		(void)fs_remove_tree(layers, gone);
	return true;
}

static int collect_sweep(int at, const struct buf *used, bool of_layers, struct image_freed *ret)
{
	_cleanup_(fs_list_closep) DIR *d = fs_list(at, ".");
	const struct dirent *e;
	struct stat st;

	if (!d)
		return -errno;
	while ((e = fs_list_next(d))) {
		if (!image_is_hex(str_from(e->d_name)) || used_has(used, e->d_name))
			continue;
		if (of_layers && !remove_layer(at, e->d_name)) {
			ret->busy++;
		} else if (of_layers) {
			ret->layers++;
		} else if (fstatat(at, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			   unlinkat(at, e->d_name, 0) == 0) {
			ret->blobs++;
			ret->bytes += (uint64_t)st.st_size;
		}
	}
	return 0;
}

int image_store_collect(struct image_store *s, const struct image_index *index,
	struct image_freed *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf blobs = BUF_INIT((size_t)USED_MAX * USED_BYTES);
	_cleanup_(buf_donep) struct buf layers = BUF_INIT((size_t)USED_MAX * USED_BYTES);
	_cleanup_fd_ int quiet = image_store_be_quiet(s);
	int r = 0;

	*ret = (struct image_freed){0};
	if (quiet < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < index->n; i++)
		r = used_add_image(s, index->entries[i].hex, &blobs, &layers, err);
	if (r < 0)
		return r;
	used_sort(&blobs);
	used_sort(&layers);
	r = collect_sweep(s->blobs, &blobs, false, ret);
	if (r == 0)
		r = collect_sweep(s->layers, &layers, true, ret);
	return r < 0 ? err_sys(err, -r, "list what is stored") : 0;
}
