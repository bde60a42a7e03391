/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the copy depends on which of the two operands is in a sandbox and on their
 * types. It copies the bytes of a file, a tree, or a stream of either on standard input or output.
 * As with cp, if the destination is a directory, the source is copied into it under its own
 * name. */
#include "cli.h"
#include "files_session.h"
#include "progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One operand. */
struct side {
	char *id;         /* heap; NULL: on the host */
	const char *path; /* borrowed */
	bool stream;      /* "-" */
};

struct copy {
	cloche_files *f;
	bool recursive;
	struct side from, to;
	cloche_err *err;
	struct progress progress;
};

static const struct option cp_options[] = {
	{"recursive", 'r', NULL, "copy directories with everything in them",
		.at = offsetof(struct copy, recursive)},
	{0},
};

static int cp_fail(cloche_err *err, int code, int errnum, const char *path, const char *why)
{
	memset(err, 0, sizeof(*err));
	err->code = code;
	err->sys_errno = errnum;
	snprintf(err->message, sizeof(err->message), "cp: %.600s: %s", path,
		why ? why : strerror(errnum));
	return -code;
}

static int fail_sys(cloche_err *err, const char *path)
{
	int errnum = errno;
	int code = errnum == ENOENT                                         ? CLOCHE_E_NOT_FOUND
		   : errnum == EACCES || errnum == EPERM || errnum == EROFS ? CLOCHE_E_PERMISSION
		   : errnum == ENOSPC || errnum == EDQUOT                   ? CLOCHE_E_NO_SPACE
									    : CLOCHE_E_SYSTEM;

	return cp_fail(err, code, errnum, path, NULL);
}

/* Parse ID:PATH. A colon after the first slash belongs to a path. */
static int read_side(const char *text, struct side *ret, cloche_err *err)
{
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/');

	*ret = (struct side){.path = text};
	if (strcmp(text, "-") == 0) {
		ret->stream = true;
	} else if (colon && colon > text && (!slash || colon < slash)) {
		ret->id = strndup(text, (size_t)(colon - text));
		ret->path = colon + 1;
		if (!ret->id)
			return cp_fail(err, CLOCHE_E_NO_MEMORY, ENOMEM, text, NULL);
	}
	if (!ret->stream && !*ret->path)
		return wrong_usage(err, "for example: cloche cp web:src/main.c .",
			"cp: %s: the path is missing", text);
	return 0;
}

/* Return the last name of a path, or "" for "/" and for "x/.", which means the contents of x. */
static char *last_name(const char *path)
{
	size_t n = strlen(path), at;

	while (n > 0 && path[n - 1] == '/')
		n--;
	for (at = n; at > 0 && path[at - 1] != '/';)
		at--;
	if (n - at <= 2 && strspn(path + at, ".") >= n - at)
		return strdup("");
	return strndup(path + at, n - at);
}

static bool ends_with_slash(const char *path)
{
	size_t n = strlen(path);

	return n > 0 && path[n - 1] == '/';
}

/* Return the path to copy to: in the destination if that is a directory, else the destination
 * itself. The caller frees it. NULL with err on failure. */
static char *cp_place(const struct copy *c, bool is_directory)
{
	char *name, *path = NULL;

	if (!is_directory) {
		if (ends_with_slash(c->to.path) && !c->recursive) {
			cp_fail(c->err, CLOCHE_E_NOT_FOUND, ENOTDIR, c->to.path, NULL);
			return NULL;
		}
		path = strdup(c->to.path);
	} else {
		name = last_name(c->from.path);
		if (name && asprintf(&path, "%s/%s", c->to.path, *name ? name : ".") < 0)
			path = NULL;
		free(name);
	}
	if (!path)
		cp_fail(c->err, CLOCHE_E_NO_MEMORY, ENOMEM, c->to.path, NULL);
	return path;
}

static int needs_recursive(const struct copy *c)
{
	return wrong_usage(c->err, "-r copies the directory with everything in it",
		"cp: %s is a directory", c->from.path);
}

static int cp_cannot(const struct copy *c, const char *path)
{
	return wrong_usage(
		c->err, NULL, "cp: %s is a socket or a device: it cannot be copied", path);
}

static void tell_left_out(const cloche_files_moved *moved)
{
	if (moved->left_out)
		say("%llu socket%s or device%s left out", (unsigned long long)moved->left_out,
			moved->left_out == 1 ? "" : "s", moved->left_out == 1 ? " was" : "s were");
}

/* Return 1 if a path inside is a directory, 0 if it is something else or (if may_miss) missing. */
static int is_inside_directory(const struct copy *c, const char *path, bool may_miss)
{
	cloche_file_stat st;
	int r = cloche_files_stat(c->f, path, true, &st, c->err);

	if (r == -CLOCHE_E_NOT_FOUND && may_miss)
		return 0;
	return r < 0 ? r : st.type == CLOCHE_NODE_DIRECTORY;
}

static bool is_host_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* --- into the sandbox --- */

static int stream_in(struct copy *c, bool is_directory)
{
	struct stream in = {.fd = STDIN_FILENO};
	int r;

	if (is_directory || c->recursive)
		r = cloche_files_tar_put(
			c->f, c->to.path, cloche_from_fn(stream_source, &in), c->err);
	else
		r = cloche_files_write(c->f, c->to.path, 0, CLOCHE_FILES_KEEP_MODE,
			cloche_from_fn(stream_source, &in), c->err);
	return stream_error(&in, r, "standard input", c->err);
}

