package io.gpunvme.sim;

import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.UUID;

/** Identify Controller (Base 2.0, 5.17.2.1): what the configuration amounts to. */
final class ControllerIdentity {
  private static final int CONTROLLER_TYPE_IO = 1;

  /** FRMW: one firmware slot, which is read only. */
  private static final int ONE_READ_ONLY_SLOT = 1 | 1 << 1;

  /** SQES and CQES: entries of 64 and 16 bytes, required and at most. */
  private static final int SQES = 0x66;

  private static final int CQES = 0x44;

  private static final int CRITICAL_TEMPERATURE = FeatureRule.WARNING_TEMPERATURE + 10;
  private static final int CENTIWATTS = 1000;

  private static final int ONCS =
      IdentifyController.ONCS_COMPARE
          | IdentifyController.ONCS_WRITE_UNCORRECTABLE
          | IdentifyController.ONCS_DATASET_MANAGEMENT
          | IdentifyController.ONCS_WRITE_ZEROES
          | IdentifyController.ONCS_SAVE_SELECT
          | IdentifyController.ONCS_TIMESTAMP
          | IdentifyController.ONCS_VERIFY
          | IdentifyController.ONCS_COPY;

  private final SimulatedController controller;
  private final SimConfig config;

  ControllerIdentity(SimulatedController controller) {
    this.controller = controller;
    config = controller.simConfig();
  }

  /** Writes the 4096 bytes to zeroed memory. */
  void render(MemorySegment to) {
    IdentifyController data = new IdentifyController(to);
    data.vid(SimConfigSpace.VENDOR)
        .ssvid(SimConfigSpace.VENDOR)
        .sn(config.serial())
        .mn(config.model())
        .fr(config.firmware())
        .mdts(config.mdts())
        .cntlid(IdentifyData.CONTROLLER_ID)
        .ver(config.version().value())
        .rtd3r(micros(config.readyNanos()))
        .rtd3e(micros(config.shutdownNanos()))
        .oaes(IdentifyController.OAES_NAMESPACE_ATTRIBUTES)
        .cntrltype(CONTROLLER_TYPE_IO);
    admin(data);
    memory(data);
    io(data);
  }

  private void admin(IdentifyController data) {
    boolean v2 = config.version().isAtLeast(Vs.V2_0);
    int oacs = IdentifyController.OACS_FORMAT;
    oacs |= config.namespaceManagement() ? IdentifyController.OACS_NS_MANAGEMENT : 0;
    oacs |= config.dbbuf() ? IdentifyController.OACS_DOORBELL_BUFFER : 0;
    int lpa = IdentifyController.LPA_COMMANDS_EFFECTS | IdentifyController.LPA_EXTENDED_DATA;
    lpa |= v2 ? IdentifyController.LPA_SUPPORTED_LOG_PAGES : 0;
    data.oacs(oacs)
        .acl(config.acl())
        .aerl(config.aerl())
        .frmw(ONE_READ_ONLY_SLOT)
        .lpa(lpa)
        .elpe(config.elpe())
        .npss(0)
        .wctemp(FeatureRule.WARNING_TEMPERATURE)
        .cctemp(CRITICAL_TEMPERATURE)
        .kas(config.keepAlive() ? 1 : 0)
        .psd(0)
        .mp(CENTIWATTS);
  }

  private void memory(IdentifyController data) {
    boolean hmb = config.hmbPreferred() != 0;
    long total = controller.namespaces().totalBytes();
    data.hmpre(config.hmbPreferred())
        .hmmin(config.hmbMinimum())
        .hmmaxd(hmb ? LentMemory.MAX_DESCRIPTORS : 0)
        .tnvmcapLow(total)
        .unvmcapLow(total - controller.namespaces().allocatedBytes());
  }

  private void io(IdentifyController data) {
    int sgls = IdentifyController.SGLS_SUPPORTED | IdentifyController.SGLS_BIT_BUCKET;
    int vwc = config.volatileWriteCache() ? IdentifyController.VWC_PRESENT : 0;
    data.sqes(SQES)
        .cqes(CQES)
        .nn(config.maxNamespaces())
        .oncs(ONCS)
        .vwc(vwc | IdentifyController.VWC_FLUSH_ALL)
        .sgls(config.sgl() ? sgls : 0)
        .mnan(config.version().isAtLeast(Vs.V2_0) ? config.maxNamespaces() : 0)
        .ocfs(config.version().isAtLeast(Vs.V2_0) ? 1 : 0)
        .subnqn(subnqn());
  }

  private String subnqn() {
    String name = "gpunvme:" + config.serial();
    UUID uuid = UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.US_ASCII));
    return "nqn.2014-08.org.nvmexpress:uuid:" + uuid;
  }

  private static long micros(long nanos) {
    return Math.min(Math.ceilDiv(nanos, 1000), 0xFFFF_FFFFL);
  }
}
