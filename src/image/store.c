/* SPDX-License-Identifier: Apache-2.0 */
#include "image/store.h"
#include "base/fd.h"
#include "base/rand.h"
#include "fs/fs.h"
#include "ipc/statedir.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY "new-"
enum { CHUNK = 256 << 10 };

static int make_dir(int at, const char *name, struct cloche_err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "create images/%s", name);
	fd = openat(at, name, flags);
	return fd < 0 ? err_sys(err, errno, "open images/%s", name) : fd;
}

int image_store_open(struct image_store *s, struct cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store own = IMAGE_STORE_NULL;
	_cleanup_fd_ int outer = -1;

	own.dir = statedir_open("images", &own.path, err);
	if (own.dir < 0)
		return own.dir;
	outer = make_dir(own.dir, "blobs", err);
	if (outer < 0)
		return outer;
	own.blobs = make_dir(outer, "sha256", err);
	if (own.blobs < 0)
		return own.blobs;
	own.layers = make_dir(own.dir, "layers", err);
	if (own.layers < 0)
		return own.layers;
	*s = own;
	own = IMAGE_STORE_NULL;
	return 0;
}

void image_store_close(struct image_store *s)
{
	fd_close(s->dir);
	fd_close(s->blobs);
	fd_close(s->layers);
	free(s->path);
	*s = IMAGE_STORE_NULL;
}

/* Remove temporary files that can be locked: their makers are gone. */
static void sweep_temporary(int at)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(at, ".");
	const struct dirent *e;

	while (list && (e = fs_list_next(list))) {
		struct str name = str_from(e->d_name);
		_cleanup_fd_ int fd = -1;

		if (!str_starts(name, STR(TEMPORARY)) && !str_ends(name, STR(".tmp")))
			continue;
		fd = openat(at, e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
			(void)fs_remove_tree(at, e->d_name);
	}
}

