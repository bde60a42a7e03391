/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the main() of a fuzz target where libFuzzer is not linked. It gives the
 * target every file of a folder, each in a heap block of exactly its size, so that a sanitizer sees
 * a read past the end; files that people wrote also cut off at every length (up to a bound). Those
 * that a fuzzer found (named by their hash) are many, and were cut by it already. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_MAX (1U << 20)
#define CUTS_MAX 512U
#define HASH_NAME 40U /* hexadecimal digits of a SHA-1 */

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

static bool was_found(const char *name)
{
	return strlen(name) == HASH_NAME && strspn(name, "0123456789abcdef") == HASH_NAME;
}

/* Runs the file whole and, where a person wrote it, cut off. Returns the number of inputs given, or
 * negative. */
static long give_file(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	uint8_t *data = malloc(INPUT_MAX);
	size_t size = 0, step;
	long given = 0;

	while (fd >= 0 && data && size < INPUT_MAX) {
		ssize_t n = read(fd, data + size, INPUT_MAX - size);

		if (n <= 0)
			break;
		size += (size_t)n;
	}
	if (fd < 0 || !data || !give(data, size)) {
		given = -1;
		goto out;
	}
	given = 1;
	step = size / CUTS_MAX + 1;
	for (size_t cut = 0; !was_found(name) && cut < size; cut += step, given++)
		give(data, cut);
out:
	free(data);
	if (fd >= 0)
		close(fd);
	return given;
}

/* Returns the number of inputs given, or negative. */
static long give_folder(const char *path, long *ret_files)
{
	DIR *dir = opendir(path);
	long given = 0;
	struct dirent *e;

	if (!dir)
		return -1;
	while ((e = readdir(dir))) {
		struct stat st;
		long n;

		if (fstatat(dirfd(dir), e->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
			continue;
		n = give_file(dirfd(dir), e->d_name);
		if (n < 0) {
			given = -1;
			break;
		}
		given += n;
		(*ret_files)++;
	}
	closedir(dir);
	return given;
}

int main(int argc, char *argv[])
{
	long files = 0, given = argc > 1 ? give_folder(argv[1], &files) : -1;

	printf("1..2\n");
	printf("%sok 1 - nothing at all, and one byte of each value\n",
		give((const uint8_t *)"", 0) ? "" : "not ");
	for (unsigned c = 0; c < 256; c++) {
		uint8_t byte = (uint8_t)c;

		give(&byte, 1);
	}
	if (given < 0 || files == 0) {
		printf("not ok 2 - corpus %s is missing or empty\n", argc > 1 ? argv[1] : "");
		return 1;
	}
	printf("ok 2 - %ld kept inputs, %ld with their cut-off forms\n", files, given);
	return 0;
}
