/* SPDX-License-Identifier: Apache-2.0 */
#include "room/judge.h"
#include "base/fd.h"
#include "fs/fs.h"
#include "room/apart.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

void judged_free(struct judged_source *sources, size_t n)
{
	for (size_t i = 0; sources && i < n; i++)
		free(sources[i].path);
	free(sources);
}

static int judge_source(const struct apart_own *apart, const struct room_spec *spec, size_t i,
	struct judged_source *ret, struct cloche_err *err)
{
	const struct room_mount *m = &spec->mounts[i];
	struct stat st;
	int r = apart_check_source(apart, m->fd, m->source, spec->host_home, m->ro, &st, err);
	char path[PATH_MAX];

	if (r < 0 && m->closed) {
		err_clear(err);
		return 0;
	}
	if (r < 0)
		return r;
	r = fd_path(m->fd, path);
	if (r < 0)
		return err_sys(err, -r, "find %s", m->source);
	ret->is_dir = S_ISDIR(st.st_mode);
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->path = strdup(path);
	return ret->path ? 0 : err_nomem(err);
}

/* A later mount hides an earlier one at or below its target, unless that one has a second path. The
 * hidden mount is left out: Landlock could not hide it, and an engine need not make it. */
static bool is_hidden(const struct room_spec *spec, size_t i)
{
	if (spec->mounts[i].also)
		return false;
	for (size_t k = i + 1; k < spec->mounts_n; k++)
		if (!spec->mounts[k].guard &&
			fs_is_within(spec->mounts[i].target, spec->mounts[k].target))
			return true;
	return false;
}

static void leave_out_hidden(const struct room_spec *spec, struct judged_source *sources)
{
	for (size_t i = 0; i < spec->mounts_n; i++)
		if (sources[i].path && is_hidden(spec, i)) {
			free(sources[i].path);
			sources[i].path = NULL;
		}
}

int judge_sources(const struct room_spec *spec, struct judged_source **ret, struct cloche_err *err)
{
	struct judged_source *sources = calloc(spec->mounts_n + 1, sizeof(*sources));
	struct apart_own apart;
	int r = sources ? apart_own_init(&apart, err) : err_nomem(err);

	*ret = sources;
	for (size_t i = 0; r == 0 && i < spec->mounts_n; i++)
		if (!spec->mounts[i].guard)
			r = judge_source(&apart, spec, i, &sources[i], err);
	if (r == 0)
		leave_out_hidden(spec, sources);
	return r;
}

bool judged_hides(
	const struct room_spec *spec, const struct judged_source *sources, const char *path)
{
	for (size_t i = 0; i < spec->mounts_n; i++)
		if (sources[i].path && fs_is_within(path, spec->mounts[i].target))
			return true;
	return false;
}
