/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* File descriptors: automatic close, close-on-exec from the start, complete reads and writes. */

#include "base/buf.h"
#include "base/err.h"
#include "base/macro.h"
#include <linux/limits.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Close fd if it is not negative, keep errno, return -1: `fd = fd_close(fd);` */
int fd_close(int fd);

/* The same for a descriptor that came from a room: close() of a socket may block for as long as its
 * creator has set with SO_LINGER. Close every received descriptor with this function. */
int fd_close_foreign(int fd);

static inline void fd_closep(int *fd)
{
	*fd = fd_close(*fd);
}
#define _cleanup_fd_ _cleanup_(fd_closep)

/* Take fd and return it, or a copy above 2 if it is 0, 1 or 2 (a host may have closed those on
 * purpose). Return -errno if that fails or if fd is negative. */
_warn_unused_ int fd_lift(int fd);

/* The functions below return 0 or -errno, unless noted. */
_warn_unused_ int fd_write_all(int fd, const void *p, size_t n);
_warn_unused_ int fd_set_nonblock(int fd, bool on);
_warn_unused_ int fd_set_cloexec(int fd, bool on);
/* Store the path where an open file or directory lies now. */
_warn_unused_ int fd_path(int fd, char ret[PATH_MAX]);
/* Open again what a descriptor of O_PATH has. Return the new one (close-on-exec) or -errno. */
_warn_unused_ int fd_open_again(int fd, int flags);
/* fchmod() that also takes a descriptor of O_PATH, for which the file need not be readable. */
_warn_unused_ int fd_chmod(int fd, mode_t mode);
/* pipe2 with O_CLOEXEC; neither end is 0, 1 or 2. */
_warn_unused_ int fd_pipe(int ret_fds[2]);
/* Make a connected pair of unix sockets of type SOCK_STREAM or SOCK_SEQPACKET, close-on-exec;
 * neither is 0, 1 or 2. */
_warn_unused_ int fd_socketpair(int type, int ret_fds[2]);
/* Read into b to the end of file; -E2BIG if the content exceeds b's maximum. */
_warn_unused_ int fd_read_to_end(int fd, struct buf *b);
/* Read a whole regular file (at most max bytes of ret) below dirfd (or AT_FDCWD) into ret, which
 * the caller initialised. Symbolic links are followed. */
_warn_unused_ int fd_read_file(
	int dirfd, const char *path, struct buf *ret, struct cloche_err *err);
/* Get the line at the front of b, which holds a file from offset `at` on; read more of the file, up
 * to offset `end`, if needed. Return 1 with the line, without its newline, in *ret; 0 if no whole
 * line follows (b then has the rest); -E2BIG if the line exceeds b's maximum; or another -errno. */
_warn_unused_ int fd_next_line(int fd, struct buf *b, uint64_t at, uint64_t end, struct str *ret);
/* Open /dev/null for each standard descriptor that is closed, so that no later open() gets its
 * number. */
_warn_unused_ int fd_sanitize_stdio(void);
/* Make fd, a standard descriptor, write-only: a terminal that is open for reading too is reopened
 * without the right to read what the user types. If that fails, fd becomes /dev/null; a socket
 * stays. Return 0 or -errno. */
_warn_unused_ int fd_only_write(int fd);
/* For a TCP socket whose peer has to send more before there is an answer: acknowledge now what has
 * arrived. The kernel would wait up to 40 ms for data to carry the acknowledgement, and a peer that
 * sends small pieces (Nagle, RFC 9293 3.7.4) waits for it before the next one. */
void fd_acknowledge(int fd);
/* For a TCP socket: send small pieces without waiting for the peer's acknowledgement. */
void fd_send_at_once(int fd);
/* For a TCP socket: set whether closing it sends a reset. */
void fd_set_reset(int fd, bool reset);
/* Raise the limit of open descriptors to the hard limit. */
void fd_raise_limit(void);
/* Return whether it is a connected end of a unix stream, as socketpair(2) makes them. */
bool fd_is_stream_end(int fd);
/* For a unix socket: ask the kernel not to carry descriptors from the other end (Linux 6.16). */
void fd_refuse_attached(int fd);
/* Memory for the control data of a message that carries descriptors. */
enum { FD_ATTACHED_MAX = 16 };
union fd_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * FD_ATTACHED_MAX)];
};
/* Make msg carry n descriptors (borrowed); control has to live as long as msg. */
void fd_attach(struct msghdr *msg, union fd_control *control, const int *fds, unsigned n);
/* Take the descriptors that came with msg: the first max of them into ret; close the others. Return
 * how many there were. */
unsigned fd_detach(struct msghdr *msg, int *ret, unsigned max);
/* Return the control message after cm, or NULL. (As CMSG_NXTHDR, whose type conversions differ
 * between C libraries.) */
struct cmsghdr *fd_next_control(const struct msghdr *msg, struct cmsghdr *cm);
/* The system call, which some C libraries lack. Return 0, or -1 with errno set. */
int fd_close_range(unsigned first, unsigned last, unsigned flags);
/* Make 0, 1 and 2 the null device, and 3 a copy of fd; none of these is closed at exec. */
_warn_unused_ int fd_make_first(int fd);
/* Close every descriptor from `first` up except the keep_n ones in keep, which is sorted in
 * ascending order. */
_warn_unused_ int fd_close_from(int first, const int *keep, size_t keep_n);
