/* SPDX-License-Identifier: Apache-2.0 */
#include "image/document.h"
#include "tap.h"

#include <stdio.h>

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEX2 "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "\"digest\":\"sha256:" HEX "\""
#define NAME(text) "\"annotations\":{\"org.opencontainers.image.ref.name\":\"" text "\"}"

static void test_index(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	struct image_index index = IMAGE_INDEX_NULL, again = IMAGE_INDEX_NULL;
	static const char text[] = "{\"manifests\":[{" DIGEST ",\"size\":7," NAME(
		"v1") "},"
		      "{" DIGEST ",\"mediaType\":\"application/vnd.oci.image.index.v1+json\","
		      "\"platform\":{\"os\":\"windows\"}," NAME("../../etc") "}]}";

	check_int(image_index_read(str_from(text), &index, NULL), 0);
	check_int(index.n, 2);
	must(index.n == 2);
	check_z(index.entries[0].name, "v1:latest");
	check_z(index.entries[0].config, "");
	snprintf(index.entries[0].config, sizeof(index.entries[0].config), "%s", HEX2);
	check_int(index.entries[0].size, 7);
	check(index.entries[0].kind == IMAGE_KIND_MANIFEST && !index.entries[0].elsewhere);
	check_z(index.entries[1].name, NULL);
	check(index.entries[1].kind == IMAGE_KIND_INDEX && index.entries[1].elsewhere);
	check_int(image_index_write(&index, &out, NULL), 0);
	check_int(image_index_read(buf_str(&out), &again, NULL), 0);
	check_int(again.n, 2);
	check_z(again.entries[0].name, "v1:latest");
	check_z(again.entries[0].config, HEX2);
	check_z(again.entries[1].config, "");
	image_index_done(&index);
	image_index_done(&again);
}

/* A name passes from one image to the other. */
static void test_names_pass(void)
{
	struct image_index index = IMAGE_INDEX_NULL;
	struct image_entry a = {.hex = HEX}, b = {.hex = HEX2};
	char name[] = "a:1", other[] = "b:1";

	a.name = b.name = name;
	check_int(image_index_add(&index, &a, NULL), 0);
	check_int(image_index_add(&index, &a, NULL), 0);
	check_int(index.n, 1);
	check_int(image_index_add(&index, &b, NULL), 0);
	check_int(index.n, 2);
	check_z(index.entries[0].name, NULL);
	check_z(index.entries[1].name, "a:1");
	a.name = other;
	check_int(image_index_add(&index, &a, NULL), 0);
	check_int(index.n, 2);
	image_index_done(&index);
}

static void test_bad_indexes(void)
{
	static const char *const bad[] = {"", "[]", "{}", "{\"manifests\":{}}",
		"{\"manifests\":[{}]}", "{\"manifests\":[{\"digest\":\"sha256:../../x\"}]}",
		"{\"manifests\":[{\"digest\":\"sha512:" HEX "\"}]}", "{\"manifests\":[3]}"};
	struct image_index index = IMAGE_INDEX_NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_int(image_index_read(str_from(bad[i]), &index, NULL), -E_CORRUPT);
}

static void test_manifest(void)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT(1 << 20);
	struct image_manifest m, again;
	static const char text[] = "{\"config\":{" DIGEST ",\"size\":1},\"layers\":[{" DIGEST
				   ",\"size\":2},{" DIGEST "}]}";
	static const char *const bad[] = {"{}", "{\"config\":{" DIGEST "}}",
		"{\"config\":{" DIGEST "},\"layers\":[{}]}", "{\"fsLayers\":[]}",
		"{\"config\":{" DIGEST "},\"layers\":[{\"mediaType\":\"x+encrypted\"," DIGEST
		"}]}"};

	check_int(image_manifest_read(str_from(text), &m, NULL), 0);
	check_int(m.layers_n, 2);
	check_int(m.layers[0].size, 2);
	check_z(m.config.hex, HEX);
	check_int(image_manifest_write(&m, &out, NULL), 0);
	check_int(image_manifest_read(buf_str(&out), &again, NULL), 0);
	check(memcmp(&m, &again, sizeof(m)) == 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_int(image_manifest_read(str_from(bad[i]), &m, NULL), -E_CORRUPT);
}

static void test_too_many_layers(void)
{
	_cleanup_(buf_donep) struct buf text = BUF_INIT(1 << 20);
	struct image_manifest m;

	must(buf_printf(&text, "{\"config\":{" DIGEST "},\"layers\":[") == 0);
	for (int i = 0; i <= IMAGE_MAX_LAYERS; i++)
		must(buf_printf(&text, "%s{" DIGEST "}", i ? "," : "") == 0);
	must(buf_printf(&text, "]}") == 0);
	check_int(image_manifest_read(buf_str(&text), &m, NULL), -E_LIMIT);
}

