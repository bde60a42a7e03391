/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_files.h"
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The time of the last change of an inode is the kernel's own: nobody can set it back. */
static void look(const char *path, struct policy_file *ret)
{
	struct stat st;

	ret->existed = stat(path, &st) == 0;
	if (!ret->existed)
		return;
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->changed = st.st_ctim;
}

static void note(struct policy_files *p, const char *dir, const char *name)
{
	struct policy_file *f = &p->v[p->n];

	if (p->n == POLICY_FILES)
		return;
	memset(f, 0, sizeof(*f));
	if (asprintf(&f->path, "%s%s%s", dir, *dir ? "/" : "", name) < 0)
		return;
	look(f->path, f);
	p->n++;
}

static void note_dir(struct policy_files *p, const char *dir)
{
	static const char *const names[] = {".cloche/sandbox.yaml",
		".cloche/network-allowlist.yaml", ".airut/sandbox.yaml",
		".airut/network-allowlist.yaml"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		note(p, dir, names[i]);
}

static bool is_here(const char *dir)
{
	struct stat a, b;

	return stat(dir, &a) == 0 && stat(".", &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

void policy_files_note(
	struct policy_files *p, const char *workspace, const char *config, const char *allowlist)
{
	p->n = 0;
	note_dir(p, workspace && is_here(workspace) ? workspace : ".");
	if (workspace && !is_here(workspace))
		note_dir(p, workspace);
	if (config)
		note(p, "", config);
	if (allowlist)
		note(p, "", allowlist);
}

void policy_files_check(const struct policy_files *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct policy_file *was = &p->v[i];
		struct policy_file now = {0};

		look(was->path, &now);
		if (!now.existed || (was->existed && was->dev == now.dev && was->ino == now.ino &&
					    was->changed.tv_sec == now.changed.tv_sec &&
					    was->changed.tv_nsec == now.changed.tv_nsec))
			continue;
		say("the command %s %s which the next run there would obey: look at it or remove "
		    "it",
			was->existed ? "changed" : "made", was->path);
	}
}

void policy_files_done(struct policy_files *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].path);
	p->n = 0;
}
