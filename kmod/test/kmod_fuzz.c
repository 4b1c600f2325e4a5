// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls of the module, from several processes of two threads each, of root and of another user, that are killed at random
 * times while controllers come and go, or are pulled out. Some of the memory keeps the kernel waiting: of userfaultfd, and of a
 * file of FUSE.
 *
 *   kmod_fuzz [--seed N] [--calls N] [--seconds N] DDDD:BB:DD.F...
 *
 * Afterwards nothing may be pinned or open. Prints "PASS name" or "FAIL name: why", and END.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exporters.h"
#include "guest.h"
#include "slow.h"

#define WORKERS 5
#define SLOW_FILE "/tmp/slow"
#define SLOW_PAGES 64UL
#define LONGEST_DELAY_US 3000
#define AREA (2 * MIB)
#define HANDLES 64
#define RUNS 512

/* What all processes share. */
struct shared {
	atomic_ulong calls, pins, imports, releases, maps, forks, resets, refused;
};
static struct shared *counts;

static char **functions;
static int function_count;

/* ---- one process: its two threads use the same file, and disturb each other */

static _Atomic int node = -1, dmabuf = -1;
static char *area, *faulty, *filed;
static int slow_file = -1;
static _Atomic uint64_t handles[HANDLES];

struct source {
	uint64_t state;
};

