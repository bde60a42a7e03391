/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "jail/caps.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in a child. 0 if no set holds anything any more. */
static int drops_all(void)
{
	static const char *const names[] = {"CapInh", "CapPrm", "CapEff", "CapAmb"};
	struct buf b = BUF_INIT(1 << 16);

	if (caps_drop(NULL) < 0 || caps_drop(NULL) < 0)
		return 1;
	if (fd_read_file(AT_FDCWD, "/proc/self/status", &b, NULL) < 0)
		return 2;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char line[64];
		struct str text = buf_str(&b);

		snprintf(line, sizeof(line), "%s:\t0000000000000000\n", names[i]);
		if (str_find(text, str_from(line)) == text.n)
			return 3 + (int)i;
	}
	buf_done(&b);
	return 0;
}

static void nothing_is_left(void)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(drops_all());
	must(pid > 0 && waitpid(pid, &status, 0) == pid);
	check(WIFEXITED(status));
	check_int(WEXITSTATUS(status), 0);
}

int main(void)
{
	run_test(nothing_is_left);
	return tap_done();
}
