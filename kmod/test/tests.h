/* SPDX-License-Identifier: GPL-2.0 */
/* The tests, by what they are about. */
#ifndef TESTS_H
#define TESTS_H

#include "guest.h"

/* What else is in the guest: another controller; a function with memory for registers, which is said to be a controller. */
#define OTHER "0000:02:00.0"
#define STAND_IN "0000:00:07.0"
/* Behind an IOMMU: a controller whose group has other functions. */
#define SHARED "0000:00:1f.5"

struct test {
	const char *name;
	void (*run)(void);
};

/* Who may do what with the file, and registers. */
extern const struct test access_tests[];
extern const int access_test_count;
/* Pinned memory and dma-bufs: what is refused, what is said, and that the addresses are right. */
extern const struct test range_tests[];
extern const int range_test_count;
/* Programs that are killed, resets, and controllers that go. */
extern const struct test end_tests[];
extern const int end_test_count;

/* Calls during which the kernel has no memory, or cannot reach the program's. */
extern const struct test fault_tests[];
extern const int fault_test_count;

/* Where an IOMMU isolates nothing: interrupts are not remapped, and memory is copied. */
extern const struct test unsafe_tests[];
extern const int unsafe_test_count;

/* Lets root open controllers that no IOMMU isolates, or not. */
void allow_unsafe(bool allowed);

/* Pins, and returns the answer; the test ends if it is refused. */
struct gpunvme_pin pin(int fd, void *address, uint64_t bytes, struct gpunvme_run *runs, uint32_t most_runs);
/* Imports, likewise. */
struct gpunvme_import import(int fd, int dmabuf, struct gpunvme_run *runs, uint32_t most_runs);
int release_range(int fd, uint64_t handle);

#endif
