// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller.h"
#include "exporters.h"
#include "slow.h"
#include "tests.h"

#define VS (0x08 / 4)
#define CC (0x14 / 4)
#define CSTS (0x1c / 4)
#define MOST 8192
static struct gpunvme_run runs[MOST];

/* A program that has a running controller, memory and a dma-buf. */
struct busy {
	int fd;
	volatile uint32_t *registers;
	struct controller controller;
	struct gpunvme_run queues[2];
	struct gpunvme_pin large;
};

static struct busy be_busy(void)
{
	struct busy b = { .fd = open_node() };
	char *queues = memory(2 * PAGE);
	struct exported made;

	b.registers = map_registers(b.fd);
	pin(b.fd, queues, PAGE, &b.queues[0], 1);
	pin(b.fd, queues + PAGE, PAGE, &b.queues[1], 1);
	b.large = pin(b.fd, memory(16 * MIB), 16 * MIB, runs, MOST);
	if (exporters[0].make(64 * PAGE, &made) == 0)
		import(b.fd, made.fd, runs, MOST);
	start_controller(&b.controller, b.registers, queues, b.queues[0].bus_address, b.queues[1].bus_address);
	return b;
}

static void a_killed_program_leaves_nothing(void)
{
	long before = pinned_pages();
	int said[2], fd;
	volatile uint32_t *registers;
	pid_t pid;

	CHECK(pipe(said) == 0, "pipe");
	pid = fork();
	if (pid == 0) {
		be_busy();
		CHECK(write(said[1], "x", 1) == 1, "pipe");
		for (;;)
			pause();
	}
	CHECK(read(said[0], &fd, 1) == 1, "the child did not get busy");
	CHECK(pinned_pages() - before >= 16 * 256, "the child has pinned %ld pages", pinned_pages() - before);
	CHECK(bus_master(function), "the child's controller");
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid, "waitpid");
	CHECK(pinned_pages() == before, "%ld pages stay pinned", pinned_pages() - before);
	CHECK(!bus_master(function), "the controller still reaches memory");
	fd = open_node();
	registers = map_registers(fd);
	CHECK((registers[CC] & 1) == 0 && (registers[CSTS] & 1) == 0, "the controller still runs: CC %x", registers[CC]);
}

static void memory_may_go_before_its_range(void)
{
	struct busy b = be_busy();
	void *at = (void *)(uintptr_t)b.large.address;

	CHECK(munmap(at, 16 * MIB) == 0, "munmap");
	CHECK(release_range(b.fd, b.large.handle) == 0, "release");
}

static void resets(void)
{
	struct busy b = be_busy();
	struct gpunvme_info before = info_of(b.fd), after;
	uint32_t version = b.registers[VS];

	CHECK(b.registers[CSTS] & 1, "it does not run");
	CHECK(ioctl(b.fd, GPUNVME_RESET, 0) == 0, "reset");
	CHECK(b.registers[VS] == version, "registers after the reset");
	CHECK((b.registers[CC] & 1) == 0, "it still runs: CC %x", b.registers[CC]);
	after = info_of(b.fd);
	CHECK(before.bytes == after.bytes && before.ranges == after.ranges, "%u ranges of %u", after.ranges, before.ranges);
	CHECK(bus_master(function), "bus mastering");
	CHECK(release_range(b.fd, b.large.handle) == 0, "release");
}

