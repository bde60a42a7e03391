/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The one list of providers, by name. One that is part of the supervisor is a row of PROVIDERS, and
 * its struct provider is called NAME_provider; every other one is a program, cloche-provider-NAME
 * (docs/design/provider-protocol.md), and PROVIDER_PROGRAMS has those that come with cloche. */

#include "base/err.h"
#include <stdbool.h>

#define PROVIDERS(F) F(native) F(subprocess)
#define PROVIDER_PROGRAMS(F) F(podman) F(docker) F(nerdctl)
/* "auto" means the first of these that works: so many, in that order. */
enum { PROVIDERS_AUTO = 3 };

/* "auto", and if none of those works no room at all (--allow-unsandboxed). */
#define PROVIDER_AUTO_OR_NONE "auto+subprocess"
/* The one whose sandboxes are no sandboxes. */
#define PROVIDER_UNSANDBOXED "subprocess"

#define PROVIDERS_OR_(name) " or " #name
#define PROVIDERS_TEXT "auto or native" PROVIDER_PROGRAMS(PROVIDERS_OR_) " or " PROVIDER_UNSANDBOXED

/* What the name of a provider's program begins with. */
#define PROVIDER_PROGRAM "cloche-provider-"

/* The i-th provider's name, NULL behind the last. */
const char *provider_name_at(size_t i);

/* What a person calls a provider: "auto" stays, and an alias becomes the name that it stands for.
 * Also the name or the absolute path of somebody else's program, as it is. The answer is static, or
 * `named` itself. An unknown name is E_USAGE, with the list; one that other versions have is none.
 */
_warn_unused_ int provider_name_find(const char *named, const char **ret, struct cloche_err *err);

/* The same for one that shall be used: E_UNSUPPORTED if this version lacks it. */
_warn_unused_ int provider_name_choose(const char *name, const char **ret, struct cloche_err *err);

/* Has that name mean a program from here on (an absolute path), in this process. name: 1 to 32 of
 * [a-z0-9-]; not that of a provider which is part of cloche. Both are copied. Not thread-safe. */
_warn_unused_ int provider_name_register(
	const char *name, const char *path, struct cloche_err *err);

/* The path of the program of that name (or itself, if it is an absolute path): registered, else
 * where cloche's programs are, else in the directories of $CLOCHE_PROVIDER_PATH. A heap string, or
 * NULL with err set (E_NOT_FOUND). */
char *provider_program_find(const char *name, struct cloche_err *err);
