/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a configuration: the project of the current directory, a mount, a variable, one host,
 * limits, a provider of one's own. Nothing is started here. */
#include <cloche/sandbox.h>
#include <stdio.h>

static void tell(const char *text, void *user)
{
	fprintf(stderr, "%s\n", text);
}

static void show(const cloche_setting *s, void *user)
{
	fprintf(stderr, "%s: %s (%s)\n", s->key, s->value, s->file ? s->file : "this program");
}

int main(void)
{
	cloche_sandbox *sb = cloche_sandbox_new();
	cloche_allowlist *list = cloche_allowlist_new();
	cloche_err err = CLOCHE_ERR_INIT;
	int r = -1;

	if (sb && list)
		r = cloche_allowlist_add_host(list, "registry.npmjs.org", &err);
	if (r == 0)
		r = cloche_sandbox_set_allowlist(sb, list, &err);
	if (sb)
		cloche_sandbox_on_setting(sb, show, NULL);
	if (r == 0)
		r = cloche_sandbox_settle(sb, "pull", &err);
	if (r == 0)
		r = cloche_sandbox_load_config(sb, NULL, &err);
	if (r == 0)
		r = cloche_sandbox_add_allowlist(sb, list, &err);
	if (r == 0)
		r = cloche_sandbox_use_project(sb, true, tell, NULL, &err);
	if (r == 0)
		r = cloche_sandbox_add_mount(sb, "/usr/share", "/data", true, &err);
	if (r == 0)
		r = cloche_sandbox_set(sb, "pull", "never", &err);
	cloche_sandbox_on_pull(sb, NULL, NULL);
	if (r == 0)
		r = cloche_sandbox_set_env(sb, "CI", "true", &err);
	if (r == 0)
		r = cloche_sandbox_set(sb, "memory", "512m", &err);
	if (r == 0)
		r = cloche_sandbox_set(sb, "timeout", "90s", &err);
	if (r == 0)
		r = cloche_provider_register("mine", "/bin/true", &err);
	if (r == 0)
		r = cloche_sandbox_set(sb, "provider", "mine", &err);
	printf("%s\n", r == 0 ? "configured" : err.message);
	cloche_allowlist_free(list);
	cloche_sandbox_free(sb);
	return r == 0 ? 0 : 1;
}
