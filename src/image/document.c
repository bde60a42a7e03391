/* SPDX-License-Identifier: Apache-2.0 */
#include "image/document.h"
#include "base/json.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>

#define OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define NOTE_NAME "org.opencontainers.image.ref.name"
#define NOTE_FULL_NAME "io.containerd.image.name"
#define NOTE_CONFIG "cloche.config"

static int corrupt(const char *what, const char *why, struct cloche_err *err)
{
	return err_set(err, E_CORRUPT, "%s: %s", what, why);
}

static int read_document(const char *what, struct str text, json_t **ret, struct cloche_err *err)
{
	json_error_t why;
	int r;

	if (text.n > IMAGE_MAX_DOCUMENT)
		return corrupt(what, "it is too large", err);
	r = json_text_read(text, 0, ret, &why);
	if (r == -ENOMEM)
		return err_nomem(err);
	return r < 0 ? corrupt(what, why.text, err) : 0;
}

/* Digest and size of a descriptor (OCI image format, "Content Descriptors"). */
static bool read_descriptor(const json_t *o, char hex[IMAGE_HEX + 1], uint64_t *ret_size)
{
	struct str digits;

	if (!image_digest_parse(json_str_at(o, "digest"), &digits))
		return false;
	snprintf(hex, IMAGE_HEX + 1, "%.*s", STR_FMT(digits));
	*ret_size = json_count_at(o, "size");
	return true;
}

/* The name of this machine in images (Go's GOARCH). */
static struct str own_architecture(void)
{
	static const struct {
		const char *machine, *name;
	} names[] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"i686", "386"},
		{"ppc64le", "ppc64le"}, {"s390x", "s390x"}, {"riscv64", "riscv64"}};
	struct utsname u;

	for (size_t i = 0; uname(&u) == 0 && i < ARRAY_SIZE(names); i++)
		if (strcmp(u.machine, names[i].machine) == 0)
			return str_from(names[i].name);
	return STR_NULL;
}

static bool is_elsewhere(const json_t *platform)
{
	struct str os = json_str_at(platform, "os"),
		   architecture = json_str_at(platform, "architecture"), own = own_architecture();

	return (os.n && !str_eq(os, STR("linux"))) ||
	       (architecture.n && own.n && !str_eq(architecture, own));
}

/* Set *ret to "name:tag" or "name@sha256:DIGEST" on the heap, or NULL if text is not a valid name.
 */
static int take_name(struct str text, char **ret)
{
	struct image_ref ref;
	char name[IMAGE_REF_MAX];

	*ret = NULL;
	if (image_ref_parse(text, &ref, NULL) < 0 || ref.name.n == 0)
		return 0;
	image_ref_name(&ref, name);
	*ret = strdup(name);
	return *ret ? 0 : -ENOMEM;
}

static int add_entry(struct image_index *index, const json_t *o, struct cloche_err *err)
{
	struct image_entry e = {0};
	struct str type = json_str_at(o, "mediaType");
	const json_t *notes = json_object_get(o, "annotations");
	_cleanup_(freep) char *name = NULL;
	struct str text = json_str_at(notes, NOTE_FULL_NAME), config;

	if (!read_descriptor(o, e.hex, &e.size))
		return corrupt("index", "an entry has no sha256 digest", err);
	if (str_ends(type, STR(".index.v1+json")) || str_ends(type, STR(".list.v2+json")))
		e.kind = IMAGE_KIND_INDEX;
	e.elsewhere = is_elsewhere(json_object_get(o, "platform"));
	if (image_digest_parse(json_str_at(notes, NOTE_CONFIG), &config))
		snprintf(e.config, sizeof(e.config), "%.*s", STR_FMT(config));
	if (take_name(text.n ? text : json_str_at(notes, NOTE_NAME), &name) < 0)
		return err_nomem(err);
	e.name = name;
	return image_index_add(index, &e, err);
}

int image_index_read(struct str text, struct image_index *ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *o = NULL;
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	const json_t *list;
	int r = read_document("index", text, &o, err);

	if (r < 0)
		return r;
	list = json_object_get(o, "manifests");
	if (!json_is_array(list) || json_array_size(list) > IMAGE_MAX_ENTRIES)
		return corrupt("index", "it has no \"manifests\", or too many", err);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
		r = add_entry(&index, json_array_get(list, i), err);
	if (r < 0)
		return r;
	*ret = index;
	index = IMAGE_INDEX_NULL;
	return 0;
}

int image_index_add(
	struct image_index *index, const struct image_entry *entry, struct cloche_err *err)
{
	struct image_entry *grown, copy = *entry;

