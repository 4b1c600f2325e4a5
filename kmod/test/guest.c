// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define LONGEST_TEST_SECONDS 120

const char *function;
bool translated;
static const char *running = "";

void fail(const char *file, int line, const char *condition, const char *format, ...)
{
	int error = errno;
	va_list arguments;

	printf("FAIL %s: %s:%d: %s (errno %d, %s): ", running, file, line, condition, error, strerror(error));
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

void skip(const char *format, ...)
{
	va_list arguments;

	printf("SKIP %s: ", running);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
	_exit(SKIPPED);
}

/* The module must be as it was: a test that passes and leaves something behind has failed. */
static const char *left_behind(long pinned_before, long dma_bufs_before)
{
	struct gpunvme_info info;
	char path[64];
	int fd;

	if (pinned_pages() != pinned_before)
		return "pages are still pinned";
	if (dma_bufs() != dma_bufs_before)
		return "dma-bufs are still there";
	node_path(function, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return "the controller cannot be opened";
	if (ioctl(fd, GPUNVME_GET_INFO, &info))
		return "the controller says nothing";
	close(fd);
	if (info.bytes || info.ranges)
		return "a new file has ranges";
	if (bus_master(function))
		return "the controller may still reach memory";
	return NULL;
}

bool run_test(const char *name, void (*test)(void))
{
	long before = pinned_pages(), bufs = dma_bufs();
	const char *left;
	int status;
	pid_t child;

	running = name;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(LONGEST_TEST_SECONDS);
		test();
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status)) {
		printf("FAIL %s: ended by signal %d\n", name, WTERMSIG(status));
		return false;
	}
	if (WEXITSTATUS(status) == SKIPPED)
		return true;
	if (WEXITSTATUS(status) != 0)
		return false;
	left = left_behind(before, bufs);
	if (left) {
		printf("FAIL %s: afterwards %s (%ld pinned before, %ld after)\n", name, left, before, pinned_pages());
		return false;
	}
	printf("PASS %s\n", name);
	return true;
}

void read_line(const char *path, char *text)
{
	FILE *file = fopen(path, "re");

	CHECK(file, "%s", path);
	CHECK(fgets(text, 256, file), "%s", path);
	fclose(file);
	text[strcspn(text, "\n")] = 0;
}

int write_line(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error;
	ssize_t written;

	if (fd < 0)
		return -1;
	written = write(fd, text, strlen(text));
	error = errno;
	close(fd);
	errno = error;
	return written < 0 ? -1 : 0;
}

void node_path(const char *of, char *path)
{
	sprintf(path, "/dev/gpunvme/%s", of);
}

void bind_function(const char *of)
{
	char path[128];

	sprintf(path, "/sys/bus/pci/devices/%s/driver_override", of);
	write_line(path, "gpunvme");
	write_line("/sys/bus/pci/drivers_probe", of);
}

void unbind_function(const char *of)
{
	write_line("/sys/bus/pci/drivers/gpunvme/unbind", of);
}

void remove_function(const char *of)
{
	char path[128];

	sprintf(path, "/sys/bus/pci/devices/%s/remove", of);
	write_line(path, "1");
}

void return_function(const char *of)
{
	write_line("/sys/bus/pci/rescan", "1");
	bind_function(of);
}

bool bus_master(const char *of)
{
	char path[128];
	uint16_t command = 0;
	int fd;

	sprintf(path, "/sys/bus/pci/devices/%s/config", of);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0, "%s", path);
	CHECK(pread(fd, &command, sizeof(command), 4) == sizeof(command), "%s", path);
	close(fd);
	return command & 4;
}

int open_node(void)
{
	char path[64];
	int fd;

	node_path(function, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0, "%s", path);
	return fd;
}

struct gpunvme_info info_of(int fd)
{
	struct gpunvme_info info;

	memset(&info, 0xee, sizeof(info));
	CHECK(ioctl(fd, GPUNVME_GET_INFO, &info) == 0, "info");
	return info;
}

volatile uint32_t *map_registers(int fd)
{
	void *at = mmap(NULL, info_of(fd).bar0_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(at != MAP_FAILED, "mmap of BAR0");
	return at;
}

void *memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	CHECK(at != MAP_FAILED, "%zu bytes", bytes);
	return at;
}

static long number_in(const char *path, const char *name)
{
	size_t length = strlen(name);
	char line[256];
	long value = -1;
	FILE *file = fopen(path, "re");

	CHECK(file, "%s", path);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, name, length) == 0 && (line[length] == ' ' || line[length] == ':'))
			value = strtol(line + length + 1, NULL, 10);
	fclose(file);
	CHECK(value >= 0, "%s in %s", name, path);
	return value;
}

long pinned_pages(void)
{
	/* Each processor counts by itself; this adds what they have. */
	write_line("/proc/sys/vm/stat_refresh", "1");
	return number_in("/proc/vmstat", "nr_foll_pin_acquired") - number_in("/proc/vmstat", "nr_foll_pin_released");
}

long dma_bufs(void)
{
	FILE *file = fopen("/sys/kernel/debug/dma_buf/bufinfo", "re");
	char line[512];
	long count = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		sscanf(line, "Total %ld objects", &count);
	fclose(file);
	return count;
}

long status_kib(const char *field)
{
	return number_in("/proc/self/status", field);
}
