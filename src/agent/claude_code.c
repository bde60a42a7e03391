/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/driver.h"
#include "base/strv.h"

#include <stdio.h>

/*
 * Theory of operation
 *
 * The client keeps its sessions in ~/.claude and more state in ~/.claude.json beside it. With
 * CLAUDE_CONFIG_DIR both are inside the one directory, which is what an execution context keeps as
 * claude/, so nothing is lost between two runs.
 *
 * CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC leaves the API itself as the only host that the client
 * speaks to. Background tasks are off because print mode ends with the turn and would kill them.
 * IS_SANDBOX lets root skip the permission prompts, which nobody could answer.
 */

static const char *const api_hosts[] = {"api.anthropic.com", NULL};

static const char *const key_headers[] = {"x-api-key", "authorization", NULL};
static const struct agent_secret api_key = {
	.env = "ANTHROPIC_API_KEY",
	.hosts = api_hosts,
	.headers = key_headers,
};

static const char *const token_headers[] = {"authorization", NULL};
static const struct agent_secret oauth_token = {
	.env = "CLAUDE_CODE_OAUTH_TOKEN",
	.hosts = api_hosts,
	.headers = token_headers,
};

static const struct agent_env environment[] = {
	{"IS_SANDBOX", "1", false},
	{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1", false},
	{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1", false},
	{"DISABLE_AUTOUPDATER", "1", false},
	{"CLAUDE_CONFIG_DIR", ".claude", true},
	{NULL, NULL, false},
};

/* The client prefers a token to a key, and a configured base URL to the vendor's, so the variables
 * of the other driver must not be set. */
static const char *const withheld_with_key[] = {"CLAUDE_CODE_OAUTH_TOKEN", NULL};
static const char *const withheld_with_token[] = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
	"CLAUDE_API_KEY", "ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL", NULL};

/* Refuse a value that the client's own parser would take for an option. */
static int add_word(char ***argv, const char *option, const char *value, struct cloche_err *err)
{
	if (!value)
		return 0;
	if (value[0] == '-' || value[0] == '\0')
		return err_set(err, E_USAGE, "%s: \"%s\" is not a usable value", option, value);
	return strv_add(argv, str_from(option)) < 0 || strv_add(argv, str_from(value)) < 0
		       ? err_nomem(err)
		       : 0;
}

/* A text may begin with anything, so it is joined to its option. */
static int add_text(char ***argv, const char *option, const char *text, struct cloche_err *err)
{
	char *joined;

	if (!text)
		return 0;
	return asprintf(&joined, "%s=%s", option, text) < 0 || strv_take(argv, joined) < 0
		       ? err_nomem(err)
		       : 0;
}

static int build_argv(
	const struct agent_request *rq, const char *program, char ***ret, struct cloche_err *err)
{
	/* Current clients take "-" as the first line of the prompt; those for which the order was
	 * defined take it as standard input. It does no harm. */
	static const char *const fixed[] = {"-p", "-", "--dangerously-skip-permissions",
		"--output-format", "stream-json", "--verbose"};
	char turns[16];
	int r = strv_add(ret, str_from(program)) < 0 ? err_nomem(err) : 0;

	if (r == 0)
		r = add_word(ret, "--resume", rq->resume, err);
	if (r == 0)
		r = add_word(ret, "--model", rq->model ? rq->model : AGENT_MODEL_DEFAULT, err);
	if (r == 0)
		r = add_word(ret, "--effort", rq->effort, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fixed); i++)
		r = strv_add(ret, str_from(fixed[i])) < 0 ? err_nomem(err) : 0;
	if (r == 0 && rq->max_turns > 0) {
		snprintf(turns, sizeof(turns), "%u", rq->max_turns);
		r = add_word(ret, "--max-turns", turns, err);
	}
	return r < 0 ? r : add_text(ret, "--system-prompt", rq->system_prompt, err);
}

const struct agent_driver agent_claude_code = {
	.name = "claude-code",
	.secret = &api_key,
	.allow = api_hosts,
	.env = environment,
	.env_withheld = withheld_with_key,
	.state_dir = "claude",
	.state_home = ".claude",
	.build_argv = build_argv,
	.find = claude_code_find,
};

const struct agent_driver agent_claude_subscription = {
	.name = "claude-subscription",
	.secret = &oauth_token,
	.allow = api_hosts,
	.env = environment,
	.env_withheld = withheld_with_token,
	.state_dir = "claude",
	.state_home = ".claude",
	.build_argv = build_argv,
	.find = claude_code_find,
};
