/* SPDX-License-Identifier: Apache-2.0 */
/* Moves an image from the engine that has built it to the store that roots of sandboxes come
 * from. */
#include "builder/build.h"

#include <string.h>

static int load(const char *path, void *user, struct cloche_err *err)
{
	return cloche_image_load(path, -1, user, err);
}

int cloche_image_build_store(
	cloche_image_build *build, struct cloche_image_loading *loading, cloche_err *err)
{
	struct cloche_image_loading own = {0};
	const char *tag = cloche_image_build_tag(build);
	char id[SHA256_HEX_MAX];
	cloche_image *image = NULL;
	bool is_there;
	int r = build_id(build, id, err);

	if (r < 0)
		return r;
	is_there = cloche_image_find(tag, &image, NULL) == 0 &&
		   strcmp(cloche_image_id(image), id) == 0;
	cloche_image_free(image);
	if (is_there)
		return 0;
	loading = loading ? loading : &own;
	loading->name = tag;
	return build_archive(build, load, loading, err);
}
