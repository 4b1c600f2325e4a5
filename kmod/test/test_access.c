// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporters.h"
#include "tests.h"

#define VS (0x08 / 4)

static void check_address(const struct gpunvme_info *info, const char *of)
{
	char text[32];

	sprintf(text, "%04x:%02x:%02x.%x", info->pci_domain, info->pci_function >> 8, info->pci_function >> 3 & 31,
		info->pci_function & 7);
	CHECK(strcmp(text, of) == 0, "the file says that it is of %s, not %s", text, of);
}

static void says_what_it_is(void)
{
	struct gpunvme_info info = info_of(open_node());
	uint64_t memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * PAGE;

	CHECK(info.abi_version == GPUNVME_ABI_VERSION, "%u", info.abi_version);
	CHECK(info.flags == (GPUNVME_INFO_RESET | (translated ? GPUNVME_INFO_TRANSLATED | GPUNVME_INFO_ISOLATED : 0)), "%x",
	      info.flags);
	check_address(&info, function);
	CHECK(info.bar0_bytes >= 2 * PAGE && info.bar0_bytes % PAGE == 0, "%llx", info.bar0_bytes);
	CHECK(info.address_bits == 64, "%u", info.address_bits);
	CHECK(info.page_bytes == PAGE, "%u", info.page_bytes);
	CHECK(info.most_bytes == memory_bytes / 4 * 3, "%llu of %lu", info.most_bytes, memory_bytes);
	CHECK(info.most_ranges == 65536, "%u", info.most_ranges);
	CHECK(!info.bytes && !info.ranges, "a new file has %u ranges", info.ranges);
	for (int i = 0; i < 2; i++)
		CHECK(info.reserved[i] == 0, "reserved[%d]", i);
}

static void is_open_once(void)
{
	char path[64];
	int fd;

	node_path(function, path);
	fd = open_node();
	REFUSED(EBUSY, open(path, O_RDWR));
	close(fd);
	close(open_node());
}

static void only_for_reading_and_writing(void)
{
	char path[64];

	node_path(function, path);
	REFUSED(EACCES, open(path, O_RDONLY));
	REFUSED(EACCES, open(path, O_WRONLY));
}

static void only_for_root(void)
{
	struct stat state;
	char path[64];

	node_path(function, path);
	CHECK(stat(path, &state) == 0, "%s", path);
	CHECK((state.st_mode & 07777) == 0600 && state.st_uid == 0, "mode %o", state.st_mode);
	CHECK(setuid(1000) == 0, "setuid");
	REFUSED(EACCES, open(path, O_RDWR));
}

/* A number of a device is given away again, and who has kept a node of it opens another controller. */
static void a_stale_node_says_whose_it_is(void)
{
	const char *stale = "/tmp/stale";
	struct gpunvme_info info;
	struct stat before, after;
	char path[64];

	node_path(function, path);
	CHECK(stat(path, &before) == 0 && mknod(stale, S_IFCHR | 0600, before.st_rdev) == 0, "a copy of %s", path);
	unbind_function(function);
	unbind_function(OTHER);
	bind_function(OTHER);
	bind_function(function);
	CHECK(stat(path, &after) == 0, "%s", path);
	info = info_of(open(stale, O_RDWR | O_CLOEXEC));
	unlink(stale);
	CHECK(before.st_rdev != after.st_rdev, "the numbers are as they were");
	check_address(&info, OTHER);
}

void allow_unsafe(bool allowed)
{
	CHECK(write_line("/sys/module/gpunvme/parameters/enable_unsafe_noiommu_mode", allowed ? "Y" : "N") == 0, "parameter");
}

static bool tainted_by_users(void)
{
	char text[256];

	read_line("/proc/sys/kernel/tainted", text);
	return strtoul(text, NULL, 10) & 1 << 6;
}

