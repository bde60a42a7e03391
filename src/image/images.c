/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/json.h"
#include "base/sized.h"
#include "image/build.h"
#include "image/find.h"
#include "image/load.h"
#include "job/job.h"
#include <cloche/image.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { MAX_JSON = 8 << 20 };

struct stored_image {
	cloche_image told; /* must be first */
	struct image_found found;
	struct image_manifest manifest;
	char **names;
	uint64_t size;
	char *json;
};

static void stored_image_free(struct stored_image *image)
{
	if (!image)
		return;
	image_found_done(&image->found);
	strv_free(image->names);
	free(image->json);
	free(image);
}
DEFINE_CLEANUP(struct stored_image, stored_image_free)

void cloche_image_free(cloche_image *image)
{
	stored_image_free(image ? container_of(image, struct stored_image, told) : NULL);
}
DEFINE_CLEANUP(cloche_image, cloche_image_free)

static void tell(struct stored_image *image)
{
	static const char *const none[] = {NULL};

	image->told = (cloche_image){.size = sizeof(image->told),
		.id = image->found.id,
		.names = image->names ? (const char *const *)image->names : none,
		.created = image->found.config.created,
		.bytes = image->size,
		.layers = image->manifest.layers_n,
		.json = image->json};
}

static json_t *digest_of(const char *hex)
{
	return json_sprintf("sha256:%s", hex);
}

static json_t *layers_of(const struct stored_image *image)
{
	const struct image_manifest *m = &image->manifest;
	json_t *list = json_array();

	for (size_t i = 0; list && i < m->layers_n; i++) {
		json_t *one = json_pack("{s:o, s:o, s:I}", "digest", digest_of(m->layers[i].hex),
			"diff_id", digest_of(image->found.config.diff_ids[i]), "size",
			(json_int_t)m->layers[i].size);

		if (json_array_append_new(list, one) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static int describe(struct stored_image *image, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(MAX_JSON);
	const struct image_config *c = &image->found.config;
	_cleanup_json_ json_t *o = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "id",
		image->found.id, "digest", digest_of(image->found.hex), "names",
		json_texts(image->names), "created", json_text(c->created), "architecture",
		json_text(c->architecture), "os", json_text(c->os), "size", (json_int_t)image->size,
		"layers", layers_of(image), "config",
		json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "env", json_texts(c->env), "entrypoint",
			json_texts(c->entrypoint), "cmd", json_texts(c->cmd), "user",
			json_text(c->user), "workdir", json_text(c->workdir), "volumes",
			json_texts(c->volumes)));

	if (!o || json_text_write(&text, o, JSON_TEXT_COMPACT) < 0)
		return err_nomem(err);
	image->json = str_dup(buf_str(&text));
	if (!image->json)
		return err_nomem(err);
	tell(image);
	return 0;
}

/* Describe the image with this manifest, with the names of all its entries. */
static int make_image(struct image_store *s, const struct image_index *index, const char *hex,
	cloche_image **ret, struct cloche_err *err)
{
	_cleanup_(stored_image_freep) struct stored_image *image = calloc(1, sizeof(*image));
	int r;

	if (!image)
		return err_nomem(err);
	for (size_t i = 0; i < index->n; i++)
		if (strcmp(index->entries[i].hex, hex) == 0 && index->entries[i].name &&
			strv_add(&image->names, str_from(index->entries[i].name)) < 0)
			return err_nomem(err);
	r = image_find(s, index, str_from(hex), &image->found, err);
	if (r == 0)
		r = image_store_manifest(s, hex, &image->manifest, err);
	if (r == 0 && image->manifest.layers_n != image->found.config.layers_n)
		r = err_set(err, E_CORRUPT, "manifest and configuration have different layers");
	if (r < 0)
		return r;
	for (size_t i = 0; i < image->manifest.layers_n; i++)
		image->size += image->manifest.layers[i].size;
	r = describe(image, err);
	if (r < 0)
		return r;
	*ret = &TAKE_PTR(image)->told;
	return 0;
}

static int open_both(struct image_store *s, struct image_index *index, struct cloche_err *err)
{
	int r = image_store_open(s, err);

	return r < 0 ? r : image_store_read(s, index, err);
}

static int compare_entries(const void *a, const void *b)
{
	const struct image_entry *x = a, *y = b;

	return strcmp(x->name ? x->name : "~", y->name ? y->name : "~");
}

/* Whether an entry before the i-th has the same manifest. */
static bool was_before(const struct image_index *index, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(index->entries[k].hex, index->entries[i].hex) == 0)
			return true;
	return false;
}

JOB_ASK1(ask_image, cloche_image_fn, bool, false, const cloche_image *)

