// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "controller.h"
#include "exporters.h"
#include "tests.h"

#define MOST 4096
#define BAR_EXPORTER_MAPPED _IO(0xA8, 0)
static struct gpunvme_run runs[MOST];

struct gpunvme_pin pin(int fd, void *address, uint64_t bytes, struct gpunvme_run *to, uint32_t most_runs)
{
	struct gpunvme_pin pin = {
		.address = (uintptr_t)address, .bytes = bytes, .runs = (uintptr_t)to, .most_runs = most_runs
	};

	CHECK(ioctl(fd, GPUNVME_PIN, &pin) == 0, "pin of %lu bytes", bytes);
	CHECK(pin.handle != 0 && pin.run_count >= 1 && pin.run_count <= most_runs, "%u runs", pin.run_count);
	return pin;
}

struct gpunvme_import import(int fd, int dmabuf, struct gpunvme_run *to, uint32_t most_runs)
{
	struct gpunvme_import import = { .fd = dmabuf, .runs = (uintptr_t)to, .most_runs = most_runs };

	CHECK(ioctl(fd, GPUNVME_IMPORT, &import) == 0, "import");
	CHECK(import.handle != 0 && import.run_count >= 1 && import.run_count <= most_runs, "%u runs", import.run_count);
	return import;
}

int release_range(int fd, uint64_t handle)
{
	struct gpunvme_release release = { .handle = handle };

	return ioctl(fd, GPUNVME_RELEASE, &release);
}

static uint64_t physical_address(void *at)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	CHECK(pread(fd, &entry, 8, (uintptr_t)at / PAGE * 8) == 8, "pagemap");
	CHECK(entry >> 63, "%p is not there", at);
	close(fd);
	return (entry & ((1ULL << 55) - 1)) * PAGE;
}

/* The runs are the range, in order; without an IOMMU they are physical addresses. */
static void check_runs(void *memory, uint64_t bytes, uint32_t count)
{
	uint64_t at = 0, i, j;

	for (i = 0; i < count; i++) {
		CHECK(runs[i].bytes && runs[i].bytes % 4096 == 0 && runs[i].bus_address % 4096 == 0, "run %lu", i);
		CHECK(i == 0 || runs[i].bus_address != runs[i - 1].bus_address + runs[i - 1].bytes, "run %lu is merged", i);
		for (j = 0; !translated && memory && j < runs[i].bytes; j += PAGE)
			CHECK(physical_address((char *)memory + at + j) == runs[i].bus_address + j, "page %lu", (at + j) / PAGE);
		at += runs[i].bytes;
	}
	CHECK(at == bytes, "%lu of %lu bytes", at, bytes);
	if (translated)
		CHECK(count == 1, "with an IOMMU there are %u runs", count);
}

static void pins_memory(void)
{
	static const size_t sizes[] = { PAGE, 2 * PAGE, 64 * 1024, MIB, 8 * MIB + PAGE };
	int fd = open_node();

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		long before = pinned_pages();
		void *at = memory(sizes[i]);
		struct gpunvme_pin p = pin(fd, at, sizes[i], runs, MOST);
		struct gpunvme_info info = info_of(fd);

		check_runs(at, sizes[i], p.run_count);
		CHECK(pinned_pages() - before == (long)(sizes[i] / PAGE), "%ld pages", pinned_pages() - before);
		CHECK(info.bytes == sizes[i] && info.ranges == 1, "%llu bytes, %u ranges", info.bytes, info.ranges);
		CHECK(release_range(fd, p.handle) == 0, "release");
		CHECK(pinned_pages() == before, "%ld pages stay", pinned_pages() - before);
	}
}

static void huge_pages_are_one_run(void)
{
	int fd = open_node();
	void *at;
	struct gpunvme_pin p;

	write_line("/proc/sys/vm/nr_hugepages", "4");
	at = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (at == MAP_FAILED)
		skip("no huge page");
	p = pin(fd, at, 2 * MIB, runs, 1);
	memset(at, 1, 1);
	check_runs(at, 2 * MIB, p.run_count);
	munmap(at, 2 * MIB);
	write_line("/proc/sys/vm/nr_hugepages", "0");
}

