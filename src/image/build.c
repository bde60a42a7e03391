/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the name of an image is a digest of its parts, so whether it exists can be
 * seen from the name, and nothing has to be remembered. A builder holds a lock of that name in the
 * state directory, and keeps the engine's input in a directory beside it. If a crash leaves such a
 * directory, the next build removes it when its lock is free. */
#include "image/build.h"
#include "base/fd.h"
#include "base/sized.h"
#include "base/strv.h"
#include "fs/fs.h"
#include "image/engine.h"
#include "image/recipe.h"
#include "ipc/statedir.h"
#include "job/job.h"
#include <cloche/image_build.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* No name that an image is likely to have. */
#define ENTRYPOINT "/cloche-entrypoint.sh"
enum { MAX_COMMAND = 128 * 1024 };
enum { TAG_MAX = 16 + SHA256_HEX_MAX };
#define BUILDS "builds"
#define LOCK_SUFFIX ".lock"

struct cloche_image_build {
	struct recipe recipe;
	char *engine;
	uint64_t max_age;
	bool sync_uv;
	int stop_fd;
	cloche_image_line_fn on_line, on_warning;
	void *user;
	char hash[SHA256_HEX_MAX];
	char tag[TAG_MAX];
};

void cloche_image_build_free(cloche_image_build *build)
{
	if (!build)
		return;
	recipe_done(&build->recipe);
	free(build->engine);
	fd_close(build->stop_fd);
	free(build);
}

static int take_options(
	cloche_image_build *b, const cloche_image_build_options *options, struct cloche_err *err)
{
	cloche_image_build_options o = CLOCHE_IMAGE_BUILD_INIT;
	const char *sync;
	int r = sized_take(&o, sizeof(o), options, "cloche_image_build_options", err);

	if (r < 0)
		return r;
	sync = o.sync ? o.sync : "none";
	if (strcmp(sync, "uv") != 0 && strcmp(sync, "none") != 0)
		return err_set(err, E_USAGE, "what is brought is uv or none, not \"%s\"", sync);
	b->sync_uv = strcmp(sync, "uv") == 0;
	b->max_age = o.max_age_s;
	b->on_line = o.line;
	b->user = o.user;
	b->on_warning = o.warning;
	if (o.dockerfile)
		r = recipe_set_dockerfile(
			&b->recipe, str_make(o.dockerfile, o.dockerfile_length), err);
	return r < 0 ? r : set_string(&b->engine, o.engine, err);
}

int cloche_image_build_new(
	const cloche_image_build_options *options, cloche_image_build **ret, cloche_err *err)
{
	cloche_image_build *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return err_nomem(err);
	b->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = b->stop_fd < 0 ? err_sys(err, errno, "eventfd") : take_options(b, options, err);
	if (r < 0)
		cloche_image_build_free(b);
	else
		*ret = b;
	return r;
}

int cloche_image_build_add_file(cloche_image_build *build, const char *name, const void *data,
	size_t length, bool executable, cloche_err *err)
{
	return recipe_add_file(&build->recipe, name, str_make(data, length), executable, err);
}

/* The image may lack what the directory seems to have. */
static int build_warn_of_links(const cloche_image_build *b, struct cloche_err *err)
{
	const struct recipe *r = &b->recipe;
	_cleanup_(freep) char *text = NULL;
	int n;

	if (!b->on_warning || r->links == 0)
		return 0;
	if (r->links == 1)
		n = asprintf(&text, "the link %s is left out of the image's context", r->link);
	else
		n = asprintf(&text, "%zu links are left out of the image's context, such as %s",
			r->links, r->link);
	if (n < 0)
		return err_nomem(err);
	b->on_warning(text, b->user);
	return 0;
}

int cloche_image_build_add_directory(
	cloche_image_build *build, const char *directory, const char *skip, cloche_err *err)
{
	int r = recipe_add_directory(&build->recipe, directory, skip, err);

	return r < 0 ? r : build_warn_of_links(build, err);
}

const char *cloche_image_build_hash(cloche_image_build *build)
{
	recipe_hash(&build->recipe, build->hash);
	return build->hash;
}

const char *cloche_image_build_tag(cloche_image_build *build)
{
	char repo[TAG_MAX], hex[SHA256_HEX_MAX];

	snprintf(repo, sizeof(repo), CLOCHE_IMAGE_REPO ":%s", cloche_image_build_hash(build));
	recipe_hash_overlay(repo, recipe_entrypoint(build->sync_uv), hex);
	snprintf(build->tag, sizeof(build->tag), CLOCHE_IMAGE_OVERLAY ":%s", hex);
	return build->tag;
}