/* Also if the file is theirs: it would be all memory. */
static void others_may_open_what_is_isolated(void)
{
	char path[64];
	int status, fd;

	node_path(function, path);
	CHECK(chown(path, 1000, 0) == 0, "chown");
	if (fork() == 0) {
		CHECK(setuid(1000) == 0, "setuid");
		fd = open(path, O_RDWR);
		CHECK(translated ? fd >= 0 : fd < 0 && errno == EPERM, "open says %d", fd);
		_exit(0);
	}
	CHECK(wait(&status) > 0 && status == 0, "see above");
	CHECK(chown(path, 0, 0) == 0, "chown");
}

/* Root opens it where the parameter is set, and the kernel remembers that. */
static void opens_only_with_consent(uint32_t flags)
{
	struct gpunvme_info info;
	int refused, error;
	char path[64];

	node_path(function, path);
	allow_unsafe(false);
	refused = open(path, O_RDWR);
	error = errno;
	allow_unsafe(true);
	CHECK(refused < 0 && error == EOPNOTSUPP, "open says %d, %d", refused, error);
	info = info_of(open_node());
	CHECK(info.flags == flags, "%x", info.flags);
	CHECK(tainted_by_users(), "the kernel is not tainted");
}

static void without_an_iommu_it_needs_consent(void)
{
	if (translated)
		CHECK(!tainted_by_users(), "the kernel is tainted");
	else
		opens_only_with_consent(GPUNVME_INFO_RESET);
}

static void in_a_shared_group_it_needs_consent(void)
{
	if (!translated)
		skip("without an IOMMU there are no groups");
	function = SHARED;
	bind_function(function);
	opens_only_with_consent(GPUNVME_INFO_RESET | GPUNVME_INFO_TRANSLATED);
	allow_unsafe(false);
}

static void interrupts_that_are_not_remapped_need_consent(void)
{
	opens_only_with_consent(GPUNVME_INFO_RESET | GPUNVME_INFO_TRANSLATED);
}

static void reaches_memory_only_while_open(void)
{
	int fd;

	CHECK(!bus_master(function), "before");
	fd = open_node();
	CHECK(bus_master(function), "while it is open");
	close(fd);
	CHECK(!bus_master(function), "afterwards");
}

static void unknown_calls(void)
{
	int fd = open_node();

	REFUSED(ENOTTY, ioctl(fd, _IO(GPUNVME_IOC_TYPE, 99), 0));
	REFUSED(ENOTTY, ioctl(fd, _IO('x', 1), 0));
	REFUSED(ENOTTY, ioctl(fd, _IOW(GPUNVME_IOC_TYPE, 0, uint32_t), 0));
	REFUSED(EFAULT, ioctl(fd, GPUNVME_GET_INFO, 8));
	REFUSED(EFAULT, ioctl(fd, GPUNVME_PIN, 8));
	REFUSED(EFAULT, ioctl(fd, GPUNVME_IMPORT, 8));
	REFUSED(EFAULT, ioctl(fd, GPUNVME_RELEASE, 8));
	REFUSED(EINVAL, read(fd, &fd, 1));
}

static void maps_registers(void)
{
	int fd = open_node();
	struct gpunvme_info info = info_of(fd);
	volatile uint32_t *all = map_registers(fd), *one;

	CHECK(all[VS] >> 16 >= 1 && all[VS] != UINT32_MAX, "version %x", all[VS]);
	one = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(one != MAP_FAILED && one[VS] == all[VS], "one page");
	CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, info.bar0_bytes - PAGE) != MAP_FAILED, "the last page");
	/* In parts, and away. */
	CHECK(munmap((void *)all, PAGE) == 0, "munmap of the beginning");
	CHECK(munmap((char *)all + PAGE, info.bar0_bytes - PAGE) == 0, "munmap of the rest");
	CHECK(one[VS] != UINT32_MAX, "the other mapping");
}

static void refuses_other_mappings(void)
{
	int fd = open_node();
	uint64_t bytes = info_of(fd).bar0_bytes;
	volatile uint32_t *all = map_registers(fd);

	CHECK(mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EINVAL, "private");
	CHECK(mmap(NULL, bytes + PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL, "too long");
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, bytes) == MAP_FAILED && errno == EINVAL, "behind");
	CHECK(mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, bytes - PAGE) == MAP_FAILED && errno == EINVAL, "over the end");
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)1 << 62) == MAP_FAILED, "far away");
	CHECK(mremap((void *)all, bytes, bytes + PAGE, MREMAP_MAYMOVE) == MAP_FAILED, "a mapping does not grow");
}

