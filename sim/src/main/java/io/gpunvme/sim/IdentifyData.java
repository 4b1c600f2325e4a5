package io.gpunvme.sim;

import io.gpunvme.nvme.spec.ActiveNamespaceList;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.LbaFormat;
import io.gpunvme.nvme.spec.NamespaceDescriptors;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** The Identify command and its data structures (Base 2.0, 5.17; NVM 1.0, 4.1.5). Worker 0. */
final class IdentifyData {
  /** Block sizes by LBA format index, as powers of two. */
  static final List<Integer> LBA_FORMATS = List.of(9, 12, 10, 11, 13, 14, 15, 16);

  /** CNTLID: the only controller of its subsystem. */
  static final int CONTROLLER_ID = 1;

  /** MSSRL: most logical blocks in one source range of Copy. */
  static final int COPY_RANGE_BLOCKS = 4096;

  /** MCL: most logical blocks in one Copy. */
  static final int COPY_BLOCKS = 65536;

  /** MSRC: most source ranges of Copy, 0-based. */
  static final int COPY_RANGES = 127;

  private static final int SIZE = 4096;
  private static final int FAST_LBADS = 12;
  private static final int HIGHEST_START = 0xFFFF_FFFD;

  /** DLFEAT: deallocated blocks read as zeros; Write Zeroes can deallocate. */
  private static final int DLFEAT_ZEROS_AND_DEAC = 1 | 1 << 3;

  /** I/O Command Set Independent Identify Namespace: NSTAT, byte 14, bit 0: ready. */
  private static final int NSTAT = 14;

  private static final int NSATTR = 8;

  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final DataPointer dataPointer;
  private final SimConfig config;
  private final Namespaces namespaces;

  IdentifyData(SimConfig config, DataPointer dataPointer, Namespaces namespaces) {
    this.dataPointer = dataPointer;
    this.config = config;
    this.namespaces = namespaces;
  }

  /** Identify; the status. */
  int get(SimCommand c, Worker w) {
    int cns = Sqe.cdw10(c.sqe, 0) & 0xFF;
    int status = check(c, cns);
    if (status != 0) {
      return status;
    }
    status = dataPointer.resolve(c, SIZE);
    if (status != 0) {
      return status;
    }
    MemorySegment data = w.scratch(SIZE).asSlice(0, SIZE).fill((byte) 0);
    render(cns, Sqe.nsid(c.sqe, 0), Sqe.cdw10(c.sqe, 0) >>> 16, data);
    c.data.copyOut(data, 0, SIZE);
    return 0;
  }

  private int check(SimCommand c, int cns) {
    int nsid = Sqe.nsid(c.sqe, 0);
    if (!supported(cns) || (config.strict() && !reservedClear(c, cns, nsid))) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    boolean valid = namespaces.valid(nsid);
    return switch (cns) {
      case Cns.NAMESPACE -> {
        boolean common = nsid == Sqe.NSID_ALL && config.namespaceManagement();
        yield valid || common ? 0 : StatusCode.INVALID_NAMESPACE_OR_FORMAT.dnr();
      }
      case Cns.ALLOCATED_NAMESPACE -> valid ? 0 : StatusCode.INVALID_NAMESPACE_OR_FORMAT.dnr();
      case Cns.ACTIVE_NAMESPACES, Cns.ALLOCATED_NAMESPACES ->
          Integer.compareUnsigned(nsid, HIGHEST_START) <= 0
              ? 0
              : StatusCode.INVALID_NAMESPACE_OR_FORMAT.dnr();
      case Cns.NAMESPACE_DESCRIPTORS,
          Cns.CSI_NAMESPACE,
          Cns.CSI_INDEPENDENT_NAMESPACE,
          Cns.ATTACHED_CONTROLLERS -> {
        boolean there =
            cns == Cns.ATTACHED_CONTROLLERS
                ? namespaces.allocated(nsid) != null
                : namespaces.active(nsid) != null;
        if (there) {
          yield 0;
        }
        yield valid ? StatusCode.INVALID_FIELD.dnr() : StatusCode.INVALID_NAMESPACE_OR_FORMAT.dnr();
      }
      default -> 0;
    };
  }

  private boolean supported(int cns) {
    return switch (cns) {
      case Cns.NAMESPACE, Cns.CONTROLLER, Cns.ACTIVE_NAMESPACES, Cns.NAMESPACE_DESCRIPTORS -> true;
      case Cns.CSI_NAMESPACE, Cns.CSI_CONTROLLER, Cns.CSI_INDEPENDENT_NAMESPACE ->
          config.version().isAtLeast(Vs.V2_0);
      case Cns.ALLOCATED_NAMESPACES,
          Cns.ALLOCATED_NAMESPACE,
          Cns.ATTACHED_CONTROLLERS,
          Cns.SUBSYSTEM_CONTROLLERS ->
          config.namespaceManagement();
      default -> false;
    };
  }

