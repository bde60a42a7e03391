/* SPDX-License-Identifier: Apache-2.0 */
/* Loads an archive of an image and runs a command in it, or what the image runs: image ARCHIVE
 * [COMMAND [ARG...]]. */
#include <cloche/image.h>
#include <cloche/run.h>
#include <stdio.h>

struct loaded {
	char root[128];
};

static bool on_stored(const cloche_image *image, void *user)
{
	struct loaded *l = user;
	const char *name = image->names[0];

	snprintf(l->root, sizeof(l->root), "image:%s", image->id);
	printf("%s: %zu layers\n", name ? name : "(no name)", image->layers);
	return true;
}

int main(int argc, char **argv)
{
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_sandbox *sandbox = cloche_sandbox_new();
	struct loaded loaded = {""};
	struct cloche_image_loading loading = CLOCHE_IMAGE_LOADING_INIT;
	cloche_run *run = NULL;
	const cloche_result *end;
	int r;

	if (argc < 2 || !sandbox) {
		fprintf(stderr, "usage: image ARCHIVE [COMMAND [ARG...]]\n");
		cloche_sandbox_free(sandbox);
		return 2;
	}
	loading.stored = on_stored;
	loading.user = &loaded;
	r = cloche_image_load(argv[1], -1, &loading, &err);
	if (r == 0)
		r = cloche_sandbox_set(sandbox, "root", loaded.root, &err);
	if (r == 0)
		r = cloche_run_new(sandbox, (const char *const *)argv + 2, &run, &err);
	if (r == 0)
		r = cloche_run_execute(run, &err);
	if (r < 0) {
		fprintf(stderr, "%s\n", err.message);
	} else {
		end = cloche_run_result(run);
		fwrite(end->stdout_data, 1, end->stdout_length, stdout);
		r = end->exit_code;
	}
	cloche_run_free(run);
	cloche_sandbox_free(sandbox);
	return r < 0 ? 1 : r;
}
