/* SPDX-License-Identifier: Apache-2.0 */
#include "image/recipe.h"
#include "base/fd.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "image/dockerignore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DOCKERFILE ((size_t)1 << 20)
#define MAX_BYTES ((size_t)64 << 20)
#define MAX_IGNORE ((size_t)64 << 10)
#define IGNORE_FILE ".dockerignore"
enum { MAX_FILES = 10000, MAX_NAME = 1024, DEEPEST = 32 };

void recipe_done(struct recipe *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->files[i].name);
		free(r->files[i].data);
	}
	free(r->files);
	free(r->dockerfile);
	free(r->link);
	*r = (struct recipe){0};
}

int recipe_set_dockerfile(struct recipe *r, struct str text, struct cloche_err *err)
{
	char *copy;

	if (text.n > MAX_DOCKERFILE)
		return err_set(
			err, E_LIMIT, "the Dockerfile has more than %zu KiB", MAX_DOCKERFILE >> 10);
	copy = str_dup(text);
	if (!copy)
		return err_nomem(err);
	free(r->dockerfile);
	r->dockerfile = copy;
	r->dockerfile_n = text.n;
	return 0;
}

/* Accept only relative names of plain parts, which cannot lead out of the target directory. */
static bool is_file_name(struct str name)
{
	if (name.n == 0 || name.n > MAX_NAME || str_chr(name, '\0') < name.n ||
		str_chr(name, '\\') < name.n)
		return false;
	for (;;) {
		size_t at = str_chr(name, '/');
		struct str part = str_prefix(name, at);

		if (part.n == 0 || part.n > 255 || str_eq(part, STR(".")) ||
			str_eq(part, STR("..")))
			return false;
		if (at >= name.n)
			return true;
		name = str_from_index(name, at + 1);
	}
}

/* Find the position of the name, or the one where it belongs. */
static size_t find_place(const struct recipe *r, const char *name, bool *ret_is_there)
{
	size_t low = 0, high = r->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(r->files[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_is_there = low < r->n && strcmp(r->files[low].name, name) == 0;
	return low;
}

static int insert(struct recipe *r, size_t at, struct recipe_file file)
{
	struct recipe_file *files = realloc(r->files, (r->n + 1) * sizeof(*files));

	if (!files)
		return -ENOMEM;
	r->files = files;
	memmove(files + at + 1, files + at, (r->n - at) * sizeof(*files));
	files[at] = file;
	r->n++;
	return 0;
}

int recipe_add_file(struct recipe *r, const char *name, struct str data, bool executable,
	struct cloche_err *err)
{
	struct recipe_file file = {.size = data.n, .executable = executable};
	bool is_there;
	size_t at;

	if (!is_file_name(str_from(name)))
		return err_set(err, E_USAGE,
			"\"%s\" is no name for a file of an image's context: it is relative, "
			"without \"..\" and backslashes",
			name);
	at = find_place(r, name, &is_there);
	if ((!is_there && r->n >= MAX_FILES) || data.n > MAX_BYTES - r->bytes)
		return err_set(err, E_LIMIT,
			"the files for an image are more than %d, or than %zu MiB", MAX_FILES,
			MAX_BYTES >> 20);
	file.name = strdup(name);
	file.data = str_dup(data);
	if (!file.name || !file.data || (!is_there && insert(r, at, file) < 0)) {
		free(file.name);
		free(file.data);
		return err_nomem(err);
	}
	if (is_there) {
		r->bytes -= r->files[at].size;
		free(r->files[at].name);
		free(r->files[at].data);
		r->files[at] = file;
	}
	r->bytes += data.n;
	return 0;
}

/* A directory whose files are added. */
struct adding {
	struct recipe *recipe;
	const char *skip; /* borrowed; NULL: none */
	struct dockerignore ignore;
};

static int add_below(
	const struct adding *a, int dir, const char *prefix, int depth, struct cloche_err *err);

/* The engine has to see the .dockerignore itself, also if that names itself. */
static bool recipe_leaves_out(const struct adding *a, const char *name)
{
	return strcmp(name, IGNORE_FILE) != 0 && dockerignore_matches(&a->ignore, name);
}

static int recipe_count_link(struct recipe *r, const char *name, struct cloche_err *err)
{
	return r->links++ == 0 ? set_string(&r->link, name, err) : 0;
}

static int recipe_add_entry(const struct adding *a, int dir, const char *entry, const char *name,
	int depth, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf data = BUF_INIT(MAX_BYTES);
	bool out = recipe_leaves_out(a, name);
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int e;

	/* Something below may be kept. */
	if (out && !a->ignore.keeps)
		return 0;
	fd = openat(dir, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && !out && errno == ELOOP)
		return recipe_count_link(a->recipe, name, err);
	/* Skip sockets. */
	if (fd < 0 && (out || errno == ENXIO))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "open %s", name);
	if (S_ISDIR(st.st_mode))
		return add_below(a, fd, name, depth + 1, err);
	if (out || !S_ISREG(st.st_mode) || (a->skip && strcmp(name, a->skip) == 0))
		return 0;
	e = fd_read_to_end(fd, &data);
	if (e == -E2BIG)
		return err_set(err, E_LIMIT, "%s has more than %zu MiB", name, MAX_BYTES >> 20);
	if (e < 0)
		return err_sys(err, -e, "read %s", name);
	return recipe_add_file(a->recipe, name, buf_str(&data), st.st_mode & 0100, err);
}

static int add_below(
	const struct adding *a, int dir, const char *prefix, int depth, struct cloche_err *err)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(dir, ".");
	const struct dirent *entry;
	int e = 0;

	if (!list)
		return err_sys(err, errno, "list %s", *prefix ? prefix : "the directory");
	if (depth > DEEPEST)
		e = err_set(err, E_LIMIT, "%s lies deeper than %d directories", prefix, DEEPEST);
	while (e == 0 && (entry = fs_list_next(list))) {
		_cleanup_(freep) char *name = NULL;

		if (strcmp(entry->d_name, ".git") == 0)
			continue;
		name = *prefix ? fs_join(prefix, entry->d_name) : strdup(entry->d_name);
		e = name ? recipe_add_entry(a, dir, entry->d_name, name, depth, err)
			 : err_nomem(err);
	}
	return e;
}