static int open_loads(struct image_store *s)
{
	return openat(s->dir, "loads", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int image_store_begin_load(struct image_store *s, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open_loads(s);
	int r = fd < 0 ? -errno : job_lock(fd, LOCK_SH);

	return r < 0 ? err_sys(err, -r, "lock the loads of images") : TAKE_FD(fd);
}

int image_store_be_quiet(struct image_store *s)
{
	_cleanup_fd_ int fd = open_loads(s);

	return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? -1 : TAKE_FD(fd);
}

/* Remove what a crash has left. Only loads make it. */
static void store_sweep(struct image_store *s)
{
	_cleanup_fd_ int quiet = image_store_be_quiet(s);

	if (quiet < 0)
		return;
	sweep_temporary(s->dir);
	sweep_temporary(s->blobs);
	sweep_temporary(s->layers);
}

int image_store_lock(
	struct image_store *s, void (*waiting)(void *user), void *user, struct cloche_err *err)
{
	_cleanup_fd_ int fd =
		openat(s->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return err_sys(err, errno, "open the lock of the images");
	r = job_lock_within(fd, LOCK_EX, 0, -1);
	if (r == -EWOULDBLOCK && waiting)
		waiting(user);
	if (r == -EWOULDBLOCK)
		r = job_lock(fd, LOCK_EX);
	if (r < 0)
		return err_sys(err, -r, "lock the images");
	store_sweep(s);
	if (faccessat(s->dir, "oci-layout", F_OK, 0) < 0)
		r = fs_write_atomic(s->dir, "oci-layout",
			STR("{\"imageLayoutVersion\":\"1.0.0\"}\n"), 0600, false, err);
	return r < 0 ? r : TAKE_FD(fd);
}

void image_temp_name(char ret[IMAGE_TEMP_NAME])
{
	snprintf(ret, IMAGE_TEMP_NAME, TEMPORARY "%016llx", (unsigned long long)rand_u64());
}

int image_temp_make(struct image_store *s, char ret_name[IMAGE_TEMP_NAME], struct cloche_err *err)
{
	/* It may be swept before it is locked: then try again. */
	for (int tries = 0; tries < 8; tries++) {
		_cleanup_fd_ int fd = -1;
		struct stat st;
		int r;

		image_temp_name(ret_name);
		if (mkdirat(s->dir, ret_name, 0700) < 0)
			return err_sys(err, errno, "create images/%s", ret_name);
		fd = openat(s->dir, ret_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : job_lock(fd, LOCK_EX);
		if (r == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
			return TAKE_FD(fd);
		if (r == -ECANCELED) {
			image_temp_remove(s, ret_name);
			return err_sys(err, -r, "lock images/%s", ret_name);
		}
	}
	return err_set(err, E_BUSY, "the directory of the images is being swept");
}

void image_temp_remove(struct image_store *s, const char *name)
{
	(void)fs_remove_tree(s->dir, name);
}

int image_store_read(struct image_store *s, struct image_index *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(IMAGE_MAX_DOCUMENT);
	int r;

	if (faccessat(s->dir, "index.json", F_OK, 0) < 0 && errno == ENOENT) {
		*ret = IMAGE_INDEX_NULL;
		return 0;
	}
	r = fd_read_file(s->dir, "index.json", &text, err);
	if (r == 0)
		r = image_index_read(buf_str(&text), ret, err);
	return r < 0 ? err_wrap(err, r, "%s", s->path) : 0;
}

int image_store_write(
	struct image_store *s, const struct image_index *index, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(IMAGE_MAX_DOCUMENT);
	int r = image_index_write(index, &text, err);

	if (r == 0 && syncfs(s->dir) < 0)
		r = err_sys(err, errno, "write the images to the disk");
	return r < 0 ? r : fs_write_atomic(s->dir, "index.json", buf_str(&text), 0600, true, err);
}

bool image_blob_has(const struct image_store *s, const char *hex)
{
	return faccessat(s->blobs, hex, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int check_digest(const char *hex, const char *want, struct cloche_err *err)
{
	return strcmp(hex, want) == 0
		       ? 0
		       : err_set(err, E_CORRUPT, "the bytes that should be sha256:%s are sha256:%s",
				 want, hex);
}

int image_blob_read(struct image_store *s, const char *hex, struct buf *ret, struct cloche_err *err)
{
	char digest[SHA256_HEX_MAX];
	int r;

	if (!image_blob_has(s, hex))
		return err_set(err, E_NOT_FOUND, "sha256:%s is not stored", hex);
	r = fd_read_file(s->blobs, hex, ret, err);
	if (r < 0)
		return r;
	sha256_text(buf_str(ret), digest);
	return check_digest(digest, hex, err);
}

static int write_failed(int r, struct cloche_err *err)
{
	if (r == -ENOSPC || r == -EDQUOT)
		return err_set(err, E_NO_SPACE, "write a blob: %s", err_errno_text(-r));
	return err_sys(err, -r, "write a blob");
}

static int wrong_size(uint64_t size, const struct image_blob *want, struct cloche_err *err)
{
	return err_set(err, E_CORRUPT, "sha256:%s has %llu bytes and should have %llu", want->hex,
		(unsigned long long)size, (unsigned long long)want->size);
}

/* Digest at most so many bytes of fd from its beginning and, unless out is negative, copy them
 * there. What is too long or, if want has a size, too short is not even begun. */
static int read_through(int fd, int out, const struct image_blob *want, uint64_t most,
	struct image_blob *ret, struct cloche_err *err)
{
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	struct sha256 h;
	struct stat st;
	uint64_t size = 0;

	if (!chunk)
		return err_nomem(err);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "read a blob");
	if (want->size && (uint64_t)st.st_size != want->size)
		return wrong_size((uint64_t)st.st_size, want, err);
	if ((uint64_t)st.st_size > most)
		return err_set(
			err, E_LIMIT, "a blob has more than %llu bytes", (unsigned long long)most);
	sha256_init(&h);
	for (;;) {
		int r = job_yield();
		ssize_t n;

		if (r < 0)
			return err_sys(err, -r, "read a blob");
		n = pread(fd, chunk, CHUNK, (off_t)size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "read a blob");
		if (n == 0)
			break;
		if ((uint64_t)n > (uint64_t)st.st_size - size)
			return err_set(err, E_CORRUPT, "a blob grows while it is read");
		sha256_add(&h, str_make(chunk, (size_t)n));
		r = out < 0 ? 0 : fd_write_all(out, chunk, (size_t)n);
		if (r < 0)
			return write_failed(r, err);
		size += (uint64_t)n;
	}
	sha256_hex(&h, ret->hex);
	ret->size = size;
	return 0;
}

static int check(const struct image_blob *b, const struct image_blob *want, struct cloche_err *err)
{
	return want->size && b->size != want->size ? wrong_size(b->size, want, err)
						   : check_digest(b->hex, want->hex, err);
}

int image_blob_copy(struct image_store *s, int fd, const struct image_blob *want, uint64_t most,
	struct cloche_err *err)
{
	_cleanup_fd_ int out = -1;
	struct image_blob copied;
	char name[IMAGE_TEMP_NAME];
	int r;

	if (image_blob_has(s, want->hex))
		return 0;
	image_temp_name(name);
	out = openat(s->blobs, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return err_sys(err, errno, "create a blob");
	r = read_through(fd, out, want, most, &copied, err);
	if (r == 0)
		r = check(&copied, want, err);
	if (r == 0 && renameat(s->blobs, name, s->blobs, want->hex) < 0)
		r = err_sys(err, errno, "store sha256:%s", want->hex);
	if (r < 0)
		(void)unlinkat(s->blobs, name, 0);
	return r;
}

int image_blob_move(struct image_store *s, int dir, const char *name, struct image_blob *want,
	uint64_t most, struct cloche_err *err)
{
	_cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct image_blob found;
	int r;

	/* It may already have been moved for another image of the archive. */
	if (fd < 0 && errno == ENOENT && want->hex[0] && image_blob_has(s, want->hex))
		return 0;
	if (fd < 0)
		return err_sys(err, errno, "open a file of the archive");
	r = read_through(fd, -1, want, most, &found, err);
	if (r == 0 && want->hex[0])
		r = check(&found, want, err);
	if (r < 0)
		return r;
	*want = found;
	/* Link it, as one file of the archive may be several layers. */
	if (linkat(dir, name, s->blobs, want->hex, 0) < 0 && errno != EEXIST)
		return err_sys(err, errno, "store sha256:%s", want->hex);
	return 0;
}

void image_blobs_link(const struct image_store *s, int dir)
{
	_cleanup_fd_ int outer = make_dir(dir, "blobs", NULL);
	_cleanup_fd_ int to = outer < 0 ? -1 : make_dir(outer, "sha256", NULL);
	_cleanup_(fs_list_closep) DIR *list = to < 0 ? NULL : fs_list(s->blobs, ".");
	const struct dirent *e;

	while (list && (e = fs_list_next(list)))
		if (image_is_hex(str_from(e->d_name)))
			(void)!linkat(s->blobs, e->d_name, to, e->d_name, 0);
}

int image_blob_put(
	struct image_store *s, struct str text, struct image_blob *ret, struct cloche_err *err)
{
	sha256_text(text, ret->hex);
	ret->size = text.n;
	return image_blob_has(s, ret->hex)
		       ? 0
		       : fs_write_atomic(s->blobs, ret->hex, text, 0600, false, err);
}

int image_store_manifest(
	struct image_store *s, const char *hex, struct image_manifest *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(IMAGE_MAX_DOCUMENT);
	int r = image_blob_read(s, hex, &text, err);

	return r < 0 ? r : image_manifest_read(buf_str(&text), ret, err);
}

int image_store_config(
	struct image_store *s, const char *hex, struct image_config *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(IMAGE_MAX_DOCUMENT);
	int r = image_blob_read(s, hex, &text, err);

	return r < 0 ? r : image_config_read(buf_str(&text), ret, err);
}

int image_store_config_of(struct image_store *s, const struct image_manifest *m,
	struct image_config *ret, struct cloche_err *err)
{
	int r = image_store_config(s, m->config.hex, ret, err);

	if (r < 0 || ret->layers_n == m->layers_n)
		return r;
	image_config_done(ret);
	return err_set(err, E_CORRUPT, "manifest and configuration have different layers");
}
