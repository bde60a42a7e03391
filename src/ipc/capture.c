/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/capture.h"

MESSAGE_TABLE(capture_connection, CAPTURE_CONNECTION_FIELDS, NULL);
MESSAGE_TABLE(capture_asked, CAPTURE_ASKED_FIELDS, NULL);