/* Read the .dockerignore of a directory. Engines that know a .containerignore take that instead. */
static int recipe_read_ignore(int dir, struct dockerignore *ret, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_IGNORE);
	_cleanup_fd_ int fd =
		openat(dir, IGNORE_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		fstatat(dir, ".containerignore", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	r = fd_read_to_end(fd, &text);
	if (r == -E2BIG)
		return err_set(
			err, E_LIMIT, IGNORE_FILE " has more than %zu KiB", MAX_IGNORE >> 10);
	return r < 0 ? err_sys(err, -r, "read " IGNORE_FILE)
		     : dockerignore_read(ret, buf_str(&text), err);
}

int recipe_add_directory(
	struct recipe *r, const char *directory, const char *skip, struct cloche_err *err)
{
	_cleanup_fd_ int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct adding a = {.recipe = r, .skip = skip};
	int e;

	if (dir < 0)
		return err_sys(err, errno, "open %s", directory);
	r->links = 0;
	e = recipe_read_ignore(dir, &a.ignore, err);
	if (e == 0)
		e = add_below(&a, dir, "", 0, err);
	dockerignore_done(&a.ignore);
	if (e == -E_LIMIT)
		err_hint(err, "name what the image does not need in " IGNORE_FILE);
	return e;
}

/* --- digests --- */

void recipe_hash(const struct recipe *r, char ret[SHA256_HEX_MAX])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, str_make(r->dockerfile, r->dockerfile_n));
	for (size_t i = 0; i < r->n; i++) {
		sha256_add(&h, str_from(r->files[i].name));
		sha256_add(&h, str_make(r->files[i].data, r->files[i].size));
		if (r->files[i].executable)
			sha256_add(&h, STR("+x"));
	}
	sha256_hex(&h, ret);
}

#define ENTRYPOINT_END                                                                             \
	"if [ $# -eq 0 ]; then\n"                                                                  \
	"\techo 'cloche: the image has no command of its own: name one' >&2\n"                     \
	"\texit 127\n"                                                                             \
	"fi\n"                                                                                     \
	"exec \"$@\"\n"

const char *recipe_entrypoint(bool sync_uv)
{
	return sync_uv ? "#!/bin/sh\n"
			 "set -eu\n"
			 "export IS_SANDBOX=1\n"
			 "if [ -f /workspace/pyproject.toml ]; then\n"
			 "\t(cd /workspace && uv sync --quiet)\n"
			 "fi\n" ENTRYPOINT_END
		       : "#!/bin/sh\n"
			 "set -eu\n"
			 "export IS_SANDBOX=1\n" ENTRYPOINT_END;
}

void recipe_hash_overlay(const char *repo_tag, const char *entrypoint, char ret[SHA256_HEX_MAX])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, str_from(repo_tag));
	sha256_add(&h, str_from(entrypoint));
	sha256_hex(&h, ret);
}