/* What a child of the program that opened the file may do: nothing. */
static void child(int fd, volatile uint32_t *registers)
{
	struct gpunvme_info info;
	struct gpunvme_pin pin = {};
	struct gpunvme_import import = {};
	struct gpunvme_release release = {};

	REFUSED(EPERM, ioctl(fd, GPUNVME_GET_INFO, &info));
	REFUSED(EPERM, ioctl(fd, GPUNVME_PIN, &pin));
	REFUSED(EPERM, ioctl(fd, GPUNVME_IMPORT, &import));
	REFUSED(EPERM, ioctl(fd, GPUNVME_RELEASE, &release));
	REFUSED(EPERM, ioctl(fd, GPUNVME_RESET, 0));
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM, "mmap");
	REFUSED(ENOMEM, msync((void *)registers, PAGE, MS_ASYNC));
	/* It has no mapping of registers. */
	signal(SIGSEGV, SIG_DFL);
	(void)registers[VS];
	_exit(1);
}

static void belongs_to_its_process(void)
{
	int fd = open_node(), status;
	volatile uint32_t *registers = map_registers(fd);
	pid_t pid = fork();

	if (pid == 0)
		child(fd, registers);
	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "the child ended with %x", status);
	CHECK(registers[VS] != UINT32_MAX, "its own mapping stays");
	info_of(fd);
}

const struct test access_tests[] = {
	{ "says what it is", says_what_it_is },
	{ "is open once", is_open_once },
	{ "is opened for reading and writing", only_for_reading_and_writing },
	{ "is for root by default", only_for_root },
	{ "a stale node says whose it is", a_stale_node_says_whose_it_is },
	{ "others may open what is isolated", others_may_open_what_is_isolated },
	{ "without an IOMMU it needs consent", without_an_iommu_it_needs_consent },
	{ "in a shared group it needs consent", in_a_shared_group_it_needs_consent },
	{ "the controller reaches memory only while the file is open", reaches_memory_only_while_open },
	{ "unknown calls and wrong pointers are refused", unknown_calls },
	{ "maps registers", maps_registers },
	{ "refuses other mappings", refuses_other_mappings },
	{ "belongs to its process", belongs_to_its_process },
};
const int access_test_count = sizeof(access_tests) / sizeof(access_tests[0]);

/* Without translation the kernel copies what the controller is to reach, and nobody would tell it when. */
static void copied_memory_is_refused(void)
{
	struct gpunvme_run run;
	struct gpunvme_import i = { .runs = (uintptr_t)&run, .most_runs = 1 };
	struct gpunvme_pin p = { .address = (uintptr_t)memory(PAGE), .bytes = PAGE, .runs = (uintptr_t)&run, .most_runs = 1 };
	struct exported made;
	char path[128];
	int fd, of_imports, of_pins;

	unbind_function(function);
	sprintf(path, "/sys/bus/pci/devices/%s/iommu_group/type", function);
	CHECK(write_line(path, "identity") == 0, "%s", path);
	bind_function(function);
	CHECK(exporters[1].make(PAGE, &made) == 0, "udmabuf");
	i.fd = made.fd;
	fd = open_node();
	of_imports = ioctl(fd, GPUNVME_IMPORT, &i) ? errno : 0;
	of_pins = ioctl(fd, GPUNVME_PIN, &p) ? errno : 0;
	CHECK(info_of(fd).flags == GPUNVME_INFO_RESET, "%x", info_of(fd).flags);
	CHECK(of_imports == EOPNOTSUPP && of_pins == EOPNOTSUPP, "import says %d, pin %d", of_imports, of_pins);
}

const struct test unsafe_tests[] = {
	{ "interrupts that are not remapped need consent", interrupts_that_are_not_remapped_need_consent },
	{ "copied memory is refused", copied_memory_is_refused },
};
const int unsafe_test_count = sizeof(unsafe_tests) / sizeof(unsafe_tests[0]);