/* SplitMix64 */
static uint64_t next(struct source *s)
{
	uint64_t z = s->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t below(struct source *s, uint64_t limit)
{
	return next(s) % limit;
}

static bool once_in(struct source *s, uint64_t times)
{
	return below(s, times) == 0;
}

static int call(unsigned long command, void *argument)
{
	int result = ioctl(node, command, argument);

	atomic_fetch_add(&counts->calls, 1);
	if (result < 0)
		atomic_fetch_add(&counts->refused, 1);
	return result;
}

/* Mostly as it is, sometimes something that hurts. */
static uint64_t spoiled(struct source *s, uint64_t value)
{
	if (!once_in(s, 12))
		return value;
	switch (below(s, 7)) {
	case 0: return 0;
	case 1: return UINT64_MAX;
	case 2: return next(s);
	case 3: return value ^ 1ULL << below(s, 64);
	case 4: return -value;
	case 5: return value + below(s, PAGE);
	default: return 0xffff888000000000 + (next(s) & 0xffffff000);
	}
}

static void keep(struct source *s, uint64_t handle)
{
	struct gpunvme_release release = { .handle = atomic_exchange(&handles[below(s, HANDLES)], handle) };

	/* Its place is taken: this one ends. */
	if (release.handle)
		call(GPUNVME_RELEASE, &release);
}

/* Memory that has to be waited for: missing pages, or pages of the file. */
static char *slow_memory(struct source *s)
{
	char *at = filed && once_in(s, 2) ? filed : faulty;

	return at + below(s, SLOW_PAGES) * PAGE;
}

static void forget_slow_memory(struct source *s)
{
	madvise(slow_memory(s), PAGE, MADV_DONTNEED);
	if (slow_file >= 0)
		posix_fadvise(slow_file, 0, 0, POSIX_FADV_DONTNEED);
}

/* An argument, mostly where it is, sometimes where the kernel has to wait for it. */
static int call_from_somewhere(struct source *s, unsigned long command, void *argument, size_t bytes)
{
	char *slow = slow_memory(s);
	int result;

	if (!once_in(s, 20))
		return call(command, argument);
	memcpy(slow, argument, bytes);
	result = call(command, slow);
	memcpy(argument, slow, bytes);
	return result;
}

static void pin_something(struct source *s, struct gpunvme_run *runs)
{
	bool slow = once_in(s, 20);
	uint64_t pages = once_in(s, 20) ? 1 + below(s, AREA / PAGE) : 1 + below(s, 16);
	struct gpunvme_pin pin = {
		.address = spoiled(s, (uintptr_t)(slow ? slow_memory(s) : area + below(s, AREA / PAGE) * PAGE)),
		.bytes = spoiled(s, pages * PAGE),
		.runs = spoiled(s, (uintptr_t)(once_in(s, 20) ? (void *)slow_memory(s) : runs)),
		.most_runs = once_in(s, 10) ? below(s, 4) : RUNS,
		.flags = once_in(s, 50) ? next(s) : 0,
		.reserved = once_in(s, 50) ? next(s) : 0,
	};

	/* Runs to a wrong place may hit this process: at worst it dies. */
	if (call_from_somewhere(s, GPUNVME_PIN, &pin, sizeof(pin)) == 0) {
		atomic_fetch_add(&counts->pins, 1);
		keep(s, pin.handle);
	}
}

static void import_something(struct source *s, struct gpunvme_run *runs)
{
	struct gpunvme_import import = {
		.fd = once_in(s, 4) ? (int)below(s, 12) - 2 : dmabuf,
		.flags = once_in(s, 50) ? next(s) : 0,
		.runs = spoiled(s, (uintptr_t)(once_in(s, 20) ? (void *)slow_memory(s) : runs)),
		.most_runs = once_in(s, 10) ? below(s, 4) : RUNS,
	};

	if (call_from_somewhere(s, GPUNVME_IMPORT, &import, sizeof(import)) == 0) {
		atomic_fetch_add(&counts->imports, 1);
		keep(s, import.handle);
	}
}

static void release_something(struct source *s)
{
	struct gpunvme_release release = { .handle = atomic_load(&handles[below(s, HANDLES)]) };

	release.handle = spoiled(s, release.handle);
	if (call(GPUNVME_RELEASE, &release) == 0)
		atomic_fetch_add(&counts->releases, 1);
}

static void anything(struct source *s)
{
	static const unsigned long commands[] = {
		GPUNVME_GET_INFO, GPUNVME_PIN, GPUNVME_IMPORT, GPUNVME_RELEASE, _IO(GPUNVME_IOC_TYPE, 77)
	};
	unsigned long command = once_in(s, 10) ? next(s) & 0xffffffff : commands[below(s, 5)];
	uint64_t words[8];

	for (int i = 0; i < 8; i++)
		words[i] = once_in(s, 2) ? next(s) : below(s, 4);
	/* A reset takes long: they have their own turn. */
	if (command != GPUNVME_RESET)
		call(command, once_in(s, 8) ? (void *)next(s) : words);
}

static void map_registers_somehow(struct source *s)
{
	uint64_t page = below(s, 5), pages = 1 + below(s, 4);
	volatile uint32_t *at = mmap(NULL, pages * PAGE, PROT_READ | (once_in(s, 2) ? PROT_WRITE : 0),
				     once_in(s, 10) ? MAP_PRIVATE : MAP_SHARED, node, page * PAGE);

	if (at == MAP_FAILED)
		return;
	atomic_fetch_add(&counts->maps, 1);
	/* Doorbells are not to be read. */
	if (page == 0)
		(void)at[2];
	if (pages > 1 && once_in(s, 2))
		munmap((char *)at + (pages - 1) * PAGE, PAGE);
	if (!once_in(s, 100))
		munmap((void *)at, pages * PAGE);
}

/* A child that has the file, and no right to it. */
static void fork_something(void)
{
	struct gpunvme_info info;
	pid_t pid = fork();

	if (pid == 0) {
		call(GPUNVME_GET_INFO, &info);
		call(GPUNVME_RESET, NULL);
		_exit(0);
	}
	atomic_fetch_add(&counts->forks, 1);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void open_something(struct source *s)
{
	char path[64];
	int fd, none = -1;

	node_path(functions[below(s, function_count)], path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		usleep(500);
	else if (!atomic_compare_exchange_strong(&node, &none, fd))
		close(fd);
}

static void close_file(void)
{
	int fd = atomic_exchange(&node, -1);

	if (fd >= 0)
		close(fd);
	for (int i = 0; i < HANDLES; i++)
		handles[i] = 0;
}

static void step(struct source *s, struct gpunvme_run *runs)
{
	struct gpunvme_info info;
	unsigned int turn = below(s, 1000);

	if (node < 0 || errno == ENODEV) {
		if (errno == ENODEV)
			close_file();
		errno = 0;
		open_something(s);
		return;
	}
	if (turn < 350)
		pin_something(s, runs);
	else if (turn < 450)
		import_something(s, runs);
	else if (turn < 750)
		release_something(s);
	else if (turn < 900)
		anything(s);
	else if (turn < 950)
		call(GPUNVME_GET_INFO, once_in(s, 5) ? (void *)next(s) : &info);
	else if (turn < 990)
		map_registers_somehow(s);
	else if (turn < 993)
		forget_slow_memory(s);
	else if (turn < 997)
		madvise(area + below(s, AREA / PAGE) * PAGE, PAGE, MADV_DONTNEED);
	else if (turn < 998)
		fork_something();
	else if (once_in(s, 20))
		close_file();
	else if (once_in(s, 200) && call(GPUNVME_RESET, NULL) == 0)
		atomic_fetch_add(&counts->resets, 1);
}

static void *thread(void *seed)
{
	struct source source = { .state = (uintptr_t)seed };
	struct gpunvme_run *runs = memory(RUNS * sizeof(*runs));

	for (;;)
		step(&source, runs);
	return NULL;
}

/* Gives the missing pages of the faulty memory, not at once. */
static void *give_pages(void *userfaultfd)
{
	int fd = (intptr_t)userfaultfd;
	struct uffdio_zeropage page = {};
	struct uffd_msg message;

	while (read(fd, &message, sizeof(message)) == sizeof(message)) {
		usleep(message.arg.pagefault.address / PAGE * 997 % LONGEST_DELAY_US);
		page.range.start = message.arg.pagefault.address & -PAGE;
		page.range.len = PAGE;
		ioctl(fd, UFFDIO_ZEROPAGE, &page);
	}
	return NULL;
}

static void get_slow_memory(struct source *s)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range.len = SLOW_PAGES * PAGE, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	pthread_t giver;

	faulty = mmap(NULL, SLOW_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)faulty;
	CHECK(fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &range), "userfaultfd");
	pthread_create(&giver, NULL, give_pages, (void *)(intptr_t)fd);
	slow_file = open(SLOW_FILE, O_RDWR | O_CLOEXEC);
	if (slow_file < 0)
		return;
	filed = mmap(NULL, SLOW_PAGES * PAGE, PROT_READ | PROT_WRITE, once_in(s, 2) ? MAP_SHARED : MAP_PRIVATE, slow_file, 0);
	if (filed == MAP_FAILED)
		filed = NULL;
}

static void worker(uint64_t seed)
{
	struct source source = { .state = ~seed };
	struct exported made;
	pthread_t other;

	area = memory(AREA);
	get_slow_memory(&source);
	/* Files of the guest's memory that DONTNEED gives back. */
	if (exporters[0].make(8 * PAGE, &made) == 0)
		dmabuf = made.fd;
	if (once_in(&source, 4) && setuid(1000))
		_exit(1);
	pthread_create(&other, NULL, thread, (void *)(uintptr_t)(seed + 1));
	thread((void *)(uintptr_t)seed);
}

/* ---- the process that starts and kills them */

static pid_t start_worker(uint64_t seed)
{
	pid_t pid = fork();

	if (pid == 0)
		worker(seed);
	return pid;
}

/* The file is made anew with the controller. Whether another user gets any further is the module's to say. */
static void let_everybody_try(const char *of)
{
	char path[64];

	node_path(of, path);
	chmod(path, 0666);
}

static void delay(bool write_of_pages)
{
	usleep(write_of_pages ? LONGEST_DELAY_US : LONGEST_DELAY_US / 4);
}

static void disturb(struct source *s, pid_t *workers)
{
	int victim = below(s, WORKERS);
	const char *of = functions[below(s, function_count)];

	kill(workers[victim], SIGKILL);
	waitpid(workers[victim], NULL, 0);
	workers[victim] = start_worker(next(s));
	if (once_in(s, 10)) {
		unbind_function(of);
		usleep(below(s, 2000));
		bind_function(of);
	} else if (once_in(s, 5)) {
		remove_function(of);
		return_function(of);
	}
	let_everybody_try(of);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void run(struct source *s, uint64_t calls, unsigned int seconds)
{
	double end = seconds_now() + seconds;
	pid_t workers[WORKERS];
	unsigned long kills = 0;
	pid_t server = serve_file(SLOW_FILE, SLOW_PAGES * PAGE, delay);
	int i;

	for (i = 0; i < function_count; i++)
		let_everybody_try(functions[i]);
	for (i = 0; i < WORKERS; i++)
		workers[i] = start_worker(next(s));
	while (counts->calls < calls && seconds_now() < end) {
		usleep(below(s, 300000));
		disturb(s, workers);
		kills++;
	}
	for (i = 0; i < WORKERS; i++)
		kill(workers[i], SIGKILL);
	if (server)
		end_file(SLOW_FILE, server);
	/* Also for the children of workers that were killed: they have the file of their parent until they end. */
	while (wait(NULL) > 0)
		;
	printf("%lu calls (%lu refused), %lu pinned, %lu imported, %lu released, %lu mappings, %lu forks, %lu resets, %lu kills\n",
	       counts->calls, counts->refused, counts->pins, counts->imports, counts->releases, counts->maps, counts->forks,
	       counts->resets, kills);
}

static void verdict(const char *name, bool good, long value)
{
	if (good)
		printf("PASS %s\n", name);
	else
		printf("FAIL %s: %ld\n", name, value);
}

int main(int count, char **arguments)
{
	uint64_t seed = time(NULL) ^ (uint64_t)getpid() << 32, calls = 1000000;
	unsigned int seconds = 360;
	struct source source;
	char text[256];
	long before, bufs, after, masters;
	int i = 1;

	for (; i + 1 < count && arguments[i][0] == '-'; i += 2) {
		uint64_t value = strtoull(arguments[i + 1], NULL, 0);

		if (strcmp(arguments[i], "--seed") == 0)
			seed = value;
		else if (strcmp(arguments[i], "--calls") == 0)
			calls = value;
		else if (strcmp(arguments[i], "--seconds") == 0)
			seconds = value;
	}
	functions = arguments + i;
	function_count = count - i;
	if (function_count < 1) {
		fprintf(stderr, "usage: kmod_fuzz [--seed N] [--calls N] [--seconds N] DDDD:BB:DD.F...\n");
		return 2;
	}
	printf("kmod_fuzz: seed %lu\n", seed);
	fflush(stdout);
	source.state = seed;
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* Children of workers that were killed become ours. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	before = pinned_pages();
	bufs = dma_bufs();
	run(&source, calls, seconds);
	after = pinned_pages();
	verdict("random calls in time", counts->calls >= calls, counts->calls);
	verdict("random calls did something",
		counts->pins > 1000 && counts->imports > 100 && counts->releases > 100 && counts->maps > 100, counts->pins);
	verdict("no page stays pinned after random calls", after == before, after - before);
	verdict("no dma-buf stays after random calls", dma_bufs() == bufs, dma_bufs() - bufs);
	read_line("/sys/module/gpunvme/refcnt", text);
	verdict("the module has no user after random calls", strcmp(text, "0") == 0, atol(text));
	for (masters = 0, i = 0; i < function_count; i++) {
		bind_function(functions[i]);
		if (bus_master(functions[i]))
			masters++;
	}
	verdict("no controller reaches memory after random calls", masters == 0, masters);
	printf("END\n");
	return 0;
}
