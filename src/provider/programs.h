/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A provider that is a program (provider/program): everything except its name and path. */

#include "provider/provider.h"

extern const struct provider program_provider;
