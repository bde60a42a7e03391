/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The one list of providers, by name. A provider that is part of the supervisor is a row of
 * PROVIDERS, and its struct provider is called NAME_provider. Every other one is a program,
 * cloche-provider-NAME (docs/design/provider-protocol.md); PROVIDER_PROGRAMS lists those that come
 * with cloche. */

#include "base/err.h"
#include <stdbool.h>

#define PROVIDERS(F) F(native) F(landlock) F(subprocess)
#define PROVIDER_PROGRAMS(F)                                                                       \
	F(podman) F(docker) F(nerdctl) F(ssh) F(kubernetes) F(e2b) F(cloudflare)

/* "auto", but no room at all if none of those works (--allow-unsandboxed). */
#define PROVIDER_AUTO_OR_NONE "auto+subprocess"
/* The provider that does not isolate anything. */
#define PROVIDER_UNSANDBOXED "subprocess"
/* The provider whose walls are Landlock and filters alone. */
#define PROVIDER_LANDLOCK "landlock"

#define PROVIDERS_OR_(name) " or " #name
#define PROVIDERS_TEXT                                                                             \
	"auto or native" PROVIDER_PROGRAMS(PROVIDERS_OR_) " or " PROVIDER_LANDLOCK                 \
							  " or " PROVIDER_UNSANDBOXED

/* The prefix of the name of a provider's program. */
#define PROVIDER_PROGRAM "cloche-provider-"

/* Return the i-th provider's name, or NULL after the last. */
const char *provider_name_at(size_t i);
/* The same for those of which "auto" means the first that works, in that order. */
const char *provider_auto_at(size_t i);
bool provider_is_auto(const char *name);

/* Return whether the provider of that name makes a room with files and paths of its own. */
bool provider_makes_room(const char *name);
/* Return how results name what the provider of that name gives: "sandbox", "landlock" or "none". */
const char *provider_isolation(const char *name);

/* Return whether the program of that name asks a service over HTTPS (program_env_add_service()). */
bool provider_asks_service(const char *name);

/* Return whether the provider of that name makes its rooms on other machines alone. */
bool provider_is_elsewhere(const char *name);

/* Add the names of programs that do not come with cloche to a strv: those that are registered, then
 * those in the directories of $CLOCHE_PROVIDER_PATH, each once, and two dozen at most.
 * Return 0 or -ENOMEM. Any thread, but not while another one registers a name. */
_warn_unused_ int provider_names_add_others(char ***names);

/* Resolve a provider's name as the user gives it: "auto" stays, and an alias becomes the name that
 * it stands for. The name or absolute path of another program is returned as it is. *ret is static,
 * or `named` itself. Fail with E_USAGE and the list if the name is unknown. */
_warn_unused_ int provider_name_find(const char *named, const char **ret, struct cloche_err *err);

/* The same for a provider that will be used: a registered name becomes its program's path. */
_warn_unused_ int provider_name_choose(const char *name, const char **ret, struct cloche_err *err);

/* Let this name stand for a program (an absolute path) from here on, in this process. name: 1 to 32
 * of [a-z0-9-], and not a provider that is part of cloche. Both are copied. Not thread-safe. */
_warn_unused_ int provider_name_register(
	const char *name, const char *path, struct cloche_err *err);

/* Return the path of the program of that name (or the name itself if it is an absolute path): a
 * registered one, else one in the directory of cloche's programs, else one in the directories of
 * $CLOCHE_PROVIDER_PATH. A heap string, or NULL with err set (E_NOT_FOUND). */
char *provider_program_find(const char *name, struct cloche_err *err);
