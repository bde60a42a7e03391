/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the image's settings are kept next to the user's settings, and are joined
 * with them when something is started: the user's settings override the image's, and these override
 * the defaults. */
#include "base/fs.h"
#include "image/find.h"
#include "sandbox/sandbox.h"

void sandbox_leave_image(cloche_sandbox *sb)
{
	char **lists[] = {sb->image_layers, sb->image_places, sb->image_env, sb->image_entrypoint,
		sb->image_cmd};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		strv_free(lists[i]);
	sb->image_layers = sb->image_places = sb->image_env = sb->image_entrypoint = NULL;
	sb->image_cmd = NULL;
	(void)!set_string(&sb->image, NULL, NULL);
	(void)!set_string(&sb->image_id, NULL, NULL);
	(void)!set_string(&sb->image_workdir, NULL, NULL);
	sb->image_uid = sb->image_gid = 0;
}

/* Take the user that the image runs as, and that user's home directory. */
static int take_user(cloche_sandbox *sb, struct image_store *s, const struct image_config *c,
	struct cloche_err *err)
{
	_cleanup_(image_user_donep) struct image_user user = IMAGE_USER_NULL;
	int r = image_find_user(s, c, &user, err);

	if (r < 0 || user.uid == 0)
		return r;
	sb->image_uid = user.uid;
	sb->image_gid = user.gid;
	r = strv_env_set(&sb->image_env, "HOME", user.home ? user.home : "/");
	if (r == 0 && user.name)
		r = strv_env_set(&sb->image_env, "USER", user.name);
	if (r == 0 && user.name)
		r = strv_env_set(&sb->image_env, "LOGNAME", user.name);
	return r < 0 ? err_nomem(err) : 0;
}

static int take_config(cloche_sandbox *sb, const struct image_config *c, struct cloche_err *err)
{
	int r = set_string(&sb->image_workdir, c->workdir, err);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < c->layers_n; i++)
		r = strv_add(&sb->image_layers, str_from(c->diff_ids[i]));
	for (char *const *v = c->env; r == 0 && v && *v; v++)
		r = strv_add(&sb->image_env, str_from(*v));
	if (r == 0)
		r = strv_copy(c->entrypoint, &sb->image_entrypoint);
	if (r == 0)
		r = strv_copy(c->cmd, &sb->image_cmd);
	if (r == 0)
		r = strv_copy(c->volumes, &sb->image_places);
	/* Engines make the working directory if the image lacks it. */
	if (r == 0 && c->workdir && strspn(c->workdir, "/") < strlen(c->workdir))
		r = strv_add(&sb->image_places, str_from(c->workdir));
	return r < 0 ? err_nomem(err) : 0;
}

int sandbox_use_image(cloche_sandbox *sb, const char *root, struct cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store s = IMAGE_STORE_NULL;
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	_cleanup_(image_found_donep) struct image_found found = IMAGE_FOUND_NULL;
	_cleanup_(freep) char *layers = NULL;
	int r = image_store_open(&s, err);

	if (r == 0)
		r = image_store_read(&s, &index, err);
	if (r == 0)
		r = image_find(&s, &index, str_from(root + sizeof("image:") - 1), &found, err);
	if (r == 0)
		r = take_user(sb, &s, &found.config, err);
	if (r == 0)
		r = take_config(sb, &found.config, err);
	if (r == 0)
		r = set_string(&sb->image_id, found.id, err);
	if (r < 0)
		return err_wrap(err, r, "--root %s", root);
	layers = fs_join(s.path, "layers");
	if (!layers)
		return err_nomem(err);
	sb->root = ROOM_ROOT_IMAGE;
	r = set_string(&sb->root_dir, layers, err);
	return r < 0 ? r : set_string(&sb->image, root, err);
}