void cloche_image_build_stop(cloche_image_build *build)
{
	const uint64_t one = 1;

	(void)!write(build->stop_fd, &one, sizeof(one));
}

/* --- the lock and what the engine reads --- */

struct place {
	int dir;  /* of all builds */
	int lock; /* held */
	char *path;
	char *mine; /* our directory in it; NULL: no lock yet */
	char name[SHA256_HEX_MAX];
};

static void place_done(struct place *p)
{
	if (p->mine)
		(void)fs_remove_tree(p->dir, p->name);
	free(p->mine);
	free(p->path);
	fd_close(p->lock);
	fd_close(p->dir);
}

/* Remove what killed builds have left: their locks are free. */
static void sweep(int dir)
{
	_cleanup_(fs_list_closep) DIR *list = fs_list(dir, ".");
	const struct dirent *e;

	while (list && (e = fs_list_next(list))) {
		_cleanup_(freep) char *lock = NULL;
		_cleanup_fd_ int fd = -1;

		if (strlen(e->d_name) != SHA256_HEX_MAX - 1 ||
			asprintf(&lock, "%s" LOCK_SUFFIX, e->d_name) < 0)
			continue;
		fd = openat(dir, lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			(void)fs_remove_tree(dir, e->d_name);
	}
}

static int take_lock(cloche_image_build *b, struct place *p, struct cloche_err *err)
{
	char name[SHA256_HEX_MAX + sizeof(LOCK_SUFFIX)];
	int r;

	snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, p->name);
	p->lock = openat(p->dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (p->lock < 0)
		return err_sys(err, errno, "open %s/%s", p->path, name);
	r = job_lock_within(p->lock, LOCK_EX, -1, b->stop_fd);
	if (r < 0)
		return err_sys(err, -r, "lock %s/%s", p->path, name);
	return r ? err_set(err, E_CANCELLED, "stopped while another builds the same") : 0;
}

static int place_take(cloche_image_build *b, struct place *p, struct cloche_err *err)
{
	int r;

	p->dir = statedir_open(BUILDS, &p->path, err);
	if (p->dir < 0)
		return p->dir;
	snprintf(p->name, sizeof(p->name), "%s", b->hash);
	sweep(p->dir);
	r = take_lock(b, p, err);
	if (r < 0)
		return r;
	p->mine = fs_join(p->path, p->name);
	return p->mine ? 0 : err_nomem(err);
}

static int write_context(const struct recipe *recipe, const char *path, struct cloche_err *err)
{
	for (size_t i = 0; i < recipe->n; i++) {
		const struct recipe_file *f = &recipe->files[i];
		_cleanup_(freep) char *full = fs_join(path, f->name), *parent = NULL;
		int r;

		parent = full ? str_dup(str_make(full, (size_t)(strrchr(full, '/') - full))) : NULL;
		if (!parent)
			return err_nomem(err);
		r = fs_mkdirs(parent, 0755, err);
		if (r == 0)
			r = fs_write_atomic(AT_FDCWD, full, str_make(f->data, f->size),
				f->executable ? 0755 : 0644, false, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- layers --- */

static int build_layer(struct place *p, struct engine *e, const struct recipe *recipe,
	struct engine_build what, struct cloche_err *err)
{
	_cleanup_(freep) char *context = fs_join(p->mine, "context");
	_cleanup_(freep) char *dockerfile = fs_join(p->mine, "Dockerfile");
	int r;

	if (!context || !dockerfile)
		return err_nomem(err);
	(void)fs_remove_tree(p->dir, p->name);
	r = fs_mkdirs(context, 0700, err);
	if (r == 0)
		r = fs_write_atomic(AT_FDCWD, dockerfile,
			str_make(recipe->dockerfile, recipe->dockerfile_n), 0600, false, err);
	if (r == 0)
		r = write_context(recipe, context, err);
	what.dockerfile = dockerfile;
	what.context = context;
	return r < 0 ? r : engine_build(e, &what, err);
}

/* *ret_made: when the existing image was made; 0: there was none. */
static int ensure_repo(cloche_image_build *b, struct place *p, struct engine *e, const char *tag,
	bool *ret_built, int64_t *ret_made, struct cloche_err *err)
{
	struct engine_build what = {.tag = tag};
	int is_there = engine_created(e, tag, ret_made, err);

	if (is_there < 0)
		return is_there;
	what.fresh = b->max_age == 0 ||
		     (is_there && time(NULL) - *ret_made >
					  (int64_t)MIN(b->max_age, (uint64_t)INT64_MAX));
	*ret_built = !is_there || what.fresh;
	return *ret_built ? build_layer(p, e, &b->recipe, what, err) : 0;
}

/* Write the second layer's Dockerfile. An ENTRYPOINT of its own hides what the first layer runs, so
 * that is said once more. */
static int describe_overlay(
	struct engine *e, const char *repo, struct buf *out, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf entry = BUF_INIT(MAX_COMMAND), cmd = BUF_INIT(MAX_COMMAND);
	int r = engine_command(e, repo, &entry, &cmd, err);

	if (r < 0)
		return r;
	r = buf_printf(out,
		"FROM %s\nCOPY entrypoint.sh " ENTRYPOINT "\nENTRYPOINT [\"" ENTRYPOINT "\"", repo);
	if (r == 0 && buf_len(&entry))
		r = buf_printf(out, ", %.*s", (int)buf_len(&entry) - 2, buf_data(&entry) + 1);
	if (r == 0)
		r = buf_add_str(out, STR("]\n"));
	if (r == 0 && buf_len(&cmd))
		r = buf_printf(out, "CMD %.*s\n", (int)buf_len(&cmd), buf_data(&cmd));
	return r < 0 ? err_nomem(err) : 0;
}

static int ensure_overlay(cloche_image_build *b, struct place *p, struct engine *e,
	const char *repo, bool repo_built, int64_t repo_made, struct cloche_err *err)
{
	_cleanup_(recipe_done) struct recipe recipe = {0};
	const char *entrypoint = recipe_entrypoint(b->sync_uv);
	struct engine_build what = {.fresh = repo_built, .local = true};
	_cleanup_(buf_donep) struct buf text = BUF_INIT(3 * MAX_COMMAND);
	int64_t made = 0;
	int r;

	what.tag = cloche_image_build_tag(b);
	r = engine_created(e, b->tag, &made, err);
	/* An overlay older than its base was built on the previous base. */
	if (r < 0 || (r == 1 && !repo_built && made >= repo_made))
		return r < 0 ? r : 0;
	r = describe_overlay(e, repo, &text, err);
	if (r == 0)
		r = recipe_set_dockerfile(&recipe, buf_str(&text), err);
	if (r == 0)
		r = recipe_add_file(&recipe, "entrypoint.sh", str_from(entrypoint), true, err);
	return r < 0 ? r : build_layer(p, e, &recipe, what, err);
}

static int build_begin(cloche_image_build *b, struct engine *e, struct cloche_err *err)
{
	e->stop_fd = b->stop_fd;
	e->on_line = b->on_line;
	e->user = b->user;
	return engine_find(b->engine, e, err);
}

int build_id(cloche_image_build *b, char ret[SHA256_HEX_MAX], struct cloche_err *err)
{
	_cleanup_(engine_done) struct engine e = {0};
	int r = build_begin(b, &e, err);

	return r < 0 ? r : engine_id(&e, b->tag, ret, err);
}

int build_archive(cloche_image_build *b,
	int (*fn)(const char *path, void *user, struct cloche_err *err), void *user,
	struct cloche_err *err)
{
	_cleanup_(place_done) struct place place = {.dir = -1, .lock = -1};
	_cleanup_(engine_done) struct engine e = {0};
	_cleanup_(freep) char *path = NULL;
	int r = build_begin(b, &e, err);

	if (r == 0)
		r = place_take(b, &place, err);
	if (r < 0)
		return r;
	path = fs_join(place.mine, "archive");
	r = path ? fs_mkdirs(place.mine, 0700, err) : err_nomem(err);
	if (r == 0)
		r = engine_save(&e, b->tag, path, err);
	return r == 0 ? fn(path, user, err) : r;
}

int cloche_image_build_ensure(cloche_image_build *build, const char **ret_tag, cloche_err *err)
{
	_cleanup_(place_done) struct place place = {.dir = -1, .lock = -1};
	_cleanup_(engine_done) struct engine engine = {0};
	char repo[TAG_MAX];
	int64_t made = 0;
	bool built;
	int r;

	if (!build->recipe.dockerfile)
		return err_set(err, E_USAGE, "no Dockerfile was given");
	r = build_begin(build, &engine, err);
	if (r < 0)
		return r;
	snprintf(repo, sizeof(repo), CLOCHE_IMAGE_REPO ":%s", cloche_image_build_hash(build));
	r = place_take(build, &place, err);
	if (r == 0)
		r = ensure_repo(build, &place, &engine, repo, &built, &made, err);
	if (r == 0)
		r = ensure_overlay(build, &place, &engine, repo, built, made, err);
	if (r == 0)
		*ret_tag = build->tag;
	return r;
}
