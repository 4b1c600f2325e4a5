/* SPDX-License-Identifier: GPL-2.0 */
/* dma-bufs that stand in for a GPU's memory: of vgem (dumb buffers), udmabuf, and the system heap. */
#ifndef EXPORTERS_H
#define EXPORTERS_H

#include <stddef.h>

struct exported {
	int fd;		/* the dma-buf */
	size_t bytes;
	void *memory;	/* the exporter's own mapping of it */
};

struct exporter {
	const char *name;
	/* 0, or -1 where the kernel has no such exporter. */
	int (*make)(size_t bytes, struct exported *made);
};

extern const struct exporter exporters[];
extern const int exporter_count;

#endif
