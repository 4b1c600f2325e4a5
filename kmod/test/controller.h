/* SPDX-License-Identifier: GPL-2.0 */
/* As much of a driver as shows that bus addresses are right: the controller identifies itself into memory. */
#ifndef CONTROLLER_H
#define CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

struct controller {
	volatile uint32_t *registers;
	uint8_t *queues;	/* a page of submissions, one of completions */
	uint32_t tail;		/* commands so far, at most 63 */
};

/* queues: two pages, at these bus addresses. Ends the test if the controller does not start. */
void start_controller(struct controller *c, volatile uint32_t *registers, void *queues, uint64_t submissions,
		      uint64_t completions);
/* A page of what it says of itself, to this bus address. False if it said no, or nothing for some seconds. */
bool identify(struct controller *c, uint64_t to);

#endif