  /** CNTID counts in controller lists only; CSI is 0, as there is only the NVM Command Set. */
  private static boolean reservedClear(SimCommand c, int cns, int nsid) {
    boolean controllerList = cns == Cns.ATTACHED_CONTROLLERS || cns == Cns.SUBSYSTEM_CONTROLLERS;
    boolean usesNsid =
        cns != Cns.CONTROLLER && cns != Cns.CSI_CONTROLLER && cns != Cns.SUBSYSTEM_CONTROLLERS;
    return Sqe.cdw11(c.sqe, 0) == 0
        && (controllerList || Sqe.cdw10(c.sqe, 0) >>> 16 == 0)
        && (usesNsid || nsid == 0);
  }

  private void render(int cns, int nsid, int cntid, MemorySegment data) {
    switch (cns) {
      case Cns.NAMESPACE -> {
        if (nsid == Sqe.NSID_ALL) {
          common(new IdentifyNamespace(data));
        } else {
          namespace(namespaces.active(nsid), data);
        }
      }
      case Cns.ALLOCATED_NAMESPACE -> namespace(namespaces.allocated(nsid), data);
      case Cns.CONTROLLER -> new ControllerIdentity(config, namespaces).render(data);
      case Cns.ACTIVE_NAMESPACES -> list(namespaces.active(), nsid, data);
      case Cns.ALLOCATED_NAMESPACES -> list(namespaces.allocated(), nsid, data);
      case Cns.NAMESPACE_DESCRIPTORS -> descriptors(namespaces.active(nsid), data);
      case Cns.CSI_INDEPENDENT_NAMESPACE -> independent(namespaces.active(nsid), data);
      case Cns.ATTACHED_CONTROLLERS ->
          controllers(namespaces.active(nsid) != null && cntid <= CONTROLLER_ID, data);
      case Cns.SUBSYSTEM_CONTROLLERS -> controllers(cntid <= CONTROLLER_ID, data);
      default -> {
        // The command set specific structures have nothing to say: all limits are "none".
      }
    }
  }

  private static void common(IdentifyNamespace data) {
    data.set(IdentifyNamespace.NLBAF, LBA_FORMATS.size() - 1)
        .set(IdentifyNamespace.DLFEAT, DLFEAT_ZEROS_AND_DEAC)
        .set(IdentifyNamespace.MSSRL, COPY_RANGE_BLOCKS)
        .set(IdentifyNamespace.MCL, COPY_BLOCKS)
        .set(IdentifyNamespace.MSRC, COPY_RANGES);
    for (int i = 0; i < LBA_FORMATS.size(); i++) {
      int lbads = LBA_FORMATS.get(i);
      data.lbaf(i, new LbaFormat(0, lbads, lbads < FAST_LBADS ? 1 : 0));
    }
  }

  private static void namespace(@Nullable SimNamespace ns, MemorySegment to) {
    if (ns == null) {
      return;
    }
    IdentifyNamespace data = new IdentifyNamespace(to);
    common(data);
    data.set(IdentifyNamespace.NSZE, ns.blocks())
        .set(IdentifyNamespace.NCAP, ns.blocks())
        .set(IdentifyNamespace.NUSE, ns.blocks())
        .set(IdentifyNamespace.FLBAS, LBA_FORMATS.indexOf(ns.shift()))
        .set(IdentifyNamespace.NVMCAP, ns.media().size())
        .set(IdentifyNamespace.NSATTR, ns.readOnly() ? 1 : 0)
        .set(IdentifyNamespace.NGUID, ns.nguid())
        .eui64(ns.eui64());
  }

  private static void list(List<SimNamespace> all, int after, MemorySegment to) {
    ActiveNamespaceList list = new ActiveNamespaceList(to);
    int index = 0;
    for (SimNamespace ns : all) {
      if (Integer.compareUnsigned(ns.nsid(), after) > 0) {
        list.nsid(index++, ns.nsid());
      }
    }
  }

  private static void descriptors(@Nullable SimNamespace ns, MemorySegment to) {
    if (ns == null) {
      return;
    }
    UUID uuid = ns.uuid();
    byte[] uuidBytes =
        ByteBuffer.allocate(16)
            .putLong(uuid.getMostSignificantBits())
            .putLong(uuid.getLeastSignificantBits())
            .array();
    new NamespaceDescriptors(to)
        .append(NamespaceDescriptors.EUI64, ByteBuffer.allocate(8).putLong(ns.eui64()).array())
        .append(NamespaceDescriptors.NGUID, ns.nguid())
        .append(NamespaceDescriptors.UUID, uuidBytes)
        .append(NamespaceDescriptors.CSI, new byte[] {0});
  }

  private static void independent(@Nullable SimNamespace ns, MemorySegment to) {
    if (ns != null) {
      to.set(ValueLayout.JAVA_BYTE, NSATTR, (byte) (ns.readOnly() ? 1 : 0));
      to.set(ValueLayout.JAVA_BYTE, NSTAT, (byte) 1);
    }
  }

  private static void controllers(boolean listed, MemorySegment to) {
    if (listed) {
      to.set(SHORT, 0, (short) 1);
      to.set(SHORT, 2, (short) CONTROLLER_ID);
    }
  }
}
