/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Find an image of the store by the name that the user gives. */

#include "image/store.h"

struct image_found {
	char hex[IMAGE_HEX + 1]; /* digest of the manifest */
	char id[IMAGE_HEX + 1];  /* digest of the configuration */
	char *name;              /* heap; the matching name; NULL: found by id */
	struct image_config config;
};
#define IMAGE_FOUND_NULL ((struct image_found){0})
void image_found_done(struct image_found *f);
static inline void image_found_donep(struct image_found *f)
{
	image_found_done(f);
}

/* E_NOT_FOUND if there is no such image; E_USAGE if text is not valid, or matches several
 * images. */
_warn_unused_ int image_find(struct image_store *s, const struct image_index *index,
	struct str text, struct image_found *ret, struct cloche_err *err);

struct image_user {
	uint32_t uid, gid;
};

/* Find a user ("name" or "uid", each also with ":group", as the User of the configuration) among
 * the accounts of the image; an empty text is root. E_CONFIG if it is a name that the image does
 * not have. */
_warn_unused_ int image_find_user(struct image_store *s, const struct image_config *c,
	const char *text, struct image_user *ret, struct cloche_err *err);
