/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/macro.h"
#include "base/str.h"
#include "tap.h"
#include "torture.h"

#include <sys/wait.h>
#include <unistd.h>

static void depends_on_every_byte_and_length(void)
{
	unsigned char data[80];
	uint64_t seen[ARRAY_SIZE(data)];

	memset(data, 0, sizeof(data));
	for (size_t n = 0; n < sizeof(data); n++) {
		seen[n] = hash_keyed(data, n);
		check(seen[n] == hash_keyed(data, n));
		for (size_t m = 0; m < n; m++)
			check(seen[n] != seen[m]);
	}
	for (size_t i = 0; i < 79; i++) {
		data[i] = 1;
		check(hash_keyed(data, 79) != seen[79]);
		data[i] = 0;
	}
}

static void is_keyed_per_process(void)
{
	uint64_t values[2] = {0, 0};

	/* Two children that draw their own keys; the key here is not drawn yet in the first test.
	 */
	for (int i = 0; i < 2; i++) {
		int fds[2];
		pid_t pid;

		must(pipe(fds) == 0);
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			values[0] = hash_keyed("x", 1);
			_exit(write(fds[1], &values[0], 8) == 8 ? 0 : 1);
		}
		must(pid > 0);
		must(read(fds[0], &values[i], 8) == 8);
		close(fds[0]);
		close(fds[1]);
		waitpid(pid, NULL, 0);
	}
	check(values[0] != values[1]);
}

struct entry {
	int key;
	UT_hash_handle hh;
};

static void fill_and_empty(void)
{
	struct entry *map = NULL, *e, *next;
	int added = 0, found = 0;

	for (int i = 0; i < 100; i++) {
		e = calloc(1, sizeof(*e));
		if (!e)
			break;
		e->key = i;
		HASH_ADD_INT(map, key, e);
		if (!e->hh.tbl) { /* uthash had no memory */
			free(e);
			break;
		}
		added++;
	}
	for (int i = 0; i < 100; i++) {
		HASH_FIND_INT(map, &i, e);
		found += e != NULL;
	}
	check_int(found, added);
	check(torture_failed || added == 100);
	HASH_ITER (hh, map, e, next) {
		HASH_DEL(map, e);
		free(e);
	}
	check(map == NULL);
}

static void maps_survive_lack_of_memory(void)
{
	torture(fill_and_empty);
}

int main(void)
{
	run_test(is_keyed_per_process);
	run_test(depends_on_every_byte_and_length);
	run_test(maps_survive_lack_of_memory);
	return tap_done();
}