/* As far as to devices that sleep. */
static void stops_for_a_suspend(void)
{
	struct busy b = be_busy();
	struct gpunvme_info before = info_of(b.fd), after;

	write_line("/sys/module/suspend/parameters/pm_test_delay", "1");
	if (write_line("/sys/power/pm_test", "devices"))
		skip("this kernel has no test of suspends");
	CHECK(write_line("/sys/power/state", "freeze") == 0, "suspend");
	CHECK((b.registers[CC] & 1) == 0 && (b.registers[CSTS] & 1) == 0, "it runs: CC %x", b.registers[CC]);
	after = info_of(b.fd);
	CHECK(before.bytes == after.bytes && before.ranges == after.ranges, "%u ranges of %u", after.ranges, before.ranges);
	CHECK(bus_master(function), "bus mastering");
	start_controller(&b.controller, b.registers, b.controller.queues, b.queues[0].bus_address, b.queues[1].bus_address);
	CHECK(identify(&b.controller, runs[0].bus_address), "after the suspend");
	CHECK(!bus_master(OTHER), "a controller that nobody has open");
}

/* Waits for what a fatal error of the bus does to the controller; false if that takes too long. */
static bool is_stopped(volatile uint32_t *registers)
{
	for (int i = 0; i < 20000 && registers[CC] & 1; i++)
		usleep(1000);
	return !(registers[CC] & 1);
}

static bool reaches_memory_again(void)
{
	for (int i = 0; i < 20000 && !bus_master(function); i++)
		usleep(1000);
	return bus_master(function);
}

/* The port above reports an error, and is reset with the controller: who has the controller finds it stopped, and goes on. */
static void recovers_from_a_fatal_error_of_the_bus(void)
{
	struct busy b = be_busy();
	struct gpunvme_info before = info_of(b.fd), after;
	uint32_t version = b.registers[VS];

	for (int round = 0; round < 2; round++) {
		/* Whoever runs the guest has QEMU report it. */
		CHECK(write_line("/dev/console", "\nguest: fatal error\n") == 0, "console");
		CHECK(is_stopped(b.registers), "it runs: CC %x", b.registers[CC]);
		CHECK(reaches_memory_again(), "bus mastering is still off");
		CHECK(b.registers[VS] == version, "registers after the error: version %x", b.registers[VS]);
		after = info_of(b.fd);
		CHECK(before.bytes == after.bytes && before.ranges == after.ranges, "%u ranges of %u", after.ranges, before.ranges);
		start_controller(&b.controller, b.registers, b.controller.queues, b.queues[0].bus_address,
				 b.queues[1].bus_address);
		CHECK(identify(&b.controller, runs[0].bus_address), "after the error");
	}
	CHECK(release_range(b.fd, b.large.handle) == 0, "release");
}

/* What a program sees of a controller that is gone. */
static void check_gone(struct busy *b)
{
	struct pollfd poll_for = { .fd = b->fd, .events = POLLIN };
	struct gpunvme_info info;
	struct gpunvme_pin p = { .address = b->large.address, .bytes = PAGE, .runs = (uintptr_t)runs, .most_runs = 1 };
	uint64_t i;

	CHECK(poll(&poll_for, 1, 0) == 1 && poll_for.revents & POLLHUP, "poll says %x", poll_for.revents);
	REFUSED(ENODEV, ioctl(b->fd, GPUNVME_GET_INFO, &info));
	REFUSED(ENODEV, ioctl(b->fd, GPUNVME_PIN, &p));
	REFUSED(ENODEV, ioctl(b->fd, GPUNVME_RESET, 0));
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, b->fd, 0) == MAP_FAILED && errno == ENODEV, "mmap");
	/* It goes on to ring doorbells, and to look at registers. */
	b->registers[PAGE / 4] = 1;
	for (i = 0; i < PAGE / 4; i++)
		CHECK(b->registers[i] == UINT32_MAX, "register %lx reads %x", i * 4, b->registers[i]);
}

