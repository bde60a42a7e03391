/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/limits.h"
#include "base/clock.h"
#include "http/h2.h"

const struct gateway_limits gateway_limits_default = {
	.connections = 1024,
	.accepts_per_sec = 4096,
	.h2_exchanges = 2 * H2_STREAMS_MAX,
	.first_byte_usec = 15 * USEC_PER_SEC,
	.hello_usec = 5 * USEC_PER_SEC,
	.handshake_usec = 15 * USEC_PER_SEC,
	.head_usec = 15 * USEC_PER_SEC,
	.idle_usec = 75 * USEC_PER_SEC,
	.linger_usec = 5 * USEC_PER_SEC,
	.body_window_usec = 30 * USEC_PER_SEC,
	.body_min_bytes = 30 * 1024,
	.stream_idle_usec = 3600 * USEC_PER_SEC,
	.linger_bytes = (size_t)1024 * 1024,
	.early_bytes = (size_t)16 * 1024 * 1024,
	.broker_high = (size_t)256 * 1024,
	.broker_low = (size_t)64 * 1024,
	.broker_full = (size_t)1024 * 1024,
	.unread = (size_t)96 * 1024 * 1024,
	.unsent_high = (size_t)64 * 1024,
	.unsent_low = (size_t)16 * 1024,
	.leaves = 512,
	.names = 8192,
	.events_per_sec = 200,
	.dns_per_sec = 2000,
	.dns_log_every_usec = 60 * USEC_PER_SEC,
	.dns_log_names = 1024,
};