	copy.name = entry->name ? strdup(entry->name) : NULL;
	if (index->n == IMAGE_MAX_ENTRIES) {
		free(copy.name);
		return err_set(err, E_LIMIT, "more than %d images", IMAGE_MAX_ENTRIES);
	}
	for (size_t i = index->n; copy.name && i-- > 0;) {
		struct image_entry *e = &index->entries[i];
		bool same = strcmp(e->hex, copy.hex) == 0;

		if (e->name && strcmp(e->name, copy.name) == 0) {
			free(e->name);
			e->name = NULL;
		}
		/* The same image gets a name again: replace its entry. */
		if (same && !e->name)
			image_index_drop(index, i);
	}
	grown = entry->name && !copy.name
			? NULL
			: reallocarray(index->entries, index->n + 1, sizeof(*grown));
	if (!grown) {
		free(copy.name);
		return err_nomem(err);
	}
	index->entries = grown;
	index->entries[index->n++] = copy;
	return 0;
}

void image_index_drop(struct image_index *index, size_t i)
{
	free(index->entries[i].name);
	index->n--;
	memmove(&index->entries[i], &index->entries[i + 1],
		(index->n - i) * sizeof(index->entries[i]));
}

int image_index_write(const struct image_index *index, struct buf *ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *o = json_pack(
		"{s:i, s:s, s:[]}", "schemaVersion", 2, "mediaType", OCI_INDEX, "manifests");
	json_t *list = json_object_get(o, "manifests");
	int r;

	for (size_t i = 0; i < index->n; i++) {
		const struct image_entry *e = &index->entries[i];
		json_t *config = e->config[0] ? json_sprintf("sha256:%s", e->config) : NULL;
		json_t *one = json_pack("{s:s, s:o, s:I, s:{s:s*, s:o*}}", "mediaType",
			OCI_MANIFEST, "digest", json_sprintf("sha256:%s", e->hex), "size",
			(json_int_t)e->size, "annotations", NOTE_NAME, e->name, NOTE_CONFIG,
			config);

		if (json_array_append_new(list, one) < 0)
			return err_nomem(err);
	}
	r = list ? json_text_write(ret, o, 1) : -ENOMEM;
	return r < 0 ? err_set(err, E_LIMIT, "the index of images has no more room") : 0;
}

void image_index_done(struct image_index *index)
{
	for (size_t i = 0; i < index->n; i++)
		free(index->entries[i].name);
	free(index->entries);
	*index = IMAGE_INDEX_NULL;
}

int image_manifest_read(struct str text, struct image_manifest *ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *o = NULL;
	const json_t *layers;
	int r = read_document("manifest", text, &o, err);

	if (r < 0)
		return r;
	*ret = (struct image_manifest){0};
	layers = json_object_get(o, "layers");
	if (json_object_get(o, "fsLayers"))
		return corrupt(
			"manifest", "it is of Docker's first schema, which is no longer used", err);
	if (!read_descriptor(json_object_get(o, "config"), ret->config.hex, &ret->config.size) ||
		!json_is_array(layers))
		return corrupt("manifest", "it has no \"config\" or no \"layers\"", err);
	if (json_array_size(layers) > IMAGE_MAX_LAYERS)
		return err_set(err, E_LIMIT, "manifest: more than %d layers", IMAGE_MAX_LAYERS);
	for (size_t i = 0; i < json_array_size(layers); i++) {
		struct image_blob *l = &ret->layers[ret->layers_n++];
		const json_t *one = json_array_get(layers, i);

		if (!read_descriptor(one, l->hex, &l->size))
			return corrupt("manifest", "a layer has no sha256 digest", err);
		if (str_ends(json_str_at(one, "mediaType"), STR("+encrypted")))
			return corrupt("manifest", "its layers are encrypted", err);
	}
	return 0;
}

static json_t *descriptor(const char *type, const struct image_blob *b)
{
	char digest[IMAGE_HEX + 8];

	snprintf(digest, sizeof(digest), "sha256:%s", b->hex);
	return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", digest, "size",
		(json_int_t)b->size);
}

int image_manifest_write(const struct image_manifest *m, struct buf *ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *o = json_pack("{s:i, s:s, s:o, s:[]}", "schemaVersion", 2,
		"mediaType", OCI_MANIFEST, "config",
		descriptor("application/vnd.oci.image.config.v1+json", &m->config), "layers");
	json_t *layers = json_object_get(o, "layers");

	for (size_t i = 0; layers && i < m->layers_n; i++)
		if (json_array_append_new(layers,
			    descriptor("application/vnd.oci.image.layer.v1.tar", &m->layers[i])) <
			0)
			return err_nomem(err);
	return !layers || json_text_write(ret, o, JSON_TEXT_COMPACT) < 0 ? err_nomem(err) : 0;
}