struct refusal {
	const char *what;
	int error;
	struct gpunvme_pin pin;
};

static void refuses_what_cannot_be_pinned(void)
{
	uint64_t good = (uintptr_t)memory(4 * PAGE), to = (uintptr_t)runs;
	uint64_t readable = (uintptr_t)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t half = (uintptr_t)memory(2 * PAGE);
	const struct refusal refusals[] = {
		{ "unaligned address", EINVAL, { .address = good + 512, .bytes = PAGE, .runs = to, .most_runs = 1 } },
		{ "unaligned length", EINVAL, { .address = good, .bytes = PAGE + 1, .runs = to, .most_runs = 1 } },
		{ "no length", EINVAL, { .address = good, .bytes = 0, .runs = to, .most_runs = 1 } },
		{ "flags", EINVAL, { .address = good, .bytes = PAGE, .runs = to, .most_runs = 1, .flags = 1 } },
		{ "reserved", EINVAL, { .address = good, .bytes = PAGE, .runs = to, .most_runs = 1, .reserved = 1 } },
		{ "overflow", EINVAL, { .address = -PAGE, .bytes = 2 * PAGE, .runs = to, .most_runs = 1 } },
		{ "all of memory", EINVAL, { .address = PAGE, .bytes = -PAGE, .runs = to, .most_runs = 1 } },
		{ "too many bytes", EDQUOT, { .address = good, .bytes = 1UL << 62, .runs = to, .most_runs = 1 } },
		{ "nothing there", EFAULT, { .address = PAGE, .bytes = PAGE, .runs = to, .most_runs = 1 } },
		{ "addresses of the kernel", EFAULT,
		  { .address = 0xffff888000000000, .bytes = PAGE, .runs = to, .most_runs = 1 } },
		{ "memory that cannot be written", EFAULT, { .address = readable, .bytes = PAGE, .runs = to, .most_runs = 1 } },
		{ "half of it is not there", EFAULT, { .address = half, .bytes = 2 * PAGE, .runs = to, .most_runs = 2 } },
		{ "no room for runs", ENOSPC, { .address = good, .bytes = PAGE, .runs = to, .most_runs = 0 } },
		{ "runs to nowhere", EFAULT, { .address = good, .bytes = 4 * PAGE, .runs = 8, .most_runs = 4 } },
	};
	long before;
	int fd = open_node();

	CHECK(munmap((void *)(half + PAGE), PAGE) == 0, "munmap");
	before = pinned_pages();
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct gpunvme_pin p = refusals[i].pin;
		struct gpunvme_info info;

		CHECK(ioctl(fd, GPUNVME_PIN, &p) == -1 && errno == refusals[i].error, "%s", refusals[i].what);
		CHECK(p.handle == 0, "%s", refusals[i].what);
		CHECK(p.run_count == (refusals[i].error == ENOSPC), "%s: %u runs", refusals[i].what, p.run_count);
		info = info_of(fd);
		CHECK(!info.bytes && !info.ranges && pinned_pages() == before, "%s: something stays", refusals[i].what);
	}
	CHECK(status_kib("VmLck") == 0, "charged %ld KiB", status_kib("VmLck"));
}

/* The kernel cannot say what it did: then it must not have done it. */
static void refuses_an_answer_to_nowhere(void)
{
	struct gpunvme_pin *argument = memory(PAGE);
	long before = pinned_pages();
	int fd = open_node();

	*argument = (struct gpunvme_pin){
		.address = (uintptr_t)memory(PAGE), .bytes = PAGE, .runs = (uintptr_t)runs, .most_runs = 1
	};
	CHECK(mprotect(argument, PAGE, PROT_READ) == 0, "mprotect");
	REFUSED(EFAULT, ioctl(fd, GPUNVME_PIN, argument));
	CHECK(!info_of(fd).ranges && pinned_pages() == before, "it stays pinned");
}

