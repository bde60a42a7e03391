/* SPDX-License-Identifier: Apache-2.0 */
/* Sees to it that the image of a Dockerfile is there, and prints its name:
 * image_build DOCKERFILE [ENGINE] */
#include <cloche/image_build.h>
#include <stdio.h>
#include <stdlib.h>

static void show(const char *line, void *user)
{
	fprintf(stderr, "%s\n", line);
}

static size_t read_dockerfile(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t n;

	if (!file) {
		perror(path);
		exit(1);
	}
	n = fread(text, 1, size, file);
	fclose(file);
	return n;
}

int main(int argc, char **argv)
{
	static char text[1 << 20];
	cloche_image_build_options options = CLOCHE_IMAGE_BUILD_INIT;
	cloche_image_build *build = NULL;
	cloche_err err = CLOCHE_ERR_INIT;
	const char *tag;
	int r;

	if (argc < 2)
		return 1;
	options.dockerfile = text;
	options.dockerfile_length = read_dockerfile(argv[1], text, sizeof(text));
	options.engine = argc > 2 ? argv[2] : NULL;
	options.line = show;
	r = cloche_image_build_new(&options, &build, &err);
	if (r == 0)
		r = cloche_image_build_add_file(build, "hello", "hello\n", 6, false, &err);
	if (r == 0)
		r = cloche_image_build_ensure(build, &tag, &err);
	if (r == 0)
		printf("%s\n", tag);
	else
		fprintf(stderr, "%s\n", err.message);
	cloche_image_build_free(build);
	return r < 0;
}