#define ROOTFS "\"rootfs\":{\"diff_ids\":[\"sha256:" HEX "\"]}"

static void test_config(void)
{
	struct image_config c = IMAGE_CONFIG_NULL;
	static const char text[] =
		"{\"architecture\":\"amd64\",\"config\":{\"Env\":[\"A=1=2\",\"B=\"],\"Cmd\":null,"
		"\"Entrypoint\":[\"/x\"],\"User\":\"a:b\",\"WorkingDir\":\"/w\","
		"\"Volumes\":{\"/v\":{}}}," ROOTFS "}";

	check_int(image_config_read(str_from(text), &c, NULL), 0);
	check_int(c.layers_n, 1);
	check_z(c.diff_ids[0], HEX);
	check_z(c.env[0], "A=1=2");
	check_z(c.env[1], "B=");
	check(c.cmd == NULL);
	check_z(c.entrypoint[0], "/x");
	check_z(c.user, "a:b");
	check_z(c.workdir, "/w");
	check_z(c.volumes[0], "/v");
	check_z(c.os, "");
	image_config_done(&c);
}

static void test_clean_paths(void)
{
	static const char *const paths[][2] = {{"/", "/"}, {"//", "/"}, {"/a/", "/a"},
		{"/a//./b/.", "/a/b"}, {"/a/../b", "/b"}, {"/a/b/../../..", "/"},
		{"/../a/...", "/a/..."}, {"/a/..b", "/a/..b"}};
	struct image_config c = IMAGE_CONFIG_NULL;
	char text[200];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		bool top = strcmp(paths[i][1], "/") == 0;

		snprintf(text, sizeof(text),
			"{\"config\":{\"WorkingDir\":\"%s\",\"Volumes\":{\"%s\":{}}}," ROOTFS "}",
			paths[i][0], top ? "/v" : paths[i][0]);
		check_int(image_config_read(str_from(text), &c, NULL), 0);
		check_z(c.workdir, paths[i][1]);
		check_z(c.volumes[0], top ? "/v" : paths[i][1]);
		image_config_done(&c);
	}
}

static void test_bad_configs(void)
{
	static const char *const bad[] = {"{}", "{\"rootfs\":{}}",
		"{\"rootfs\":{\"diff_ids\":[\"x\"]}}", "{\"config\":{\"Env\":[\"A\"]}," ROOTFS "}",
		"{\"config\":{\"Env\":[\"=x\"]}," ROOTFS "}",
		"{\"config\":{\"Env\":\"A=1\"}," ROOTFS "}",
		"{\"config\":{\"Cmd\":[1]}," ROOTFS "}",
		"{\"config\":{\"Cmd\":[\"a\\u0000b\"]}," ROOTFS "}",
		"{\"config\":{\"WorkingDir\":\"w\"}," ROOTFS "}",
		"{\"config\":{\"Volumes\":{\"v\":{}}}," ROOTFS "}",
		"{\"config\":{\"Volumes\":{\"/\":{}}}," ROOTFS "}",
		"{\"config\":{\"Volumes\":{\"/a/..\":{}}}," ROOTFS "}",
		"{\"config\":{\"Volumes\":[\"/v\"]}," ROOTFS "}",
		"{\"config\":{\"User\":5}," ROOTFS "}",
		"{\"config\":{\"User\":\"a\\u0000\"}," ROOTFS "}",
		"{\"config\":{\"WorkingDir\":[\"/\"]}," ROOTFS "}", "{\"config\":[]," ROOTFS "}",
		"{\"os\":1," ROOTFS "}"};
	struct image_config c = IMAGE_CONFIG_NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_int(image_config_read(str_from(bad[i]), &c, NULL), -E_CORRUPT);
}

static void test_saved(void)
{
	struct image_saved *saved = NULL;
	size_t n = 0;
	static const char text[] =
		"[{\"Config\":\"c.json\",\"RepoTags\":[\"a:1\"],\"Layers\":[\"x/layer.tar\"]}]";

	check_int(image_saved_read(str_from(text), &saved, &n, NULL), 0);
	check_int(n, 1);
	check_z(saved[0].config, "c.json");
	check_z(saved[0].layers[0], "x/layer.tar");
	check_z(saved[0].tags[0], "a:1");
	image_saved_free(saved, n);
	check_int(image_saved_read(STR("[]"), &saved, &n, NULL), -E_CORRUPT);
	check_int(image_saved_read(STR("[{}]"), &saved, &n, NULL), -E_CORRUPT);
	check_int(image_saved_read(STR("[7]"), &saved, &n, NULL), -E_CORRUPT);
}

int main(void)
{
	run_test(test_index);
	run_test(test_names_pass);
	run_test(test_bad_indexes);
	run_test(test_manifest);
	run_test(test_too_many_layers);
	run_test(test_config);
	run_test(test_clean_paths);
	run_test(test_bad_configs);
	run_test(test_saved);
	return tap_done();
}
