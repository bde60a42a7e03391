/* SPDX-License-Identifier: Apache-2.0 */
/* How errors are reported: a code, a message with its context, and often the next step. */
#include <cloche/error.h>
#include <cloche/sandbox.h>
#include <stdio.h>

int main(void)
{
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_err err = CLOCHE_ERR_INIT;
	int r;

	if (!sb)
		return 1;
	r = cloche_sandbox_add_mount(sb, "/no/such/directory", "/data", true, &err);
	printf("returned %d: %s (%s); the command line would exit with %d\n", r, err.message,
		cloche_error_text(err.code), cloche_error_exit_status(err.code));
	cloche_sandbox_free(sb);
	return r == -CLOCHE_E_SYSTEM ? 0 : 1;
}
