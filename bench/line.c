/* SPDX-License-Identifier: Apache-2.0 */
/* A long line within one network namespace: what is sent to 10.9.0.2 comes back as sent from there
 * to 10.9.0.1 half a round trip later, and so do the answers. The kernel's TCP runs over it, as
 * over a real line; a checksum does not change if the addresses change places. Nothing is lost:
 * what exceeds the rate waits.
 *
 * usage: line MILLISECONDS MEGABITS    a round trip; a second in each direction. Prints "ready". */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PACKET = 70000, WAITING = 1 << 15, VNET = sizeof(struct virtio_net_hdr) };

/* One direction. */
struct way {
	uint64_t free_at; /* nanoseconds: what was sent before has left */
	unsigned head, tail;
	struct waiting {
		uint64_t due;
		size_t n;
		char *p;
	} ring[WAITING];
};

static struct way ways[2];

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void set(int s, unsigned long what, struct ifreq *r)
{
	if (ioctl(s, what, r) < 0)
		err(1, "setting up the device");
}

static struct in_addr *addr_of(struct ifreq *r)
{
	return &((struct sockaddr_in *)&r->ifr_addr)->sin_addr;
}

static char *memdup(const char *p, size_t n)
{
	char *copy = malloc(n);

	if (!copy)
		err(1, "memory");
	return memcpy(copy, p, n);
}

static int make_device(void)
{
	struct ifreq r = {.ifr_name = "line", .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
	int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK), s = socket(AF_INET, SOCK_DGRAM, 0);

	if (tun < 0 || s < 0)
		err(1, "/dev/net/tun");
	set(tun, TUNSETIFF, &r);
	if (ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) < 0)
		err(1, "TUNSETOFFLOAD");
	r.ifr_addr.sa_family = AF_INET;
	addr_of(&r)->s_addr = htonl(0x0a090001);
	set(s, SIOCSIFADDR, &r);
	addr_of(&r)->s_addr = htonl(0xffffff00);
	set(s, SIOCSIFNETMASK, &r);
	r.ifr_qlen = 100000;
	set(s, SIOCSIFTXQLEN, &r);
	set(s, SIOCGIFFLAGS, &r);
	r.ifr_flags |= IFF_UP;
	set(s, SIOCSIFFLAGS, &r);
	close(s);
	return tun;
}

/* Take a packet off the device. Return whether there was one. */
static bool take(int tun, uint64_t half, double ns_per_byte)
{
	static char b[PACKET];
	ssize_t n = read(tun, b, sizeof(b));
	struct ip *ip = (struct ip *)(b + VNET);
	struct in_addr from = ip->ip_src;
	uint64_t at = now();
	struct way *w;

	if (n < (ssize_t)(VNET + sizeof(*ip)))
		return false;
	/* A server's port is below those that the kernel chooses. */
	w = &ways[((unsigned char)b[VNET + 4 * ip->ip_hl] << 8) >= 32768];
	if (ip->ip_v != 4 || w->head - w->tail == WAITING)
		return true;
	w->free_at = (w->free_at > at ? w->free_at : at) + (uint64_t)((double)n * ns_per_byte);
	ip->ip_src = ip->ip_dst;
	ip->ip_dst = from;
	w->ring[w->head % WAITING] =
		(struct waiting){w->free_at + half, (size_t)n, memdup(b, (size_t)n)};
	w->head++;
	return true;
}

/* Pass on what is due. Return when the next packet is. */
static uint64_t pass_on(int tun, struct way *w)
{
	for (; w->head != w->tail; w->tail++) {
		struct waiting *at = &w->ring[w->tail % WAITING];

		if (at->due > now())
			return at->due;
		(void)!write(tun, at->p, at->n);
		free(at->p);
	}
	return UINT64_MAX;
}

int main(int argc, char **argv)
{
	uint64_t half = argc == 3 ? strtoull(argv[1], NULL, 10) * 500000 : 0;
	double ns_per_byte = argc == 3 ? 8000.0 / strtod(argv[2], NULL) : 0;
	int tun = make_device();

	printf("ready\n");
	fflush(stdout);
	for (;;) {
		struct pollfd p = {tun, POLLIN, 0};
		uint64_t one = pass_on(tun, &ways[0]), two = pass_on(tun, &ways[1]), at = now();
		uint64_t due = one < two ? one : two, left = due > at ? due - at : 0;

		left = left < 999999999 ? left : 999999999;
		(void)ppoll(&p, 1, &(struct timespec){0, (long)left}, NULL);
		for (int i = 0; i < 64 && take(tun, half, ns_per_byte); i++)
			continue;
	}
}
