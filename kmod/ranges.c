// SPDX-License-Identifier: GPL-2.0
/*
 * The ranges of a file: what it may have, what it has, and what the program is told of it.
 *
 * A range is pinned without the lock, gets its bus addresses and its place among the ranges under the lock, is told to
 * the program without it, and counts as offered then. It loses them under the lock, too: when it is released, when the
 * file is closed, or when the controller goes. Its memory is given back without the lock, by the program's own call:
 * that may take as long as the program likes, and removal waits for the lock.
 */
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "gpunvme.h"

/* Larger ones would need lists that the kernel does not allocate in one piece. */
#define MOST_RANGE_BYTES (256ULL << 30)

#define RUN_MULTIPLE 4096

/* Where the runs of a range go. */
struct answer {
	struct gpunvme_run __user *runs;
	u32 most;
	u32 count;
};

static int reserve(struct gpunvme_file *f, u64 bytes)
{
	struct gpunvme_device *d = f->device;
	int err = 0;

	mutex_lock(&d->lock);
	if (d->gone) {
		err = -ENODEV;
	} else if (f->range_count >= f->most_ranges || bytes > MOST_RANGE_BYTES || f->bytes > f->most_bytes ||
		   bytes > f->most_bytes - f->bytes) {
		err = -EDQUOT;
	} else {
		f->bytes += bytes;
		f->range_count++;
	}
	mutex_unlock(&d->lock);
	return err;
}

/* A range that counts against the limits of the file. */
static struct gpunvme_range *range_new(struct gpunvme_file *f, u64 bytes)
{
	struct gpunvme_range *r;
	int err;

	r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	if (!r)
		return ERR_PTR(-ENOMEM);
	r->bytes = bytes;
	err = reserve(f, bytes);
	if (err) {
		kfree(r);
		return ERR_PTR(err);
	}
	return r;
}

/* Under the lock: nobody finds it any more, and the controller cannot reach it. */
static void range_leave(struct gpunvme_file *f, struct gpunvme_range *r)
{
	if (r->handle)
		xa_erase(&f->ranges, r->handle);
	gpunvme_memory_unmap(f->device, r);
}

/* Without the lock, after it has left. */
static void range_free(struct gpunvme_file *f, struct gpunvme_range *r)
{
	gpunvme_memory_let_go(f, r);
	mutex_lock(&f->device->lock);
	f->bytes -= r->bytes;
	f->range_count--;
	mutex_unlock(&f->device->lock);
	kfree(r);
}

/* Pieces with consecutive addresses, merged; counted only if runs is NULL. They have to be the whole range. */
static int collect(struct gpunvme_range *r, struct gpunvme_run *runs, u32 *count)
{
	struct sg_table *table = r->kind & GPUNVME_RANGE_REMAPPED ? &r->remapped : r->mapped;
	struct gpunvme_run run = {};
	struct scatterlist *sg;
	unsigned int i;
	u64 sum = 0, end;
	u32 n = 0;

	for_each_sgtable_dma_sg(table, sg, i) {
		u64 address = sg_dma_address(sg), bytes = sg_dma_len(sg);

		if (!bytes || check_add_overflow(address, bytes - 1, &end) || bytes > r->bytes - sum)
			return -EINVAL;
		sum += bytes;
		if (n && address == run.bus_address + run.bytes) {
			run.bytes += bytes;
		} else {
			if ((run.bus_address | run.bytes) % RUN_MULTIPLE)
				return -EINVAL;
			run.bus_address = address;
			run.bytes = bytes;
			n++;
		}
		if (runs)
			runs[n - 1] = run;
	}
	if ((run.bus_address | run.bytes) % RUN_MULTIPLE || sum != r->bytes)
		return -EINVAL;
	*count = n;
	return 0;
}

/* Under the lock, with bus addresses. The list is to be freed with kvfree(). */
static struct gpunvme_run *list_runs(struct gpunvme_range *r, struct answer *answer)
{
	struct gpunvme_run *runs;
	int err;

	err = collect(r, NULL, &answer->count);
	if (err)
		return ERR_PTR(err);
	if (answer->count > answer->most)
		return ERR_PTR(-ENOSPC);
	runs = kvmalloc_array(answer->count, sizeof(*runs), GFP_KERNEL_ACCOUNT);
	if (!runs)
		return ERR_PTR(-ENOMEM);
	err = collect(r, runs, &answer->count);
	if (err) {
		kvfree(runs);
		return ERR_PTR(err);
	}
	return runs;
}

/* Under the lock: bus addresses, a handle that no range of this file ever had, and the list of runs. */
static struct gpunvme_run *enter(struct gpunvme_file *f, struct gpunvme_range *r, struct answer *answer,
				 int (*map)(struct gpunvme_device *, struct gpunvme_range *))
{
	struct gpunvme_run *runs;
	int err;

	if (f->device->gone)
		return ERR_PTR(-ENODEV);
	err = map(f->device, r);
	if (err)
		return ERR_PTR(err);
	runs = list_runs(r, answer);
	if (IS_ERR(runs)) {
		err = PTR_ERR(runs);
		goto unmap;
	}
	err = xa_insert(&f->ranges, f->last_handle + 1, r, GFP_KERNEL_ACCOUNT);
	if (err) {
		kvfree(runs);
		goto unmap;
	}
	r->handle = ++f->last_handle;
	return runs;

unmap:
	/* Removal finds ranges by their handles: one without must have no bus addresses when the lock is free. */
	gpunvme_memory_unmap(f->device, r);
	return ERR_PTR(err);
}

