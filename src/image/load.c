/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: blobs are taken by their digest, layers are unpacked beside their place and
 * renamed into it, and the index is written last. Only for that the lock of the store is taken, as
 * unpacking may take minutes. Until then the load holds a lock that it shares with other loads, and
 * as long as there is one, nobody removes what no image uses (image_store_be_quiet); the load that
 * ends last does. Of two loads of one layer the second waits for the first, and finds it. */
#include "image/load.h"
#include "base/fd.h"
#include "base/parse.h"
#include "fs/fs.h"
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NESTED = 3 };

struct loading {
	struct image_store *store;
	const struct image_source *source;
	struct image_load *job;
	int fd; /* of the locks of loads */
	char step[64];
};

typedef bool (*step_fn)(const char *step, uint64_t bytes, void *user);
JOB_ASK2(ask_step, step_fn, bool, false, const char *, uint64_t)

bool image_load_tell(const struct image_load *job, const char *step, uint64_t bytes)
{
	return !job->step || ask_step(job->step, step, bytes, job->user);
}

static bool load_tell(struct loading *l, uint64_t bytes)
{
	return image_load_tell(l->job, l->step, bytes);
}

static bool on_progress(void *user, uint64_t bytes)
{
	return load_tell(user, bytes);
}

/* Report the start of a layer. Fails if the user cancels. */
static int begin(struct loading *l, const char *verb, size_t i, size_t n, struct cloche_err *err)
{
	snprintf(l->step, sizeof(l->step), "%s layer %zu of %zu", verb, i + 1, n);
	return load_tell(l, 0) ? 0 : err_set(err, E_CANCELLED, "it was given up");
}

static void on_waiting(void *user)
{
	struct loading *l = user;

	snprintf(l->step, sizeof(l->step), "waiting for another process that changes images");
	(void)load_tell(l, 0);
}

/* --- layers --- */

struct unpacked {
	char digest[IMAGE_HEX + 1];
	uint64_t numbers[4]; /* entries, bytes, owners, skipped */
};

static int take_result(void *user, struct str line, struct cloche_err *err)
{
	struct unpacked *u = user;
	static const struct str word = {"layer ", 6};
	struct str rest = str_from_index(line, word.n), hex = str_prefix(rest, IMAGE_HEX);
	bool ok = str_starts(line, word) && image_is_hex(hex);

	rest = str_from_index(rest, IMAGE_HEX + 1);
	for (size_t i = 0; ok && i < ARRAY_SIZE(u->numbers); i++)
		ok = parse_u64(str_next(&rest, ' '), UINT64_MAX, &u->numbers[i]) == 0;
	if (!ok)
		return err_set(err, E_CORRUPT, "cloche-unpack wrote an invalid line");
	snprintf(u->digest, sizeof(u->digest), "%.*s", STR_FMT(hex));
	return 0;
}

/* Unpack into the empty directory dir. */
static int unpack_into(
	struct loading *l, const char *blob, const char *diff_id, int dir, struct cloche_err *err)
{
	_cleanup_fd_ int in = openat(l->store->blobs, blob, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct unpacked u = {0};
	const struct unpack_job job = {.what = UNPACK_LAYER,
		.in = in,
		.dir = dir,
		.line = take_result,
		.line_user = &u,
		.progress = on_progress,
		.user = l};
	int r = in < 0 ? err_sys(err, errno, "open sha256:%s", blob) : unpack_run(&job, err);

	if (r == 0 && strcmp(u.digest, diff_id) != 0)
		r = err_set(err, E_CORRUPT,
			"it unpacks to sha256:%s, and the configuration says sha256:%s", u.digest,
			diff_id);
	l->job->owners += u.numbers[2];
	l->job->skipped += u.numbers[3];
	return r;
}

/* Let nobody else unpack this layer, or do again (F_UNLCK). */
static int lock_layer(struct loading *l, const char *diff_id, short type, struct cloche_err *err)
{
	char digits[13];
	struct flock lock = {.l_type = type, .l_len = 1};
	int r;

	snprintf(digits, sizeof(digits), "%.12s", diff_id);
	lock.l_start = (off_t)strtoull(digits, NULL, 16);
	r = fcntl(l->fd, F_OFD_SETLK, &lock);
	if (r < 0 && (errno == EAGAIN || errno == EACCES))
		on_waiting(l);
	/* To unlock needs no wait. */
	if (r < 0)
		r = job_lock_bytes(l->fd, &lock, -1, -1);
	return r < 0 ? err_sys(err, -r, "lock a layer") : 0;
}

static int unpack_locked(
	struct loading *l, const char *blob, const char *diff_id, struct cloche_err *err)
{
	int layers = l->store->layers, r;
	_cleanup_fd_ int dir = -1;
	char name[IMAGE_TEMP_NAME];

