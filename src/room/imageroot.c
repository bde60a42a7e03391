/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: Linux 6.7 takes the layers one by one ("lowerdir+"). Older kernels want all
 * of their names in one text, which fsconfig() limits to 255 bytes. There, each layer gets a link
 * with a name of two letters, and the links are removed when the overlay has been made. */
#include "room/imageroot.h"
#include "base/fd.h"
#include "base/strv.h"
#include "jail/sys.h"
#include "provider/spec.h"
#include "room/layers.h"
#include "room/mount.h"
#include "room/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYER_PATH "lower/%s/t"
/* Layers and the places of mounts. */
enum { MOST = ROOM_MAX_LAYERS + 1, PATH_ROOM = 96, TEXT_MAX = 255 };

static int missing(const char *layer, struct cloche_err *err)
{
	err_set(err, E_NOT_FOUND, "layer sha256:%s of the image is gone", layer);
	err_hint(err, "load or pull the image once more");
	return -E_NOT_FOUND;
}

/* Take a shared lock. The remover of a layer locks it exclusively, and has renamed it first. */
static int lock_layer(int dir, const char *layer, struct cloche_err *err)
{
	_cleanup_fd_ int fd = openat(dir, layer, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat mine, named;

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
		return missing(layer, err);
	if (fstat(fd, &mine) < 0 || fstatat(dir, layer, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		mine.st_ino != named.st_ino)
		return missing(layer, err);
	return TAKE_FD(fd);
}

int imageroot_lock(
	const char *dir, char *const *layers, struct imageroot *ret, struct cloche_err *err)
{
	_cleanup_fd_ int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t n = strv_count(layers);
	int fd;

	if (at < 0)
		return err_sys(err, errno, "open %s", dir);
	ret->locks = calloc(n + 1, sizeof(*ret->locks));
	if (!ret->locks)
		return err_nomem(err);
	while (ret->n < n) {
		fd = lock_layer(at, layers[ret->n], err);
		if (fd < 0)
			return fd;
		ret->locks[ret->n++] = fd;
	}
	return 0;
}

void imageroot_unlock(struct imageroot *r)
{
	while (r->n > 0)
		fd_close(r->locks[--r->n]);
	free(r->locks);
	*r = IMAGEROOT_NULL;
}

void imageroot_name(char *const *layers, char ret[IMAGEROOT_NAME])
{
	char hex[SHA256_HEX_MAX];
	struct sha256 h;

	sha256_init(&h);
	for (; layers && *layers; layers++)
		sha256_add_framed(&h, str_from(*layers));
	sha256_hex(&h, hex);
	snprintf(ret, IMAGEROOT_NAME, "image:%s", hex);
}

/* Add what lies above the layers to the end of the options. */
static void add_upper(struct mount_option *options, size_t n, bool upper)
{
	if (upper) {
		options[n++] = (struct mount_option){"upperdir", "upper"};
		options[n++] = (struct mount_option){"workdir", "work/root"};
	}
	options[n++] = (struct mount_option){"userxattr", NULL};
	options[n] = (struct mount_option){NULL, NULL};
}

static int one_by_one(char *const *layers, size_t n, bool upper, struct cloche_err *err)
{
	struct mount_option options[MOST + 4];
	char paths[ROOM_MAX_LAYERS][PATH_ROOM];
	size_t i;

	/* The highest first. */
	for (i = 0; i < n; i++) {
		snprintf(paths[i], PATH_ROOM, LAYER_PATH, layers[n - 1 - i]);
		options[i] = (struct mount_option){"lowerdir+", paths[i]};
	}
	options[i++] = (struct mount_option){"lowerdir+", LAYERS_PLACES};
	add_upper(options, i, upper);
	return mount_new("overlay", options, PARTS_QUIET, err);
}

static void link_name(size_t i, char ret[4])
{
	ret[0] = (char)('A' + i / 26);
	ret[1] = (char)('a' + i % 26);
	ret[2] = '\0';
}

static int by_links(int base, char *const *layers, size_t n, bool upper, struct cloche_err *err)
{
	struct mount_option options[5] = {{"lowerdir", NULL}};
	char text[TEXT_MAX + 1], name[4], path[PATH_ROOM];
	size_t used = 0, i;
	int r = 0;

	if (n * 3 + sizeof(LAYERS_PLACES) > sizeof(text))
		return err_set(
			err, E_UNSUPPORTED, "an image of %zu layers needs Linux 6.7 or newer", n);
	for (i = 0; i < n && r == 0; i++) {
		link_name(i, name);
		snprintf(path, sizeof(path), LAYER_PATH, layers[n - 1 - i]);
		if (symlinkat(path, base, name) < 0)
			r = err_sys(err, errno, "make a link to a layer");
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s:", name);
	}
	snprintf(text + used, sizeof(text) - used, LAYERS_PLACES);
	options[0].value = text;
	add_upper(options, 1, upper);
	if (r == 0)
		r = mount_new("overlay", options, PARTS_QUIET, err);
	while (i > 0) {
		link_name(--i, name);
		(void)unlinkat(base, name, 0);
	}
	return r;
}

int imageroot_overlay(int base, char *const *layers, bool upper, struct cloche_err *err)
{
	size_t n = strv_count(layers);
	int r = upper ? parts_mkdir(base, "work/root", 0700, err) : 0;

	if (r < 0)
		return r;
	/* The layers are named relative to the working directory. */
	if (fchdir(base) < 0)
		return err_sys(err, errno, "enter the room's layers");
	if (!upper && n == 0)
		return mount_clone(base, LAYERS_PLACES, 0, err);
	r = one_by_one(layers, n, upper, NULL);
	return r >= 0 ? r : by_links(base, layers, n, upper, err);
}
