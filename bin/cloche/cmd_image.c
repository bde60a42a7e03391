/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche image`: finds the subcommand, and implements those that list and remove. */
#include "cmd_image.h"
#include "base/near.h"
#include "json_out.h"

#include <cloche/host_file.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A plain 0 is allowed. */
static int set_age(const struct option *option, void *at, const char *value, cloche_err *err)
{
	struct image_options *o = at;
	uint64_t zero;

	o->has_age = true;
	o->age_ms = 0;
	return read_number(value, 0, &zero) ? 0 : cloche_parse_duration(value, &o->age_ms, err);
}

static const struct option options[] = {
	{"file", 'f', "FILE", "the Dockerfile (default: DIR/Dockerfile)", .of = "build, hash",
		.at = offsetof(struct image_options, file)},
	{"engine", 0, "NAME",
		"podman, buildah, docker, or a path (default: the first of these that is\n"
		"installed)",
		.of = "build", .at = offsetof(struct image_options, engine)},
	{"max-image-age", 0, "TIME",
		"build an image that is older anew, with fresh base images (default 24h;\n"
		"0: always)",
		.of = "build", .set = set_age},
	{"sync", 0, "uv", "run \"uv sync\" at each start, for /workspace/pyproject.toml",
		.of = "build, hash", .at = offsetof(struct image_options, sync)},
	{"name", 0, "NAME", "call the image NAME[:TAG], whatever its own name is",
		.of = "load, pull", .at = offsetof(struct image_options, name)},
	{"output", 'o', "FILE", "write the archive to FILE (default: standard output)",
		.of = "save", .at = offsetof(struct image_options, output)},
	{"all", 'a', NULL, "also remove images that have a name", .of = "prune",
		.at = offsetof(struct image_options, all)},
	{"quiet", 'q', NULL, "print ids alone (ls), or show no progress",
		.of = "ls, build, load, pull", .at = offsetof(struct image_options, quiet)},
	{"json", 0, NULL, "print JSON", .of = "build, hash, load, pull, ls, inspect, rm, prune",
		.at = offsetof(struct image_options, json)},
	{0},
};

struct listing {
	const struct image_options *o;
	json_t *documents;
	bool failed;
};

static void image_print_row(const char *name, const char *id, const char *layers, const char *size,
	const char *created, struct listing *l)
{
	char line[1024];

	snprintf(line, sizeof(line), "%-40s  %-12.12s  %-6s  %-9s  %.10s", name, id, layers, size,
		created);
	l->failed |= !put_row(line);
}

static bool on_image(const cloche_image *image, void *user)
{
	struct listing *l = user;
	char layers[24], size[32];

	if (l->o->json) {
		(void)json_array_append_new(l->documents, json_loads(image->json, 0, NULL));
		return true;
	}
	if (l->o->quiet) {
		l->failed |= !put_line(image->id);
		return !l->failed;
	}
	snprintf(layers, sizeof(layers), "%zu", image->layers);
	format_size(image->bytes, size, sizeof(size));
	for (size_t i = 0; i == 0 || image->names[i]; i++) {
		image_print_row(image->names[i] ? image->names[i] : "-", image->id, layers, size,
			image->created, l);
		if (!image->names[i])
			break;
	}
	return !l->failed;
}

static int image_list(const struct image_options *o, char **names, cloche_err *err)
{
	struct listing l = {.o = o, .documents = json_array()};
	int r;

	if (!o->json && !o->quiet)
		image_print_row("NAME", "ID", "LAYERS", "SIZE", "CREATED", &l);
	r = cloche_image_list(on_image, &l, err);
	if (r == 0 && o->json)
		l.failed = !json_print(json_incref(l.documents));
	json_decref(l.documents);
	return r < 0 ? r : l.failed ? EXIT_CLOCHE : 0;
}

static int image_inspect(const struct image_options *o, char **names, cloche_err *err)
{
	json_t *documents = json_array();
	int r = 0;
	bool ok = true;

	for (; r == 0 && *names; names++) {
		cloche_image *image = NULL;

		r = cloche_image_find(*names, &image, err);
		if (r == 0)
			(void)json_array_append_new(documents, json_loads(image->json, 0, NULL));
		cloche_image_free(image);
	}
	if (r == 0)
		ok = json_print(json_array_size(documents) == 1
					? json_incref(json_array_get(documents, 0))
					: json_incref(documents));
	json_decref(documents);
	return r < 0 ? r : ok ? 0 : EXIT_CLOCHE;
}

static int print_freed(const struct image_options *o, const struct cloche_image_freed *f)
{
	char size[32];

	if (o->json)
		return json_print(json_pack("{s:i, s:i, s:i, s:I}", "images", (int)f->images,
			       "layers", (int)f->layers, "layers_in_use", (int)f->busy, "bytes",
			       (json_int_t)f->bytes))
			       ? 0
			       : EXIT_CLOCHE;
	format_size(f->bytes, size, sizeof(size));
	say("%u image%s removed, %u layer%s, %s of archives", f->images, f->images == 1 ? "" : "s",
		f->layers, f->layers == 1 ? "" : "s", size);
	if (f->busy)
		say("%u layer%s in use by a sandbox: \"cloche image prune\" removes %s later",
			f->busy, f->busy == 1 ? " is" : "s are", f->busy == 1 ? "it" : "them");
	return 0;
}

static int image_remove(const struct image_options *o, char **names, cloche_err *err)
{
	struct cloche_image_freed all = {0}, freed;
	int r = 0;

	for (; *names; names++) {
		cloche_err own = CLOCHE_ERR_INIT;

		if (cloche_image_remove(*names, &freed, &own) < 0) {
			if (r == 0)
				r = complain(&own);
			else
				(void)complain(&own);
			continue;
		}
		all.images += freed.images;
		all.layers += freed.layers;
		all.busy = freed.busy;
		all.bytes += freed.bytes;
	}
	return r != 0 ? r : print_freed(o, &all);
}

static int image_prune(const struct image_options *o, char **names, cloche_err *err)
{
	struct cloche_image_freed freed;
	int r = cloche_image_prune(o->all, &freed, err);

	return r < 0 ? r : print_freed(o, &freed);
}

static int image_save(const struct image_options *o, char **names, cloche_err *err)
{
	cloche_host_file *file = NULL;
	int fd = STDOUT_FILENO, r = 0;

	if (!o->output && isatty(fd))
		return wrong_usage(err,
			"name a file with --output, or use a pipe: cloche image save NAME | ...",
			"image save: an archive cannot be written to a terminal");
	if (o->output)
		r = cloche_host_file_begin(o->output, 0666, &file, &fd, err);
	if (r == 0)
		r = cloche_image_save((const char *const *)names, fd, err);
	if (r == 0 && file)
		return cloche_host_file_commit(file, true, err);
	cloche_host_file_abort(file);
	return r;
}

/* In the order of the help. */
static const struct part {
	const char *name;
	int least, most; /* operands; most -1: any number */
	int (*run)(const struct image_options *o, char **operands, cloche_err *err);
	const char *needs, *example;
} parts[] = {
	{"build", 0, 1, image_build, "one directory at most", "build ."},
	{"hash", 0, 1, image_hash, "one directory at most", "hash ."},
	{"load", 1, 1, image_load_archive, "FILE, DIR or -", "load app.tar"},
	{"pull", 1, 1, image_pull_name, "the name of an image", "pull docker.io/library/debian"},
	{"ls", 0, 0, image_list, "no operand", "ls"},
	{"inspect", 1, -1, image_inspect, "the names of images", "inspect debian"},
	{"rm", 1, -1, image_remove, "the names of images", "rm debian"},
	{"prune", 0, 0, image_prune, "no operand", "prune"},
	{"save", 1, -1, image_save, "the names of images", "save -o debian.tar debian"},
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static const struct part *image_find_part(const struct operands *operands, cloche_err *err)
{
	struct near best = {0};
	char hint[64];

	if (operands->n == 0) {
		wrong_usage(err, "for example: cloche image load app.tar",
			"image: use build, hash, load, pull, ls, inspect, rm, prune or save");
		return NULL;
	}
	for (size_t i = 0; i < PARTS; i++)
		if (strcmp(operands->v[0], parts[i].name) == 0)
			return &parts[i];
	for (size_t i = 0; i < PARTS; i++)
		near_try(str_from(operands->v[0]), parts[i].name, &best);
	snprintf(hint, sizeof(hint), "did you mean \"cloche image %s\"?",
		best.name ? best.name : "ls");
	wrong_usage(err, hint, "image: unknown operation \"%s\"", operands->v[0]);
	return NULL;
}

static int main_image(void *ctx, const struct operands *operands, cloche_err *err)
{
	const struct part *p = image_find_part(operands, err);
	char example[80];

	if (!p || options_check_operation(&command_image, operands, p->name, err) < 0)
		return -err->code;
	if (operands->n - 1 < p->least || (p->most >= 0 && operands->n - 1 > p->most)) {
		snprintf(example, sizeof(example), "for example: cloche image %s", p->example);
		return wrong_usage(err, example, "image %s: takes %s", p->name, p->needs);
	}
	return p->run(ctx, operands->v + 1, err);
}

const struct command command_image = {
	.name = "image",
	.summary = "images for the roots of sandboxes: build, load, pull, remove",
	.synopsis =
		"build [-f FILE] [--engine NAME] [--max-image-age TIME] [--sync uv] [-q] [DIR]\n"
		"       cloche image hash [-f FILE] [--sync uv] [DIR]\n"
		"       cloche image load [--name NAME] FILE|DIR|-\n"
		"       cloche image pull [--name NAME] NAME\n"
		"       cloche image ls [-q] [--json]\n"
		"       cloche image inspect NAME...\n"
		"       cloche image save [-o FILE] NAME...\n"
		"       cloche image rm NAME...\n"
		"       cloche image prune [--all]",
	.text = "build makes an image from DIR/Dockerfile and the files in DIR (default: that\n"
		"of FILE, else here) by podman, buildah or docker, adds a layer with an\n"
		"entrypoint, and prints the image's name. If there is an image of the same\n"
		"contents, nothing is built. hash prints the digests that name the layers. load\n"
		"takes an OCI layout (a directory or an archive), or what \"docker save\" and\n"
		"\"podman save\" write. pull gets an image from its registry by skopeo if that is\n"
		"installed, else from the images that podman or docker have here. Each layer is\n"
		"checked by its digest and unpacked once; then any number of sandboxes can use\n"
		"it at once. rm removes a name and, with the last one, the image. prune removes\n"
		"images without a name and what a crash left. An image is name[:tag], a digest,\n"
		"or the beginning of its id.\n"
		"\n"
		"  cloche run --root image:$(cloche image build -q .) -- make test\n"
		"  podman save app | cloche image load -\n"
		"  cloche image pull docker.io/library/debian:12-slim\n"
		"  cloche run --root image:debian:12-slim -- cat /etc/os-release",
	.tables = {&(const struct option_table){"Options", options}},
	.ctx = &(struct image_options){0},
	.run = main_image,
};
