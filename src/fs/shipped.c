/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/shipped.h"
#include "base/fd.h"
#include "base/strv.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHIPPED_NAME_MAX = 32, SHIPPED_MAX = 256 };
#define SHIPPED_SUFFIX ".yaml"

const char *shipped_text(const struct shipped *s, const char *name)
{
	for (const struct shipped_text *t = s->texts; t->name; t++)
		if (strcmp(t->name, name) == 0)
			return t->text;
	return NULL;
}

static bool shipped_is_name(struct str s)
{
	return s.n > 0 && s.n <= SHIPPED_NAME_MAX && s.p[0] != '-' &&
	       str_is_all(s, STR_LOWER STR_DIGITS "-");
}

/* Store the path of a person's file of that name; NULL: there cannot be one. */
static int shipped_path(const struct shipped *s, const char *name, char **ret)
{
	_cleanup_(freep) char *dir = NULL;
	int r = fs_config_path(s->folder, &dir);

	*ret = NULL;
	if (r < 0 || !dir || !shipped_is_name(str_from(name)))
		return r;
	if (asprintf(ret, "%s/%s" SHIPPED_SUFFIX, dir, name) < 0)
		*ret = NULL;
	return *ret ? 0 : -ENOMEM;
}

bool shipped_has(const struct shipped *s, const char *name)
{
	_cleanup_(freep) char *path = NULL;

	if (shipped_path(s, name, &path) < 0)
		return false;
	return shipped_text(s, name) || (path && access(path, F_OK) == 0);
}

static int shipped_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Add the names of the person's own texts that are not shipped. */
static int shipped_add_own(const struct shipped *s, char ***names)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(fs_list_closep) DIR *list = NULL;
	struct dirent *e;
	int r = fs_config_path(s->folder, &path);

	if (r == 0 && path)
		list = fs_list(AT_FDCWD, path);
	while (r == 0 && list && (e = fs_list_next(list)) && strv_count(*names) < SHIPPED_MAX) {
		struct str file = str_from(e->d_name), end = STR(SHIPPED_SUFFIX);
		_cleanup_(freep) char *name = NULL;

		if (!str_ends(file, end) || !shipped_is_name(str_prefix(file, file.n - end.n)))
			continue;
		name = str_dup(str_prefix(file, file.n - end.n));
		if (!name)
			return -ENOMEM;
		r = shipped_text(s, name) ? 0 : strv_add(names, str_from(name));
	}
	return r;
}

int shipped_names(const struct shipped *s, char ***ret, struct cloche_err *err)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r = 0;

	for (const struct shipped_text *t = s->texts; r == 0 && t->name; t++)
		r = strv_add(&names, str_from(t->name));
	if (r == 0)
		r = shipped_add_own(s, &names);
	if (r < 0)
		return err_nomem(err);
	qsort(names, strv_count(names), sizeof(*names), shipped_compare);
	*ret = TAKE_PTR(names);
	return 0;
}

static int shipped_unknown(const struct shipped *s, const char *name, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf known = BUF_INIT(16 << 10);
	_cleanup_(strv_freep) char **names = NULL;
	int r = shipped_names(s, &names, err);

	for (size_t i = 0; r == 0 && names && names[i]; i++)
		r = buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
	if (r < 0 || !buf_cstr(&known))
		return err_nomem(err);
	return err_set(
		err, E_USAGE, "unknown %s \"%s\"; there are: %s", s->kind, name, buf_cstr(&known));
}

int shipped_read(const struct shipped *s, const char *name, bool skip_own, struct buf *out,
	char **ret_file, struct cloche_err *err)
{
	_cleanup_(freep) char *path = NULL;
	const char *text = shipped_text(s, name);
	int r = skip_own ? 0 : shipped_path(s, name, &path);

	if (r < 0)
		return err_nomem(err);
	if (path && !(access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))) {
		r = fd_read_file(AT_FDCWD, path, out, err);
		*ret_file = r < 0 ? NULL : TAKE_PTR(path);
		return r;
	}
	if (!text)
		return shipped_unknown(s, name, err);
	*ret_file = strdup(name);
	if (*ret_file && buf_add_str(out, str_from(text)) == 0)
		return 0;
	free(*ret_file);
	*ret_file = NULL;
	return err_nomem(err);
}
