// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/gpunvme/DDDD:BB:DD.F: who may open it, what it can be asked, and what its end does.
 */
#include <linux/capability.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "gpunvme.h"

static unsigned long most_bytes;
module_param(most_bytes, ulong, 0644);
MODULE_PARM_DESC(most_bytes, "bytes that a file may have pinned and imported (0: 3/4 of memory); for files opened later");

static unsigned int most_ranges = 65536;
module_param(most_ranges, uint, 0644);
MODULE_PARM_DESC(most_ranges, "ranges that a file may have pinned and imported; for files opened later");

static bool enable_unsafe_noiommu_mode;
module_param(enable_unsafe_noiommu_mode, bool, 0644);
MODULE_PARM_DESC(enable_unsafe_noiommu_mode,
		 "controllers that no IOMMU isolates may be opened by root: they reach all memory");

/* As VFIO's mode of this name, and more: a signed module must not be a way around lockdown. */
static int may_open_unisolated(struct gpunvme_device *d)
{
	int err;

	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	err = security_locked_down(LOCKDOWN_PCI_ACCESS);
	if (err)
		return err;
	if (!READ_ONCE(enable_unsafe_noiommu_mode))
		return -EOPNOTSUPP;
	add_taint(TAINT_USER, LOCKDEP_STILL_OK);
	dev_warn_ratelimited(&d->pdev->dev, "opened by %s (%d), and no IOMMU isolates it\n", current->comm,
			     task_pid_nr(current));
	return 0;
}

static u64 default_bytes(void)
{
	return ((u64)totalram_pages() << PAGE_SHIFT) / 4 * 3;
}

static struct gpunvme_file *file_new(struct gpunvme_device *d, struct file *file)
{
	struct gpunvme_file *f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);

	if (!f)
		return NULL;
	kref_get(&d->kref);
	mmgrab(current->mm);
	f->device = d;
	f->mm = current->mm;
	f->mapping = file->f_mapping;
	f->most_bytes = READ_ONCE(most_bytes);
	if (!f->most_bytes)
		f->most_bytes = default_bytes();
	f->most_ranges = READ_ONCE(most_ranges);
	xa_init(&f->ranges);
	return f;
}

static int gpunvme_open(struct inode *inode, struct file *file)
{
	struct gpunvme_device *d = container_of(file->private_data, struct gpunvme_device, misc);
	struct gpunvme_file *f;
	bool isolated = false;
	int err = 0;

	/* Whoever has it writes: registers, and memory by the controller. */
	if ((file->f_mode & (FMODE_READ | FMODE_WRITE)) != (FMODE_READ | FMODE_WRITE))
		return -EACCES;
	if (!current->mm)
		return -EPERM;

	mutex_lock(&d->lock);
	if (d->gone) {
		err = -ENODEV;
	} else if (d->file) {
		err = -EBUSY;
	} else {
		isolated = gpunvme_isolated(d);
		if (!isolated)
			err = may_open_unisolated(d);
		/* It may not have stopped when the last file was closed, and a reset may have failed. */
		if (!err)
			err = gpunvme_registers_stop(d);
	}
	if (!err) {
		f = file_new(d, file);
		if (f) {
			f->isolated = isolated;
			file->private_data = f;
			d->file = f;
			pci_set_master(d->pdev);
		} else {
			err = -ENOMEM;
		}
	}
	mutex_unlock(&d->lock);
	return err;
}

/* Also of a program that was killed: the controller must be still before its memory is given away. */
static int gpunvme_close(struct inode *inode, struct file *file)
{
	struct gpunvme_file *f = file->private_data;
	struct gpunvme_device *d = f->device;

	mutex_lock(&d->lock);
	if (!d->gone) {
		gpunvme_registers_stop(d);
		if (gpunvme_can_reset(d) && pci_try_reset_function(d->pdev))
			pci_dbg(d->pdev, "stopped, and not reset\n");
	}
	gpunvme_unmap_all(f);
	d->file = NULL;
	mutex_unlock(&d->lock);

	gpunvme_free_all(f);
	mmdrop(f->mm);
	kfree(f);
	kref_put(&d->kref, gpunvme_device_free);
	return 0;
}

static int get_info(struct gpunvme_file *f, struct gpunvme_info __user *argument)
{
	struct gpunvme_device *d = f->device;
	struct gpunvme_info info = {
		.abi_version = GPUNVME_ABI_VERSION,
		.bar0_bytes = d->bar_bytes,
		.address_bits = d->address_bits,
		.page_bytes = PAGE_SIZE,
		.most_bytes = f->most_bytes,
		.most_ranges = f->most_ranges,
	};
	int err = 0;

	mutex_lock(&d->lock);
	info.bytes = f->bytes;
	info.ranges = f->range_count;
	if (d->gone) {
		err = -ENODEV;
	} else {
		info.pci_domain = pci_domain_nr(d->pdev->bus);
		info.pci_function = pci_dev_id(d->pdev);
		if (gpunvme_can_reset(d))
			info.flags |= GPUNVME_INFO_RESET;
	}
	mutex_unlock(&d->lock);
	if (d->translated)
		info.flags |= GPUNVME_INFO_TRANSLATED;
	if (f->isolated)
		info.flags |= GPUNVME_INFO_ISOLATED;
	if (!err && copy_to_user(argument, &info, sizeof(info)))
		err = -EFAULT;
	return err;
}

/* Nobody touches registers during the reset: who tries waits in the fault. */
static int reset(struct gpunvme_file *f)
{
	struct gpunvme_device *d = f->device;
	int err;

	mutex_lock(&d->lock);
	if (d->gone) {
		err = -ENODEV;
	} else if (!gpunvme_can_reset(d)) {
		err = -EOPNOTSUPP;
	} else {
		down_write(&d->bar);
		gpunvme_registers_zap(f);
		err = pci_try_reset_function(d->pdev);
		up_write(&d->bar);
	}
	mutex_unlock(&d->lock);
	return err;
}

static long gpunvme_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct gpunvme_file *f = file->private_data;
	void __user *pointer = (void __user *)argument;
	struct gpunvme_release release;

	if (current->mm != f->mm)
		return -EPERM;
	switch (command) {
	case GPUNVME_GET_INFO:
		return get_info(f, pointer);
	case GPUNVME_PIN:
		return gpunvme_pin(f, pointer);
	case GPUNVME_IMPORT:
		return gpunvme_import(f, pointer);
	case GPUNVME_RELEASE:
		if (copy_from_user(&release, pointer, sizeof(release)))
			return -EFAULT;
		return gpunvme_release(f, release.handle);
	case GPUNVME_RESET:
		return reset(f);
	default:
		return -ENOTTY;
	}
}

static int gpunvme_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct gpunvme_file *f = file->private_data;

	if (vma->vm_mm != f->mm)
		return -EPERM;
	return gpunvme_registers_mmap(f, vma);
}

static __poll_t gpunvme_poll(struct file *file, struct poll_table_struct *table)
{
	struct gpunvme_file *f = file->private_data;

	poll_wait(file, &f->device->gone_wait, table);
	return READ_ONCE(f->device->gone) ? EPOLLHUP | EPOLLERR : 0;
}

const struct file_operations gpunvme_fops = {
	.owner = THIS_MODULE,
	.open = gpunvme_open,
	.release = gpunvme_close,
	.unlocked_ioctl = gpunvme_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = gpunvme_mmap,
	.poll = gpunvme_poll,
	.llseek = noop_llseek,
};
