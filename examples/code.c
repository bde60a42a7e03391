/* SPDX-License-Identifier: Apache-2.0 */
/* The value of an expression, apart from what the code prints. */
#include <cloche/code.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	static const char code[] = "console.log('doubled'); [1, 2, 3].map(x => x * 2)";
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_run *run = NULL;
	const char *value = NULL;
	const void *out;
	size_t n;

	if (!sb ||
		cloche_run_new_code(
			sb, "node", CLOCHE_CODE_EXPRESSION, code, strlen(code), &run, &err) < 0 ||
		cloche_run_execute(run, &err) < 0) {
		fprintf(stderr, "%s\n%s\n", err.message, err.hint);
	} else {
		value = cloche_run_value_json(run);
		out = cloche_run_stdout(run, &n);
		printf("%s, and it printed: %.*s", value ? value : "no JSON", (int)n,
			(const char *)out);
	}
	cloche_run_free(run);
	cloche_sandbox_free(sb);
	return value ? 0 : 1;
}
