/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tables of all messages of this folder, for the test and the fuzzer of tables. */

#include "files/protocol.h"

static const message_fn files_messages[] = {files_error_message, files_request_message,
	files_small_message, files_ready_message, files_moved_message, files_stat_message,
	files_entry_message, files_target_message, files_event_message, NULL};
