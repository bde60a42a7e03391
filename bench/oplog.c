/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorded operation costs as its log grows: oplog ID SIZE... For each size, which rises,
 * prints a line "SIZE append open read": microseconds of an operation among the last tenth that was
 * appended, of a handle that is opened anew and asks for a key, and of an operation when all of
 * the log is read.
 * oplog ID --burst N: sets one key N times, and exits at once. */
#include <cloche/state.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KEYS = 1000 };

static cloche_err err;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "oplog: %s\n", err.message);
	exit(1);
}

static void append(cloche_state *state, long i)
{
	char key[32], value[32];

	snprintf(key, sizeof(key), "key-%ld", i % KEYS);
	snprintf(value, sizeof(value), "value %ld", i);
	must(cloche_state_set(
		state, CLOCHE_STATE_STORAGE, key, strlen(key), value, strlen(value), &err));
}

static double open_anew(const cloche_instance *instance)
{
	double start = now();
	cloche_state *state;
	const void *value;
	size_t n;

	for (int i = 0; i < 20; i++) {
		must(cloche_state_open(instance, &state, &err));
		must(cloche_state_get(state, CLOCHE_STATE_STORAGE, "key-7", 5, &value, &n, &err));
		cloche_state_close(state);
	}
	return (now() - start) / 20;
}

static bool count(const cloche_operation *operation, void *user)
{
	++*(long *)user;
	return true;
}

static double read_all(const cloche_instance *instance, long size)
{
	double start = now();
	cloche_oplog *log;
	long n = 0;

	must(cloche_oplog_open(cloche_instance_id(instance), &log, &err));
	must(cloche_oplog_read(log, count, &n, &err));
	cloche_oplog_free(log);
	if (n != size) {
		fprintf(stderr, "oplog: %ld operations, not %ld\n", n, size);
		exit(1);
	}
	return (now() - start) / (double)size;
}

static void burst(cloche_state *state, long n)
{
	char value[32];

	for (long i = 0; i < n; i++) {
		snprintf(value, sizeof(value), "value %ld", i);
		must(cloche_state_set(
			state, CLOCHE_STATE_STORAGE, "k", 1, value, strlen(value), &err));
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	cloche_instance *instance;
	cloche_state *state;
	long done = 0;

	if (argc < 3 || (strcmp(argv[2], "--burst") == 0 && argc != 4))
		return 2;
	must(cloche_instance_open(argv[1], &instance, &err));
	must(cloche_state_open(instance, &state, &err));
	if (strcmp(argv[2], "--burst") == 0)
		burst(state, atol(argv[3]));
	for (int i = 2; i < argc; i++) {
		long size = atol(argv[i]), from = size - size / 10;
		double start, took;

		while (done < from)
			append(state, done++);
		start = now();
		while (done < size)
			append(state, done++);
		took = (now() - start) / (double)(size / 10);
		printf("%ld %.3f %.3f %.3f\n", size, took, open_anew(instance),
			read_all(instance, size));
	}
	cloche_state_close(state);
	cloche_instance_free(instance);
	return 0;
}
