/* SPDX-License-Identifier: Apache-2.0 */
/* Puts files of a sandbox on record by reference, lists them, reads one back by its reference:
 * assets FILE */
#include <cloche/assets.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BYTES = 64 << 20 };

static long next_piece(void *user, void *data, size_t size)
{
	FILE *file = user;
	size_t n = fread(data, 1, size, file);

	return ferror(file) ? -1 : (long)n;
}

static bool print(const char *path, const char *ref, void *user)
{
	printf("%s %s\n", path, ref);
	return true;
}

static int print_contents(cloche_oplog *log, const char *ref, cloche_err *err)
{
	char text[4096];
	ssize_t n;
	int fd, r = cloche_assets_open(log, ref, &fd, err);

	if (r < 0)
		return r;
	while ((n = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stdout);
	close(fd);
	return 0;
}

static int use(const cloche_instance *sandbox, FILE *file, cloche_err *err)
{
	static const char text[] = "hello\n";
	char ref[CLOCHE_ASSET_REF_SIZE], hello[CLOCHE_ASSET_REF_SIZE];
	cloche_files *files = NULL;
	cloche_oplog *log = NULL;
	int r = cloche_files_open(sandbox, 0, 0, &files, err);

	if (r == 0)
		r = cloche_assets_upload(
			files, "/tmp/in/file", cloche_from_fn(next_piece, file), ref, err);
	if (r == 0)
		r = cloche_assets_upload(
			files, "/tmp/in/hello", cloche_from_data(text, strlen(text)), hello, err);
	/* What is in the sandbox already, whoever wrote it. */
	if (r == 0)
		r = cloche_assets_keep(files, "/bin/sh", MAX_BYTES, ref, err);
	if (r == 0)
		r = cloche_oplog_open(cloche_instance_id(sandbox), &log, err);
	if (r == 0)
		r = cloche_assets_list(log, print, NULL, err);
	if (r == 0)
		r = print_contents(log, hello, err);
	cloche_oplog_free(log);
	cloche_files_close(files);
	return r;
}

int main(int argc, char **argv)
{
	cloche_sandbox *configuration = cloche_sandbox_new();
	cloche_instance *sandbox = NULL;
	cloche_err err = CLOCHE_ERR_INIT;
	FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
	int r;

	if (!configuration || !file)
		return 1;
	r = cloche_sandbox_set(configuration, "limits", "best-effort", &err);
	if (r == 0)
		r = cloche_sandbox_set(configuration, "record", "ops", &err);
	if (r == 0)
		r = cloche_instance_create(configuration, NULL, NULL, &sandbox, &err);
	if (r == 0)
		r = use(sandbox, file, &err);
	if (r < 0)
		fprintf(stderr, "%s\n", err.message);
	if (sandbox)
		(void)cloche_instance_remove(sandbox, true, &err);
	cloche_instance_free(sandbox);
	cloche_sandbox_free(configuration);
	fclose(file);
	return r < 0;
}
