package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;

/** The same without shared memory: every byte of queues and data is a message. */
class VfioUserMessagesContractTest extends VfioUserContractTest {
  @Override
  VfioUserOptions transport() {
    return VfioUserOptions.defaults().withMessages(true);
  }
}
