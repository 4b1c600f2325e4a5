// SPDX-License-Identifier: GPL-2.0
/*
 * BAR0: mapped into the program that drives the controller, taken away when the controller is reset or goes.
 */
#include <linux/delay.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "gpunvme.h"

/* NVMe base specification, 3.1.4 */
#define NVME_CAP 0x00
#define NVME_CAP_TO(cap) (((cap) >> 24) & 0xff) /* in 500 ms */
#define NVME_CC 0x14
#define NVME_CC_EN BIT(0)
#define NVME_CSTS 0x1c
#define NVME_CSTS_RDY BIT(0)

/* Bus mastering is off while we wait: a controller may never get ready, and then it is reset anyway. */
#define LONGEST_WAIT_MS 2000

static unsigned long bar_frame(struct gpunvme_device *d, unsigned long page)
{
	return (d->bar_start >> PAGE_SHIFT) + page;
}

/*
 * Registers that are gone read all ones, as those of a device that is gone do, and a program is not killed for looking.
 * Doorbells that it still rings are in another page than the registers that it looks at.
 */
static unsigned long ones_frame(struct gpunvme_device *d, unsigned long page)
{
	return page_to_pfn(d->ones[page ? 1 : 0]);
}

/*
 * All pages of the mapping at once, not only the one that was touched: a GPU's driver looks for them in the page table
 * and touches none. Not before one is touched: the zap finds only mappings that the kernel knows already. Page by page,
 * since remap_pfn_range() reserves the memory type of the whole mapping on x86, and loses it when parts are unmapped.
 */
static vm_fault_t fill(struct gpunvme_device *d, struct vm_area_struct *vma)
{
	pgprot_t ones_prot = vm_get_page_prot(vma->vm_flags);
	vm_fault_t result = VM_FAULT_NOPAGE;
	unsigned long i, page, address;

	for (i = 0; i < vma_pages(vma) && result == VM_FAULT_NOPAGE; i++) {
		page = vma->vm_pgoff + i;
		address = vma->vm_start + (i << PAGE_SHIFT);
		if (d->gone)
			result = vmf_insert_pfn_prot(vma, address, ones_frame(d, page), ones_prot);
		else
			result = vmf_insert_pfn(vma, address, bar_frame(d, page));
	}
	return result;
}

static vm_fault_t registers_fault(struct vm_fault *vmf)
{
	struct gpunvme_file *f = vmf->vma->vm_file->private_data;
	struct gpunvme_device *d = f->device;
	vm_fault_t result;

	down_read(&d->bar);
	result = fill(d, vmf->vma);
	up_read(&d->bar);
	return result;
}

static const struct vm_operations_struct registers_ops = {
	.fault = registers_fault,
};

int gpunvme_registers_mmap(struct gpunvme_file *f, struct vm_area_struct *vma)
{
	struct gpunvme_device *d = f->device;
	unsigned long most = d->bar_bytes >> PAGE_SHIFT;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_pgoff >= most || vma_pages(vma) > most - vma->vm_pgoff)
		return -EINVAL;
	vma->vm_page_prot = pgprot_decrypted(pgprot_noncached(vma->vm_page_prot));
	/* A child is another address space, and those have no business here. */
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_ops = &registers_ops;

	return READ_ONCE(d->gone) ? -ENODEV : 0;
}

void gpunvme_registers_zap(struct gpunvme_file *f)
{
	unmap_mapping_range(f->mapping, 0, 0, 1);
}

/*
 * First it may reach no memory any more, whatever it does; then it is told to stop, and waited for. Until it has, it
 * may use the addresses that it was given. -ETIMEDOUT: it has not. -ENODEV: its registers read all ones, as without it.
 */
int gpunvme_registers_stop(struct gpunvme_device *d)
{
	u32 cc, csts;
	u16 command;
	u64 waited, most;

	pci_clear_master(d->pdev);
	/* What it wrote before is in memory when this read has come back. */
	pci_read_config_word(d->pdev, PCI_COMMAND, &command);

	cc = readl(d->registers + NVME_CC);
	if (cc & NVME_CC_EN)
		writel(cc & ~NVME_CC_EN, d->registers + NVME_CC);
	most = min_t(u64, (NVME_CAP_TO(readq(d->registers + NVME_CAP)) + 1) * 500, LONGEST_WAIT_MS);
	for (waited = 0;; waited += 20) {
		csts = readl(d->registers + NVME_CSTS);
		if (csts == U32_MAX)
			return -ENODEV;
		if (!(csts & NVME_CSTS_RDY))
			return 0;
		if (waited >= most)
			return -ETIMEDOUT;
		msleep(20);
	}
}
