/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names of images: name[:tag][@sha256:DIGEST], the digest alone, or the beginning of an id.
 * Pure. */

#include "base/err.h"
#include "base/sha256.h"
#include "base/str.h"
#include <stdbool.h>

enum {
	IMAGE_NAME_MAX = 255,
	IMAGE_TAG_MAX = 128,
	IMAGE_HEX = 2 * SHA256_BYTES,
	IMAGE_ID_MIN = 4, /* minimal number of digits of an id */
	IMAGE_REF_MAX = IMAGE_NAME_MAX + 1 + IMAGE_TAG_MAX + sizeof("@sha256:") + IMAGE_HEX,
};

/* Views of the text that was parsed. */
struct image_ref {
	struct str name;   /* empty: an id or a digest alone */
	struct str tag;    /* "latest" if neither tag nor digest was given; else it may be empty */
	struct str digest; /* 64 digits, or the beginning of an id; may be empty */
	bool maybe_id;     /* the name may also be the beginning of an id */
};

/* Fail with E_USAGE and the reason. */
_warn_unused_ int image_ref_parse(struct str text, struct image_ref *ret, struct cloche_err *err);

/* Write "name:tag" or, if there is a digest, "name@sha256:DIGEST" to ret (IMAGE_REF_MAX bytes). */
void image_ref_name(const struct image_ref *ref, char *ret);

/* Whether ref names what is stored with such a name and the manifest's digest hex: either exactly,
 * or without a prefix such as a registry ("docker.io/library/", "localhost/"). *ret_exact is set if
 * no prefix was left out. With a digest, the tag of ref means nothing for a name without a tag. */
bool image_ref_matches(
	const struct image_ref *ref, struct str stored, const char *hex, bool *ret_exact);

/* 64 lower-case hexadecimal digits. */
bool image_is_hex(struct str s);

/* Parse "sha256:" and 64 digits; *ret is the digits. */
bool image_digest_parse(struct str s, struct str *ret);