/* Alternate pages of two mappings: few are neighbours in memory. */
static void counts_runs_that_have_no_room(void)
{
	struct gpunvme_pin p = { .bytes = 256 * PAGE, .runs = (uintptr_t)runs, .most_runs = 1 };
	char *at = mmap(NULL, p.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_node();

	if (translated)
		skip("with an IOMMU each range is one run");
	madvise(at, p.bytes, MADV_NOHUGEPAGE);
	for (int i = 0; i < 256; i += 2)
		at[i * PAGE] = 1;
	for (int i = 255; i > 0; i -= 2)
		at[i * PAGE] = 1;
	p.address = (uintptr_t)at;
	REFUSED(ENOSPC, ioctl(fd, GPUNVME_PIN, &p));
	CHECK(p.run_count > 1 && p.handle == 0, "%u runs", p.run_count);
	CHECK(!info_of(fd).ranges, "it stays pinned");
	p.most_runs = p.run_count;
	CHECK(ioctl(fd, GPUNVME_PIN, &p) == 0 && p.run_count == p.most_runs, "with as many as it said");
	check_runs(at, p.bytes, p.run_count);
}

static void releases_once(void)
{
	int fd = open_node();
	void *at = memory(PAGE);
	uint64_t last = 0;

	REFUSED(ENOENT, release_range(fd, 0));
	REFUSED(ENOENT, release_range(fd, 1));
	REFUSED(ENOENT, release_range(fd, UINT64_MAX));
	for (int i = 0; i < 100; i++) {
		uint64_t handle = pin(fd, at, PAGE, runs, 1).handle;

		CHECK(handle > last, "handle %lu was given before", handle);
		last = handle;
		CHECK(release_range(fd, handle) == 0, "release");
		REFUSED(ENOENT, release_range(fd, handle));
	}
}

static void keeps_to_its_limits(void)
{
	const char *bytes = "/sys/module/gpunvme/parameters/most_bytes", *ranges = "/sys/module/gpunvme/parameters/most_ranges";
	void *at = memory(8 * PAGE);
	struct gpunvme_pin p = { .address = (uintptr_t)at, .bytes = PAGE, .runs = (uintptr_t)runs, .most_runs = MOST };
	int fd;

	CHECK(write_line(bytes, "16384") == 0 && write_line(ranges, "3") == 0, "parameters");
	fd = open_node();
	CHECK(write_line(bytes, "0") == 0 && write_line(ranges, "65536") == 0, "parameters");
	CHECK(info_of(fd).most_bytes == 16384 && info_of(fd).most_ranges == 3, "limits of the file");
	pin(fd, at, 4 * PAGE, runs, MOST);
	REFUSED(EDQUOT, ioctl(fd, GPUNVME_PIN, &p));
	close(fd);

	CHECK(write_line(ranges, "3") == 0, "parameters");
	fd = open_node();
	CHECK(write_line(ranges, "65536") == 0, "parameters");
	for (int i = 0; i < 3; i++)
		p.handle = pin(fd, at, PAGE, runs, MOST).handle;
	REFUSED(EDQUOT, ioctl(fd, GPUNVME_PIN, &p));
	CHECK(release_range(fd, p.handle) == 0, "release");
	pin(fd, at, PAGE, runs, MOST);
}

static void charges_locked_memory(void)
{
	struct rlimit limit = { 16 * PAGE, 16 * PAGE };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct capabilities[2];
	char *at = memory(32 * PAGE);
	struct gpunvme_pin p = { .address = (uintptr_t)at, .bytes = 17 * PAGE, .runs = (uintptr_t)runs, .most_runs = MOST };
	uint64_t handle;
	int fd;

	/* Whoever has it is not limited. */
	CHECK(syscall(SYS_capget, &header, capabilities) == 0, "capabilities");
	capabilities[0].effective &= ~(1u << CAP_IPC_LOCK);
	CHECK(syscall(SYS_capset, &header, capabilities) == 0, "capabilities");
	CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "a limit");
	fd = open_node();
	REFUSED(ENOMEM, ioctl(fd, GPUNVME_PIN, &p));
	handle = pin(fd, at, 15 * PAGE, runs, MOST).handle;
	CHECK(status_kib("VmLck") == 60, "%ld KiB", status_kib("VmLck"));
	pin(fd, at + 20 * PAGE, PAGE, runs, MOST);
	p.bytes = PAGE;
	REFUSED(ENOMEM, ioctl(fd, GPUNVME_PIN, &p));
	CHECK(release_range(fd, handle) == 0, "release");
	CHECK(status_kib("VmLck") == 4, "%ld KiB", status_kib("VmLck"));
	close(fd);
	CHECK(status_kib("VmLck") == 0, "%ld KiB", status_kib("VmLck"));
}

