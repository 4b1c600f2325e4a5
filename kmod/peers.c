// SPDX-License-Identifier: GPL-2.0
/*
 * What the addresses are that an exporter gave for the controller: memory of this machine or of a peer on the bus, and
 * whether the controller's IOMMU knows them.
 *
 * An exporter should map its memory for the device that is attached. NVIDIA's is known to hand out the physical
 * addresses of the GPU's BAR also where an IOMMU translates (open-gpu-kernel-modules, issue 1324): every access to
 * them fails there. A peer's BAR is mapped here then; anything else that the IOMMU does not know is refused.
 */
#include <linux/dma-mapping.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/pci.h>

#include "gpunvme.h"

static bool in_a_bar(struct pci_dev *peer, u64 first, u64 bytes)
{
	u64 last;
	int i;

	if (check_add_overflow(first, bytes - 1, &last))
		return false;
	for (i = 0; i < PCI_STD_NUM_BARS; i++) {
		if (!(pci_resource_flags(peer, i) & IORESOURCE_MEM) || !pci_resource_len(peer, i))
			continue;
		if (first >= pci_resource_start(peer, i) && last <= pci_resource_end(peer, i))
			return true;
	}
	return false;
}

static bool belongs_to_a_peer(struct pci_dev *own, u64 first, u64 bytes)
{
	struct pci_dev *peer = NULL;
	bool found = false;

	while ((peer = pci_get_device(PCI_ANY_ID, PCI_ANY_ID, peer))) {
		found = peer != own && in_a_bar(peer, first, bytes);
		if (found)
			break;
	}
	pci_dev_put(peer);
	return found;
}

/* Where the IOMMU leads; without one, there. */
static bool physical(struct iommu_domain *domain, u64 address, phys_addr_t *at)
{
	*at = domain ? iommu_iova_to_phys(domain, address) : address;
	return !domain || *at;
}

static void unmap_peer(struct gpunvme_device *d, struct gpunvme_range *r)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(&r->remapped, sg, i)
		dma_unmap_resource(&d->pdev->dev, sg_dma_address(sg), sg_dma_len(sg), DMA_BIDIRECTIONAL, 0);
	sg_free_table(&r->remapped);
	r->kind &= ~GPUNVME_RANGE_REMAPPED;
}

/* What the exporter gave are physical addresses: the controller gets others, which lead there. */
static int map_peer(struct gpunvme_device *d, struct gpunvme_range *r)
{
	struct scatterlist *sg, *to;
	dma_addr_t address;
	unsigned int i;
	int err;

	err = sg_alloc_table(&r->remapped, r->mapped->nents, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	r->kind |= GPUNVME_RANGE_REMAPPED;
	r->remapped.nents = 0;
	to = r->remapped.sgl;
	for_each_sgtable_dma_sg(r->mapped, sg, i) {
		err = -EREMOTEIO;
		if (!belongs_to_a_peer(d->pdev, sg_dma_address(sg), sg_dma_len(sg)))
			break;
		address = dma_map_resource(&d->pdev->dev, sg_dma_address(sg), sg_dma_len(sg), DMA_BIDIRECTIONAL, 0);
		err = dma_mapping_error(&d->pdev->dev, address);
		if (err)
			break;
		sg_dma_address(to) = address;
		sg_dma_len(to) = sg_dma_len(sg);
		r->remapped.nents++;
		to = sg_next(to);
	}
	if (err)
		unmap_peer(d, r);
	return err;
}

/* Looks at what an exporter gave, and mends it if that is possible. Under the lock, with the controller there. */
int gpunvme_peers_check(struct gpunvme_device *d, struct gpunvme_range *r)
{
	struct iommu_domain *domain = gpunvme_domain(d);
	unsigned int i, unknown = 0;
	struct scatterlist *sg;
	phys_addr_t first, last;

	for_each_sgtable_dma_sg(r->mapped, sg, i) {
		/* An address of length 0 is refused later. */
		u64 end = sg_dma_address(sg) + max(sg_dma_len(sg), 1u) - 1;

		if (!physical(domain, sg_dma_address(sg), &first) || !physical(domain, end, &last))
			unknown++;
		else if (page_is_ram(PHYS_PFN(first)) || page_is_ram(PHYS_PFN(last)))
			r->kind |= GPUNVME_RANGE_RAM;
	}
	if (!unknown)
		return 0;
	return unknown == i ? map_peer(d, r) : -EREMOTEIO;
}

/* Before the exporter is told that its addresses are not used any more. */
void gpunvme_peers_end(struct gpunvme_device *d, struct gpunvme_range *r)
{
	if (r->kind & GPUNVME_RANGE_REMAPPED)
		unmap_peer(d, r);
}
