/* SPDX-License-Identifier: Apache-2.0 */
/* What the service's client has in hand: the target of its request, up to the first line end, and
 * its body. What comes out of them can be executed, and an answer can be read as JSON, whatever was
 * printed. fuzz-deps: farserve_ask base */
#include "base/json.h"
#include "base/strv.h"
#include "farserve/ask.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_session(struct str target)
{
	char name[ASK_NAME_MAX + 1];

	if (ask_session(target, name) &&
		(strlen(name) > ASK_NAME_MAX || strpbrk(name, "/%&=? \t\n")))
		abort();
	if (str_chr(ask_path(target), '?') < ask_path(target).n)
		abort();
}

static void check_ask(struct str body)
{
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct ask a;
	int r = ask_read(body, &a, &err);

	if (r < 0 && !err.message[0])
		abort();
	if (r == 0) {
		if (strv_count(a.argv) != 3 || !strv_env_get(a.env, "PATH") || a.timeout_ms < 1 ||
			a.timeout_ms > ASK_TIMEOUT_MAX_MS)
			abort();
		/* Only python takes a text that begins as an option does. */
		if (a.argv[2][0] == '-' && strcmp(a.argv[0], "python3") != 0)
			abort();
		for (char **v = a.env; *v; v++)
			if (!strchr(*v, '=') || **v == '=')
				abort();
	}
	ask_done(&a);
}

static void check_answer(struct str printed)
{
	struct answer a = {.out = printed,
		.err = str_prefix(printed, printed.n / 2),
		.timeout_ms = printed.n % 2,
		.isolation = "sandbox"};
	struct buf text = BUF_INIT(8 * printed.n + 4096);
	_cleanup_json_ json_t *root = NULL;

	if (answer_write(&text, &a) < 0 ||
		json_text_read(
			buf_str(&text), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &root, NULL) < 0 ||
		!json_is_string(json_object_get(root, "stdout")))
		abort();
	buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_make(data, size);

	check_session(str_next_line(&rest));
	check_ask(rest);
	check_answer(rest);
	return 0;
}