/* The serial number that the controller says, in bytes 4 to 23, is what QEMU was told. */
static bool is_identity(const char *page)
{
	return memcmp(page + 4, "gpunvme", 7) == 0;
}

/*
 * A command at the address that a page had until now: with an IOMMU the page is out of reach, also where the IOMMU is told
 * of unmapped pages when it suits the kernel.
 */
static void check_out_of_reach(struct controller *c, uint64_t address, char *page)
{
	char type[256], path[128];

	if (!translated)
		return;
	sprintf(path, "/sys/bus/pci/devices/%s/iommu_group/type", function);
	read_line(path, type);
	CHECK(strcmp(type, "DMA-FQ") == 0, "the domain is of type %s", type);
	memset(page, 0, PAGE);
	/* It believes that it has written. */
	identify(c, address);
	CHECK(!is_identity(page), "the controller wrote into memory that was released");
}

static void the_controller_reaches_pinned_memory(void)
{
	int fd = open_node();
	char *queues = memory(2 * PAGE), *data = memory(16 * PAGE);
	struct controller c;
	struct gpunvme_run first[2], second[2];

	pin(fd, queues, PAGE, first, 1);
	pin(fd, queues + PAGE, PAGE, second, 1);
	start_controller(&c, map_registers(fd), queues, first[0].bus_address, second[0].bus_address);
	for (int i = 0; i < 16; i++) {
		struct gpunvme_pin p = pin(fd, data + i * PAGE, PAGE, runs, 1);

		CHECK(!is_identity(data + i * PAGE), "before");
		CHECK(identify(&c, runs[0].bus_address), "page %d", i);
		CHECK(is_identity(data + i * PAGE), "the controller wrote elsewhere: page %d", i);
		CHECK(release_range(fd, p.handle) == 0, "release");
		check_out_of_reach(&c, runs[0].bus_address, data + i * PAGE);
	}
}

/* Every page of a dma-buf, written by the controller and read by the exporter's mapping. */
static void reach(int fd, struct exported *made)
{
	struct gpunvme_import i = import(fd, made->fd, runs, MOST);
	char *queues = memory(2 * PAGE), *page = made->memory;
	struct gpunvme_run first[2], second[2];
	struct controller c;

	CHECK(i.bytes == made->bytes, "%llu of %zu bytes", i.bytes, made->bytes);
	check_runs(NULL, made->bytes, i.run_count);
	/* The range lives without it. */
	close(made->fd);
	pin(fd, queues, PAGE, first, 1);
	pin(fd, queues + PAGE, PAGE, second, 1);
	start_controller(&c, map_registers(fd), queues, first[0].bus_address, second[0].bus_address);
	memset(page, 0, made->bytes);
	for (uint32_t run = 0; run < i.run_count; run++)
		for (uint64_t at = 0; at < runs[run].bytes; at += PAGE, page += PAGE) {
			CHECK(identify(&c, runs[run].bus_address + at), "page %p", (void *)page);
			CHECK(is_identity(page), "the controller wrote elsewhere: page %p", (void *)page);
		}
	CHECK(release_range(fd, i.handle) == 0, "release");
	check_out_of_reach(&c, runs[0].bus_address, made->memory);
}

