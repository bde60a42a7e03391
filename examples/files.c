/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a sandbox, writes a file in it, lists its directory, reads it back, ends it all. */
#include <cloche/files.h>
#include <stdio.h>
#include <stdlib.h>

static bool print(const char *name, const cloche_file_stat *st, void *user)
{
	printf("%s %04o %llu %s\n", st->type_name, st->mode, (unsigned long long)st->size, name);
	return true;
}

static int use(cloche_files *files, cloche_err *err)
{
	static const char text[] = "hello\n";
	size_t length;
	void *data;
	uint32_t uid, gid;
	int r = cloche_files_find_user(files, "nobody", &uid, &gid, err);

	if (r < 0)
		return r;
	printf("nobody is %u:%u\n", uid, gid);
	r = cloche_files_write(files, "/tmp/notes/today.txt", CLOCHE_FILES_PARENTS,
		CLOCHE_FILES_KEEP_MODE, cloche_from_data(text, sizeof(text) - 1), err);

	if (r == 0)
		r = cloche_files_list(files, "/tmp/notes", print, NULL, err);
	if (r == 0)
		r = cloche_files_read_data(
			files, "/tmp/notes/today.txt", 1024 * 1024, &data, &length, err);
	if (r == 0) {
		fwrite(data, 1, length, stdout);
		free(data);
	}
	return r;
}

int main(void)
{
	cloche_sandbox *configuration = cloche_sandbox_new();
	cloche_instance *sandbox = NULL;
	cloche_files *files = NULL;
	cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (!configuration)
		return 1;
	r = cloche_sandbox_set(configuration, "limits", "best-effort", &err);
	if (r == 0)
		r = cloche_instance_create(configuration, NULL, NULL, &sandbox, &err);
	if (r == 0)
		r = cloche_files_open(sandbox, 0, 0, &files, &err);
	if (r == 0)
		r = use(files, &err);
	cloche_files_close(files);
	if (r < 0)
		fprintf(stderr, "%s\n", err.message);
	if (sandbox)
		(void)cloche_instance_remove(sandbox, true, &err);
	cloche_instance_free(sandbox);
	cloche_sandbox_free(configuration);
	return r < 0;
}
