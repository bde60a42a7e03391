/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The JSON documents of images (OCI image format 1.0, Docker's manifest version 2 schema 2, and the
 * manifest.json of `docker save`). They are not trusted: everything in them is bounded and checked,
 * and unknown fields are ignored. Pure. */

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/strv.h"
#include "image/ref.h"
#include <stdint.h>

enum {
	IMAGE_MAX_DOCUMENT = 4 << 20, /* bytes of a manifest, an index or a configuration */
	IMAGE_MAX_LAYERS = 128,
	IMAGE_MAX_ENTRIES = 4096, /* descriptors of an index */
	IMAGE_MAX_TEXTS = 4096,   /* variables, arguments */
	IMAGE_MAX_VOLUMES = 255,  /* a sandbox has 256 places, with the working directory */
	IMAGE_PATH_MAX = 512,     /* of a file in an archive */
};

enum image_kind { IMAGE_KIND_MANIFEST, IMAGE_KIND_INDEX };

struct image_entry {
	char hex[IMAGE_HEX + 1];
	char config[IMAGE_HEX + 1]; /* digest of the configuration; empty: not known */
	uint64_t size;
	enum image_kind kind;
	char *name;     /* "name:tag", heap; NULL: none, or not valid */
	bool elsewhere; /* for another system or processor */
};

struct image_index {
	struct image_entry *entries; /* heap */
	size_t n;
};
#define IMAGE_INDEX_NULL ((struct image_index){0})

/* Fail with E_CORRUPT. A tag alone ("v1", as buildah writes it) is taken as a name. The
 * configurations are what the index says; only those of the store's own are known to be right. */
_warn_unused_ int image_index_read(
	struct str text, struct image_index *ret, struct cloche_err *err);
/* Write the index as text in OCI's form. */
_warn_unused_ int image_index_write(
	const struct image_index *index, struct buf *ret, struct cloche_err *err);
void image_index_done(struct image_index *index);
static inline void image_index_donep(struct image_index *index)
{
	image_index_done(index);
}

/* Add an entry (name is copied). If another entry has the same name, it loses it. */
_warn_unused_ int image_index_add(
	struct image_index *index, const struct image_entry *entry, struct cloche_err *err);

/* Remove the i-th entry. */
void image_index_drop(struct image_index *index, size_t i);

struct image_blob {
	char hex[IMAGE_HEX + 1];
	uint64_t size;
};

struct image_manifest {
	struct image_blob config;
	struct image_blob layers[IMAGE_MAX_LAYERS]; /* the lowest first */
	size_t layers_n;
};

_warn_unused_ int image_manifest_read(
	struct str text, struct image_manifest *ret, struct cloche_err *err);
/* Write a manifest for an image from an archive of `docker save`, which has none. Its layers are
 * plain tar. */
_warn_unused_ int image_manifest_write(
	const struct image_manifest *m, struct buf *ret, struct cloche_err *err);

struct image_config {
	char diff_ids[IMAGE_MAX_LAYERS][IMAGE_HEX + 1]; /* the lowest first */
	size_t layers_n;
	char **env, **entrypoint, **cmd, **volumes; /* strv; volumes are absolute paths */
	char *user, *workdir;                       /* NULL if not set */
	char *architecture, *os, *created;          /* never NULL */
};
#define IMAGE_CONFIG_NULL ((struct image_config){0})

_warn_unused_ int image_config_read(
	struct str text, struct image_config *ret, struct cloche_err *err);
void image_config_done(struct image_config *c);
static inline void image_config_donep(struct image_config *c)
{
	image_config_done(c);
}

/* An image in the manifest.json of `docker save`. */
struct image_saved {
	char *config, **layers, **tags; /* paths in the archive; names */
};
/* *ret: heap array. */
_warn_unused_ int image_saved_read(
	struct str text, struct image_saved **ret, size_t *ret_n, struct cloche_err *err);
void image_saved_free(struct image_saved *s, size_t n);
/* Write manifest.json for the images of an OCI layout, for engines that read no other form. The
 * manifests are those of the index, in its order. */
_warn_unused_ int image_saved_write(const struct image_index *index,
	const struct image_manifest *manifests, struct buf *ret, struct cloche_err *err);
