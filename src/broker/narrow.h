/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Give up privileges, in two stages. */

#include "base/err.h"

_warn_unused_ int broker_narrow_first(struct cloche_err *err);
_warn_unused_ int broker_narrow_last(struct cloche_err *err);
/* Used instead of broker_narrow_last() if a recording answers everything and nothing is dialled. */
_warn_unused_ int broker_narrow_offline(struct cloche_err *err);
