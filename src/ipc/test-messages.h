/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tables of all messages of this folder, for the test and the fuzzer of tables. */

#include "ipc/capture.h"
#include "ipc/control.h"
#include "ipc/helper.h"
#include "ipc/netconf.h"
#include "ipc/roomctl.h"
#include "ipc/sshleg.h"

static const message_fn ipc_messages[] = {roomctl_exec_message, roomctl_signal_message,
	roomctl_resize_message, roomctl_started_message, roomctl_failed_message,
	roomctl_exited_message, roomctl_stopped_message, helper_listeners_message,
	helper_counted_message, helper_replaced_message, sshleg_request_message,
	sshleg_answer_message, helper_who_message, helper_owner_message, helper_login_open_message,
	helper_login_message, helper_login_end_message, ctl_start_message, ctl_attach_message,
	ctl_exec_message, ctl_signal_message, ctl_resize_message, ctl_stop_message,
	ctl_join_message, ctl_forward_message, ctl_warning_message, ctl_started_message,
	ctl_exec_started_message, ctl_exec_failed_message, ctl_exec_exited_message,
	ctl_exec_stopped_message, ctl_ended_message, ctl_stats_now_message, ctl_refused_message,
	netconf_allowlist_message, netconf_secret_message, netconf_github_app_message,
	netconf_login_message, netconf_connect_to_message, netconf_proxy_message,
	netconf_log_message, netconf_record_message, netconf_counts_message,
	netconf_replaced_message, netconf_question_message, netconf_answer_message,
	netconf_withdrawn_message, net_client_message, net_hello_message, net_mint_message,
	net_cert_message, net_open_message, net_response_message, net_trailers_message,
	net_end_of_stream_message, net_credit_message, net_event_message, net_ports_message,
	recording_begin_message, recording_tree_message, recording_hide_message,
	recording_event_message, recording_ended_message, recording_done_message,
	recording_trouble_message, cloche_err_message, net_owner_message,
	capture_connection_message, capture_asked_message, NULL};