	if (faccessat(layers, diff_id, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	image_temp_name(name);
	if (mkdirat(layers, name, 0700) < 0)
		return err_sys(err, errno, "create a layer");
	dir = openat(layers, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = dir < 0 ? err_sys(err, errno, "open a layer") : unpack_into(l, blob, diff_id, dir, err);
	/* Sync first: a layer that has its name is not checked again. */
	if (r == 0 && syncfs(dir) < 0)
		r = err_sys(err, errno, "write the layer to the disk");
	if (r == 0 && renameat(layers, name, layers, diff_id) < 0)
		r = err_sys(err, errno, "store the layer");
	if (r < 0)
		(void)fs_remove_tree(layers, name);
	return r;
}

static int unpack(struct loading *l, const char *blob, const char *diff_id, struct cloche_err *err)
{
	int r = lock_layer(l, diff_id, F_WRLCK, err), e;

	if (r < 0)
		return r;
	r = unpack_locked(l, blob, diff_id, err);
	e = lock_layer(l, diff_id, F_UNLCK, r < 0 ? NULL : err);
	return r < 0 ? r : e;
}

static int unpack_layers(struct loading *l, const struct image_manifest *m, struct cloche_err *err)
{
	_cleanup_(image_config_donep) struct image_config c = IMAGE_CONFIG_NULL;
	int r = image_store_config_of(l->store, m, &c, err);

	for (size_t i = 0; r == 0 && i < m->layers_n; i++) {
		r = begin(l, "unpacking", i, m->layers_n, err);
		if (r == 0)
			r = unpack(l, m->layers[i].hex, c.diff_ids[i], err);
		if (r < 0)
			err_wrap(err, r, "layer %zu of %zu", i + 1, m->layers_n);
	}
	return r;
}

/* --- images --- */

static int load_add_image(struct loading *l, struct image_entry e, const struct image_manifest *m,
	struct cloche_err *err)
{
	/* Not what the index that came with the image may say. */
	snprintf(e.config, sizeof(e.config), "%s", m->config.hex);
	return image_index_add(&l->job->stored, &e, err);
}

/* Load a blob of an OCI layout. */
static int take_blob(struct loading *l, struct image_blob *b, uint64_t most, struct cloche_err *err)
{
	char path[IMAGE_HEX + 16];

	snprintf(path, sizeof(path), "blobs/sha256/%s", b->hex);
	return image_source_take(l->source, path, b, most, err);
}

static int take_document(
	struct loading *l, const struct image_blob *from, struct buf *ret, struct cloche_err *err)
{
	struct image_blob b = *from;
	int r;

	if (b.size > IMAGE_MAX_DOCUMENT)
		return err_set(err, E_LIMIT, "sha256:%s is too large for a document", b.hex);
	r = take_blob(l, &b, IMAGE_MAX_DOCUMENT, err);
	return r < 0 ? r : image_blob_read(l->store, b.hex, ret, err);
}

static struct image_blob blob_of(const struct image_entry *e)
{
	struct image_blob b = {.size = e->size};

	snprintf(b.hex, sizeof(b.hex), "%s", e->hex);
	return b;
}

static int load_manifest(struct loading *l, const struct image_entry *e, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(IMAGE_MAX_DOCUMENT);
	const struct image_blob b = blob_of(e);
	struct image_entry stored = *e;
	struct image_manifest m;
	int r = take_document(l, &b, &text, err);

	stored.size = buf_len(&text);
	if (r == 0)
		r = image_manifest_read(buf_str(&text), &m, err);
	if (r == 0) {
		buf_clear(&text);
		r = take_document(l, &m.config, &text, err);
	}
	for (size_t i = 0; r == 0 && i < m.layers_n; i++) {
		r = begin(l, "checking", i, m.layers_n, err);
		if (r == 0)
			r = take_blob(l, &m.layers[i], UNPACK_BYTES_MAX, err);
		if (r < 0)
			err_wrap(err, r, "layer %zu of %zu", i + 1, m.layers_n);
	}
	if (r == 0)
		r = unpack_layers(l, &m, err);
	return r < 0 ? r : load_add_image(l, stored, &m, err);
}

/* A name with a digest promises what it names. Only a registry's program has checked others than
 * the digest of what is loaded. */
static bool load_may_be_called(const char *name, const char *hex)
{
	struct str text = str_from(name), digest;
	size_t at = str_chr(text, '@');

	return at == text.n || (image_digest_parse(str_from_index(text, at + 1), &digest) &&
				       str_eq(digest, str_from(hex)));
}

/* Load all images for this machine; of a nested index, only the first. */
static int load_index(struct loading *l, const struct image_index *index, const char *name,
	int depth, struct cloche_err *err)
{
	size_t done = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < index->n && !(done && depth > 0); i++) {
		_cleanup_(image_index_donep) struct image_index inner = IMAGE_INDEX_NULL;
		_cleanup_(buf_donep) struct buf text = BUF_INIT(IMAGE_MAX_DOCUMENT);
		struct image_entry e = index->entries[i];
		const struct image_blob b = blob_of(&e);

		if (e.elsewhere)
			continue;
		if (l->job->name || !e.name || !load_may_be_called(e.name, e.hex))
			e.name = (char *)(uintptr_t)name;
		done++;
		if (e.kind == IMAGE_KIND_MANIFEST) {
			r = load_manifest(l, &e, err);
			continue;
		}
		if (depth == MAX_NESTED)
			return err_set(err, E_LIMIT, "indexes are nested too deep");
		r = take_document(l, &b, &text, err);
		if (r == 0)
			r = image_index_read(buf_str(&text), &inner, err);
		if (r == 0)
			r = load_index(l, &inner, e.name, depth + 1, err);
	}
	if (r == 0 && done == 0)
		r = err_set(err, E_NOT_FOUND, "it has no image for this machine");
	return r;
}

static int load_layout(struct loading *l, struct cloche_err *err)
{
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	_cleanup_(buf_donep) struct buf text = BUF_INIT(IMAGE_MAX_DOCUMENT);
	int r = image_source_read(l->source, "index.json", &text, err);

	if (r == 0)
		r = image_index_read(buf_str(&text), &index, err);
	return r < 0 ? r : load_index(l, &index, l->job->name, 0, err);
}

/* Load an image of `docker save`. It has no manifest, so one is made. */
static int load_one_saved(struct loading *l, const struct image_saved *s, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(IMAGE_MAX_DOCUMENT);
	struct image_manifest m = {0};
	struct image_blob b = {0};
	struct image_entry e = {0};
	int r = image_source_take(l->source, s->config, &m.config, IMAGE_MAX_DOCUMENT, err);

	for (char *const *path = s->layers; r == 0 && path && *path; path++)
		r = image_source_take(
			l->source, *path, &m.layers[m.layers_n++], UNPACK_BYTES_MAX, err);
	if (r == 0)
		r = unpack_layers(l, &m, err);
	if (r == 0)
		r = image_manifest_write(&m, &text, err);
	if (r == 0)
		r = image_blob_put(l->store, buf_str(&text), &b, err);
	if (r < 0)
		return r;
	snprintf(e.hex, sizeof(e.hex), "%s", b.hex);
	e.size = b.size;
	if (!s->tags || l->job->name) {
		e.name = (char *)(uintptr_t)l->job->name;
		return load_add_image(l, e, &m, err);
	}
	for (char *const *tag = s->tags; r == 0 && *tag; tag++) {
		struct image_ref ref;
		char name[IMAGE_REF_MAX];

		r = image_ref_parse(str_from(*tag), &ref, err);
		if (r < 0)
			break;
		image_ref_name(&ref, name);
		e.name = load_may_be_called(name, e.hex) ? name : NULL;
		r = load_add_image(l, e, &m, err);
	}
	return r;
}

static int load_saved(struct loading *l, struct cloche_err *err)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(IMAGE_MAX_DOCUMENT);
	struct image_saved *saved = NULL;
	size_t n = 0;
	int r = image_source_read(l->source, "manifest.json", &text, err);

	if (r == 0)
		r = image_saved_read(buf_str(&text), &saved, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = load_one_saved(l, &saved[i], err);
	image_saved_free(saved, n);
	return r;
}

static int load_any(struct loading *l, struct cloche_err *err)
{
	int r;

	if (image_source_has(l->source, "oci-layout") && image_source_has(l->source, "index.json"))
		r = load_layout(l, err);
	else if (image_source_has(l->source, "manifest.json"))
		r = load_saved(l, err);
	else
		r = err_set(err, E_CORRUPT,
			"it is neither an OCI layout nor what \"docker save\" or \"podman save\" "
			"write");
	if (r == 0 && l->job->name && l->job->stored.n > 1)
		r = err_set(err, E_USAGE, "it has %zu images, which cannot all have one name",
			l->job->stored.n);
	return r;
}

/* Return whether the index has the image, of which one entry without a name is enough. */
static bool is_known(const struct image_index *index, const struct image_entry *e)
{
	for (size_t i = 0; !e->name && i < index->n; i++)
		if (strcmp(index->entries[i].hex, e->hex) == 0)
			return true;
	return false;
}

static int enter_stored(struct loading *l, struct cloche_err *err)
{
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	_cleanup_fd_ int lock = image_store_lock(l->store, on_waiting, l, err);
	int r = lock < 0 ? lock : image_store_read(l->store, &index, err);

	for (size_t i = 0; r == 0 && i < l->job->stored.n; i++)
		if (!is_known(&index, &l->job->stored.entries[i]))
			r = image_index_add(&index, &l->job->stored.entries[i], err);
	return r < 0 ? r : image_store_write(l->store, &index, err);
}

/* Remove the blobs and layers of a failed load, and what nobody could remove while it ran. */
static void tidy(struct image_store *s)
{
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	_cleanup_fd_ int lock = -1;
	struct image_freed freed;

	/* A load that was cancelled leaves nothing, either. */
	job_hold_cancel();
	lock = image_store_lock(s, NULL, NULL, NULL);
	job_release_cancel();
	if (lock >= 0 && image_store_read(s, &index, NULL) == 0)
		(void)!image_store_collect(s, &index, &freed, NULL);
}

void image_hint_space(struct cloche_err *err)
{
	err_hint(err, "\"cloche image rm\" makes room, or set CLOCHE_STATE_DIR to a directory on "
		      "another disk");
}

int image_load(struct image_store *s, const struct image_source *source, struct image_load *job,
	struct cloche_err *err)
{
	struct loading l = {.store = s, .source = source, .job = job};
	/* This also removes what a crash has left. */
	_cleanup_fd_ int lock = image_store_lock(s, on_waiting, &l, err);
	int r;

	l.fd = lock < 0 ? lock : image_store_begin_load(s, err);
	if (l.fd < 0)
		return l.fd;
	lock = fd_close(lock);
	r = load_any(&l, err);
	if (r == 0)
		r = enter_stored(&l, err);
	l.fd = fd_close(l.fd);
	tidy(s);
	if (r == -E_NO_SPACE)
		image_hint_space(err);
	if (r < 0)
		image_index_done(&job->stored);
	return r;
}
