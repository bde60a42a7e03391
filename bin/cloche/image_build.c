/* SPDX-License-Identifier: Apache-2.0 */
/* `cloche image build` and `hash`: build an image of two layers from a directory with a
 * Dockerfile. */
#include "cmd_image.h"
#include "interrupt.h"
#include "json_out.h"

#include <cloche/host_file.h>
#include <cloche/image_build.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DOCKERFILE = 1 << 20 };

static void show_line(const char *line, void *user)
{
	if (put_shown(STDERR_FILENO, line))
		(void)put(STDERR_FILENO, "\n", 1);
}

static void image_build_on_signal(void *user, int signal_number, unsigned count)
{
	cloche_image_build_stop(user);
}

/* The caller frees *ret. */
static int read_dockerfile(const char *path, char **ret, size_t *ret_n, cloche_err *err)
{
	int fd, failure, r = cloche_host_open(path, &fd, err);

	if (r < 0) {
		if (!err->hint[0])
			snprintf(err->hint, sizeof(err->hint),
				"name another Dockerfile: --file FILE");
		return r;
	}
	failure = read_whole(fd, MAX_DOCKERFILE, ret, ret_n);
	close(fd);
	return failure ? wrong_usage(err, NULL, "read %s: %s", path, strerror(failure)) : 0;
}

/* Return the name in dir of the file at path, or NULL if it is not in dir. */
static const char *name_within(const char *dir, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct stat here, there;
	char *same;
	bool is_same;

	if (asprintf(&same, "%s/%s", dir, name) < 0)
		return name;
	is_same = stat(path, &here) == 0 && stat(same, &there) == 0 &&
		  here.st_dev == there.st_dev && here.st_ino == there.st_ino;
	free(same);
	return is_same ? name : NULL;
}

/* The Dockerfile is at path. */
static int image_build_make(const struct image_options *o, const char *path, bool show,
	cloche_image_build **ret, cloche_err *err)
{
	cloche_image_build_options options = CLOCHE_IMAGE_BUILD_INIT;
	char *text = NULL;
	int r = read_dockerfile(path, &text, &options.dockerfile_length, err);

	options.dockerfile = text;
	options.engine = o->engine;
	options.sync = o->sync;
	options.line = show ? show_line : NULL;
	options.warning = warn;
	if (o->has_age)
		options.max_age_s = o->age_ms / 1000;
	if (r == 0)
		r = cloche_image_build_new(&options, ret, err);
	free(text);
	return r;
}

/* dir is the operand; NULL: the directory of the Dockerfile. */
static int image_build_fill(const struct image_options *o, const char *dir, bool show,
	cloche_image_build **ret, cloche_err *err)
{
	char *path = NULL, *own = NULL;
	const char *slash = o->file ? strrchr(o->file, '/') : NULL;
	int r;

	if (!dir && slash)
		own = strndup(o->file, slash > o->file ? (size_t)(slash - o->file) : 1);
	dir = dir ? dir : own ? own : ".";
	path = o->file ? strdup(o->file) : NULL;
	if (!path && asprintf(&path, "%s/Dockerfile", dir) < 0)
		path = NULL;
	r = path ? image_build_make(o, path, show, ret, err)
		 : wrong_usage(err, NULL, "out of memory");
	/* The Dockerfile is not part of the build context. */
	if (r == 0)
		r = cloche_image_build_add_directory(*ret, dir, name_within(dir, path), err);
	free(path);
	free(own);
	return r;
}

static int print_built(const struct image_options *o, cloche_image_build *b)
{
	if (!o->json)
		return put_line(cloche_image_build_tag(b)) ? 0 : EXIT_CLOCHE;
	return json_print(json_pack("{s:s, s:s}", "tag", cloche_image_build_tag(b), "repo",
		       cloche_image_build_hash(b)))
		       ? 0
		       : EXIT_CLOCHE;
}

static int print_hashes(const struct image_options *o, cloche_image_build *b)
{
	char line[100];

	if (o->json)
		return print_built(o, b);
	snprintf(line, sizeof(line), "repo=%s", cloche_image_build_hash(b));
	if (!put_line(line))
		return EXIT_CLOCHE;
	snprintf(line, sizeof(line), "overlay=%s", strchr(cloche_image_build_tag(b), ':') + 1);
	return put_line(line) ? 0 : EXIT_CLOCHE;
}

static int image_build_run(cloche_image_build *b, cloche_err *err)
{
	const char *tag;
	int r;

	interrupt_catch(image_build_on_signal, b);
	r = cloche_image_build_ensure(b, &tag, err);
	if (r == 0)
		r = cloche_image_build_store(b, NULL, err);
	interrupt_forget();
	return r;
}

static int build_or_hash(
	const struct image_options *o, char **operands, bool only_hash, cloche_err *err)
{
	cloche_image_build *b = NULL;
	int r = image_build_fill(o, operands[0], !o->quiet, &b, err);

	if (r == 0 && !only_hash)
		r = image_build_run(b, err);
	if (r == 0)
		r = only_hash ? print_hashes(o, b) : print_built(o, b);
	else if (interrupt_signal() != 0)
		r = 128 + interrupt_signal();
	cloche_image_build_free(b);
	return r;
}

int image_build(const struct image_options *o, char **operands, cloche_err *err)
{
	return build_or_hash(o, operands, false, err);
}

int image_hash(const struct image_options *o, char **operands, cloche_err *err)
{
	return build_or_hash(o, operands, true, err);
}
