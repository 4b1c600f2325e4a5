// SPDX-License-Identifier: GPL-2.0
/*
 * For tests: gives a BAR of a PCI function away as a dma-buf, as a GPU's driver does with its memory. It insists on importers
 * that take memory of peers, and maps it for them or, on demand, hands out its physical addresses. It says that the memory moves
 * where an exporter may: before it is pinned, and after it was.
 *
 *   insmod bar_exporter.ko function=0000:00:05.0 bar=2
 *   insmod bar_exporter.ko function=0000:00:05.0 bar=0 nvme=1  and the function is an NVMe controller for whoever looks: one
 *                                                              whose registers a test can write if BAR 0 is memory
 *   ioctl(fd of /dev/bar_exporter, BAR_EXPORTER_MAPPED or _RAW, 0)  returns a descriptor
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "compat.h"

#define BAR_EXPORTER_MAPPED _IO(0xA8, 0)
#define BAR_EXPORTER_RAW    _IO(0xA8, 1)

/* So that a range is several pieces. */
#define PIECE (1u << 20)

static char *function = "";
module_param(function, charp, 0444);
static int bar = 2;
module_param(bar, int, 0444);
static bool nvme;
module_param(nvme, bool, 0444);

static struct pci_dev *peer;

static int attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attachment)
{
	return attachment->peer2peer ? 0 : -EOPNOTSUPP;
}

/* The kernel itself pins again while it maps. */
static atomic_t pins;

static int pin(struct dma_buf_attachment *attachment)
{
	if (atomic_inc_return(&pins) == 1)
		dma_buf_move_notify(attachment->dmabuf);
	return 0;
}

static void unpin(struct dma_buf_attachment *attachment)
{
	if (atomic_dec_and_test(&pins))
		dma_buf_move_notify(attachment->dmabuf);
}

/* What a dma-buf's addresses are, by what its priv points to. */
static const bool mapped_addresses, raw_addresses = true;

static bool is_raw(struct dma_buf *dmabuf)
{
	return *(const bool *)dmabuf->priv;
}

static void undo(struct dma_buf_attachment *attachment, struct sg_table *table, enum dma_data_direction direction)
{
	struct scatterlist *sg;
	unsigned int i;

	if (!is_raw(attachment->dmabuf))
		for_each_sgtable_dma_sg(table, sg, i)
			dma_unmap_resource(attachment->dev, sg_dma_address(sg), sg_dma_len(sg), direction, 0);
	sg_free_table(table);
	kfree(table);
}

static int fill(struct dma_buf_attachment *attachment, struct sg_table *table, enum dma_data_direction direction)
{
	u64 left = attachment->dmabuf->size;
	phys_addr_t at = pci_resource_start(peer, bar);
	struct scatterlist *sg = table->sgl;

	table->nents = 0;
	while (left) {
		unsigned int bytes = min_t(u64, left, PIECE);
		dma_addr_t address = at;

		if (!is_raw(attachment->dmabuf)) {
			address = dma_map_resource(attachment->dev, at, bytes, direction, 0);
			if (dma_mapping_error(attachment->dev, address))
				return -EIO;
		}
		sg_set_page(sg, NULL, bytes, 0);
		sg_dma_address(sg) = address;
		sg_dma_len(sg) = bytes;
		table->nents++;
		sg = sg_next(sg);
		at += bytes;
		left -= bytes;
	}
	return 0;
}

static struct sg_table *map(struct dma_buf_attachment *attachment, enum dma_data_direction direction)
{
	struct sg_table *table = kzalloc(sizeof(*table), GFP_KERNEL);
	int err;

	if (!table)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table(table, DIV_ROUND_UP(attachment->dmabuf->size, PIECE), GFP_KERNEL);
	if (err) {
		kfree(table);
		return ERR_PTR(err);
	}
	err = fill(attachment, table, direction);
	if (err) {
		undo(attachment, table, direction);
		return ERR_PTR(err);
	}
	return table;
}

static void release(struct dma_buf *dmabuf)
{
}

static const struct dma_buf_ops ops = {
	.attach = attach,
	.pin = pin,
	.unpin = unpin,
	.map_dma_buf = map,
	.unmap_dma_buf = undo,
	.release = release,
};

static long export(struct file *file, unsigned int command, unsigned long argument)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;
	int fd;

	if (command != BAR_EXPORTER_MAPPED && command != BAR_EXPORTER_RAW)
		return -ENOTTY;
	info.ops = &ops;
	info.size = pci_resource_len(peer, bar);
	info.flags = O_RDWR;
	info.priv = (void *)(command == BAR_EXPORTER_RAW ? &raw_addresses : &mapped_addresses);
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(dmabuf);
	return fd;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = export,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "bar_exporter",
	.fops = &fops,
};

static int __init bar_exporter_init(void)
{
	unsigned int domain, bus, slot, number;
	int err;

	if (sscanf(function, "%x:%x:%x.%x", &domain, &bus, &slot, &number) != 4 || bar < 0 || bar >= PCI_STD_NUM_BARS)
		return -EINVAL;
	peer = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, number));
	if (!peer)
		return -ENODEV;
	err = pci_resource_len(peer, bar) ? misc_register(&device) : -ENXIO;
	if (err)
		pci_dev_put(peer);
	else if (nvme)
		peer->class = PCI_CLASS_STORAGE_EXPRESS;
	return err;
}
module_init(bar_exporter_init);

static void __exit bar_exporter_exit(void)
{
	misc_deregister(&device);
	pci_dev_put(peer);
}
module_exit(bar_exporter_exit);

MODULE_DESCRIPTION("Test: a BAR as a dma-buf");
MODULE_LICENSE("GPL");
GPUNVME_IMPORT_DMA_BUF;
