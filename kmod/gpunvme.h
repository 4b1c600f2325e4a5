/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the module share.
 *
 * Locks, outermost first:
 *   misc_mtx (of the kernel) while a file is opened;
 *   gpunvme_device.lock: the controller and the ranges. Nothing that waits for a program's memory happens under it
 *     (no page is faulted in, pinned or unpinned, nothing is copied, no mmap_lock is taken): removal takes it, and must
 *     not wait for a program;
 *   gpunvme_device.bar: which pages mappings of registers get. A fault takes it under mmap_lock.
 */
#ifndef GPUNVME_H
#define GPUNVME_H

#include <linux/dma-buf.h>
#include <linux/iommu.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "gpunvme_uapi.h"

/*
 * A controller that the module has, or had: a file that is open lives on without it.
 */
struct gpunvme_device {
	struct kref kref;
	struct miscdevice misc;
	char name[32];
	char node[32];
	struct pci_dev *pdev;		/* not to be used once gone */
	void __iomem *registers;	/* likewise: the first page of BAR0 */
	struct pci_saved_state *config;	/* likewise: from before it was opened; NULL if there was no memory for it */
	phys_addr_t bar_start;
	u64 bar_bytes;
	u32 address_bits;
	bool translated;
	struct page *ones[2];		/* what is in the place of registers that are gone */

	struct mutex lock;		/* see above */
	struct rw_semaphore bar;	/* see above */
	bool gone;			/* written under lock and bar, read under one of them */
	wait_queue_head_t gone_wait;
	struct gpunvme_file *file;	/* the one that is open; under lock */
};

struct gpunvme_file {
	struct gpunvme_device *device;
	struct mm_struct *mm;		/* whose pages are pinned; its users may be gone */
	struct address_space *mapping;
	u64 most_bytes;
	u32 most_ranges;
	bool isolated;			/* when it was opened */

	/* Under the device's lock. */
	struct xarray ranges;
	u64 last_handle;
	u64 bytes;
	u32 range_count;
};

/*
 * Memory that the controller may reach: pinned pages, or a dma-buf.
 */
struct gpunvme_range {
	u64 handle;			/* 0: not among the file's ranges */
	u64 bytes;
	bool offered;			/* the program knows its addresses, and may release it */
	struct sg_table *mapped;	/* NULL: it has no bus addresses (any more) */

	unsigned long pages;		/* that are pinned; 0 with a dma-buf */
	struct sg_table pinned;

	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attachment;
	bool dmabuf_pinned;
	u32 kind;			/* GPUNVME_RANGE_ */
	struct sg_table remapped;	/* with GPUNVME_RANGE_REMAPPED: in the place of mapped */
};

/* main.c */
void gpunvme_device_free(struct kref *kref);
bool gpunvme_can_reset(struct gpunvme_device *d);
/* GPUNVME_INFO_ISOLATED; members of its group come and go. */
bool gpunvme_isolated(struct gpunvme_device *d);
/* NULL where no IOMMU translates. With the controller there. */
struct iommu_domain *gpunvme_domain(struct gpunvme_device *d);

/* file.c */
extern const struct file_operations gpunvme_fops;

/* ranges.c */
int gpunvme_pin(struct gpunvme_file *f, struct gpunvme_pin __user *argument);
int gpunvme_import(struct gpunvme_file *f, struct gpunvme_import __user *argument);
int gpunvme_release(struct gpunvme_file *f, u64 handle);
void gpunvme_unmap_all(struct gpunvme_file *f);
void gpunvme_free_all(struct gpunvme_file *f);

/* memory.c */
int gpunvme_memory_pin(struct gpunvme_file *f, struct gpunvme_range *r, u64 address);
int gpunvme_memory_map(struct gpunvme_device *d, struct gpunvme_range *r);
int gpunvme_memory_attach(struct gpunvme_device *d, struct gpunvme_range *r);
void gpunvme_memory_unmap(struct gpunvme_device *d, struct gpunvme_range *r);
void gpunvme_memory_let_go(struct gpunvme_file *f, struct gpunvme_range *r);

/* peers.c */
int gpunvme_peers_check(struct gpunvme_device *d, struct gpunvme_range *r);
void gpunvme_peers_end(struct gpunvme_device *d, struct gpunvme_range *r);

/* registers.c */
int gpunvme_registers_mmap(struct gpunvme_file *f, struct vm_area_struct *vma);
void gpunvme_registers_zap(struct gpunvme_file *f);
int gpunvme_registers_stop(struct gpunvme_device *d);

#endif
