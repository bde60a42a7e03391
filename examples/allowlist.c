/* SPDX-License-Identifier: Apache-2.0 */
/* What would the gateway decide, and what would have to change? */
#include <cloche/allowlist.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char yaml[] = "url_prefixes:\n"
			   "  - host: api.github.com\n"
			   "    path: /repos/acme/*\n"
			   "    methods: [GET]\n";

static void on_preset(const char *name, const char *text, void *user)
{
	printf("preset %s: %zu bytes\n", name, strlen(text));
}

int main(void)
{
	static const char *const requests[][2] = {
		{"GET", "https://registry.npmjs.org/left-pad"},
		{"GET", "https://api.github.com/repos/acme/rocket"},
		{"POST", "https://api.github.com/repos/acme/rocket/issues"},
		{"GET", "https://example.com/"},
	};
	cloche_allowlist *list = cloche_allowlist_new();
	cloche_err err = CLOCHE_ERR_INIT;
	cloche_verdict v;
	char *json;

	if (!list || cloche_allowlist_add_text(list, "example", yaml, sizeof(yaml) - 1, &err) < 0 ||
		cloche_allowlist_add_preset(list, "npm", &err) < 0 ||
		cloche_preset_list(on_preset, NULL, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	for (int i = 0; i < 4; i++) {
		if (cloche_allowlist_check(list, requests[i][0], requests[i][1], &v, &err) < 0)
			return 1;
		printf("%-7s %s %s: %s\n", v.allowed ? "allowed" : "blocked", requests[i][0],
			requests[i][1], v.explanation);
		if (v.suggestion[0])
			printf("to allow it:\n%s", v.suggestion);
	}
	if (cloche_allowlist_json(list, &json, &err) == 0) {
		puts(json);
		free(json);
	}
	cloche_allowlist_free(list);
	return 0;
}