/* Append an array of strings without NUL. null or no array count as empty. */
static int take_texts(const json_t *list, char ***ret, const char *what, struct cloche_err *err)
{
	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list) || json_array_size(list) > IMAGE_MAX_TEXTS)
		return corrupt(what, "it is not a list of strings, or is too long", err);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str s = json_str(json_array_get(list, i));

		if (!s.p || memchr(s.p, '\0', s.n))
			return corrupt(what, "it is not a list of strings", err);
		if (strv_add(ret, s) < 0)
			return err_nomem(err);
	}
	return 0;
}

/* Copy a string. *ret stays NULL if it is missing, null or empty. */
static int take_text(const json_t *o, const char *key, char **ret, struct cloche_err *err)
{
	const json_t *value = json_object_get(o, key);
	struct str s = json_str(value);

	if (!value || json_is_null(value))
		return 0;
	if (!json_is_string(value) || memchr(s.p, '\0', s.n))
		return corrupt(key, "it is not a string", err);
	if (s.n == 0)
		return 0;
	*ret = str_dup(s);
	return *ret ? 0 : err_nomem(err);
}

/* Copy an absolute path without ".", ".." and doubled slashes, as Go's path.Clean does for the
 * engines. Return -EINVAL if it is none, or too long. */
static int clean_path(struct str path, char **ret)
{
	char clean[IMAGE_PATH_MAX];
	size_t n = 0;

	if (path.n == 0 || path.n >= sizeof(clean) || path.p[0] != '/' ||
		memchr(path.p, '\0', path.n))
		return -EINVAL;
	while (path.n) {
		struct str part = str_next(&path, '/');

		if (str_eq(part, STR(".."))) {
			while (n > 0 && clean[--n] != '/')
				;
		} else if (part.n && !str_eq(part, STR("."))) {
			clean[n++] = '/';
			memcpy(clean + n, part.p, part.n);
			n += part.n;
		}
	}
	if (n == 0)
		clean[n++] = '/';
	*ret = str_dup(str_make(clean, n));
	return *ret ? 0 : -ENOMEM;
}

static int take_workdir(struct image_config *c, struct cloche_err *err)
{
	_cleanup_(freep) char *named = TAKE_PTR(c->workdir);
	int r = named ? clean_path(str_from(named), &c->workdir) : 0;

	if (r == -EINVAL)
		return corrupt("WorkingDir", "it is not absolute, or too long", err);
	return r < 0 ? err_nomem(err) : 0;
}

static int take_volumes(json_t *volumes, char ***ret, struct cloche_err *err)
{
	const char *key;
	json_t *value;

	if (volumes && !json_is_object(volumes) && !json_is_null(volumes))
		return corrupt("Volumes", "it is not a list of paths", err);
	if (json_object_size(volumes) > IMAGE_MAX_VOLUMES)
		return corrupt("Volumes", "there are too many", err);
	json_object_foreach (volumes, key, value) {
		char *path = NULL;
		int r = clean_path(str_from(key), &path);

		if (r == 0 && strcmp(path, "/") == 0) {
			free(path);
			r = -EINVAL;
		}
		if (r == -EINVAL)
			return corrupt("Volumes", "a path is not absolute, or is / itself", err);
		if (strv_take(ret, path) < 0)
			return err_nomem(err);
	}
	return 0;
}

static int take_layers(const json_t *o, struct image_config *c, struct cloche_err *err)
{
	const json_t *ids = json_object_get(json_object_get(o, "rootfs"), "diff_ids");

	if (!json_is_array(ids) && !json_is_null(ids))
		return corrupt("configuration", "it has no \"rootfs\" with \"diff_ids\"", err);
	if (json_array_size(ids) > IMAGE_MAX_LAYERS)
		return err_set(
			err, E_LIMIT, "configuration: more than %d layers", IMAGE_MAX_LAYERS);
	for (size_t i = 0; i < json_array_size(ids); i++) {
		struct str hex;

		if (!image_digest_parse(json_str(json_array_get(ids, i)), &hex))
			return corrupt("configuration", "a diff id is not a sha256 digest", err);
		snprintf(c->diff_ids[c->layers_n++], IMAGE_HEX + 1, "%.*s", STR_FMT(hex));
	}
	return 0;
}

static int take_env(const json_t *list, char ***ret, struct cloche_err *err)
{
	int r = take_texts(list, ret, "Env", err);

	for (size_t i = 0; r == 0 && *ret && (*ret)[i]; i++)
		if (!strchr((*ret)[i], '=') || (*ret)[i][0] == '=')
			return corrupt("Env", "it holds something other than NAME=VALUE", err);
	return r;
}

static int take_known(const json_t *o, const char *key, char **ret, struct cloche_err *err)
{
	int r = take_text(o, key, ret, err);

	return r == 0 && !*ret ? set_string(ret, "", err) : r;
}

