package io.gpunvme.sim;

import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.PowerStateDescriptor;
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

  private final Namespaces namespaces;
  private final SimConfig config;

  ControllerIdentity(SimConfig config, Namespaces namespaces) {
    this.namespaces = namespaces;
    this.config = config;
  }

  /** Writes the 4096 bytes to zeroed memory. */
  void render(MemorySegment to) {
    IdentifyController data = new IdentifyController(to);
    data.set(IdentifyController.VID, SimConfigSpace.VENDOR)
        .set(IdentifyController.SSVID, SimConfigSpace.VENDOR)
        .set(IdentifyController.SN, config.serial())
        .set(IdentifyController.MN, config.model())
        .set(IdentifyController.FR, config.firmware())
        .set(IdentifyController.MDTS, config.mdts())
        .set(IdentifyController.CNTLID, IdentifyData.CONTROLLER_ID)
        .set(IdentifyController.VER, config.version().value())
        .set(IdentifyController.RTD3R, micros(config.readyNanos()))
        .set(IdentifyController.RTD3E, micros(config.shutdownNanos()))
        .set(IdentifyController.OAES, IdentifyController.OAES_NAMESPACE_ATTRIBUTES)
        .set(IdentifyController.CNTRLTYPE, CONTROLLER_TYPE_IO);
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
    data.set(IdentifyController.OACS, oacs)
        .set(IdentifyController.ACL, config.acl())
        .set(IdentifyController.AERL, config.aerl())
        .set(IdentifyController.FRMW, ONE_READ_ONLY_SLOT)
        .set(IdentifyController.LPA, lpa)
        .set(IdentifyController.ELPE, config.elpe())
        .set(IdentifyController.NPSS, 0)
        .set(IdentifyController.WCTEMP, FeatureRule.WARNING_TEMPERATURE)
        .set(IdentifyController.CCTEMP, CRITICAL_TEMPERATURE)
        .set(IdentifyController.KAS, config.keepAlive() ? 1 : 0)
        .psd(0)
        .set(PowerStateDescriptor.MP, CENTIWATTS);
  }

  private void memory(IdentifyController data) {
    boolean hmb = config.hmbPreferred() != 0;
    long total = namespaces.totalBytes();
    data.set(IdentifyController.HMPRE, config.hmbPreferred())
        .set(IdentifyController.HMMIN, config.hmbMinimum())
        .set(IdentifyController.HMMAXD, hmb ? LentMemory.MAX_DESCRIPTORS : 0)
        .set(IdentifyController.TNVMCAP, total)
        .set(IdentifyController.UNVMCAP, total - namespaces.allocatedBytes());
  }

  private void io(IdentifyController data) {
    int sgls = IdentifyController.SGLS_SUPPORTED | IdentifyController.SGLS_BIT_BUCKET;
    int vwc = config.volatileWriteCache() ? IdentifyController.VWC_PRESENT : 0;
    data.set(IdentifyController.SQES, SQES)
        .set(IdentifyController.CQES, CQES)
        .set(IdentifyController.NN, config.maxNamespaces())
        .set(IdentifyController.ONCS, ONCS)
        .set(IdentifyController.VWC, vwc | IdentifyController.VWC_FLUSH_ALL)
        .set(IdentifyController.SGLS, config.sgl() ? sgls : 0)
        .set(
            IdentifyController.MNAN,
            config.version().isAtLeast(Vs.V2_0) ? config.maxNamespaces() : 0)
        .set(IdentifyController.OCFS, config.version().isAtLeast(Vs.V2_0) ? 1 : 0)
        .set(IdentifyController.SUBNQN, subnqn());
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
