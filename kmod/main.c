// SPDX-License-Identifier: GPL-2.0
/*
 * The PCI driver: it takes the controllers that somebody gives to it by driver_override, and none by itself.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "compat.h"
#include "gpunvme.h"

#define BAR0 BIT(0)

bool gpunvme_can_reset(struct gpunvme_device *d)
{
	return d->pdev->reset_methods[0] != 0;
}

void gpunvme_device_free(struct kref *kref)
{
	struct gpunvme_device *d = container_of(kref, struct gpunvme_device, kref);
	int i;

	for (i = 0; i < ARRAY_SIZE(d->ones); i++)
		if (d->ones[i])
			__free_page(d->ones[i]);
	kfree(d);
}

static struct gpunvme_device *device_new(struct pci_dev *pdev)
{
	struct gpunvme_device *d = kzalloc(sizeof(*d), GFP_KERNEL);
	int i;

	if (!d)
		return NULL;
	kref_init(&d->kref);
	mutex_init(&d->lock);
	init_rwsem(&d->bar);
	init_waitqueue_head(&d->gone_wait);
	d->pdev = pdev;
	for (i = 0; i < ARRAY_SIZE(d->ones); i++) {
		d->ones[i] = alloc_page(GFP_KERNEL);
		if (!d->ones[i]) {
			kref_put(&d->kref, gpunvme_device_free);
			return NULL;
		}
		memset(page_address(d->ones[i]), 0xff, PAGE_SIZE);
	}
	snprintf(d->name, sizeof(d->name), "gpunvme-%s", pci_name(pdev));
	snprintf(d->node, sizeof(d->node), "gpunvme/%s", pci_name(pdev));
	d->misc.minor = MISC_DYNAMIC_MINOR;
	d->misc.name = d->name;
	d->misc.nodename = d->node;
	d->misc.mode = 0600;
	d->misc.parent = &pdev->dev;
	d->misc.fops = &gpunvme_fops;
	return d;
}

static bool translated(struct device *dev)
{
#ifdef CONFIG_IOMMU_API
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	return domain && domain->type != IOMMU_DOMAIN_IDENTITY;
#else
	return false;
#endif
}

#ifdef CONFIG_IOMMU_API
/* Bridges reach no memory by themselves. */
static int count_function(struct device *dev, void *count)
{
	if (!dev_is_pci(dev) || !pci_is_bridge(to_pci_dev(dev)))
		++*(unsigned int *)count;
	return 0;
}
#endif

bool gpunvme_isolated(struct gpunvme_device *d)
{
	bool isolated = false;
#ifdef CONFIG_IOMMU_API
	struct device *dev = &d->pdev->dev;
	struct iommu_group *group = iommu_group_get(dev);
	unsigned int count = 0;

	if (group) {
		/* What is mapped for one member of a group, all of them reach. */
		iommu_group_for_each_dev(group, &count, count_function);
		isolated = d->translated && count == 1 && gpunvme_isolated_msi(dev, group);
		iommu_group_put(group);
	}
#endif
	return isolated;
}

struct iommu_domain *gpunvme_domain(struct gpunvme_device *d)
{
	return d->translated ? iommu_get_domain_for_dev(&d->pdev->dev) : NULL;
}

static int take_registers(struct gpunvme_device *d)
{
	struct pci_dev *pdev = d->pdev;

	d->bar_start = pci_resource_start(pdev, 0);
	d->bar_bytes = pci_resource_len(pdev, 0);
	/* Pages are what a mapping gives away: nothing else may be in them. */
	if (!(pci_resource_flags(pdev, 0) & IORESOURCE_MEM) || d->bar_bytes < 2 * PAGE_SIZE ||
	    !PAGE_ALIGNED(d->bar_start) || !PAGE_ALIGNED(d->bar_bytes)) {
		pci_err(pdev, "BAR0 is not memory of whole pages\n");
		return -ENODEV;
	}
	return 0;
}

static int set_masks(struct gpunvme_device *d)
{
	struct device *dev = &d->pdev->dev;
	int err;

	d->address_bits = 64;
	err = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(64));
	if (err) {
		d->address_bits = 32;
		err = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(32));
	}
	if (err)
		return err;
	dma_set_max_seg_size(dev, UINT_MAX);
	d->translated = translated(dev);
	return 0;
}