int cloche_image_list(cloche_image_fn fn, void *user, cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store s = IMAGE_STORE_NULL;
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	bool more = true;
	int r = open_both(&s, &index, err);

	if (r == 0 && index.n)
		qsort(index.entries, index.n, sizeof(*index.entries), compare_entries);
	for (size_t i = 0; r == 0 && more && i < index.n; i++) {
		_cleanup_(cloche_image_freep) cloche_image *image = NULL;

		if (was_before(&index, i))
			continue;
		r = make_image(&s, &index, index.entries[i].hex, &image, err);
		/* It was removed meanwhile. */
		if (r == -E_NOT_FOUND) {
			err_clear(err);
			r = 0;
			continue;
		}
		more = r == 0 && ask_image(fn, image, user);
	}
	return r;
}

int cloche_image_find(const char *name, cloche_image **ret, cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store s = IMAGE_STORE_NULL;
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	_cleanup_(image_found_donep) struct image_found found = IMAGE_FOUND_NULL;
	int r = open_both(&s, &index, err);

	if (r == 0)
		r = image_find(&s, &index, str_from(name), &found, err);
	return r < 0 ? r : make_image(&s, &index, found.hex, ret, err);
}

/* --- loading --- */

static bool on_read(void *user, uint64_t bytes)
{
	const struct cloche_image_loading *l = user;

	return image_load_tell(&(struct image_load){.step = l->step, .user = l->user},
		"reading the archive", bytes);
}

static int tell_stored(struct image_store *s, const struct image_index *stored,
	const struct cloche_image_loading *to, struct cloche_err *err)
{
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	int r = image_store_read(s, &index, err);

	for (size_t i = 0; r == 0 && to->stored && i < stored->n; i++) {
		_cleanup_(cloche_image_freep) cloche_image *image = NULL;

		if (was_before(stored, i))
			continue;
		r = make_image(s, &index, stored->entries[i].hex, &image, err);
		if (r == 0 && !ask_image(to->stored, image, to->user))
			break;
	}
	return r;
}

static int open_source(struct image_store *s, const char *path, int fd,
	struct cloche_image_loading *loading, struct image_source *ret, struct cloche_err *err)
{
	_cleanup_fd_ int opened = -1;
	struct stat st;

	if (path) {
		opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (opened < 0 || fstat(opened, &st) < 0)
			return err_sys(err, errno, "open %s", path);
		if (S_ISDIR(st.st_mode)) {
			image_source_init_dir(ret, s, TAKE_FD(opened));
			return 0;
		}
		fd = opened;
	}
	return image_source_read_archive(ret, s, fd, on_read, loading, err);
}

/* Fill in what the caller's struct has room for. */
static void fill_loading(struct cloche_image_loading *to, const struct image_load *job)
{
	struct cloche_image_loading all = CLOCHE_IMAGE_LOADING_INIT;
	size_t at = offsetof(struct cloche_image_loading, owners_noted);

	all.owners_noted = job->owners;
	all.devices_left_out = job->skipped;
	if (to->size > at)
		memcpy((char *)to + at, (const char *)&all + at, MIN(to->size, sizeof(all)) - at);
}

/* r is the result of the store's own part. */
static int finish_loading(struct image_store *s, const struct cloche_image_loading *loading,
	struct cloche_image_loading *callers, struct image_load *job, int r, struct cloche_err *err)
{
	fill_loading(callers, job);
	if (r == 0)
		r = tell_stored(s, &job->stored, loading, err);
	image_index_done(&job->stored);
	return r;
}

/* Expand the name for an image that is loaded. ret has IMAGE_REF_MAX bytes. */
static int full_name(const char *name, char *ret, struct cloche_err *err)
{
	struct image_ref ref;
	int r = image_ref_parse(str_from(name), &ref, err);

	if (r == 0 && (ref.name.n == 0 || ref.digest.n))
		r = err_set(err, E_USAGE, "\"%s\" cannot be the name of an image: use NAME[:TAG]",
			name);
	if (r == 0)
		image_ref_name(&ref, ret);
	return r;
}

/* Take what the caller has filled; name has IMAGE_REF_MAX bytes. */
static int begin_loading(const struct cloche_image_loading *loading,
	struct cloche_image_loading *ret, struct image_load *job, char *name,
	struct cloche_err *err)
{
	int r = sized_take(ret, sizeof(*ret), loading, "cloche_image_loading", err);

	*job = (struct image_load){.step = ret->step, .user = ret->user};
	if (r == 0 && ret->name) {
		job->name = name;
		r = full_name(ret->name, name, err);
	}
	return r;
}

int cloche_image_load(
	const char *source, int fd, struct cloche_image_loading *loading, cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store s = IMAGE_STORE_NULL;
	_cleanup_(image_source_donep) struct image_source from = IMAGE_SOURCE_NULL;
	struct cloche_image_loading l = CLOCHE_IMAGE_LOADING_INIT;
	struct image_load job;
	char name[IMAGE_REF_MAX];
	int r = begin_loading(loading, &l, &job, name, err);

	if (r == 0)
		r = image_store_open(&s, err);
	if (r < 0)
		return r;
	r = open_source(&s, source, fd, &l, &from, err);
	if (r == 0)
		r = image_load(&s, &from, &job, err);
	if (r < 0)
		err_wrap(err, r, "load %s", source ? source : "the archive");
	return finish_loading(&s, &l, loading, &job, r, err);
}

