/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/driver.h"
#include "base/fd.h"
#include "base/macro.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PIECE = 1 << 20,
	SECRET_MAX = 128,     /* characters */
	READ_MAX = 512 << 20, /* bytes, of all files */
	FILES_MAX = 4096,     /* beside the program */
};

struct secret_search {
	struct str begins;
	char *piece; /* PIECE bytes */
	size_t left; /* bytes that may still be read */
	char *found; /* heap */
};

/* The characters of RFC 3986 that are reserved for nothing. */
static bool secret_has(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

/* Take what stands at text[at], if it is the whole of a string of JavaScript. */
static int secret_take(struct secret_search *s, struct str text, size_t at)
{
	size_t n = s->begins.n;
	char quote = at > 0 ? text.p[at - 1] : '\0';

	while (at + n < text.n && n <= SECRET_MAX && secret_has(text.p[at + n]))
		n++;
	if (!quote || !strchr("\"'`", quote) || n == s->begins.n || n > SECRET_MAX ||
		at + n == text.n || text.p[at + n] != quote)
		return 0;
	s->found = str_dup(str_make(text.p + at, n));
	return s->found ? 0 : -ENOMEM;
}

static int secret_look(struct secret_search *s, struct str text)
{
	int r = 0;

	for (size_t at = 0, next; r == 0 && !s->found; at = next + 1) {
		next = at + str_find(str_from_index(text, at), s->begins);
		if (next >= text.n)
			break;
		r = secret_take(s, text, next);
	}
	return r;
}

/* Pieces overlap by as much as a string can be long. What cannot be read holds nothing. */
static int secret_read(struct secret_search *s, int fd)
{
	enum { KEEP = SECRET_MAX + 2 };
	size_t have = 0;
	int r = 0;

	while (r == 0 && !s->found && s->left > 0) {
		ssize_t n = read(fd, s->piece + have, MIN((size_t)PIECE - have, s->left));

		if (n <= 0)
			break;
		s->left -= (size_t)n;
		have += (size_t)n;
		r = secret_look(s, str_make(s->piece, have));
		if (have > KEEP)
			memmove(s->piece, s->piece + have - KEEP, KEEP);
		have = MIN(have, (size_t)KEEP);
	}
	return r;
}

static int secret_read_file(struct secret_search *s, int dir, const char *name)
{
	_cleanup_fd_ int fd = fs_open_beneath(dir, name, O_RDONLY);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? secret_read(s, fd) : 0;
}

static bool secret_is_script(struct str name)
{
	return str_ends(name, STR(".js")) || str_ends(name, STR(".mjs")) ||
	       str_ends(name, STR(".cjs"));
}

int agent_client_secret(const char *program, const char *begins, char **ret)
{
	_cleanup_(freep) char *path = realpath(program, NULL);
	char *slash = path ? strrchr(path, '/') : NULL;
	_cleanup_(freep) char *piece = malloc(PIECE);
	_cleanup_fd_ int dir = -1;
	_cleanup_(fs_list_closep) DIR *list = NULL;
	struct secret_search s = {.begins = str_from(begins), .piece = piece, .left = READ_MAX};
	struct dirent *e;
	int r;

	*ret = NULL;
	if (!piece)
		return -ENOMEM;
	if (!slash)
		return 0;
	*slash = '\0';
	/* Through no link: whoever makes one meanwhile leads nowhere else. */
	dir = fs_open_beneath(AT_FDCWD, *path ? path : "/", O_PATH | O_DIRECTORY);
	r = dir < 0 ? 0 : secret_read_file(&s, dir, slash + 1);
	list = dir < 0 ? NULL : fs_list(dir, ".");
	for (size_t i = 0; r == 0 && list && !s.found && i < FILES_MAX; i++) {
		e = fs_list_next(list);
		if (!e)
			break;
		if (secret_is_script(str_from(e->d_name)))
			r = secret_read_file(&s, dir, e->d_name);
	}
	*ret = s.found;
	return r;
}
