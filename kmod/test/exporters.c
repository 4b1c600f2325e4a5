// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "exporters.h"

#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/types.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

/* The part of the DRM ABI that makes a buffer; its headers are in no package of the C library. */
struct dumb {
	__u32 height, width, bits, flags;
	__u32 handle, pitch; /* out */
	__u64 size;
};
struct dumb_map {
	__u32 handle, pad;
	__u64 offset; /* out */
};
struct prime {
	__u32 handle, flags;
	__s32 fd; /* out */
};
#define CREATE_DUMB _IOWR('d', 0xb2, struct dumb)
#define MAP_DUMB _IOWR('d', 0xb3, struct dumb_map)
#define PRIME_HANDLE_TO_FD _IOWR('d', 0x2d, struct prime)

static int map(int fd, off_t offset, struct exported *made)
{
	made->memory = mmap(NULL, made->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	return made->memory == MAP_FAILED ? -1 : 0;
}

static int from_vgem(size_t bytes, struct exported *made)
{
	struct dumb dumb = { .width = PAGE, .height = bytes / PAGE, .bits = 8 };
	struct dumb_map where = {};
	struct prime prime = { .flags = O_CLOEXEC | O_RDWR };
	int card = open("/dev/dri/card0", O_RDWR | O_CLOEXEC), result = -1;

	if (card < 0)
		return -1;
	if (!ioctl(card, CREATE_DUMB, &dumb)) {
		prime.handle = where.handle = dumb.handle;
		if (!ioctl(card, PRIME_HANDLE_TO_FD, &prime) && !ioctl(card, MAP_DUMB, &where)) {
			made->fd = prime.fd;
			made->bytes = dumb.size;
			result = map(card, where.offset, made);
		}
	}
	close(card);
	return result;
}

static int from_udmabuf(size_t bytes, struct exported *made)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = bytes };
	int maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), file, result = -1;

	if (maker < 0)
		return -1;
	file = memfd_create("udmabuf", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (file >= 0 && !ftruncate(file, bytes) && !fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK)) {
		create.memfd = file;
		made->fd = ioctl(maker, UDMABUF_CREATE, &create);
		made->bytes = bytes;
		if (made->fd >= 0)
			result = map(file, 0, made);
	}
	close(file);
	close(maker);
	return result;
}

static int from_heap(size_t bytes, struct exported *made)
{
	struct dma_heap_allocation_data data = { .len = bytes, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC), result = -1;

	if (heap < 0)
		return -1;
	if (!ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data)) {
		made->fd = data.fd;
		made->bytes = bytes;
		result = map(data.fd, 0, made);
	}
	close(heap);
	return result;
}

const struct exporter exporters[] = {
	{ "vgem", from_vgem },
	{ "udmabuf", from_udmabuf },
	{ "heap", from_heap },
};
const int exporter_count = sizeof(exporters) / sizeof(exporters[0]);
