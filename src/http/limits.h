/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Every limit of one HTTP message, in one place. */

#define HTTP_HEAD_MAX (64 * 1024) /* bytes of a whole head on the wire, line ends included */
#define HTTP_LINE_MAX (32 * 1024) /* bytes of one field line without its line end */
/* Pieces of a body that are smaller than HTTP_PIECE_MIN, except the last one, cost as much as large
 * ones. Limits of a connection: BURST of them at once, and RATE more each second. Chunks that came
 * together count as one. No stream of messages, tokens or keys comes near these limits. */
#define HTTP_PIECE_MIN 16
#define HTTP_PIECES_BURST 50000
#define HTTP_PIECES_RATE 10000
#define HTTP_TARGET_MAX (16 * 1024)   /* bytes of a request target */
#define HTTP_NAME_MAX 256             /* bytes of a field name */
#define HTTP_VALUE_MAX HTTP_LINE_MAX  /* bytes of a field value */
#define HTTP_FIELDS_MAX 128           /* fields of a head, or of a trailer section */
#define HTTP_METHOD_MAX 16            /* bytes of a method */
#define HTTP_REASON_MAX 512           /* bytes of a reason phrase */
#define HTTP_HOST_MAX 255             /* bytes of the host in an authority */
#define HTTP_TRAILERS_MAX (16 * 1024) /* bytes of a trailer section on the wire */
#define HTTP_INTERIM_MAX 16           /* 1xx answers before the final one */
/* Bytes of a head after edits: replaced values stay in the storage until it is cleared. */
#define HTTP_STORE_MAX (4 * HTTP_HEAD_MAX)
