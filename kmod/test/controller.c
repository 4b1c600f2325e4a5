// SPDX-License-Identifier: GPL-2.0
/* NVMe base specification 2.0: registers in 3.1, queues in 3.3, Identify in 5.17. */
#define _GNU_SOURCE
#include "controller.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

#define AQA (0x24 / 4)
#define ASQ (0x28 / 4)
#define ACQ (0x30 / 4)
#define CC (0x14 / 4)
#define CSTS (0x1c / 4)
#define SQ0TDBL (0x1000 / 4)
#define ENTRIES 64
#define WAITS 5000 /* of 1 ms */

static bool wait_for_ready(volatile uint32_t *registers, uint32_t ready)
{
	for (int i = 0; i < WAITS && (registers[CSTS] & 1) != ready; i++)
		usleep(1000);
	return (registers[CSTS] & 1) == ready;
}

void start_controller(struct controller *c, volatile uint32_t *registers, void *queues, uint64_t submissions,
		      uint64_t completions)
{
	c->registers = registers;
	c->queues = queues;
	c->tail = 0;
	memset(queues, 0, 2 * PAGE);
	registers[CC] = 0;
	CHECK(wait_for_ready(registers, 0), "the controller does not stop: CSTS %x", registers[CSTS]);
	registers[AQA] = (ENTRIES - 1) << 16 | (ENTRIES - 1);
	registers[ASQ] = submissions;
	registers[ASQ + 1] = submissions >> 32;
	registers[ACQ] = completions;
	registers[ACQ + 1] = completions >> 32;
	/* Entries of 16 and 64 bytes. */
	registers[CC] = 4 << 20 | 6 << 16 | 1;
	CHECK(wait_for_ready(registers, 1), "the controller does not start: CSTS %x", registers[CSTS]);
}

bool identify(struct controller *c, uint64_t to)
{
	uint32_t *command = (uint32_t *)(c->queues + c->tail * 64);
	volatile uint32_t *completion = (volatile uint32_t *)(c->queues + PAGE + c->tail * 16);

	memset(command, 0, 64);
	command[0] = c->tail << 16 | 0x06;
	memcpy(&command[6], &to, sizeof(to));
	command[10] = 1; /* the controller */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	c->registers[SQ0TDBL] = ++c->tail;
	for (int i = 0; i < WAITS && !(completion[3] >> 16 & 1); i++)
		usleep(1000);
	return (completion[3] >> 16) == 1;
}