static void a_controller_may_go(void)
{
	long before = pinned_pages(), pinned;
	struct busy b = be_busy();
	struct pollfd poll_for = { .fd = b.fd, .events = POLLIN };
	int again;

	CHECK(poll(&poll_for, 1, 0) == 0, "poll says %x", poll_for.revents);
	unbind_function(function);
	check_gone(&b);
	pinned = pinned_pages();
	CHECK(release_range(b.fd, b.large.handle) == 0, "release");
	CHECK(pinned - pinned_pages() == 16 * 256, "%ld of %ld pages stay pinned", pinned_pages(), pinned);
	REFUSED(ENOENT, release_range(b.fd, b.large.handle));
	/* Back again, while the old file is still open. */
	bind_function(function);
	again = open_node();
	CHECK(map_registers(again)[VS] != UINT32_MAX, "the controller that is back");
	check_gone(&b);
	munmap((void *)b.registers, 4 * PAGE);
	close(b.fd);
	CHECK(pinned_pages() == before, "%ld pages stay pinned", pinned_pages() - before);
	CHECK(info_of(again).ranges == 0 && bus_master(function), "the new file");
}

/* Threads that use the file while the controller goes: no call may hang, and none may succeed afterwards. */
static void a_controller_may_go_under_load(void)
{
	long before = pinned_pages();

	for (int round = 0; round < 10; round++) {
		int fd = open_node(), status;
		void *at = memory(64 * PAGE);
		pid_t pid = fork();

		if (pid == 0) {
			usleep(1000 * (round * 7 % 30));
			unbind_function(function);
			_exit(0);
		}
		for (;;) {
			struct gpunvme_pin p = {
				.address = (uintptr_t)at, .bytes = 64 * PAGE, .runs = (uintptr_t)runs, .most_runs = MOST
			};
			void *mapped = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

			if (mapped != MAP_FAILED)
				munmap(mapped, PAGE);
			if (ioctl(fd, GPUNVME_PIN, &p) == 0)
				release_range(fd, p.handle);
			else
				break;
		}
		CHECK(errno == ENODEV, "round %d", round);
		CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
		CHECK(pinned_pages() == before, "round %d: %ld pages stay pinned", round, pinned_pages() - before);
		munmap(at, 64 * PAGE);
		close(fd);
		bind_function(function);
	}
}

/* A call that the module refuses for want of room, told to a page that keeps it waiting. */
struct waiting_call {
	int fd;
	unsigned long command;
	void *argument;
	int error;
};

static void *do_call(void *of)
{
	struct waiting_call *call = of;

	call->error = ioctl(call->fd, call->command, call->argument) ? errno : 0;
	return NULL;
}

/* The controller is pulled out while the call has yet to say what it did; the kernel's memory of it is gone then. */
static void goes_during(unsigned long command, const void *argument, uint64_t bytes, int fd)
{
	struct guarded_page page = guard_page();
	struct waiting_call call = { .fd = fd, .command = command, .argument = page.at };
	pthread_t thread;

	fill_guarded_page(&page, argument, bytes);
	CHECK(pthread_create(&thread, NULL, do_call, &call) == 0, "a thread");
	await_writer(&page);
	remove_function(function);
	open_guarded_page(&page);
	pthread_join(thread, NULL);
	return_function(function);
	CHECK(call.error == ENOSPC, "the call ended with %d", call.error);
}

static void a_controller_may_go_during_a_pin(void)
{
	struct gpunvme_pin p = { .address = (uintptr_t)memory(PAGE), .bytes = PAGE, .runs = (uintptr_t)runs };

	goes_during(GPUNVME_PIN, &p, sizeof(p), open_node());
}

static void a_controller_may_go_during_an_import(void)
{
	struct gpunvme_import i = { .runs = (uintptr_t)runs };
	struct exported made;

	if (exporters[0].make(64 * PAGE, &made))
		skip("this kernel has no %s", exporters[0].name);
	i.fd = made.fd;
	goes_during(GPUNVME_IMPORT, &i, sizeof(i), open_node());
}

#define SLOW_FILE "/tmp/slow"
static int stalled[2];

static void stall_writes(bool write_of_pages)
{
	if (!write_of_pages)
		return;
	CHECK(write(stalled[1], "x", 1) == 1, "pipe");
	pause();
}

