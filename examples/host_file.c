/* SPDX-License-Identifier: Apache-2.0 */
/* Writes standard input to a file that may lie where a sandbox can write: host_file FILE. */
#include <cloche/host_file.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	cloche_host_file *file = NULL;
	cloche_err err = CLOCHE_ERR_INIT;
	char text[4096];
	ssize_t n;
	int fd;

	if (argc != 2) {
		fprintf(stderr, "usage: host_file FILE\n");
		return 2;
	}
	if (cloche_host_file_begin(argv[1], 0666, &file, &fd, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	while ((n = read(STDIN_FILENO, text, sizeof(text))) > 0)
		if (write(fd, text, (size_t)n) != n)
			break;
	if (n != 0) {
		perror(argv[1]);
		cloche_host_file_abort(file);
		return 1;
	}
	if (cloche_host_file_commit(file, 1, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	return 0;
}
