/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the image's settings are kept next to the user's settings, and are joined
 * with them when something is started: the user's settings override the image's, and these override
 * the defaults. An image is pulled when its name is set, because its settings are needed then. */
#include "fs/fs.h"
#include "image/find.h"
#include "image/load.h"
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

static int take_user(cloche_sandbox *sb, struct image_store *s, const struct image_config *c,
	struct cloche_err *err)
{
	struct image_user user;
	int r = image_find_user(s, c, c->user, &user, err);

	if (r == 0) {
		sb->image_uid = user.uid;
		sb->image_gid = user.gid;
	}
	return r;
}

/* Return whether the layer lies once more above. Then it has no effect here, as all of it is there
 * too, and an overlay takes a layer only once. */
static bool is_repeated(const struct image_config *c, size_t i)
{
	for (size_t above = i + 1; above < c->layers_n; above++)
		if (strcmp(c->diff_ids[above], c->diff_ids[i]) == 0)
			return true;
	return false;
}

static int take_config(cloche_sandbox *sb, const struct image_config *c, struct cloche_err *err)
{
	int r = set_string(&sb->image_workdir, c->workdir, err);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < c->layers_n; i++)
		if (!is_repeated(c, i))
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

int sandbox_set_pull(cloche_sandbox *sb, const char *when, cloche_err *err)
{
	if (strcmp(when, "missing") != 0 && strcmp(when, "never") != 0 &&
		strcmp(when, "always") != 0)
		return err_set(
			err, E_USAGE, "--pull is missing, never or always, not \"%s\"", when);
	return set_string(&sb->pull, when, err);
}

void cloche_sandbox_on_pull(cloche_sandbox *sb, cloche_pull_fn fn, void *user)
{
	sb->on_pull = fn;
	sb->on_pull_user = user;
}

static bool pulls(const cloche_sandbox *sb, const char *when)
{
	return sb->pull && strcmp(sb->pull, when) == 0;
}

static int find(
	struct image_store *s, const char *name, struct image_found *ret, struct cloche_err *err)
{
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	int r = image_store_read(s, &index, err);

	return r < 0 ? r : image_find(s, &index, str_from(name), ret, err);
}

static int pull(cloche_sandbox *sb, struct image_store *s, const char *name, struct cloche_err *err)
{
	struct image_load job = {.step = sb->on_pull, .user = sb->on_pull_user};
	int r = image_pull(s, name, &job, err);

	image_index_done(&job.stored);
	return r;
}

/* Return whether a registry may have an image of that name: neither an id, nor one of our builds.
 */
static bool is_for_a_registry(const char *name)
{
	struct image_ref ref;

	return image_ref_parse(str_from(name), &ref, NULL) == 0 && ref.name.n && !ref.maybe_id &&
	       !str_eq(ref.name, STR("cloche")) && !str_eq(ref.name, STR("cloche-repo"));
}

static int find_or_pull(cloche_sandbox *sb, struct image_store *s, const char *name,
	struct image_found *ret, struct cloche_err *err)
{
	struct cloche_err why = CLOCHE_ERR_INIT;
	bool foreign = is_for_a_registry(name);
	int r;

	if (foreign && pulls(sb, "always")) {
		r = pull(sb, s, name, err);
		return r < 0 ? r : find(s, name, ret, err);
	}
	r = find(s, name, ret, err);
	if (r != -E_NOT_FOUND || !foreign || !pulls(sb, "missing"))
		return r;
	r = pull(sb, s, name, &why);
	if (r == 0) {
		err_clear(err);
		return find(s, name, ret, err);
	}
	if (r != -E_CANCELLED)
		r = -E_NOT_FOUND;
	err_set(err, -r, "there is no image %s, and it cannot be pulled: %.900s", name,
		why.message);
	if (why.hint[0])
		err_hint(err, "%s", why.hint);
	else
		err_hint(err, "\"cloche image ls\" lists the images that are here");
	return r;
}

int sandbox_find_image_user(const cloche_sandbox *sb, const char *text, uint32_t *ret_uid,
	uint32_t *ret_gid, struct cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store s = IMAGE_STORE_NULL;
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	_cleanup_(image_found_donep) struct image_found found = IMAGE_FOUND_NULL;
	struct image_user user;
	int r = image_store_open(&s, err);

	if (r == 0)
		r = image_store_read(&s, &index, err);
	if (r == 0)
		r = image_find(&s, &index, str_from(sb->image_id), &found, err);
	if (r == 0)
		r = image_find_user(&s, &found.config, text, &user, err);
	if (r < 0)
		return err_wrap(err, r, "--user %s", text);
	*ret_uid = user.uid;
	*ret_gid = user.gid;
	return 0;
}

int sandbox_use_image(cloche_sandbox *sb, const char *root, struct cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store s = IMAGE_STORE_NULL;
	_cleanup_(image_found_donep) struct image_found found = IMAGE_FOUND_NULL;
	_cleanup_(freep) char *layers = NULL;
	int r = image_store_open(&s, err);

	if (r == 0)
		r = find_or_pull(sb, &s, root + sizeof("image:") - 1, &found, err);
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
