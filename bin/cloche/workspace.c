/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Return whether a is b or a parent of it. */
static bool workspace_is_above(const char *a, const char *b)
{
	size_t n = strlen(a);

	return strcmp(a, "/") == 0 || (strncmp(a, b, n) == 0 && (b[n] == '/' || b[n] == '\0'));
}

/* Return whether dir is the user's home directory or a parent of it, according to HOME or the
 * account. */
static bool workspace_holds_home(const char *dir)
{
	const struct passwd *account = getpwuid(getuid());
	const char *const homes[] = {getenv("HOME"), account ? account->pw_dir : NULL};
	static char home[PATH_MAX];

	for (size_t i = 0; i < 2; i++)
		if (homes[i] && realpath(homes[i], home) && strcmp(home, "/") != 0 &&
			workspace_is_above(dir, home))
			return true;
	return false;
}

int workspace_choose(struct sandbox_options *o, cloche_err *err)
{
	const struct given *given = sandbox_options_given(o, "workspace");
	static char cwd[PATH_MAX];

	if (o->no_workspace && given)
		return wrong_usage(err, NULL,
			"--no-workspace and --workspace \"%s\": use one of them, not both",
			given->value);
	o->workspace = given ? given->value : NULL;
	/* With these options the working directory is not mounted at /workspace. */
	if (o->no_workspace || given || sandbox_options_given(o, "srt-settings"))
		return 0;
	if (!getcwd(cwd, sizeof(cwd)))
		return wrong_usage(err, "use --workspace DIR or --no-workspace",
			"the current directory is gone");
	if (strcmp(cwd, "/") == 0)
		return 0;
	/* Starting cloche in the wrong place must not expose everything that the user owns. */
	if (workspace_holds_home(cwd)) {
		say("not mounting %s, which holds your home, as the workspace; "
		    "use --workspace DIR (or --no-workspace, to hide this message)",
			cwd);
		return 0;
	}
	o->workspace = cwd;
	return cloche_sandbox_set_workspace(o->sb, cwd, err);
}
