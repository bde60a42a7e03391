/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* File descriptors: closed by cleanup, close-on-exec from birth, whole reads and writes. */

#include "base/buf.h"
#include "base/macro.h"
#include <sys/socket.h>
#include <sys/types.h>

/* Closes fd if it is not negative, keeps errno, returns -1: `fd = fd_close(fd);` */
int fd_close(int fd);

/* The same for one that came from the inside: close() of a socket waits for as long as its maker
 * has said (SO_LINGER). Every descriptor that is received is closed by this. */
int fd_close_foreign(int fd);

static inline void fd_closep(int *fd)
{
	*fd = fd_close(*fd);
}
#define _cleanup_fd_ _cleanup_(fd_closep)

/* Takes fd and returns it, or a copy if it is 0, 1 or 2, which a host may have closed for a reason.
 * -errno if that fails, or if fd is negative. */
_warn_unused_ int fd_lift(int fd);

/* All return 0 or -errno. */
_warn_unused_ int fd_write_all(int fd, const void *p, size_t n);
_warn_unused_ int fd_set_nonblock(int fd, bool on);
_warn_unused_ int fd_set_cloexec(int fd, bool on);
/* pipe2 with O_CLOEXEC. */
_warn_unused_ int fd_pipe(int ret_fds[2]);
/* A connected pair of unix sockets of type SOCK_STREAM or SOCK_SEQPACKET, close-on-exec. */
_warn_unused_ int fd_socketpair(int type, int ret_fds[2]);
/* Reads to the end of file into b; -E2BIG when b's maximum is passed. */
_warn_unused_ int fd_read_to_end(int fd, struct buf *b);
/* Opens the three standard descriptors on /dev/null if they are closed, so that no later
 * open() lands on them. */
_warn_unused_ int fd_sanitize_stdio(void);
/* Makes fd, a standard descriptor, one that only writes: a terminal that came with both rights is
 * opened again without the right to read what the person types. What cannot be opened again becomes
 * /dev/null; a socket stays. Returns 0 or negative. */
_warn_unused_ int fd_only_write(int fd);
/* For a TCP socket whose peer has to send more before there is an answer: acknowledges now what has
 * come. The kernel would wait up to 40 ms for bytes that carry it, and a peer that sends small
 * pieces (Nagle, RFC 9293 3.7.4) waits for it with the next one. */
void fd_acknowledge(int fd);
/* For a TCP socket: small pieces never wait for the other end's acknowledgement. */
void fd_send_at_once(int fd);
/* For a TCP socket: whether closing it is a reset. */
void fd_set_reset(int fd, bool reset);
/* Lets this process have as many descriptors as it may ask for. */
void fd_raise_limit(void);
/* The control message behind cm, or NULL. (What CMSG_NXTHDR does, whose conversions differ from one
 * C library to the other.) */
struct cmsghdr *fd_next_control(const struct msghdr *msg, struct cmsghdr *cm);
/* The system call, which some C libraries lack: 0, or -1 with errno set. */
int fd_close_range(unsigned first, unsigned last, unsigned flags);
/* Closes every descriptor from `first` up except those in keep (keep_n of them, sorted upwards). */
_warn_unused_ int fd_close_from(int first, const int *keep, size_t keep_n);
