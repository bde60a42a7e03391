/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche fs ID OPERATION ...`. */
#include "cli.h"
#include "files_session.h"
#include "fs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Octal digits, at most 07777. */
static bool read_mode(const char *text, uint32_t *ret)
{
	size_t n = strspn(text, "01234567");
	uint32_t mode = 0;

	if (n == 0 || n > 5 || text[n])
		return false;
	for (size_t i = 0; i < n; i++)
		mode = mode * 8 + (uint32_t)(text[i] - '0');
	*ret = mode;
	return mode <= 07777;
}

static int set_mode(const struct option *option, void *at, const char *value, cloche_err *err)
{
	struct fs_options *o = at;

	o->has_mode = true;
	if (!read_mode(value, &o->mode))
		return wrong_usage(
			err, NULL, "fs: a mode is up to four octal digits, not %s", value);
	return 0;
}

static int set_number(const struct option *option, void *at, const char *value, cloche_err *err)
{
	if (read_number(value, INT64_MAX, at))
		return 0;
	return wrong_usage(err, NULL, "fs: --%s takes a number, not %s", option->name, value);
}

static const struct option fs_options[] = {
	{"recursive", 'r', NULL, "include everything below", .of = "delete, watch",
		.at = offsetof(struct fs_options, recursive)},
	{"force", 'f', NULL, "PATH may be missing; as a directory it is empty then",
		.of = "delete, list", .at = offsetof(struct fs_options, force)},
	{"data", 0, "TEXT", "TEXT instead of standard input", .of = "write, append",
		.at = offsetof(struct fs_options, data)},
	{"append", 'a', NULL, "append to the file", .of = "write",
		.at = offsetof(struct fs_options, append)},
	{"in-place", 0, NULL, "into the file itself, which keeps its hard links", .of = "write",
		.at = offsetof(struct fs_options, in_place)},
	{"new", 0, NULL, "fail if PATH exists", .of = "write",
		.at = offsetof(struct fs_options, is_new)},
	{"mode", 0, "MODE", "permissions, octal", .of = "write, append, mkdir", .set = set_mode},
	{"parents", 'p', NULL, "make missing directories (always done)", .of = "mkdir",
		.at = offsetof(struct fs_options, parents)},
	{"offset", 0, "BYTES", "begin at this offset", .of = "read", .set = set_number,
		.at = offsetof(struct fs_options, offset)},
	{"length", 0, "BYTES", "at most this many bytes", .of = "read", .set = set_number,
		.at = offsetof(struct fs_options, length)},
	{"no-follow", 'P', NULL, "do not follow a symbolic link", .of = "stat, exists",
		.at = offsetof(struct fs_options, no_follow)},
	{"no-replace", 'n', NULL, "fail if TO exists", .of = "rename",
		.at = offsetof(struct fs_options, no_replace)},
	{"long", 'l', NULL, "mode, links, owner, size, time", .of = "list",
		.at = offsetof(struct fs_options, long_form)},
	{"null", '0', NULL, "end names with NUL", .of = "list, watch",
		.at = offsetof(struct fs_options, null_ends)},
	{"json", 0, NULL, "print JSON, one object a line", .of = "list, stat, watch",
		.at = offsetof(struct fs_options, json)},
	{"count", 0, "N", "end after N events", .of = "watch", .set = set_number,
		.at = offsetof(struct fs_options, count)},
	{"user", 0, "NAME|UID[:GROUP]", "work as this user of the inside (default: who owns it)",
		.at = offsetof(struct fs_options, user)},
	{0},
};

static int do_read(const struct fs_request *q)
{
	struct stream out = {.fd = STDOUT_FILENO};
	int r = cloche_files_read(
		q->f, q->v[0], q->o->offset, q->o->length, stream_show, &out, q->err);

	stream_show_end();

	return stream_error(&out, r, "standard output", q->err);
}

static int write_with(const struct fs_request *q, unsigned flags)
{
	const struct fs_options *o = q->o;
	uint32_t mode = o->has_mode ? o->mode : CLOCHE_FILES_KEEP_MODE;
	struct stream in = {.fd = STDIN_FILENO};
	int r;

	flags |= CLOCHE_FILES_PARENTS;
	flags |= o->append ? CLOCHE_FILES_APPEND : 0;
	flags |= o->in_place ? CLOCHE_FILES_IN_PLACE : 0;
	flags |= o->is_new ? CLOCHE_FILES_NEW : 0;
	if (o->data)
		return cloche_files_write(q->f, q->v[0], flags, mode,
			cloche_from_data(o->data, strlen(o->data)), q->err);
	r = cloche_files_write(
		q->f, q->v[0], flags, mode, cloche_from_fn(stream_source, &in), q->err);
	return stream_error(&in, r, "standard input", q->err);
}

static int do_write(const struct fs_request *q)
{
	return write_with(q, 0);
}

static int do_append(const struct fs_request *q)
{
	return write_with(q, CLOCHE_FILES_APPEND);
}

/* Whether nothing can have that path. */
static bool is_absent(const cloche_err *err)
{
	return err->code == CLOCHE_E_NOT_FOUND ||
	       (err->code == CLOCHE_E_SYSTEM &&
		       (err->sys_errno == ENOTDIR || err->sys_errno == ELOOP ||
			       err->sys_errno == ENAMETOOLONG));
}

/* Return 1 if it does not exist. */
static int do_exists(const struct fs_request *q)
{
	cloche_file_stat st;
	int r = cloche_files_stat(q->f, q->v[0], !q->o->no_follow, &st, q->err);

	return r < 0 && !is_absent(q->err) ? r : r < 0;
}

static int do_delete(const struct fs_request *q)
{
	return cloche_files_remove(q->f, q->v[0], q->o->recursive, q->err);
}

static int do_mkdir(const struct fs_request *q)
{
	uint32_t mode = q->o->has_mode ? q->o->mode : CLOCHE_FILES_KEEP_MODE;

	return cloche_files_mkdir(q->f, q->v[0], mode, true, q->err);
}

static int do_rename(const struct fs_request *q)
{
	return cloche_files_rename(q->f, q->v[0], q->v[1], !q->o->no_replace, q->err);
}

static int do_chmod(const struct fs_request *q)
{
	uint32_t mode;

	if (!read_mode(q->v[0], &mode))
		return wrong_usage(q->err, "for example: cloche fs ID chmod 755 PATH",
			"fs: a mode is up to four octal digits, not %s", q->v[0]);
	return cloche_files_chmod(q->f, q->v[1], mode, q->err);
}

static int do_symlink(const struct fs_request *q)
{
	return cloche_files_symlink(q->f, q->v[0], q->v[1], q->err);
}

static int do_readlink(const struct fs_request *q)
{
	char *target = NULL;
	int r = cloche_files_readlink(q->f, q->v[0], &target, q->err);

	if (r == 0 && put_shown(STDOUT_FILENO, target))
		(void)put(STDOUT_FILENO, "\n", 1);
	free(target);
	return r;
}

static const struct operation {
	const char *name;
	int least, most; /* operands */
	const char *operands;
	int (*fn)(const struct fs_request *q);
} operations[] = {
	{"read", 1, 1, "PATH", do_read},
	{"write", 1, 1, "PATH", do_write},
	{"append", 1, 1, "PATH", do_append},
	{"list", 0, 1, "[PATH]", fs_show_list},
	{"stat", 1, 1, "PATH", fs_stat},
	{"exists", 1, 1, "PATH", do_exists},
	{"delete", 1, 1, "PATH", do_delete},
	{"mkdir", 1, 1, "PATH", do_mkdir},
	{"rename", 2, 2, "FROM TO", do_rename},
	{"chmod", 2, 2, "MODE PATH", do_chmod},
	{"symlink", 2, 2, "TARGET PATH", do_symlink},
	{"readlink", 1, 1, "PATH", do_readlink},
	{"watch", 1, 1, "PATH", fs_watch},
};

/* Return NULL and fill err on failure. */
static const struct operation *fs_find_operation(const struct operands *operands, cloche_err *err)
{
	const char *name = operands->n > 1 ? operands->v[1] : "";

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		const struct operation *op = &operations[i];

		if (strcmp(op->name, name) != 0)
			continue;
		if (operands->n - 2 >= op->least && operands->n - 2 <= op->most)
			return op;
		wrong_usage(err, NULL, "fs: usage: cloche fs ID %s %s", op->name, op->operands);
		return NULL;
	}
	wrong_usage(err, "\"cloche fs --help\" lists the operations",
		*name ? "fs: unknown operation %s" : "fs: which operation in which sandbox?%s",
		name);
	return NULL;
}

static int fs_run(const struct fs_options *o, const struct operands *operands, cloche_err *err)
{
	const struct operation *op = fs_find_operation(operands, err);
	struct fs_request q = {.o = o, .v = operands->v + 2, .err = err};
	int r;

	if (!op)
		return -CLOCHE_E_USAGE;
	r = options_check_operation(&command_fs, operands, op->name, err);
	if (r < 0)
		return r;
	r = files_open(operands->v[0], o->user, &q.f, err);
	if (r == 0) {
		cloche_files_set_lenient(q.f, o->force);
		r = op->fn(&q);
	}
	cloche_files_close(q.f);
	return r;
}

static int main_fs(void *ctx, const struct operands *operands, cloche_err *err)
{
	int r = fs_run(ctx, operands, err);

	return r < 0 ? files_failed(err) : r;
}

const struct command command_fs = {
	.name = "fs",
	.summary = "read, write and watch files in a sandbox",
	.synopsis = "ID OPERATION [OPTIONS] PATH",
	.text = "Operations:\n"
		"  read PATH             its bytes on standard output\n"
		"  write PATH            from standard input; whole or not at all; makes parents\n"
		"  append PATH           the same, at its end\n"
		"  list [PATH]           names in a directory, a line each\n"
		"  stat PATH             type, mode, size, owner, time\n"
		"  exists PATH           exit status 0 if PATH exists, else 1\n"
		"  delete PATH           a file, a link, an empty directory; -r: all below\n"
		"  mkdir PATH            with its parents\n"
		"  rename FROM TO        within one file system; TO is replaced\n"
		"  chmod MODE PATH       MODE in octal\n"
		"  symlink TARGET PATH   PATH becomes a link to TARGET\n"
		"  readlink PATH         where a link leads\n"
		"  watch PATH            a line for each change, until Ctrl-C\n"
		"Paths are the sandbox's own; relative ones begin at its working directory.\n"
		"\n"
		"  echo hello | cloche fs web write notes/today.txt\n"
		"  cloche fs web read notes/today.txt\n"
		"  cloche fs web watch -r --json src",
	.tables = {&(const struct option_table){"Options", fs_options}},
	.ctx = &(struct fs_options){.length = UINT64_MAX},
	.run = main_fs,
};
