/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/native/judge.h"
#include "base/fd.h"
#include "base/fs.h"
#include "provider/native/apart.h"

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
	_cleanup_fd_ int fd = apart_open_source(
		apart, m->source, spec->host_home, m->no_link, m->ro, &ret->is_dir, err);
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (fd == -ENOENT && m->optional) {
		err_clear(err);
		return 0;
	}
	if (fd < 0)
		return fd == -ENOENT ? -E_SYSTEM : fd;
	/* Use the real path, so that a link on the way that is changed later has no effect. */
	r = fd_path(fd, path);
	if (r < 0 || fstat(fd, &st) < 0)
		return err_sys(err, r < 0 ? -r : errno, "find %s", m->source);
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->path = strdup(path);
	return ret->path ? 0 : err_nomem(err);
}

/* A later mount hides an earlier one at or below its target. Engines use an order of their own, so
 * the hidden mount is left out. */
static bool is_hidden(const struct room_spec *spec, size_t i)
{
	for (size_t k = i + 1; k < spec->mounts_n; k++)
		if (fs_is_within(spec->mounts[i].target, spec->mounts[k].target))
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