int image_config_read(struct str text, struct image_config *ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *o = NULL;
	_cleanup_(image_config_donep) struct image_config c = IMAGE_CONFIG_NULL;
	const json_t *own;
	int r = read_document("configuration", text, &o, err);

	if (r < 0)
		return r;
	own = json_object_get(o, "config");
	if (own && !json_is_object(own) && !json_is_null(own))
		return corrupt("configuration", "\"config\" is not an object", err);
	r = take_layers(o, &c, err);
	if (r == 0)
		r = take_env(json_object_get(own, "Env"), &c.env, err);
	if (r == 0)
		r = take_texts(
			json_object_get(own, "Entrypoint"), &c.entrypoint, "Entrypoint", err);
	if (r == 0)
		r = take_texts(json_object_get(own, "Cmd"), &c.cmd, "Cmd", err);
	if (r == 0)
		r = take_volumes(json_object_get(own, "Volumes"), &c.volumes, err);
	if (r == 0)
		r = take_text(own, "User", &c.user, err);
	if (r == 0)
		r = take_text(own, "WorkingDir", &c.workdir, err);
	if (r == 0)
		r = take_workdir(&c, err);
	if (r == 0)
		r = take_known(o, "architecture", &c.architecture, err);
	if (r == 0)
		r = take_known(o, "os", &c.os, err);
	if (r == 0)
		r = take_known(o, "created", &c.created, err);
	if (r < 0)
		return r;
	*ret = c;
	c = IMAGE_CONFIG_NULL;
	return 0;
}

void image_config_done(struct image_config *c)
{
	strv_free(c->env);
	strv_free(c->entrypoint);
	strv_free(c->cmd);
	strv_free(c->volumes);
	free(c->user);
	free(c->workdir);
	free(c->architecture);
	free(c->os);
	free(c->created);
	*c = IMAGE_CONFIG_NULL;
}

static int read_saved(const json_t *o, struct image_saved *s, struct cloche_err *err)
{
	int r = take_text(o, "Config", &s->config, err);

	if (r == 0)
		r = take_texts(json_object_get(o, "Layers"), &s->layers, "Layers", err);
	if (r == 0)
		r = take_texts(json_object_get(o, "RepoTags"), &s->tags, "RepoTags", err);
	if (r == 0 && (!s->config || strv_count(s->layers) > IMAGE_MAX_LAYERS))
		r = corrupt(
			"manifest.json", "an image has no configuration, or too many layers", err);
	return r;
}

int image_saved_read(
	struct str text, struct image_saved **ret, size_t *ret_n, struct cloche_err *err)
{
	_cleanup_json_ json_t *o = NULL;
	struct image_saved *saved;
	int r = read_document("manifest.json", text, &o, err);
	size_t n;

	if (r < 0)
		return r;
	n = json_array_size(o);
	if (n == 0 || n > IMAGE_MAX_ENTRIES)
		return corrupt("manifest.json", "it lists no images, or too many", err);
	saved = calloc(n, sizeof(*saved));
	if (!saved)
		return err_nomem(err);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = read_saved(json_array_get(o, i), &saved[i], err);
	if (r < 0) {
		image_saved_free(saved, n);
		return r;
	}
	*ret = saved;
	*ret_n = n;
	return 0;
}

static json_t *blob_path(const char *hex)
{
	return json_sprintf("blobs/sha256/%s", hex);
}

int image_saved_write(const struct image_index *index, const struct image_manifest *manifests,
	struct buf *ret, struct cloche_err *err)
{
	_cleanup_json_ json_t *list = json_array();
	int r;

	for (size_t i = 0; i < index->n; i++) {
		const struct image_manifest *m = &manifests[i];
		const char *name = index->entries[i].name;
		json_t *layers = json_array();

		for (size_t k = 0; k < m->layers_n; k++)
			if (json_array_append_new(layers, blob_path(m->layers[k].hex)) < 0) {
				json_decref(layers);
				return err_nomem(err);
			}
		if (json_array_append_new(
			    list, json_pack("{s:o, s:o, s:o}", "Config", blob_path(m->config.hex),
					  "RepoTags", name ? json_pack("[s]", name) : json_null(),
					  "Layers", layers)) < 0)
			return err_nomem(err);
	}
	r = list ? json_text_write(ret, list, 1) : -ENOMEM;
	return r < 0 ? err_set(err, E_LIMIT, "the list of images is too long") : 0;
}

void image_saved_free(struct image_saved *s, size_t n)
{
	for (size_t i = 0; s && i < n; i++) {
		free(s[i].config);
		strv_free(s[i].layers);
		strv_free(s[i].tags);
	}
	free(s);
}
