/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace/stuck.h"
#include "base/fd.h"
#include "base/macro.h"
#include "fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { STUCK_MAX = 64 * 1024 };

void stuck_done(struct stuck *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->guards[i].source);
		free(s->guards[i].target);
	}
	free(s->guards);
	*s = (struct stuck){0};
}

bool stuck_is_of_git(const char *path)
{
	struct str rest = str_from(path);

	while (rest.n)
		if (str_eq(str_next(&rest, '/'), STR(".git")))
			return true;
	return false;
}

int stuck_add(struct stuck *s, const char *source, const char *target)
{
	struct stuck_guard *more, *g;

	if (stuck_is_of_git(target))
		return 0;
	more = array_room(s->guards, s->n, &s->cap, sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->guards = more;
	g = &s->guards[s->n++];
	*g = (struct stuck_guard){.source = strdup(source), .target = strdup(target)};
	return g->source && g->target ? 0 : -ENOMEM;
}

static void stuck_hit(struct stuck *s, struct str line)
{
	for (size_t i = 0; i < s->n; i++) {
		struct str target = str_from(s->guards[i].target);

		if (str_eq(str_prefix(line, target.n), target) &&
			(line.n == target.n || line.p[target.n] == '/'))
			s->guards[i].hit = true;
	}
}

void stuck_read(struct stuck *s, int copies, const char *name)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(STUCK_MAX);
	_cleanup_(freep) char *path = fs_join(name, STUCK_NAME);
	_cleanup_fd_ int fd = path ? fs_open_beneath(copies, path, O_RDONLY) : -1;
	struct stat st;
	struct str text;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	/* What is beyond the limit of the buffer is left out. */
	if (fd_read_to_end(fd, &b) < 0 && buf_len(&b) == 0)
		return;
	text = buf_str(&b);
	while (text.n && s->lines++ < STUCK_MAX_LINES)
		stuck_hit(s, str_next_line(&text));
}

/* One of two paths in the room is enough. */
static bool stuck_is_first(const struct stuck *s, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (s->guards[k].hit && strcmp(s->guards[k].source, s->guards[i].source) == 0)
			return false;
	return s->guards[i].hit;
}

int stuck_tell(const struct stuck *s, struct look_told *told)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(256 * 1024);
	_cleanup_(freep) char **paths = calloc(s->n + 1, sizeof(*paths)); /* borrowed */
	size_t n = 0;
	int r = paths ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < s->n; i++)
		if (stuck_is_first(s, i))
			paths[n++] = s->guards[i].source;
	if (r < 0 || n == 0)
		return r;
	r = buf_add_str(&b, STR("a command of git was to change "));
	if (r == 0)
		r = told_quote_some(&b, paths, n);
	if (r == 0)
		r = buf_add_str(&b, STR(": read-only in the sandbox; --allow-write FILE lets it"));
	return r < 0 || !buf_cstr(&b) ? -ENOMEM : told_notice(told, paths[0], buf_cstr(&b));
}
