/* SPDX-License-Identifier: Apache-2.0 */
/* How long a command in a running sandbox takes through the library, beside the same program
 * started on the host: exec-latency ID ROUNDS HOSTPATH ROOMPATH [HOSTPATH ROOMPATH ...]. Prints a
 * line "ROOMPATH microseconds microseconds" (sandbox, host) for each round and program. */
#include <cloche/instance.h>
#include <cloche/run.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double in_sandbox(const cloche_instance *instance, const char *path)
{
	const char *argv[] = {path, NULL};
	cloche_err err;
	cloche_run *run;
	double start = now(), took;

	if (cloche_run_new_in(instance, argv, &run, &err) < 0 ||
		cloche_run_execute(run, &err) < 0) {
		fprintf(stderr, "exec-latency: %s\n", err.message);
		exit(1);
	}
	took = now() - start;
	if (cloche_run_result(run)->exit_code != 0) {
		fprintf(stderr, "exec-latency: %s ends with %d\n", path,
			cloche_run_result(run)->exit_code);
		exit(1);
	}
	cloche_run_free(run);
	return took;
}

static double on_host(char *path)
{
	char *argv[] = {path, NULL};
	double start = now();
	int status = -1;
	pid_t pid;

	if (posix_spawn(&pid, path, NULL, NULL, argv, environ) != 0 ||
		waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "exec-latency: cannot run %s\n", path);
		exit(1);
	}
	return now() - start;
}

int main(int argc, char **argv)
{
	cloche_instance *instance;
	cloche_err err;
	int rounds;

	if (argc < 5 || argc % 2 == 0) {
		fprintf(stderr, "usage: exec-latency ID ROUNDS (HOSTPATH ROOMPATH)...\n");
		return 2;
	}
	rounds = (int)strtol(argv[2], NULL, 10);
	if (cloche_instance_open(argv[1], &instance, &err) < 0) {
		fprintf(stderr, "exec-latency: %s\n", err.message);
		return 1;
	}
	for (int i = 0; i < rounds; i++)
		for (int at = 3; at + 1 < argc; at += 2) {
			double inside = in_sandbox(instance, argv[at + 1]);

			printf("%s %.1f %.1f\n", argv[at + 1], inside, on_host(argv[at]));
		}
	cloche_instance_free(instance);
	return 0;
}
