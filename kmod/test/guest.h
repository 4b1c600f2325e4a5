/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of the module share: each test is a process of its own, so that whatever it leaves open is closed by its
 * end, as a program's is.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpunvme_uapi.h"

#define PAGE 4096UL
#define MIB (1UL << 20)

/* Ends the test if it does not hold; errno is printed, too. */
#define CHECK(condition, ...)                                                                                          \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                             \
	} while (0)

/* The call fails, and with this error. */
#define REFUSED(error, call) CHECK((call) == -1 && errno == (error), "wanted %s", #error)

void fail(const char *file, int line, const char *condition, const char *format, ...)
	__attribute__((noreturn, format(printf, 4, 5)));

/* Says that the test cannot run here, and ends it. */
void skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Runs the test; prints its line. True unless it failed. */
bool run_test(const char *name, void (*test)(void));

/* ---- files of the kernel */

/* The first line; text is long enough for 256 characters. */
void read_line(const char *path, char *text);
/* 0, or -1 and errno. */
int write_line(const char *path, const char *text);

/* ---- the controller */

extern const char *function; /* DDDD:BB:DD.F */
extern bool translated;	     /* whether there is an IOMMU */

void node_path(const char *of, char *path);
/* Both: the function has the driver, or has none, when they return. */
void bind_function(const char *of);
void unbind_function(const char *of);
/* The kernel forgets the function, as when it is pulled out; and finds it again, for the module. */
void remove_function(const char *of);
void return_function(const char *of);
/* Whether the function may reach memory. */
bool bus_master(const char *of);

/* A file descriptor of the controller; the test ends if there is none. */
int open_node(void);
struct gpunvme_info info_of(int fd);
/* BAR0 */
volatile uint32_t *map_registers(int fd);

/* Memory of this process, touched; the test ends if there is none. */
void *memory(size_t bytes);

/* ---- what the kernel has pinned */

/* Pages (references) of all processes now. */
long pinned_pages(void);
/* dma-bufs that somebody has; 0 without debugfs. */
long dma_bufs(void);
/* A number of a process's status file, in KiB. */
long status_kib(const char *field);

#endif
