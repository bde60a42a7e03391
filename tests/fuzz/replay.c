/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the main() of a fuzz target if libFuzzer is not linked. It gives the
 * target every file of a folder that people wrote, whole and cut off at every length (up to a
 * bound), and every input that a fuzzer found: those are in one file beside the folder, FOLDER.pack
 * (tools/corpus), and were cut by the fuzzer already. Each comes in a heap block of exactly its
 * size, so that a sanitizer sees a read past the end. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_MAX (1U << 20)
#define HEAD 4U /* bytes of the length before each input of a pack */
#define PACK_MAX (16U << 20)
#define CUTS_MAX 512U
#define CUT_BYTES_MAX (4U << 20) /* of all that is cut from one file */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Runs one input from an exact copy. Returns false when memory is out. */
static bool give(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return false;
	if (size)
		memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	return true;
}

/* Returns what is in the file, to be freed, or NULL. */
static uint8_t *read_file(int dirfd, const char *name, size_t max, size_t *ret_size)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	uint8_t *data = fd >= 0 ? malloc(max) : NULL;
	size_t size = 0;

	while (data && size < max) {
		ssize_t n = read(fd, data + size, max - size);

		if (n <= 0)
			break;
		size += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	*ret_size = size;
	return data;
}

/* Runs the file whole and cut off. Returns the number of inputs given, or negative. */
static long give_file(int dirfd, const char *name)
{
	size_t size, step, cuts;
	uint8_t *data = read_file(dirfd, name, INPUT_MAX, &size);
	long given = 1;

	if (!data || !give(data, size)) {
		free(data);
		return -1;
	}
	cuts = 2U * CUT_BYTES_MAX / (size + 1);
	step = size / (cuts < CUTS_MAX ? cuts : CUTS_MAX) + 1;
	for (size_t cut = 0; cut < size; cut += step, given++)
		give(data, cut);
	free(data);
	return given;
}

/* Returns the number of inputs given, or negative. A folder that is not there is empty. */
static long give_folder(const char *path, long *ret_files)
{
	DIR *dir = opendir(path);
	long given = 0;
	struct dirent *e;

	while (dir && given >= 0 && (e = readdir(dir))) {
		struct stat st;
		long n;

		if (fstatat(dirfd(dir), e->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
			continue;
		n = give_file(dirfd(dir), e->d_name);
		given = n < 0 ? n : given + n;
		(*ret_files)++;
	}
	if (dir)
		closedir(dir);
	return given;
}

static size_t length_at(const uint8_t *p)
{
	return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

/* Returns the number of inputs given, or negative. A file that is not there is empty. */
static long give_pack(const char *folder)
{
	char path[PATH_MAX];
	uint8_t *data;
	size_t size;
	long given = 0;

	snprintf(path, sizeof(path), "%s.pack", folder);
	data = read_file(AT_FDCWD, path, PACK_MAX, &size);
	for (size_t at = 0; data && at < size && given >= 0;) {
		size_t n = size - at < HEAD ? SIZE_MAX : length_at(data + at);

		at += HEAD;
		given = at <= size && n <= size - at && give(data + at, n) ? given + 1 : -1;
		at += n;
	}
	free(data);
	return given;
}

int main(int argc, char *argv[])
{
	long files = 0, given = argc > 1 ? give_folder(argv[1], &files) : -1;
	long found = given < 0 ? -1 : give_pack(argv[1]);

	printf("1..2\n");
	printf("%sok 1 - nothing at all, and one byte of each value\n",
		give((const uint8_t *)"", 0) ? "" : "not ");
	for (unsigned c = 0; c < 256; c++) {
		uint8_t byte = (uint8_t)c;

		give(&byte, 1);
	}
	if (found < 0 || files + found == 0) {
		printf("not ok 2 - corpus %s is missing, empty or cut\n", argc > 1 ? argv[1] : "");
		return 1;
	}
	printf("ok 2 - %ld inputs that were found, and %ld that were written, %ld with their "
	       "cut-off forms\n",
		found, files, given);
	return 0;
}
