/* SPDX-License-Identifier: Apache-2.0 */
#include "base/envfile.h"
#include "base/macro.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENVFILE_LINES = 65536, ENVFILE_LINE = 128 * 1024 };

struct envfile {
	const char *path;
	unsigned number;
	int (*set)(void *user, const char *name, const char *value, struct cloche_err *err);
	void *user;
};

static int envfile_take_line(const struct envfile *f, char *line, size_t n, struct cloche_err *err)
{
	char *name = line + strspn(line, " \t"), *equals = strchr(name, '=');
	const char *value;

	if (strlen(line) != n || n > ENVFILE_LINE)
		return err_set(err, E_USAGE, "%s: line %u is no line of text", f->path, f->number);
	if (*name == '\0' || *name == '#')
		return 0;
	if (equals)
		*equals = '\0';
	if (*name == '\0' || name[strcspn(name, " \t")])
		return err_set(err, E_USAGE, "%s: line %u is not NAME=VALUE", f->path, f->number);
	value = equals ? equals + 1 : secure_getenv(name);
	return value ? f->set(f->user, name, value, err) : 0;
}

/* Read a line without its end, or its first ENVFILE_LINE + 1 bytes. Return their number, or -1 at
 * the end of the file. */
static ssize_t envfile_next_line(FILE *from, char line[static ENVFILE_LINE + 2])
{
	size_t n = 0;
	int c = getc(from);

	if (c == EOF)
		return -1;
	for (; c != EOF && c != '\n' && n <= ENVFILE_LINE; c = getc(from))
		line[n++] = (char)c;
	while (n > 0 && line[n - 1] == '\r')
		n--;
	line[n] = '\0';
	return (ssize_t)n;
}

static int envfile_read_lines(struct envfile *f, FILE *from, struct cloche_err *err)
{
	_cleanup_(freep) char *line = malloc(ENVFILE_LINE + 2);
	ssize_t n;
	int r = 0;

	if (!line)
		return err_nomem(err);
	errno = 0;
	while (r == 0 && (n = envfile_next_line(from, line)) >= 0) {
		if (++f->number > ENVFILE_LINES)
			return err_set(
				err, E_USAGE, "%s has more than %d lines", f->path, ENVFILE_LINES);
		r = envfile_take_line(f, line, (size_t)n, err);
	}
	return r == 0 && ferror(from) ? err_sys(err, errno, "read %s", f->path) : r;
}

int envfile_read(const char *path,
	int (*set)(void *user, const char *name, const char *value, struct cloche_err *err),
	void *user, struct cloche_err *err)
{
	struct envfile f = {path, 0, set, user};
	FILE *from = fopen(path, "re");
	int r;

	if (!from) {
		err_set(err, E_USAGE, "--env-file %s: %s", path, strerror(errno));
		return -E_USAGE;
	}
	r = envfile_read_lines(&f, from, err);
	fclose(from);
	return r;
}
