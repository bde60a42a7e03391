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
	const cloche_result *end;
	cloche_code c = CLOCHE_CODE_INIT;
	size_t n;

	c.runtime = "node";
	c.kind = CLOCHE_CODE_EXPRESSION;
	c.text = code;
	c.length = strlen(code);
	if (!sb || cloche_run_new_code(sb, &c, &run, &err) < 0 ||
		cloche_run_execute(run, &err) < 0) {
		fprintf(stderr, "%s\n%s\n", err.message, err.hint);
	} else {
		end = cloche_run_result(run);
		value = cloche_code_result(run, 0, "json", &n, NULL);
		printf("%s, and it printed: %.*s", value ? value : "no JSON",
			(int)end->stdout_length, (const char *)end->stdout_data);
	}
	cloche_run_free(run);
	cloche_sandbox_free(sb);
	return value ? 0 : 1;
}
