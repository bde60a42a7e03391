/* SPDX-License-Identifier: Apache-2.0 */
/* Copy and free, member by member, as the table says. */
#include "base/fd.h"
#include "sandbox/options.h"

#include <errno.h>
#include <fcntl.h>

static int copy_mounts(const cloche_sandbox *sb, cloche_sandbox *copy)
{
	for (size_t i = 0; i < sb->mounts_n; i++) {
		const struct room_mount *m = &sb->mounts[i];
		int fd = m->fd < 0 ? m->fd : fcntl(m->fd, F_DUPFD_CLOEXEC, 0);

		if ((m->fd >= 0 && fd < 0) || sandbox_put_mount(copy, fd, m, NULL) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Return 0 or -ENOMEM. */
static int copy_member(
	const cloche_sandbox *sb, cloche_sandbox *copy, const struct sandbox_option *o)
{
	void *from = option_at(sb, o), *to = option_at(copy, o);
	bool ok = true;

	switch (o->type) {
	case OPTION_NONE:
		break;
	case OPTION_SIZE:
	case OPTION_CPUS:
	case OPTION_COUNT:
	case OPTION_TIME:
		*(uint64_t *)to = *(uint64_t *)from;
		break;
	case OPTION_FLAG:
		*(bool *)to = *(bool *)from;
		break;
	case OPTION_OPENED:
		*(int *)to = *(int *)from < 0 ? -1 : fcntl(*(int *)from, F_DUPFD_CLOEXEC, 0);
		ok = *(int *)from < 0 || *(int *)to >= 0;
		break;
	case OPTION_FD:
	case OPTION_ROOT:
	case OPTION_NET:
		memcpy(to, from, sizeof(int));
		break;
	case OPTION_TEXT:
		ok = set_string(to, *(char **)from, NULL) == 0;
		break;
	case OPTION_TEXTS:
		ok = strv_copy(*(char ***)from, to) == 0;
		break;
	case OPTION_MOUNTS:
		return copy_mounts(sb, copy);
	case OPTION_ALLOWLIST:
		*(cloche_allowlist **)to = allowlist_copy(*(cloche_allowlist **)from);
		ok = *(cloche_allowlist **)to || !*(cloche_allowlist **)from;
		break;
	case OPTION_SECRETS:
		*(cloche_secrets **)to = secrets_copy(*(cloche_secrets **)from);
		ok = *(cloche_secrets **)to || !*(cloche_secrets **)from;
		break;
	}
	return ok ? 0 : -ENOMEM;
}

cloche_sandbox *sandbox_copy(const cloche_sandbox *sb)
{
	_cleanup_(cloche_sandbox_freep) cloche_sandbox *copy = calloc(1, sizeof(*copy));
	const struct sandbox_option *o;

	if (copy)
		copy->root_fd = -1;
	for (size_t i = 0; copy && (o = option_row(i)); i++)
		if (copy_member(sb, copy, o) < 0)
			return NULL;
	return TAKE_PTR(copy);
}

static void free_member(cloche_sandbox *sb, const struct sandbox_option *o)
{
	void *at = option_at(sb, o);

	if (o->type == OPTION_TEXT)
		free(*(char **)at);
	else if (o->type == OPTION_TEXTS)
		strv_free(*(char ***)at);
	else if (o->type == OPTION_OPENED)
		fd_close(*(int *)at);
	else if (o->type == OPTION_ALLOWLIST)
		cloche_allowlist_free(*(cloche_allowlist **)at);
	else if (o->type == OPTION_SECRETS)
		cloche_secrets_free(*(cloche_secrets **)at);
}

void cloche_sandbox_free(cloche_sandbox *sb)
{
	const struct sandbox_option *o;

	if (!sb)
		return;
	sandbox_group_unref(sb->group);
	for (size_t i = 0; (o = option_row(i)); i++)
		free_member(sb, o);
	for (size_t i = 0; i < sb->mounts_n; i++) {
		fd_close(sb->mounts[i].fd);
		free(sb->mounts[i].source);
		free(sb->mounts[i].target);
		free(sb->mounts[i].also);
	}
	free(sb->mounts);
	free(sb);
}
