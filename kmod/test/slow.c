// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "slow.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

/* ---- userfaultfd */

static void protect(struct guarded_page *page, uint64_t mode)
{
	struct uffdio_writeprotect protect = { .range = { (uintptr_t)page->at, PAGE }, .mode = mode };

	CHECK(ioctl(page->userfaultfd, UFFDIO_WRITEPROTECT, &protect) == 0, "write protection");
}

struct guarded_page guard_page(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct guarded_page page = { memory(PAGE), syscall(SYS_userfaultfd, O_CLOEXEC) };
	struct uffdio_register range = { .range = { (uintptr_t)page.at, PAGE }, .mode = UFFDIO_REGISTER_MODE_WP };

	CHECK(page.userfaultfd >= 0 && ioctl(page.userfaultfd, UFFDIO_API, &api) == 0, "userfaultfd");
	CHECK(ioctl(page.userfaultfd, UFFDIO_REGISTER, &range) == 0, "userfaultfd's page");
	return page;
}

void fill_guarded_page(struct guarded_page *page, const void *bytes, uint64_t count)
{
	memcpy(page->at, bytes, count);
	protect(page, UFFDIO_WRITEPROTECT_MODE_WP);
}

void await_writer(struct guarded_page *page)
{
	struct uffd_msg message;

	CHECK(read(page->userfaultfd, &message, sizeof(message)) == sizeof(message), "userfaultfd");
	CHECK(message.event == UFFD_EVENT_PAGEFAULT, "event %x", message.event);
}

void open_guarded_page(struct guarded_page *page)
{
	protect(page, 0);
}

/* ---- FUSE: the root of the file system is the file */

#define LONGEST_REQUEST (1 << 17)

static uint64_t file_bytes;
static int kernel;

static void answer(const struct fuse_in_header *request, int error, const void *body, uint32_t bytes)
{
	static char reply[LONGEST_REQUEST + 4096];
	struct fuse_out_header header = { sizeof(header) + bytes, -error, request->unique };

	memcpy(reply, &header, sizeof(header));
	if (bytes)
		memcpy(reply + sizeof(header), body, bytes);
	/* The kernel does not want every answer any more. */
	(void)!write(kernel, reply, header.len);
}

static void answer_attributes(const struct fuse_in_header *request)
{
	struct fuse_attr_out out = { .attr_valid = 1000 };

	out.attr.ino = 1;
	out.attr.size = file_bytes;
	out.attr.mode = S_IFREG | 0666;
	out.attr.nlink = 1;
	out.attr.blksize = PAGE;
	answer(request, 0, &out, sizeof(out));
}

static void serve(const struct fuse_in_header *request, const void *body, void (*before)(bool write))
{
	static const char zeroes[LONGEST_REQUEST];
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = LONGEST_REQUEST,
		.max_background = 16, .congestion_threshold = 16
	};
	struct fuse_open_out opened = {};
	struct fuse_write_out written = {};

	switch (request->opcode) {
	case FUSE_INIT:
		answer(request, 0, &init, sizeof(init));
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		answer_attributes(request);
		break;
	case FUSE_OPEN:
		answer(request, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		before(false);
		answer(request, 0, zeroes, ((const struct fuse_read_in *)body)->size);
		break;
	case FUSE_WRITE:
		before(true);
		written.size = ((const struct fuse_write_in *)body)->size;
		answer(request, 0, &written, sizeof(written));
		break;
	case FUSE_RELEASE:
	case FUSE_FLUSH:
	case FUSE_FSYNC:
		answer(request, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(request, ENOSYS, NULL, 0);
	}
}

static void serve_all(void (*before)(bool write)) __attribute__((noreturn));

static void serve_all(void (*before)(bool write))
{
	static char request[LONGEST_REQUEST + 4096] __attribute__((aligned(8)));

	for (;;) {
		ssize_t bytes = read(kernel, request, sizeof(request));

		if (bytes >= (ssize_t)sizeof(struct fuse_in_header))
			serve((void *)request, request + sizeof(struct fuse_in_header), before);
		else if (errno == ENODEV)
			_exit(0);
	}
}

pid_t serve_file(const char *path, uint64_t bytes, void (*before)(bool write))
{
	struct stat state;
	char options[128];
	pid_t server;

	kernel = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (kernel < 0)
		return 0;
	close(open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	sprintf(options, "fd=%d,rootmode=%o,user_id=0,group_id=0,allow_other", kernel, S_IFREG);
	CHECK(mount("slow", path, "fuse", 0, options) == 0, "FUSE on %s", path);
	file_bytes = bytes;
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_all(before);
	}
	close(kernel);
	/* A fault does not ask how long the file is. */
	CHECK(stat(path, &state) == 0 && (uint64_t)state.st_size == bytes, "%s", path);
	return server;
}

void end_file(const char *path, pid_t server)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	umount2(path, MNT_DETACH);
}
