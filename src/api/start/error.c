/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include <cloche/error.h>
#include <cloche/version.h>

const char *cloche_error_text(int code)
{
	switch (code < 0 ? -code : code) {
	case CLOCHE_OK:
		return "success";
#define CLOCHE_ERROR(name, number, text, exit_status)                                              \
	case number:                                                                               \
		return text;
#include <cloche/errors.def>
#undef CLOCHE_ERROR
	default:
		return "unknown error";
	}
}

int cloche_error_exit_status(int code)
{
	switch (code < 0 ? -code : code) {
	case CLOCHE_OK:
		return 0;
#define CLOCHE_ERROR(name, number, text, exit_status)                                              \
	case number:                                                                               \
		return exit_status;
#include <cloche/errors.def>
#undef CLOCHE_ERROR
	default:
		return 125;
	}
}

const char *cloche_version(void)
{
	return CLOCHE_VERSION;
}