static void *write_back(void *page)
{
	msync(page, PAGE, MS_SYNC);
	return NULL;
}

static void *write_again(void *page)
{
	usleep(300000);
	*(volatile char *)page = 2;
	return NULL;
}

static void *unmap(void *page)
{
	usleep(600000);
	munmap(page, PAGE);
	return NULL;
}

/*
 * Its page is written back to a file whose server does not answer. Who writes the page again waits in the fault, and who takes
 * the mapping away waits for that, with the lock of all mappings. Where the fault has that lock itself, no thread can be made then.
 */
static void hold_the_lock_of_mappings(void)
{
	static void *(*const steps[])(void *) = { write_back, write_again, unmap };
	int file = open(SLOW_FILE, O_RDWR | O_CLOEXEC);
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	pthread_t thread;
	char one;

	CHECK(page != MAP_FAILED, "mmap of %s", SLOW_FILE);
	*(volatile char *)page = 1;
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&thread, NULL, steps[i], page) == 0, "a thread");
	CHECK(read(stalled[0], &one, 1) == 1, "pipe");
	usleep(900000);
}

/* Whether the process ends in this time. */
static bool ends_within(pid_t pid, int seconds)
{
	for (int i = 0; i < seconds * 100; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		usleep(10000);
	}
	return false;
}

static void *open_again(void *path)
{
	close(open(path, O_RDWR | O_CLOEXEC));
	return NULL;
}

/*
 * Its page is pinned for the controller, and belongs to a file whose server does not answer. Who opens the file again has what
 * was written before written back, and holds the lock of the page meanwhile. To unpin the page is to take that lock.
 */
static void hold_the_lock_of_a_pinned_page(void)
{
	int file = open(SLOW_FILE, O_RDWR | O_CLOEXEC), fd = open_node();
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	struct gpunvme_pin p = { .address = (uintptr_t)page, .bytes = PAGE, .runs = (uintptr_t)runs, .most_runs = 1 };
	pthread_t thread;
	char one;

	CHECK(page != MAP_FAILED, "mmap of %s", SLOW_FILE);
	if (ioctl(fd, GPUNVME_PIN, &p))
		skip("this kernel pins no pages of files");
	*(volatile char *)page = 1;
	CHECK(pthread_create(&thread, NULL, open_again, SLOW_FILE) == 0, "a thread");
	CHECK(read(stalled[0], &one, 1) == 1, "pipe");
}

static void hold_the_lock_of_mappings_of_a_program(void)
{
	be_busy();
	hold_the_lock_of_mappings();
}

static void removal_does_not_wait_for(void (*hold)(void))
{
	pid_t server, program, remover;
	int ready[2];
	bool held, gone = false;
	int status;
	char one;

	CHECK(pipe(stalled) == 0, "pipe");
	server = serve_file(SLOW_FILE, PAGE, stall_writes);
	if (!server)
		skip("this kernel has no FUSE");
	/* Not the server's: it ends with the program. */
	CHECK(pipe(ready) == 0, "pipe");
	program = fork();
	if (program == 0) {
		hold();
		CHECK(write(ready[1], "x", 1) == 1, "pipe");
		pause();
	}
	close(ready[1]);
	held = read(ready[0], &one, 1) == 1;
	if (held) {
		remover = fork();
		if (remover == 0) {
			unbind_function(function);
			_exit(0);
		}
		gone = ends_within(remover, 20);
	}
	kill(program, SIGKILL);
	end_file(SLOW_FILE, server);
	waitpid(program, &status, 0);
	if (held && !gone)
		waitpid(remover, NULL, 0);
	bind_function(function);
	/* It has said why. */
	if (!held)
		_exit(WEXITSTATUS(status));
	CHECK(gone, "the controller could not be taken away");
}

static void removal_waits_for_no_mapping(void)
{
	removal_does_not_wait_for(hold_the_lock_of_mappings_of_a_program);
}