static void refuse(int fd, struct exported *made)
{
	struct gpunvme_import i = { .fd = made->fd, .runs = (uintptr_t)runs, .most_runs = 0 };
	uint64_t bytes = info_of(fd).bytes;

	REFUSED(ENOSPC, ioctl(fd, GPUNVME_IMPORT, &i));
	CHECK(i.run_count >= 1 && i.bytes == made->bytes && !i.handle, "%u runs", i.run_count);
	i.flags = 4;
	REFUSED(EINVAL, ioctl(fd, GPUNVME_IMPORT, &i));
	i = (struct gpunvme_import){ .fd = made->fd, .runs = 8, .most_runs = MOST };
	REFUSED(EFAULT, ioctl(fd, GPUNVME_IMPORT, &i));
	CHECK(info_of(fd).bytes == bytes, "something stays");
}

static void with_exporter(const struct exporter *exporter)
{
	struct exported made = {};
	int fd = open_node();

	if (exporter->make(48 * PAGE, &made))
		skip("this kernel has no %s", exporter->name);
	refuse(fd, &made);
	CHECK(status_kib("VmLck") == 0, "charged %ld KiB", status_kib("VmLck"));
	reach(fd, &made);
}

static void vgem(void)
{
	with_exporter(&exporters[0]);
}

static void udmabuf(void)
{
	with_exporter(&exporters[1]);
}

static void heap(void)
{
	with_exporter(&exporters[2]);
}

/* Until it is pinned, and from when it is not any more, an exporter may move memory, and says so. */
static void an_exporter_may_move_memory_that_is_not_pinned(void)
{
	char before[256], after[256];
	int fd = open_node(), exporter = open("/dev/bar_exporter", O_RDWR | O_CLOEXEC), dmabuf;

	CHECK(exporter >= 0, "/dev/bar_exporter");
	dmabuf = ioctl(exporter, BAR_EXPORTER_MAPPED, 0);
	CHECK(dmabuf >= 0, "a dma-buf of a BAR");
	read_line("/proc/sys/kernel/tainted", before);
	CHECK(release_range(fd, import(fd, dmabuf, runs, MOST).handle) == 0, "release");
	read_line("/proc/sys/kernel/tainted", after);
	CHECK(strcmp(before, after) == 0, "the kernel warned: %s, %s before", after, before);
}

static void imports_nothing_else(void)
{
	struct gpunvme_import i = { .fd = -1, .runs = (uintptr_t)runs, .most_runs = MOST };
	int fd = open_node();

	REFUSED(EBADF, ioctl(fd, GPUNVME_IMPORT, &i));
	i.fd = fd;
	REFUSED(EINVAL, ioctl(fd, GPUNVME_IMPORT, &i));
	i.fd = memfd_create("x", 0);
	REFUSED(EINVAL, ioctl(fd, GPUNVME_IMPORT, &i));
	CHECK(!info_of(fd).ranges, "something stays");
}

const struct test range_tests[] = {
	{ "pins memory", pins_memory },
	{ "a huge page is one run", huge_pages_are_one_run },
	{ "refuses what cannot be pinned", refuses_what_cannot_be_pinned },
	{ "refuses an answer to nowhere", refuses_an_answer_to_nowhere },
	{ "counts runs that have no room", counts_runs_that_have_no_room },
	{ "releases once", releases_once },
	{ "keeps to its limits", keeps_to_its_limits },
	{ "charges locked memory", charges_locked_memory },
	{ "the controller reaches pinned memory", the_controller_reaches_pinned_memory },
	{ "the controller reaches a dma-buf of vgem", vgem },
	{ "the controller reaches a dma-buf of udmabuf", udmabuf },
	{ "the controller reaches a dma-buf of the system heap", heap },
	{ "an exporter may move memory that is not pinned", an_exporter_may_move_memory_that_is_not_pinned },
	{ "imports nothing else", imports_nothing_else },
};
const int range_test_count = sizeof(range_tests) / sizeof(range_tests[0]);
