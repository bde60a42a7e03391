/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tables of all messages of this folder, for the test and the fuzzer of tables. */

#include "far/protocol.h"

static const message_fn far_messages[] = {far_room_spec_message, far_exec_message, far_kill_message,
	far_kill_tree_message, far_files_message, far_made_message, far_connection_message,
	far_usage_message, far_over_message, farctl_begin_message, farctl_files_message,
	farctl_says_message, keeper_carry_message, far_check_message, far_probed_message, NULL};
