/* SPDX-License-Identifier: Apache-2.0 */
/* Tries: load a program or a map into the kernel
 * Wall: seccomp: bpf is refused
 * Behind it: capabilities: BPF takes some in the first user namespace */
#include "attempt.h"

#include <linux/bpf.h>

int main(void)
{
	struct bpf_insn exit_0[] = {{.code = 0xb7}, {.code = 0x95}};
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1};
	union bpf_attr prog = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insn_cnt = 2,
		.insns = (uint64_t)(uintptr_t)exit_0,
		.license = (uint64_t)(uintptr_t) "GPL"};

	REFUSED(syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map)));
	REFUSED(syscall(SYS_bpf, BPF_PROG_LOAD, &prog, sizeof(prog)));
	return verdict();
}