static int copy_in(struct copy *c)
{
	cloche_files_moved moved = {0};
	struct stat st;
	int r, directory = is_inside_directory(c, c->to.path, true);
	char *to;

	if (directory < 0)
		return directory;
	if (c->from.stream)
		return stream_in(c, directory);
	if (lstat(c->from.path, &st) < 0)
		return fail_sys(c->err, c->from.path);
	if (S_ISLNK(st.st_mode) && !c->recursive)
		return wrong_usage(c->err, "name what it leads to; -r copies the link itself",
			"cp: %s is a symbolic link", c->from.path);
	if (S_ISDIR(st.st_mode) && !c->recursive)
		return needs_recursive(c);
	if (c->recursive && (S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
		return cp_cannot(c, c->from.path);
	to = cp_place(c, directory);
	if (!to)
		return -c->err->code;
	if (S_ISREG(st.st_mode) || !c->recursive)
		r = cloche_files_upload_file(c->f, c->from.path, to, c->err);
	else
		r = cloche_files_upload(c->f, c->from.path, to, &moved, c->err);
	free(to);
	if (r == 0)
		tell_left_out(&moved);
	return r;
}

/* --- out of the sandbox --- */

static int stream_out(struct copy *c, bool is_directory)
{
	struct stream out = {.fd = STDOUT_FILENO};
	char *name = last_name(c->from.path);
	int r;

	if (!name)
		return cp_fail(c->err, CLOCHE_E_NO_MEMORY, ENOMEM, c->from.path, NULL);
	if (is_directory)
		r = cloche_files_tar_get(c->f, c->from.path, !*name, stream_sink, &out, c->err);
	else
		r = cloche_files_read(c->f, c->from.path, 0, UINT64_MAX, stream_show, &out, c->err);
	stream_show_end();
	free(name);
	return stream_error(&out, r, "standard output", c->err);
}

static int copy_out(struct copy *c)
{
	cloche_files_moved moved = {0};
	cloche_file_stat st;
	int r = cloche_files_stat(c->f, c->from.path, true, &st, c->err);
	bool is_directory = r == 0 && st.type == CLOCHE_NODE_DIRECTORY;
	char *to;

	if (c->recursive && !is_directory)
		r = cloche_files_stat(c->f, c->from.path, false, &st, c->err);
	if (r < 0)
		return r;
	if (c->to.stream)
		return stream_out(c, is_directory);
	if (is_directory && !c->recursive)
		return needs_recursive(c);
	if (c->recursive && (st.type == CLOCHE_NODE_SOCKET || st.type == CLOCHE_NODE_CHAR_DEVICE ||
				    st.type == CLOCHE_NODE_BLOCK_DEVICE))
		return cp_cannot(c, c->from.path);
	to = cp_place(c, is_host_directory(c->to.path));
	if (!to)
		return -c->err->code;
	if (st.type == CLOCHE_NODE_FILE || !c->recursive)
		r = cloche_files_download_file(c->f, c->from.path, to, c->err);
	else
		r = cloche_files_download(c->f, c->from.path, to, &moved, c->err);
	free(to);
	if (r == 0)
		tell_left_out(&moved);
	return r;
}

static int check_sides(const struct copy *c)
{
	if (!c->from.id == !c->to.id)
		return wrong_usage(c->err,
			"for example: cloche cp web:src/main.c . (a path of the host with a colon: "
			"./a:b)",
			c->from.id ? "cp: both are in sandboxes; one has to be on the host, or -"
				   : "cp: neither is in a sandbox; write that one as ID:PATH");
	return 0;
}

static int cp_copy(struct copy *c, char **v)
{
	int r = read_side(v[0], &c->from, c->err);

	if (r == 0)
		r = read_side(v[1], &c->to, c->err);
	if (r == 0)
		r = check_sides(c);
	if (r == 0)
		r = files_open(c->from.id ? c->from.id : c->to.id, NULL, &c->f, c->err);
	if (r == 0) {
		progress_begin(&c->progress);
		cloche_files_on_progress(c->f, progress_show, &c->progress);
		r = c->to.id ? copy_in(c) : copy_out(c);
	}
	cloche_files_close(c->f);
	progress_end(&c->progress);
	free(c->from.id);
	free(c->to.id);
	return r;
}

static int main_cp(void *ctx, const struct operands *operands, cloche_err *err)
{
	struct copy *c = ctx;

	c->err = err;
	if (operands->n != 2)
		return wrong_usage(err, "\"cloche cp --help\" has examples",
			"cp: name a source and a destination");
	return cp_copy(c, operands->v) < 0 ? files_failed(err) : 0;
}

const struct command command_cp = {
	.name = "cp",
	.summary = "copy files into a sandbox and out of it",
	.synopsis = "[-r] SRC DST",
	.text = "One of SRC and DST is ID:PATH, in a sandbox; the other is on the host, or - for\n"
		"standard input or output. If DST is a directory, SRC is copied into it. A stream\n"
		"is the bytes of a file, or a tar archive if the path inside is a directory (or\n"
		"with -r). DIR/. means the contents of DIR. A path of the host that has a colon\n"
		"is written ./a:b.\n"
		"\n"
		"  cloche cp report.md web:/workspace/\n"
		"  cloche cp -r web:dist ./dist\n"
		"  tar c src | cloche cp - web:/workspace\n"
		"  cloche cp web:logs - | tar t",
	.tables = {&(const struct option_table){"Options", cp_options}},
	.ctx = &(struct copy){0},
	.run = main_cp,
};
