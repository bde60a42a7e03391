/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-deps: image_document base */
/* The documents of an image are strangers'. The first byte says which one it is; what is taken is
 * within its bounds, and an index or manifest that is written comes back the same. */
#include "image/document.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void try_index(struct str text)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 26);
	_cleanup_(image_index_donep) struct image_index index = IMAGE_INDEX_NULL;
	_cleanup_(image_index_donep) struct image_index again = IMAGE_INDEX_NULL;

	if (image_index_read(text, &index, NULL) < 0)
		return;
	require(index.n <= IMAGE_MAX_ENTRIES && image_index_write(&index, &out, NULL) == 0);
	if (buf_len(&out) > IMAGE_MAX_DOCUMENT)
		return;
	require(image_index_read(buf_str(&out), &again, NULL) == 0 && again.n == index.n);
	for (size_t i = 0; i < index.n; i++) {
		struct image_entry *e = &index.entries[i], *o = &again.entries[i];

		require(image_is_hex(str_from(e->hex)) && strcmp(e->hex, o->hex) == 0);
		require(!e->name == !o->name && (!e->name || strcmp(e->name, o->name) == 0));
		require(!e->name || strlen(e->name) < IMAGE_REF_MAX);
	}
}

static void try_manifest(struct str text)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(IMAGE_MAX_DOCUMENT);
	struct image_manifest m, again;

	if (image_manifest_read(text, &m, NULL) < 0)
		return;
	require(m.layers_n <= IMAGE_MAX_LAYERS && image_is_hex(str_from(m.config.hex)));
	require(image_manifest_write(&m, &out, NULL) == 0);
	require(image_manifest_read(buf_str(&out), &again, NULL) == 0);
	require(memcmp(&m, &again, sizeof(m)) == 0);
}

static void try_config(struct str text)
{
	_cleanup_(image_config_donep) struct image_config c = IMAGE_CONFIG_NULL;

	if (image_config_read(text, &c, NULL) < 0)
		return;
	for (size_t i = 0; i < c.layers_n; i++)
		require(image_is_hex(str_from(c.diff_ids[i])));
	for (char **v = c.volumes; v && *v; v++)
		require(**v == '/' && !strstr(*v, "/../"));
	for (char **v = c.env; v && *v; v++)
		require(strchr(*v, '=') > *v);
	require(c.architecture && c.os && c.created && (!c.workdir || c.workdir[0] == '/'));
}

static void try_saved(struct str text)
{
	struct image_saved *saved = NULL;
	size_t n = 0;

	if (image_saved_read(text, &saved, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		require(saved[i].config && strv_count(saved[i].layers) <= IMAGE_MAX_LAYERS);
	image_saved_free(saved, n);
}

static void try_ref(struct str text)
{
	struct image_ref ref, again;
	char name[IMAGE_REF_MAX];
	char hex[SHA256_HEX_MAX] = "";
	bool exact = false;

	if (image_ref_parse(text, &ref, NULL) < 0 || ref.name.n == 0)
		return;
	image_ref_name(&ref, name);
	require(image_ref_parse(str_from(name), &again, NULL) == 0);
	require(str_eq(again.name, ref.name) && str_eq(again.digest, ref.digest));
	snprintf(hex, sizeof(hex), "%.*s", STR_FMT(ref.digest));
	require(image_ref_matches(&again, str_from(name), hex, &exact));
	require(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(struct str) = {
		try_index, try_manifest, try_config, try_saved, try_ref};

	if (size > 0)
		tries[data[0] % ARRAY_SIZE(tries)](str_make(data + 1, size - 1));
	return 0;
}
