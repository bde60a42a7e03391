/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The one list of providers, by name. A new provider is a row of PROVIDERS, whose struct provider
 * is called NAME_provider. */

#include "base/err.h"
#include <stdbool.h>

/* Those of this version. "auto" means the first. */
#define PROVIDERS(F) F(native)

#define PROVIDERS_OR_(name) " or " #name
/* "auto or native" */
#define PROVIDERS_TEXT "auto" PROVIDERS(PROVIDERS_OR_)

/* The i-th provider's name, NULL behind the last. */
const char *provider_name_at(size_t i);

/* What a person calls a provider: "auto" stays, and an alias becomes the name that it stands for.
 * The answer is static. An unknown name is E_USAGE, with the list; one that other versions have
 * is none. */
_warn_unused_ int provider_name_find(const char *named, const char **ret, struct cloche_err *err);

/* The provider that such a name means here: E_UNSUPPORTED if this version lacks it. */
_warn_unused_ int provider_name_choose(const char *name, const char **ret, struct cloche_err *err);
