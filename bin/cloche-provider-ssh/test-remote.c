/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "remote.h"
#include "tap.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void places_are_judged(void)
{
	static const struct {
		const char *place;
		bool good;
	} rows[] = {
		{"build", true},
		{"me@build.example", true},
		{"ssh://me@build.example:2222", true},
		{"[2001:db8::7]", true},
		{"fe80::1%eth0", true},
		{"a_b-c.d", true},
		{"", false},
		{"-oProxyCommand=x", false},
		{"me@-oProxyCommand=x", false},
		{"ssh://-l@x", false},
		{"x:-p", false},
		{"a b", false},
		{"a;b", false},
		{"$(x)", false},
		{"`x`", false},
		{"a'b", false},
		{"a\"b", false},
		{"a\\b", false},
		{"a|b", false},
		{"a\nb", false},
		{"b\xc3\xbc", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_int(remote_is_place(str_from(rows[i].place)), rows[i].good);
}

static void make_command(const char *script, struct buf *ret)
{
	must(remote_add_command(ret, str_from(script)) == 0);
	must(buf_cstr(ret) != NULL);
}

static void scripts_are_written_without_what_shells_read_differently(void)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT(4096);

	make_command("echo 'a' \"$b\" \\ ! `c`\n\xff", &b);
	check_z(buf_data(&b),
		"exec sh -c 'eval \"$(printf %b \"echo \\0047a\\0047 \\0042\\0044b\\0042 \\0134 "
		"\\0041 \\0140c\\0140\\0012\\0377\")\"'");
}

/* Run a command line as sshd does; what it says is added to ret. Return its exit status. */
static int run_by(const char *shell, const char *command, struct buf *ret)
{
	int out[2], status = 0;
	pid_t child;

	must(fd_pipe(out) == 0);
	child = fork();
	must(child >= 0);
	if (child == 0) {
		if (dup2(out[1], STDOUT_FILENO) >= 0)
			execlp(shell, shell, "-c", command, NULL);
		_exit(126);
	}
	fd_close(out[1]);
	must(fd_read_to_end(out[0], ret) == 0);
	fd_close(out[0]);
	must(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Those that are there; whoever installs others has them tried. */
static void login_shells_run_it(void)
{
	static const char *const shells[] = {
		"sh", "bash", "dash", "zsh", "fish", "csh", "tcsh", "ksh", "mksh", "yash"};
	static const char script[] = "# it's a \"comment\" !! !x $y `z`\n"
				     "a='one  two'\n"
				     "printf '%s|%s|%s\\n' \"$a\" \"a\\b\" '!\\\\ $(x) {a,b} * ~'\n"
				     "case $0 in *sh) ;; *) echo \"$0\" ;; esac\n"
				     "exit 7\n";
	static const char want[] = "one  two|a\\b|!\\\\ $(x) {a,b} * ~\n";
	_cleanup_(buf_donep) struct buf command = BUF_INIT(4096);

	make_command(script, &command);
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		_cleanup_(buf_donep) struct buf said = BUF_INIT(65536);
		int status = run_by(shells[i], buf_data(&command), &said);

		printf("# %s: %d\n", shells[i], status);
		if (status == 126)
			continue;
		check_int(status, 7);
		check_str(buf_str(&said), want);
	}
}

int main(void)
{
	run_test(places_are_judged);
	run_test(scripts_are_written_without_what_shells_read_differently);
	run_test(login_shells_run_it);
	return tap_done();
}