static void removal_waits_for_no_page(void)
{
	removal_does_not_wait_for(hold_the_lock_of_a_pinned_page);
}

/* The registers of the function that stands in for a controller, while no driver has it. */
static void write_stand_in(unsigned int index, uint32_t value)
{
	int fd = open("/sys/bus/pci/devices/" STAND_IN "/resource0", O_RDWR | O_CLOEXEC);
	volatile uint32_t *registers = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(registers != MAP_FAILED, "its memory");
	registers[index] = value;
	munmap((void *)registers, PAGE);
	close(fd);
}

static void waits_for_controllers_that_are_slow_to_stop(void)
{
	volatile uint32_t *registers;
	uint64_t bytes;
	char path[64];
	int fd;

	function = STAND_IN;
	node_path(function, path);
	bind_function(function);
	fd = open_node();
	registers = map_registers(fd);
	bytes = info_of(fd).bar0_bytes;
	/* It was told to stop, and has not yet: it may still use the addresses that it has. */
	registers[CSTS] = 1;
	munmap((void *)registers, bytes);
	close(fd);
	CHECK(!bus_master(function), "it reaches memory");
	REFUSED(ETIMEDOUT, open(path, O_RDWR));
	CHECK(!bus_master(function), "it reaches memory of who could not open it");
	unbind_function(function);
	bind_function(function);
	REFUSED(ETIMEDOUT, open(path, O_RDWR));
	unbind_function(function);
	write_stand_in(CSTS, UINT32_MAX);
	bind_function(function);
	REFUSED(ENODEV, open(path, O_RDWR));
	unbind_function(function);
	write_stand_in(CSTS, 0);
	bind_function(function);
	close(open_node());
	unbind_function(function);
}

static void takes_only_nvme_controllers(void)
{
	/* The host bridge: nobody else wants it. */
	const char *override = "/sys/bus/pci/devices/0000:00:00.0/driver_override";
	int bound;

	if (access("/sys/bus/pci/devices/0000:00:00.0/driver", F_OK) == 0)
		skip("the host bridge has a driver");
	CHECK(write_line(override, "gpunvme") == 0, "driver_override");
	bound = write_line("/sys/bus/pci/drivers/gpunvme/bind", "0000:00:00.0");
	CHECK(bound == -1 && errno == ENODEV, "bind says %d", bound);
	CHECK(write_line(override, "\n") == 0, "driver_override");
	CHECK(access("/dev/gpunvme/0000:00:00.0", F_OK) == -1, "a file for it");
}

static void stays_while_it_is_used(void)
{
	int fd = open_node();

	CHECK(syscall(SYS_delete_module, "gpunvme", O_NONBLOCK) == -1 && (errno == EWOULDBLOCK || errno == EBUSY), "unloaded");
	info_of(fd);
}

const struct test end_tests[] = {
	{ "a killed program leaves nothing", a_killed_program_leaves_nothing },
	{ "memory may go before its range", memory_may_go_before_its_range },
	{ "resets", resets },
	{ "stops for a suspend", stops_for_a_suspend },
	{ "recovers from a fatal error of the bus", recovers_from_a_fatal_error_of_the_bus },
	{ "a controller may go under an open file", a_controller_may_go },
	{ "a controller may go under load", a_controller_may_go_under_load },
	{ "a controller may go during a pin", a_controller_may_go_during_a_pin },
	{ "a controller may go during an import", a_controller_may_go_during_an_import },
	{ "removal waits for no lock of mappings", removal_waits_for_no_mapping },
	{ "removal waits for no lock of a page", removal_waits_for_no_page },
	{ "waits for controllers that are slow to stop", waits_for_controllers_that_are_slow_to_stop },
	{ "takes only NVMe controllers", takes_only_nvme_controllers },
	{ "stays while it is used", stays_while_it_is_used },
};
const int end_test_count = sizeof(end_tests) / sizeof(end_tests[0]);
