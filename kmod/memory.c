// SPDX-License-Identifier: GPL-2.0
/*
 * One range of memory: pages pinned or a dma-buf attached, and bus addresses of it.
 */
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "gpunvme.h"

#define PAGES_AT_ONCE 4096
#define LONGEST_WAIT (10 * HZ)

/* Memory that would need it is refused: see needs_sync(). A program may pin a page twice, and that is fine then. */
#define NO_SYNC DMA_ATTR_SKIP_CPU_SYNC

/* ---- pages of the program */

/* How many of the pages are pinned, in *done, also if it fails. */
static int pin_pages(u64 address, unsigned long count, struct page **pages, unsigned long *done)
{
	unsigned long part;
	int got;

	while (*done < count) {
		if (fatal_signal_pending(current))
			return -EINTR;
		part = min_t(unsigned long, count - *done, PAGES_AT_ONCE);
		got = pin_user_pages_fast(address + (*done << PAGE_SHIFT), part, FOLL_WRITE | FOLL_LONGTERM,
					  pages + *done);
		if (got <= 0)
			return got ? got : -EFAULT;
		*done += got;
		cond_resched();
	}
	return 0;
}

/* Pins the pages, and charges them to the program. Without the lock: it may take as long as the program likes. */
int gpunvme_memory_pin(struct gpunvme_file *f, struct gpunvme_range *r, u64 address)
{
	unsigned long count = r->bytes >> PAGE_SHIFT, done = 0;
	struct page **pages;
	int err;

	err = account_locked_vm(f->mm, count, true);
	if (err)
		return err;
	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages) {
		err = -ENOMEM;
		goto unaccount;
	}
	err = pin_pages(address, count, pages, &done);
	if (!err)
		err = sg_alloc_table_from_pages(&r->pinned, pages, count, 0, r->bytes, GFP_KERNEL_ACCOUNT);
	if (err) {
		unpin_user_pages(pages, done);
		goto free;
	}
	r->pages = count;
	kvfree(pages);
	return 0;

free:
	kvfree(pages);
unaccount:
	account_locked_vm(f->mm, count, false);
	return err;
}

static void unpin(struct gpunvme_range *r)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(&r->pinned, sg, i) {
		unpin_user_page_range_dirty_lock(sg_page(sg), sg->length >> PAGE_SHIFT, true);
		cond_resched();
	}
	sg_free_table(&r->pinned);
}

/*
 * Whether the processor would have to copy or flush when the controller has written: nobody tells the kernel when that
 * is. With translation whole pages are never copied.
 */
static bool needs_sync(struct gpunvme_device *d, struct sg_table *table)
{
	struct device *dev = &d->pdev->dev;
	struct scatterlist *sg;
	unsigned int i;

	if (!dev_is_dma_coherent(dev))
		return true;
	if (d->translated)
		return false;
	for_each_sgtable_dma_sg(table, sg, i)
		if (dma_need_sync(dev, sg_dma_address(sg)))
			return true;
	return false;
}

/* Under the lock, with the controller there. */
int gpunvme_memory_map(struct gpunvme_device *d, struct gpunvme_range *r)
{
	int err;

	err = dma_map_sgtable(&d->pdev->dev, &r->pinned, DMA_BIDIRECTIONAL, NO_SYNC);
	if (err)
		return err;
	r->mapped = &r->pinned;
	if (needs_sync(d, r->mapped)) {
		gpunvme_memory_unmap(d, r);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* ---- dma-bufs */

/*
 * Memory that is not pinned (yet, or any more) may move. Without this an exporter would move its memory into the host's
 * before it maps it. Under the reservation lock.
 */
static void moved(struct dma_buf_attachment *attachment)
{
	struct gpunvme_range *r = attachment->importer_priv;

	if (r->dmabuf_pinned)
		dev_warn_ratelimited(attachment->dev, "an exporter moves memory that is pinned\n");
}

static const struct dma_buf_attach_ops attach_ops = {
	.allow_peer2peer = true,
	.GPUNVME_MOVE_NOTIFY = moved,
};

static int map_attachment(struct gpunvme_range *r)
{
	struct sg_table *table;
	long waited;
	int err;

	err = dma_buf_pin(r->attachment);
	if (err)
		return err;
	r->dmabuf_pinned = true;
	waited = gpunvme_wait_for_exporter(r->dmabuf->resv, LONGEST_WAIT);
	if (waited <= 0)
		return waited ? waited : -ETIMEDOUT;
	table = dma_buf_map_attachment(r->attachment, DMA_BIDIRECTIONAL);
	if (IS_ERR(table))
		return PTR_ERR(table);
	r->mapped = table;
	return 0;
}

/* Under the lock, with the controller there. */
int gpunvme_memory_attach(struct gpunvme_device *d, struct gpunvme_range *r)
{
	struct dma_buf_attachment *attachment;
	int err;

	attachment = dma_buf_dynamic_attach(r->dmabuf, &d->pdev->dev, &attach_ops, r);
	if (IS_ERR(attachment))
		return PTR_ERR(attachment);
	r->attachment = attachment;
	dma_resv_lock(r->dmabuf->resv, NULL);
	err = map_attachment(r);
	dma_resv_unlock(r->dmabuf->resv);
	if (!err && needs_sync(d, r->mapped))
		err = -EOPNOTSUPP;
	if (!err)
		err = gpunvme_peers_check(d, r);
	if (err)
		gpunvme_memory_unmap(d, r);
	return err;
}

/*
 * A lazy IOMMU is told of what was unmapped when many such addresses have gathered. Until then the controller reaches
 * what lies behind them, and that is about to be somebody else's.
 */
static void forget_unmapped(struct gpunvme_device *d)
{
	struct iommu_domain *domain = gpunvme_domain(d);

	if (domain)
		iommu_flush_iotlb_all(domain);
}

static void detach(struct gpunvme_device *d, struct gpunvme_range *r)
{
	dma_resv_lock(r->dmabuf->resv, NULL);
	if (r->mapped)
		dma_buf_unmap_attachment(r->attachment, r->mapped, DMA_BIDIRECTIONAL);
	forget_unmapped(d);
	if (r->dmabuf_pinned) {
		r->dmabuf_pinned = false;
		dma_buf_unpin(r->attachment);
	}
	dma_resv_unlock(r->dmabuf->resv);
	r->mapped = NULL;
	dma_buf_detach(r->dmabuf, r->attachment);
	r->attachment = NULL;
}

/* ---- the end of both */

/* Takes the bus addresses away, if there are any. Under the lock. */
void gpunvme_memory_unmap(struct gpunvme_device *d, struct gpunvme_range *r)
{
	if (r->attachment) {
		gpunvme_peers_end(d, r);
		detach(d, r);
	} else if (r->mapped) {
		dma_unmap_sgtable(&d->pdev->dev, r->mapped, DMA_BIDIRECTIONAL, NO_SYNC);
		forget_unmapped(d);
		r->mapped = NULL;
	}
}

/* Gives the memory back, if there is any. It must have no bus addresses. */
void gpunvme_memory_let_go(struct gpunvme_file *f, struct gpunvme_range *r)
{
	if (r->pages) {
		unpin(r);
		account_locked_vm(f->mm, r->pages, false);
		r->pages = 0;
	}
	if (r->dmabuf) {
		dma_buf_put(r->dmabuf);
		r->dmabuf = NULL;
	}
}
