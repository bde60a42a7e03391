/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An image of the store by the name that a person gives it. */

#include "image/store.h"

struct image_found {
	char hex[IMAGE_HEX + 1]; /* of the manifest */
	char *name;              /* heap; the name that led here, NULL: an id did */
	struct image_manifest manifest;
	struct image_config config;
};
#define IMAGE_FOUND_NULL ((struct image_found){0})
void image_found_done(struct image_found *f);
static inline void image_found_donep(struct image_found *f)
{
	image_found_done(f);
}

/* E_NOT_FOUND; E_USAGE if it is no name, or the beginning of several ids. */
_warn_unused_ int image_find(struct image_store *s, const struct image_index *index,
	struct str text, struct image_found *ret, struct cloche_err *err);

struct image_user {
	uint32_t uid, gid;
	char *name, *home; /* heap; NULL if the image has no such account */
};
#define IMAGE_USER_NULL ((struct image_user){0})
static inline void image_user_donep(struct image_user *u)
{
	free(u->name);
	free(u->home);
}

/* Who User of the configuration is ("name", "uid", each also with ":group"), by the accounts of the
 * image. E_CONFIG if it is a name that is not among them. */
_warn_unused_ int image_find_user(struct image_store *s, const struct image_config *c,
	struct image_user *ret, struct cloche_err *err);