static int gpunvme_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct gpunvme_device *d;
	int err;

	if (pdev->class != PCI_CLASS_STORAGE_EXPRESS) {
		pci_err(pdev, "not an NVMe controller: class %06x\n", pdev->class);
		return -ENODEV;
	}
	d = device_new(pdev);
	if (!d)
		return -ENOMEM;
	err = take_registers(d);
	if (err)
		goto put;
	err = pci_enable_device_mem(pdev);
	if (err)
		goto put;
	pci_intx(pdev, 0);
	err = set_masks(d);
	if (err)
		goto disable;
	err = pci_request_selected_regions(pdev, BAR0, "gpunvme");
	if (err)
		goto disable;
	d->registers = ioremap(d->bar_start, PAGE_SIZE);
	if (!d->registers) {
		err = -ENOMEM;
		goto release_regions;
	}
	/* One that somebody left running would go on with the addresses of back then. Who opens it asks again. */
	gpunvme_registers_stop(d);
	pci_save_state(pdev);
	d->config = pci_store_saved_state(pdev);
	pci_set_drvdata(pdev, d);
	err = misc_register(&d->misc);
	if (err)
		goto unmap;
	return 0;

unmap:
	kfree(d->config);
	iounmap(d->registers);
release_regions:
	pci_release_selected_regions(pdev, BAR0);
disable:
	pci_disable_device(pdev);
put:
	kref_put(&d->kref, gpunvme_device_free);
	return err;
}

/* The device's lock (of the driver core) is held: the reset that takes it would wait for itself. */
static void reset_locked(struct pci_dev *pdev)
{
	if (pci_save_state(pdev))
		return;
	if (__pci_reset_function_locked(pdev))
		pci_warn(pdev, "stopped, but could not be reset\n");
	pci_restore_state(pdev);
}

static void gpunvme_remove(struct pci_dev *pdev)
{
	struct gpunvme_device *d = pci_get_drvdata(pdev);

	/* From here on no file is opened. */
	misc_deregister(&d->misc);

	mutex_lock(&d->lock);
	down_write(&d->bar);
	d->gone = true;
	up_write(&d->bar);
	if (d->file)
		gpunvme_registers_zap(d->file);
	/* Nobody drives it now. What it was told before ends before the memory is somebody else's. */
	gpunvme_registers_stop(d);
	if (gpunvme_can_reset(d) && pci_device_is_present(pdev))
		reset_locked(pdev);
	if (d->file)
		gpunvme_unmap_all(d->file);
	mutex_unlock(&d->lock);
	wake_up_interruptible_all(&d->gone_wait);

	kfree(d->config);
	iounmap(d->registers);
	pci_release_selected_regions(pdev, BAR0);
	pci_disable_device(pdev);
	kref_put(&d->kref, gpunvme_device_free);
}

/* ---- what happens to a controller that somebody may drive: it stops, and reaches memory again when it is over */

static void pause_controller(struct gpunvme_device *d)
{
	mutex_lock(&d->lock);
	gpunvme_registers_stop(d);
	mutex_unlock(&d->lock);
}

static void continue_controller(struct gpunvme_device *d)
{
	mutex_lock(&d->lock);
	if (d->file)
		pci_set_master(d->pdev);
	mutex_unlock(&d->lock);
}

static int __maybe_unused gpunvme_suspend(struct device *dev)
{
	pause_controller(dev_get_drvdata(dev));
	return 0;
}

static int __maybe_unused gpunvme_resume(struct device *dev)
{
	continue_controller(dev_get_drvdata(dev));
	return 0;
}

static SIMPLE_DEV_PM_OPS(gpunvme_pm, gpunvme_suspend, gpunvme_resume);

static pci_ers_result_t error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	if (state == pci_channel_io_perm_failure)
		return PCI_ERS_RESULT_DISCONNECT;
	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	pause_controller(pci_get_drvdata(pdev));
	return PCI_ERS_RESULT_NEED_RESET;
}

/* The port above has reset it. */
static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	struct gpunvme_device *d = pci_get_drvdata(pdev);

	if (!d->config || pci_load_saved_state(pdev, d->config))
		return PCI_ERS_RESULT_DISCONNECT;
	pci_restore_state(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static void error_over(struct pci_dev *pdev)
{
	continue_controller(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers error_handlers = {
	.error_detected = error_detected,
	.slot_reset = slot_reset,
	.resume = error_over,
};

static const struct pci_device_id no_ids[] = { {} };

static struct pci_driver gpunvme_driver = {
	.name = "gpunvme",
	.id_table = no_ids,
	.probe = gpunvme_probe,
	.remove = gpunvme_remove,
	.driver.pm = &gpunvme_pm,
	.err_handler = &error_handlers,
};
module_pci_driver(gpunvme_driver);

MODULE_DESCRIPTION("Bus addresses for programs that drive an NVMe controller themselves");
MODULE_AUTHOR("The gpunvme authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
GPUNVME_IMPORT_DMA_BUF;