static int offer(struct gpunvme_file *f, struct gpunvme_range *r, struct answer *answer,
		 int (*map)(struct gpunvme_device *, struct gpunvme_range *))
{
	struct gpunvme_run *runs;
	int err = 0;

	mutex_lock(&f->device->lock);
	runs = enter(f, r, answer, map);
	mutex_unlock(&f->device->lock);
	if (IS_ERR(runs))
		return PTR_ERR(runs);
	if (copy_to_user(answer->runs, runs, array_size(answer->count, sizeof(*runs))))
		err = -EFAULT;
	kvfree(runs);
	return err;
}

/* After everything was told, or something failed: the range is the program's, or it ends. */
static int settle(struct gpunvme_file *f, struct gpunvme_range *r, int err)
{
	mutex_lock(&f->device->lock);
	if (!err && f->device->gone)
		err = -ENODEV;
	if (err)
		range_leave(f, r);
	else
		r->offered = true;
	mutex_unlock(&f->device->lock);
	if (err)
		range_free(f, r);
	return err;
}

int gpunvme_pin(struct gpunvme_file *f, struct gpunvme_pin __user *argument)
{
	struct gpunvme_pin pin;
	struct answer answer;
	struct gpunvme_range *r;
	u64 end;
	int err;

	if (copy_from_user(&pin, argument, sizeof(pin)))
		return -EFAULT;
	if (pin.flags || pin.reserved || !pin.bytes || !PAGE_ALIGNED(pin.address) || !PAGE_ALIGNED(pin.bytes) ||
	    check_add_overflow(pin.address, pin.bytes, &end))
		return -EINVAL;
	r = range_new(f, pin.bytes);
	if (IS_ERR(r))
		return PTR_ERR(r);

	answer = (struct answer){ .runs = u64_to_user_ptr(pin.runs), .most = pin.most_runs };
	err = gpunvme_memory_pin(f, r, pin.address);
	if (!err)
		err = offer(f, r, &answer, gpunvme_memory_map);
	pin.run_count = answer.count;
	pin.handle = err ? 0 : r->handle;
	if ((!err || err == -ENOSPC) && copy_to_user(argument, &pin, sizeof(pin)))
		err = -EFAULT;
	return settle(f, r, err);
}

int gpunvme_import(struct gpunvme_file *f, struct gpunvme_import __user *argument)
{
	struct gpunvme_import import;
	struct answer answer;
	struct gpunvme_range *r;
	struct dma_buf *dmabuf;
	int err;

	if (copy_from_user(&import, argument, sizeof(import)))
		return -EFAULT;
	if (import.flags)
		return -EINVAL;
	dmabuf = dma_buf_get(import.fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	r = range_new(f, dmabuf->size);
	if (IS_ERR(r)) {
		dma_buf_put(dmabuf);
		return PTR_ERR(r);
	}
	r->dmabuf = dmabuf;

	answer = (struct answer){ .runs = u64_to_user_ptr(import.runs), .most = import.most_runs };
	import.bytes = dmabuf->size;
	err = offer(f, r, &answer, gpunvme_memory_attach);
	import.flags = err ? 0 : r->kind;
	import.run_count = answer.count;
	import.handle = err ? 0 : r->handle;
	if ((!err || err == -ENOSPC) && copy_to_user(argument, &import, sizeof(import)))
		err = -EFAULT;
	return settle(f, r, err);
}

int gpunvme_release(struct gpunvme_file *f, u64 handle)
{
	struct gpunvme_device *d = f->device;
	struct gpunvme_range *r;

	mutex_lock(&d->lock);
	r = xa_load(&f->ranges, handle);
	if (r && r->offered)
		range_leave(f, r);
	else
		r = NULL;
	mutex_unlock(&d->lock);
	if (!r)
		return -ENOENT;
	range_free(f, r);
	return 0;
}

/* Under the lock, when the file is closed, or the controller goes: ranges stay, and lose their bus addresses. */
void gpunvme_unmap_all(struct gpunvme_file *f)
{
	struct gpunvme_range *r;
	unsigned long handle;

	xa_for_each(&f->ranges, handle, r) {
		gpunvme_memory_unmap(f->device, r);
		cond_resched();
	}
}

/* Without the lock, when the file is closed: no call is under way any more. */
void gpunvme_free_all(struct gpunvme_file *f)
{
	struct gpunvme_range *r;
	unsigned long handle;

	xa_for_each(&f->ranges, handle, r) {
		range_free(f, r);
		cond_resched();
	}
	xa_destroy(&f->ranges);
}
