/* SPDX-License-Identifier: Apache-2.0 */
#include "image/source.h"
#include "base/fd.h"
#include "base/parse.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_NAMES = 2 * UNPACK_FILES_MAX /* as many links as files */, MAX_HOPS = 8 };

void image_source_init_dir(struct image_source *s, struct image_store *store, int dir)
{
	*s = IMAGE_SOURCE_NULL;
	s->store = store;
	s->dir = dir;
}

static int add_file(struct image_source *s, struct source_file f, struct cloche_err *err)
{
	struct source_file *grown = NULL;

	if (s->n == MAX_NAMES)
		return err_set(
			err, E_LIMIT, "the archive has more than %d files and links", MAX_NAMES);
	if (f.path)
		grown = reallocarray(s->files, s->n + 1, sizeof(*grown));
	if (!grown) {
		free(f.path);
		free(f.target);
		return err_nomem(err);
	}
	s->files = grown;
	s->files[s->n++] = f;
	return 0;
}

static int take_line(void *user, struct str line, struct cloche_err *err)
{
	struct image_source *s = user;
	struct str kind = str_next(&line, ' '), first = str_next(&line, ' ');
	struct source_file f = {0};
	uint64_t number = 0;

	if (str_eq(kind, STR("file"))) {
		if (parse_u64(first, UNPACK_FILES_MAX - 1, &number) < 0)
			return err_set(err, E_CORRUPT, "cloche-unpack wrote an invalid line");
		(void)str_next(&line, ' ');
		f.number = (unsigned)number;
		f.path = str_dup(line);
		return add_file(s, f, err);
	}
	f.hard = str_eq(kind, STR("hard"));
	f.target = str_dup(first);
	f.path = str_dup(line);
	return f.target ? add_file(s, f, err) : err_nomem(err);
}

int image_source_read_archive(struct image_source *s, struct image_store *store, int fd,
	unpack_progress_fn progress, void *user, struct cloche_err *err)
{
	struct unpack_job job = {.what = UNPACK_FILES,
		.in = fd,
		.line = take_line,
		.line_user = s,
		.progress = progress,
		.user = user};

	*s = IMAGE_SOURCE_NULL;
	s->store = store;
	s->archive = true;
	s->dir = image_temp_make(store, s->temp, err);
	if (s->dir < 0)
		return s->dir;
	job.dir = s->dir;
	return unpack_run(&job, err);
}

void image_source_done(struct image_source *s)
{
	if (s->archive && s->dir >= 0)
		image_temp_remove(s->store, s->temp);
	fd_close(s->dir);
	for (size_t i = 0; i < s->n; i++) {
		free(s->files[i].path);
		free(s->files[i].target);
	}
	free(s->files);
	*s = IMAGE_SOURCE_NULL;
}

static const struct source_file *find_file(const struct image_source *s, const char *path)
{
	/* In tar, the last entry of a name counts. */
	for (size_t i = s->n; i-- > 0;)
		if (strcmp(s->files[i].path, path) == 0)
			return &s->files[i];
	return NULL;
}

/* Resolve a link into ret (IMAGE_PATH_MAX bytes): relative to its own directory, without "..". */
static bool follow(const struct source_file *f, char *ret)
{
	const char *target = f->target, *slash = f->hard ? NULL : strrchr(f->path, '/');
	size_t n = slash ? (size_t)(slash - f->path) : 0;

	while (strncmp(target, "../", 3) == 0 && n > 0) {
		while (n > 0 && f->path[n - 1] != '/')
			n--;
		n -= n > 0;
		target += 3;
	}
	return snprintf(ret, IMAGE_PATH_MAX, "%.*s%s%s", (int)n, f->path, n ? "/" : "", target) <
	       IMAGE_PATH_MAX;
}

/* Get the file's name in s->dir, following links. */
static bool source_find_name(const struct image_source *s, const char *path, char *ret)
{
	const struct source_file *f = find_file(s, path);

	for (int hops = 0; f && f->target && hops < MAX_HOPS; hops++)
		f = follow(f, ret) ? find_file(s, ret) : NULL;
	if (!f || f->target)
		return false;
	snprintf(ret, IMAGE_PATH_MAX, "%u", f->number);
	return true;
}

static int open_file(const struct image_source *s, const char *path, struct cloche_err *err)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	char name[IMAGE_PATH_MAX];
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (s->archive && !source_find_name(s, path, name))
		return err_set(err, E_NOT_FOUND, "there is no %s in it", path);
	fd = (int)syscall(SYS_openat2, s->dir, s->archive ? name : path, &how, sizeof(how));
	if (fd < 0 && errno == ENOENT)
		return err_set(err, E_NOT_FOUND, "there is no %s in it", path);
	if (fd < 0)
		return err_sys(err, errno, "open %s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, E_CORRUPT, "%s is not a regular file", path);
	return TAKE_FD(fd);
}

bool image_source_has(const struct image_source *s, const char *path)
{
	_cleanup_fd_ int fd = open_file(s, path, NULL);

	return fd >= 0;
}

int image_source_read(
	const struct image_source *s, const char *path, struct buf *ret, struct cloche_err *err)
{
	_cleanup_fd_ int fd = open_file(s, path, err);
	int r = fd < 0 ? fd : fd_read_to_end(fd, ret);

	if (fd < 0 || r == 0)
		return r;
	if (r == -E2BIG)
		return err_set(err, E_LIMIT, "%s is larger than %zu bytes", path, ret->max);
	return err_sys(err, -r, "read %s", path);
}

int image_source_take(const struct image_source *s, const char *path, struct image_blob *blob,
	uint64_t most, struct cloche_err *err)
{
	char name[IMAGE_PATH_MAX];
	_cleanup_fd_ int fd = -1;

	if (blob->hex[0] && image_blob_has(s->store, blob->hex))
		return 0;
	if (s->archive) {
		if (!source_find_name(s, path, name))
			return err_set(err, E_NOT_FOUND, "there is no %s in it", path);
		return image_blob_move(s->store, s->dir, name, blob, most, err);
	}
	fd = open_file(s, path, err);
	return fd < 0 ? fd : image_blob_copy(s->store, fd, blob, most, err);
}
