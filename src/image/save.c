/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "fs/fs.h"
#include "image/store.h"
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_LIST = 16 << 20 };

static int add_blob(struct buf *list, const char *hex)
{
	char line[2 * IMAGE_HEX + 64];

	snprintf(line, sizeof(line), "blobs/sha256/%s blobs/sha256/%s\n", hex, hex);
	/* Images may share layers. */
	if (buf_len(list) && memmem(buf_data(list), buf_len(list), line, strlen(line)))
		return 0;
	return buf_add(list, line, strlen(line));
}

static int save_add_image(struct image_store *s, const char *hex, struct image_manifest *ret,
	struct buf *list, struct cloche_err *err)
{
	int r = image_store_manifest(s, hex, ret, err);

	if (r < 0)
		return r;
	r = add_blob(list, hex);
	if (r == 0)
		r = add_blob(list, ret->config.hex);
	for (size_t i = 0; r == 0 && i < ret->layers_n; i++)
		r = add_blob(list, ret->layers[i].hex);
	return r < 0 ? err_nomem(err) : 0;
}

/* Write index.json, and manifest.json for engines that do not know the OCI layout. */
static int write_lists(int temp, const struct image_index *images,
	const struct image_manifest *manifests, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf index = BUF_INIT(IMAGE_MAX_DOCUMENT);
	_cleanup_(buf_donep) struct buf saved = BUF_INIT(IMAGE_MAX_DOCUMENT);
	int r = image_index_write(images, &index, err);

	if (r == 0)
		r = image_saved_write(images, manifests, &saved, err);
	if (r == 0)
		r = fs_write_atomic(temp, "index.json", buf_str(&index), 0600, false, err);
	return r < 0 ? r
		     : fs_write_atomic(temp, "manifest.json", buf_str(&saved), 0600, false, err);
}

static int pack(struct image_store *s, const char *temp, const struct buf *list, int out,
	struct cloche_err *err)
{
	_cleanup_fd_ int fd = openat(s->dir, temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int lines = memfd_create("list", MFD_CLOEXEC);
	int r;

	if (fd < 0 || lines < 0)
		return err_sys(err, errno, "write the list of blobs");
	r = fd_write_all(lines, buf_data(list), buf_len(list));
	if (r < 0 || lseek(lines, 0, SEEK_SET) < 0)
		return err_sys(err, r < 0 ? -r : errno, "write the list of blobs");
	return unpack_pack_to(out, s->dir, lines, err);
}

int image_save(
	struct image_store *s, const struct image_index *images, int out, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf list = BUF_INIT(MAX_LIST);
	_cleanup_(freep) struct image_manifest *manifests =
		calloc(images->n + 1, sizeof(*manifests));
	_cleanup_fd_ int temp = -1;
	char name[IMAGE_TEMP_NAME];
	int r = 0;

	if (!manifests)
		return err_nomem(err);
	temp = image_temp_make(s, name, err);
	if (temp < 0)
		return temp;
	if (buf_printf(&list,
		    "oci-layout oci-layout\nindex.json %s/index.json\nmanifest.json "
		    "%s/manifest.json\nblobs/ -\nblobs/sha256/ -\n",
		    name, name) < 0)
		r = err_nomem(err);
	for (size_t i = 0; r == 0 && i < images->n; i++)
		r = save_add_image(s, images->entries[i].hex, &manifests[i], &list, err);
	if (r == 0)
		r = write_lists(temp, images, manifests, err);
	if (r == 0)
		r = pack(s, name, &list, out, err);
	image_temp_remove(s, name);
	return r;
}
