/* fuzz-deps: config */
/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a project's configuration: what it asks for, and then what it sets
 * (INV-CONSENT). A file that asks for nothing must set nothing that needs consent, and each line
 * that a person would be shown must be printable. */

#include "config/config.h"
#include "config/found.h"

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static void check_lines(const struct asks *a)
{
	for (size_t i = 0; i < a->n; i++)
		for (const char *c = a->lines[i]; *c; c++)
			expect(*c >= 0x20 && *c < 0x7f);
}

/* What a file that asked for nothing has made of an empty configuration. */
static void check_narrow(const cloche_sandbox *sb)
{
	expect(sb->mounts_n == 0 && !sb->tools && !sb->tool_path && !sb->opened);
	expect(!sb->allowlist && !sb->connect_to && !sb->published && !sb->upstream_dns);
	expect(!sb->secrets && !sb->named_secrets && !sb->redact);
	expect(sb->net == SANDBOX_NET_AUTO || sb->net == SANDBOX_NET_NONE);
	expect(!sb->nested && !sb->best_effort && !sb->user && !sb->place);
	expect(!sb->root_dir && !sb->image && !sb->kept_record);
	expect(!sb->upstream_ca && !sb->keep_changes && !sb->network_log);
	expect(sb->provider && strcmp(sb->provider, "auto") == 0);
}

/* Images are not pulled, and rules are not kept in place of what is asked. */
static cloche_sandbox *make_sandbox(void)
{
	cloche_sandbox *sb = cloche_sandbox_new();

	expect(sb && cloche_sandbox_settle(sb, "root", NULL) == 0);
	expect(cloche_sandbox_settle(sb, "pull", NULL) == 0);
	return sb;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct found found = {
		.fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), .dir = (char[]){""}};
	cloche_allowlist *rules = cloche_allowlist_new();
	cloche_sandbox *sb = make_sandbox();
	struct cloche_err err = CLOCHE_ERR_INIT;
	struct str text = str_make(data, size);
	struct asks asks = {0};
	bool asked;
	int r;

	expect(rules && found.fd >= 0);
	r = config_ask("f", text, &asks, rules, &err);
	expect(r == 0 || (err.code && err.message[0]));
	check_lines(&asks);
	asked = asks.n > 0 || cloche_allowlist_count(rules) > 0;
	if (r == 0 && config_read(sb, &found, "f", text, &err) < 0)
		expect(err.code && err.message[0]);
	if (r == 0 && !asked)
		check_narrow(sb);
	asks_done(&asks);
	cloche_allowlist_free(rules);
	cloche_sandbox_free(sb);
	close(found.fd);
	return 0;
}
