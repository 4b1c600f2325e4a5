/* SPDX-License-Identifier: GPL-2.0 */
/* What kernels from 5.15 on call differently. */
#ifndef GPUNVME_COMPAT_H
#define GPUNVME_COMPAT_H

#include <linux/dma-resv.h>
#include <linux/iommu.h>
#include <linux/irqdomain.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define GPUNVME_IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#else
#define GPUNVME_IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

/* The member of struct dma_buf_attach_ops; see Kbuild. */
#ifndef GPUNVME_MOVE_NOTIFY
#define GPUNVME_MOVE_NOTIFY move_notify
#endif

#ifdef CONFIG_IOMMU_API
/* Whether members of the group cannot forge the interrupts of others. */
static inline bool gpunvme_isolated_msi(struct device *dev, struct iommu_group *group)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	return iommu_group_has_isolated_msi(group);
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 0, 0)
	return irq_domain_check_msi_remap() || device_iommu_capable(dev, IOMMU_CAP_INTR_REMAP);
#else
	return irq_domain_check_msi_remap() || iommu_capable(dev->bus, IOMMU_CAP_INTR_REMAP);
#endif
}
#endif

/* Until the exporter has put the memory where it is pinned. */
static inline long gpunvme_wait_for_exporter(struct dma_resv *resv, unsigned long jiffies_most)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 19, 0)
	return dma_resv_wait_timeout(resv, DMA_RESV_USAGE_KERNEL, true, jiffies_most);
#else
	return dma_resv_wait_timeout(resv, false, true, jiffies_most);
#endif
}

#endif
