// SPDX-License-Identifier: GPL-2.0
/* Calls during which something in the kernel fails: each allocation, and each copy from and to the program. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporters.h"
#include "tests.h"

#define VS (0x08 / 4)
#define DEBUGFS "/sys/kernel/debug/"
#define MOST_PLACES 1000
#define PAGES 64
#define MOST 64
static struct gpunvme_run runs[MOST];
static int switch_fd = -1;

/* The kernel injects faults into one thread; by default not where it may wait for memory, and it tells of each. */
static void allow_faults(void)
{
	static const char *const settings[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },	    { "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" }, { "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },	    { "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};
	char path[128];

	switch_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (switch_fd < 0)
		skip("this kernel injects no faults");
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		sprintf(path, DEBUGFS "%s", settings[i][0]);
		CHECK(write_line(path, settings[i][1]) == 0, "%s", path);
	}
}

/* From now on the thread's first place where something may fail is 1. */
static void fail_at(int place)
{
	char number[16];
	int length = sprintf(number, "%d", place);

	CHECK(pwrite(switch_fd, number, length, 0) == length, "fail-nth");
}

/* Whether it has failed there. Nothing fails any more. */
static bool has_failed(void)
{
	char number[16] = "";
	/* Both calls are such places, too. If one of them fails, the switch is off. */
	bool failed = pread(switch_fd, number, sizeof(number) - 1, 0) > 0 && atoi(number) == 0;

	(void)!pwrite(switch_fd, "0", 1, 0);
	return failed;
}

/* After a call that failed: nothing of it stays. Some faults do no harm, since the kernel has another way. */
static void check_nothing_stays(int fd, int place, long pinned)
{
	struct gpunvme_info info = info_of(fd);

	CHECK(!info.ranges && !info.bytes, "place %d: %u ranges of %llu bytes stay", place, info.ranges, info.bytes);
	CHECK(pinned_pages() == pinned, "place %d: %ld pages stay pinned", place, pinned_pages() - pinned);
}

/* Makes the call fail at each of its places in turn. */
static void fails_everywhere(int fd, unsigned long command, const void *argument, size_t bytes, uint64_t (*handle)(const void *))
{
	long pinned = pinned_pages();
	int place, refused = 0;
	char copy[64];

	for (place = 1; place < MOST_PLACES; place++) {
		int result, error;
		bool failed;

		memcpy(copy, argument, bytes);
		fail_at(place);
		result = ioctl(fd, command, copy);
		error = errno;
		failed = has_failed();
		if (result) {
			CHECK(failed, "it fails by itself with %d", error);
			CHECK(error == ENOMEM || error == EFAULT, "place %d: error %d", place, error);
			refused++;
		} else {
			CHECK(release_range(fd, handle(copy)) == 0, "place %d: release", place);
		}
		check_nothing_stays(fd, place, pinned);
		if (!failed)
			break;
	}
	CHECK(place < MOST_PLACES, "no end");
	CHECK(refused > 3, "it was refused at %d of %d places", refused, place);
}

static uint64_t handle_of_pin(const void *argument)
{
	return ((const struct gpunvme_pin *)argument)->handle;
}

static uint64_t handle_of_import(const void *argument)
{
	return ((const struct gpunvme_import *)argument)->handle;
}

static void a_pin_fails_as_a_whole(void)
{
	struct gpunvme_pin p = { .bytes = PAGES * PAGE, .runs = (uintptr_t)runs, .most_runs = MOST };
	int fd = open_node();

	allow_faults();
	p.address = (uintptr_t)memory(p.bytes);
	fails_everywhere(fd, GPUNVME_PIN, &p, sizeof(p), handle_of_pin);
}

static void an_import_fails_as_a_whole(void)
{
	struct gpunvme_import i = { .runs = (uintptr_t)runs, .most_runs = MOST };
	struct exported made;
	int fd = open_node();

	allow_faults();
	for (int n = 0; n < exporter_count; n++) {
		if (exporters[n].make(PAGES * PAGE, &made))
			skip("this kernel has no %s", exporters[n].name);
		i.fd = made.fd;
		fails_everywhere(fd, GPUNVME_IMPORT, &i, sizeof(i), handle_of_import);
	}
}

static void an_open_fails_as_a_whole(void)
{
	char path[64];
	int place, fd;
	bool failed = true;

	node_path(function, path);
	allow_faults();
	for (place = 1; failed; place++) {
		CHECK(place < MOST_PLACES, "no end");
		fail_at(place);
		fd = open(path, O_RDWR | O_CLOEXEC);
		failed = has_failed();
		CHECK(fd >= 0 || failed, "open");
		close(fd);
		CHECK(!bus_master(function), "place %d: the controller reaches memory", place);
	}
	CHECK(place > 3, "%d places", place);
}

/* A fault of the page table's memory ends the program if the kernel does not try again; nothing may be left half done. */
static void registers_come_as_a_whole(void)
{
	int place, fd = open_node();
	bool failed = true;

	allow_faults();
	for (place = 1; failed; place++) {
		volatile uint32_t *registers = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		CHECK(place < MOST_PLACES && registers != MAP_FAILED, "mmap");
		fail_at(place);
		CHECK(registers[VS] != UINT32_MAX, "place %d", place);
		failed = has_failed();
		munmap((void *)registers, 4 * PAGE);
	}
}

/* The kernel counts who has it enabled: with us it need not ask the firmware, whose interpreter survives no want of memory. */
static void keep_enabled(bool enabled)
{
	char path[128];

	sprintf(path, "/sys/bus/pci/devices/%s/enable", function);
	CHECK(write_line(path, enabled ? "1" : "0") == 0, "%s", path);
}

/* The controller is bound while the kernel has no memory. It may be bound without a file, which the kernel itself makes. */
static void a_controller_is_bound_as_a_whole(void)
{
	const char *bind = "/sys/bus/pci/drivers/gpunvme/bind";
	char path[64];
	int place, file = open(bind, O_WRONLY | O_CLOEXEC);
	bool failed = true, bound;

	node_path(function, path);
	allow_faults();
	unbind_function(function);
	keep_enabled(true);
	for (place = 1; failed; place++) {
		CHECK(place < MOST_PLACES, "no end");
		fail_at(place);
		bound = write(file, function, strlen(function)) > 0;
		failed = has_failed();
		CHECK(bound || failed, "bind");
		CHECK(bound || access(path, F_OK), "place %d: %s is there", place, path);
		unbind_function(function);
	}
	keep_enabled(false);
	bind_function(function);
}

const struct test fault_tests[] = {
	{ "a pin fails as a whole", a_pin_fails_as_a_whole },
	{ "an import fails as a whole", an_import_fails_as_a_whole },
	{ "an open fails as a whole", an_open_fails_as_a_whole },
	{ "registers come as a whole", registers_come_as_a_whole },
	{ "a controller is bound as a whole", a_controller_is_bound_as_a_whole },
};
const int fault_test_count = sizeof(fault_tests) / sizeof(fault_tests[0]);