int cloche_image_pull(const char *name, struct cloche_image_loading *loading, cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store s = IMAGE_STORE_NULL;
	struct cloche_image_loading l = CLOCHE_IMAGE_LOADING_INIT;
	struct image_load job;
	char full[IMAGE_REF_MAX];
	int r = begin_loading(loading, &l, &job, full, err);

	if (r == 0)
		r = image_store_open(&s, err);
	if (r < 0)
		return r;
	r = image_pull(&s, name, &job, err);
	return finish_loading(&s, &l, loading, &job, r, err);
}

/* --- from the engine that has built it --- */

static int load_built(const char *path, void *user, struct cloche_err *err)
{
	return cloche_image_load(path, -1, user, err);
}

int cloche_image_build_store(
	cloche_image_build *build, struct cloche_image_loading *loading, cloche_err *err)
{
	struct cloche_image_loading own = CLOCHE_IMAGE_LOADING_INIT;
	const char *tag = cloche_image_build_tag(build);
	char id[SHA256_HEX_MAX];
	cloche_image *image = NULL;
	bool is_there;
	int r = build_id(build, id, err);

	if (r < 0)
		return r;
	is_there = cloche_image_find(tag, &image, NULL) == 0 && strcmp(image->id, id) == 0;
	cloche_image_free(image);
	if (is_there)
		return 0;
	r = loading ? sized_take(&own, sizeof(own), loading, "cloche_image_loading", err) : 0;
	if (r < 0)
		return r;
	own.name = tag;
	r = build_archive(build, load_built, &own, err);
	if (loading)
		fill_loading(loading, &(struct image_load){.owners = own.owners_noted,
					      .skipped = own.devices_left_out});
	return r;
}

int cloche_image_save(const char *const *names, int fd, cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store s = IMAGE_STORE_NULL;
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	_cleanup_(image_index_donep) struct image_index chosen = IMAGE_INDEX_NULL;
	int r = open_both(&s, &index, err);

	for (; r == 0 && *names; names++) {
		_cleanup_(image_found_donep) struct image_found found = IMAGE_FOUND_NULL;
		struct image_entry e = {0};
		struct stat st;

		r = image_find(&s, &index, str_from(*names), &found, err);
		if (r < 0)
			break;
		snprintf(e.hex, sizeof(e.hex), "%s", found.hex);
		e.name = found.name;
		if (fstatat(s.blobs, e.hex, &st, 0) == 0)
			e.size = (uint64_t)st.st_size;
		r = image_index_add(&chosen, &e, err);
	}
	return r < 0 ? r : image_save(&s, &chosen, fd, err);
}

/* --- removing --- */

/* Open the store, lock it and read it. Return the lock. */
static int open_locked(struct image_store *s, struct image_index *index, struct cloche_err *err)
{
	_cleanup_fd_ int lock = -1;
	int r = image_store_open(s, err);

	if (r < 0)
		return r;
	lock = image_store_lock(s, NULL, NULL, err);
	if (lock < 0)
		return lock;
	r = image_store_read(s, index, err);
	return r < 0 ? r : TAKE_FD(lock);
}

static int collect(struct image_store *s, const struct image_index *index, unsigned images,
	struct cloche_image_freed *ret, struct cloche_err *err)
{
	struct image_freed freed = {0};
	int r = image_store_write(s, index, err);

	if (r == 0)
		r = image_store_collect(s, index, &freed, err);
	if (ret)
		*ret = (struct cloche_image_freed){images, freed.layers, freed.busy, freed.bytes};
	return r;
}

int cloche_image_remove(const char *name, struct cloche_image_freed *ret, cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store s = IMAGE_STORE_NULL;
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	_cleanup_(image_found_donep) struct image_found found = IMAGE_FOUND_NULL;
	_cleanup_fd_ int lock = open_locked(&s, &index, err);
	unsigned images = 0;
	int r;

	if (lock < 0)
		return lock;
	r = image_find(&s, &index, str_from(name), &found, err);
	if (r == -E_NOT_FOUND && err) {
		err->hint[0] = '\0';
		err_hint(err, "\"cloche image ls\" lists the images that are here");
	}
	if (r < 0)
		return r;
	for (size_t i = index.n; i-- > 0;) {
		const struct image_entry *e = &index.entries[i];

		if (strcmp(e->hex, found.hex) != 0 ||
			(found.name && (!e->name || strcmp(e->name, found.name) != 0)))
			continue;
		image_index_drop(&index, i);
		images++;
	}
	return collect(&s, &index, images, ret, err);
}

int cloche_image_prune(bool all, struct cloche_image_freed *ret, cloche_err *err)
{
	_cleanup_(image_store_closep) struct image_store s = IMAGE_STORE_NULL;
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	_cleanup_fd_ int lock = open_locked(&s, &index, err);
	unsigned images = 0;

	for (size_t i = index.n; lock >= 0 && i-- > 0;)
		if (all || !index.entries[i].name) {
			image_index_drop(&index, i);
			images++;
		}
	return lock < 0 ? lock : collect(&s, &index, images, ret, err);
}
