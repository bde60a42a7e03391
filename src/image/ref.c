/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of the OCI distribution specification ("Pulling manifests"), with Docker's
 * host[:port]/ in front. */
#include "image/ref.h"

#include <stdio.h>

static bool all_hex(struct str s)
{
	return s.n > 0 && str_is_all(s, STR_DIGITS "abcdef");
}

bool image_is_hex(struct str s)
{
	return s.n == IMAGE_HEX && all_hex(s);
}

bool image_digest_parse(struct str s, struct str *ret)
{
	struct str hex = str_from_index(s, sizeof("sha256:") - 1);

	if (!str_starts(s, STR("sha256:")) || !image_is_hex(hex))
		return false;
	*ret = hex;
	return true;
}

/* One part of a name between slashes: letters, digits and single separators between them. The first
 * part may be a host with a port; only hosts may have capitals. */
static bool is_name_part(struct str part, bool host)
{
	bool between = false;

	for (size_t i = 0; i < part.n; i++) {
		char c = part.p[i];

		if (str_is_alnum(c) && (host || c < 'A' || c > 'Z')) {
			between = true;
			continue;
		}
		if (i == 0 || (!between && c != '-' && c != '_'))
			return false;
		if (c != '.' && c != '_' && c != '-' && !(host && c == ':'))
			return false;
		between = false;
	}
	return between;
}

static bool is_name(struct str name)
{
	bool first = true;

	if (name.n == 0 || name.n > IMAGE_NAME_MAX)
		return false;
	for (;;) {
		size_t n = str_chr(name, '/');

		if (!is_name_part(str_prefix(name, n), first && n < name.n))
			return false;
		if (n == name.n)
			return true;
		name = str_from_index(name, n + 1);
		first = false;
	}
}

static bool is_tag(struct str tag)
{
	return tag.n > 0 && tag.n <= IMAGE_TAG_MAX && !strchr(".-", tag.p[0]) &&
	       str_is_all(tag, STR_LOWER STR_UPPER STR_DIGITS "_.-");
}

/* Return the position of the tag's colon: the last one, if no slash follows it. */
static size_t find_tag(struct str s)
{
	for (size_t i = s.n; i-- > 0 && s.p[i] != '/';)
		if (s.p[i] == ':')
			return i;
	return s.n;
}

static int refuse(struct str text, const char *why, struct cloche_err *err)
{
	int r = err_set(
		err, E_USAGE, "\"%.*s\" is not the name of an image: %s", STR_FMT(text), why);

	err_hint(err, "an image is name[:tag], name@sha256:DIGEST, or the beginning of its id");
	return r;
}

int image_ref_parse(struct str text, struct image_ref *ret, struct cloche_err *err)
{
	struct image_ref ref = {.name = text};
	size_t at = str_chr(text, '@'), colon;

	if (text.n == 0 || text.n >= IMAGE_REF_MAX)
		return refuse(str_prefix(text, 64), text.n ? "it is too long" : "it is empty", err);
	if (image_digest_parse(text, &ref.digest) || image_is_hex(text)) {
		ref.digest = ref.digest.n ? ref.digest : text;
		ref.name = STR_NULL;
		*ret = ref;
		return 0;
	}
	if (at < text.n) {
		if (!image_digest_parse(str_from_index(text, at + 1), &ref.digest))
			return refuse(text, "after @ there have to be sha256: and 64 digits", err);
		ref.name = str_prefix(text, at);
	}
	colon = find_tag(ref.name);
	if (colon < ref.name.n) {
		ref.tag = str_from_index(ref.name, colon + 1);
		ref.name = str_prefix(ref.name, colon);
		if (!is_tag(ref.tag))
			return refuse(
				text, "the tag may have letters, digits, '_', '.' and '-'", err);
	} else if (!ref.digest.n) {
		ref.tag = STR("latest");
		ref.maybe_id = text.n >= IMAGE_ID_MIN && text.n < IMAGE_HEX && all_hex(text);
	}
	if (!is_name(ref.name))
		return refuse(text,
			"a name has lower-case letters and digits, with '/', '.', '_' or '-' "
			"between them",
			err);
	*ret = ref;
	return 0;
}

void image_ref_name(const struct image_ref *ref, char *ret)
{
	if (ref->digest.n)
		snprintf(ret, IMAGE_REF_MAX, "%.*s@sha256:%.*s", STR_FMT(ref->name),
			STR_FMT(ref->digest));
	else
		snprintf(ret, IMAGE_REF_MAX, "%.*s:%.*s", STR_FMT(ref->name),
			STR_FMT(ref->tag.n ? ref->tag : STR("latest")));
}

/* What a stored name says behind the name alone. */
static bool ref_has(const struct image_ref *ref, struct str tag, struct str hex)
{
	struct str digest;

	if (image_digest_parse(tag, &digest))
		return str_eq(digest, ref->digest);
	return (!ref->tag.n || str_eq(tag, ref->tag)) &&
	       (!ref->digest.n || str_eq(hex, ref->digest));
}

bool image_ref_matches(
	const struct image_ref *ref, struct str stored, const char *hex, bool *ret_exact)
{
	size_t at = str_chr(stored, '@'), end = at < stored.n ? at : find_tag(stored);
	struct str name = str_prefix(stored, end);

	if (!ref_has(ref, str_from_index(stored, end + 1), str_from(hex)))
		return false;
	*ret_exact = str_eq(name, ref->name);
	/* Require the slash, so that "pine" does not match "alpine". */
	return *ret_exact || (str_ends(name, ref->name) && name.n > ref->name.n &&
				     name.p[name.n - ref->name.n - 1] == '/');
}
