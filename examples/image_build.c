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

static int read_dockerfile(cloche_image_build *build, const char *path, cloche_err *err)
{
	static char text[1 << 20];
	FILE *file = fopen(path, "r");
	size_t n;

	if (!file) {
		perror(path);
		exit(1);
	}
	n = fread(text, 1, sizeof(text), file);
	fclose(file);
	return cloche_image_build_set_dockerfile(build, text, n, err);
}

int main(int argc, char **argv)
{
	cloche_image_build *build = cloche_image_build_new();
	cloche_err err = CLOCHE_ERR_INIT;
	const char *tag;
	int r;

	if (!build || argc < 2)
		return 1;
	cloche_image_build_on_line(build, show, NULL);
	r = read_dockerfile(build, argv[1], &err);
	if (r == 0)
		r = cloche_image_build_add_file(build, "hello", "hello\n", 6, false, &err);
	if (r == 0 && argc > 2)
		r = cloche_image_build_set_engine(build, argv[2], &err);
	if (r == 0)
		r = cloche_image_build_ensure(build, &tag, &err);
	if (r == 0)
		printf("%s\n", tag);
	else
		fprintf(stderr, "%s\n", err.message);
	cloche_image_build_free(build);
	return r < 0;
}
