/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What a program and the module gpunvme say to each other, by /dev/gpunvme/DDDD:BB:DD.F: one file for each NVMe
 * controller that the module has.
 *
 * A file belongs to the address space that opened it, and one is open for a controller at a time (-EBUSY). Closing it,
 * however that happens, stops the controller and releases everything. Calls of others fail with -EPERM. When the
 * controller is gone, calls but GPUNVME_RELEASE fail with -ENODEV, poll() says POLLHUP, and registers read all ones.
 *
 * Reserved fields and flags have to be 0 (-EINVAL).
 */
#ifndef GPUNVME_UAPI_H
#define GPUNVME_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Grows when a program of the version before would be told something wrong. */
#define GPUNVME_ABI_VERSION 2

#define GPUNVME_IOC_TYPE 0xA7

/* gpunvme_info.flags */
#define GPUNVME_INFO_TRANSLATED (1u << 0) /* bus addresses are translated by an IOMMU */
#define GPUNVME_INFO_RESET	(1u << 1) /* the function can be reset alone */
/*
 * It reaches what the file has pinned and imported, and nothing else: translated, alone in its IOMMU group, interrupts
 * remapped. Without it only who has CAP_SYS_RAWIO may open the file (-EPERM), on a kernel that is not locked down
 * (-EPERM), with the module's parameter enable_unsafe_noiommu_mode (-EOPNOTSUPP).
 */
#define GPUNVME_INFO_ISOLATED	(1u << 2)

struct gpunvme_info {
	__u32 abi_version;
	__u32 flags;
	__u64 bar0_bytes;	/* mmap() of the file, from offset 0, maps BAR0 uncached, when a byte is touched */
	__u32 address_bits;	/* of bus addresses that the controller may be given */
	__u32 page_bytes;	/* pinned memory consists of such pages */
	__u64 most_bytes;	/* that this file may have pinned and imported at a time */
	__u64 bytes;		/* that it has now */
	__u32 most_ranges;	/* likewise, pinned and imported ranges */
	__u32 ranges;
	__u32 pci_domain;	/* whose file it is: a name in a file system may be older than the file behind it */
	__u32 pci_function;	/* bus << 8 | device << 3 | function */
	__u32 reserved[2];
};

/* Bytes with consecutive bus addresses; a range is some of them, one after the other. Multiples of 4096. */
struct gpunvme_run {
	__u64 bus_address;
	__u64 bytes;
};

struct gpunvme_pin {
	__u64 address;		/* in: of the memory, a multiple of page_bytes */
	__u64 bytes;		/* in: likewise, above 0 */
	__u64 runs;		/* in: address of an array of struct gpunvme_run */
	__u32 most_runs;	/* in: its length */
	__u32 flags;		/* in: 0 */
	__u32 run_count;	/* out: runs of the range; with -ENOSPC, how many it would have: nothing is pinned */
	__u32 reserved;
	__u64 handle;		/* out: for GPUNVME_RELEASE, never 0 */
};

/* gpunvme_import.flags of an answer */
#define GPUNVME_RANGE_RAM	(1u << 0) /* memory of this machine; that of a GPU may have been moved there */
#define GPUNVME_RANGE_REMAPPED	(1u << 1) /* mapped by this module: the exporter gave physical addresses of a peer */

struct gpunvme_import {
	__s32 fd;		/* in: a dma-buf; may be closed afterwards */
	__u32 flags;		/* in: 0, out: GPUNVME_RANGE_... */
	__u64 runs;		/* in, as of struct gpunvme_pin */
	__u32 most_runs;
	__u32 run_count;	/* out */
	__u64 bytes;		/* out: of the dma-buf, which its runs cover */
	__u64 handle;		/* out */
};

/* Pages are unpinned, or the dma-buf is left. The controller must not use the bus addresses any more. */
struct gpunvme_release {
	__u64 handle;
};

#define GPUNVME_GET_INFO _IOR(GPUNVME_IOC_TYPE, 0, struct gpunvme_info)
/* Memory is charged to RLIMIT_MEMLOCK (-ENOMEM), and to most_bytes and most_ranges (-EDQUOT). */
#define GPUNVME_PIN	 _IOWR(GPUNVME_IOC_TYPE, 1, struct gpunvme_pin)
/*
 * Charged to most_bytes and most_ranges. -EREMOTEIO: the exporter gave addresses that the IOMMU does not know, and
 * that are no peer's.
 */
#define GPUNVME_IMPORT	 _IOWR(GPUNVME_IOC_TYPE, 2, struct gpunvme_import)
/* -ENOENT: there is no such range, or not any more. */
#define GPUNVME_RELEASE	 _IOW(GPUNVME_IOC_TYPE, 3, struct gpunvme_release)
/* Resets the function; -EOPNOTSUPP without GPUNVME_INFO_RESET, -EAGAIN if somebody else is at it. Ranges stay. */
#define GPUNVME_RESET	 _IO(GPUNVME_IOC_TYPE, 4)

#endif
