package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.spec.ActiveNamespaceList;
import io.gpunvme.nvme.spec.Features;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.LbaFormat;
import org.jspecify.annotations.Nullable;

/**
 * What a controller says about itself is not believed until it was checked here: after these checks
 * no field can make the driver overflow, allocate without bound or loop for ever.
 */
final class IdentifyChecks {
  /** Logical blocks of 512 bytes to 64 KiB. */
  static final int MIN_LBADS = 9;

  static final int MAX_LBADS = 16;

  private static final int SQ_ENTRY_SHIFT = 6;
  private static final int CQ_ENTRY_SHIFT = 4;
  private static final int PAGE_SHIFT = 12;
  private static final int CNTRLTYPE_DISCOVERY = 2;
  private static final int CNTRLTYPE_ADMINISTRATIVE = 3;
  private static final int NOT_A_COUNT = 0xFFFF;
  private static final long NN_LIMIT = 0xFFFF_FFFEL;

  private IdentifyChecks() {}

  /** Identify Controller: entry sizes, type, namespace count, transfer limit. */
  static void controller(IdentifyController id, int mpsmin) {
    entrySize("SQES", id.getInt(IdentifyController.SQES), SQ_ENTRY_SHIFT);
    entrySize("CQES", id.getInt(IdentifyController.CQES), CQ_ENTRY_SHIFT);
    if (id.getInt(IdentifyController.CNTRLTYPE) == CNTRLTYPE_DISCOVERY
        || id.getInt(IdentifyController.CNTRLTYPE) == CNTRLTYPE_ADMINISTRATIVE) {
      throw new ProtocolException(
          "CNTRLTYPE "
              + id.getInt(IdentifyController.CNTRLTYPE)
              + ": a discovery or administrative controller has no namespaces");
    }
    if (id.getLong(IdentifyController.NN) > NN_LIMIT) {
      throw new ProtocolException(
          "NN %Xh is above the largest NSID".formatted(id.getLong(IdentifyController.NN)));
    }
    if (PAGE_SHIFT + mpsmin + id.getInt(IdentifyController.MDTS) >= Long.SIZE - 1) {
      throw new ProtocolException(
          "MDTS "
              + id.getInt(IdentifyController.MDTS)
              + ": 2^MDTS pages are not a possible transfer size");
    }
  }

  private static void entrySize(String field, int value, int shift) {
    int required = value & 0xF;
    int maximum = value >>> 4;
    if (required > shift || maximum < shift) {
      throw new ProtocolException(
          "%s %02Xh: entries of %d bytes are not between 2^%d and 2^%d"
              .formatted(field, value, 1 << shift, required, maximum));
    }
  }

  /** MDTS in bytes (Base 2.0, 5.17.2.1), {@link Long#MAX_VALUE} for no limit. */
  static long maxTransferBytes(IdentifyController id, int mpsmin) {
    return id.getInt(IdentifyController.MDTS) == 0
        ? Long.MAX_VALUE
        : 1L << (PAGE_SHIFT + mpsmin + id.getInt(IdentifyController.MDTS));
  }

  /** Queue pairs granted by Set Features, Number of Queues (Base 2.0, 5.27.1.5). */
  static int queuePairs(int granted) {
    int nsq = Features.NSQ.get(granted);
    int ncq = Features.NCQ.get(granted);
    if (nsq == NOT_A_COUNT || ncq == NOT_A_COUNT) {
      throw new ProtocolException("Number of Queues: %08Xh grants 65536 queues".formatted(granted));
    }
    return Math.min(nsq, ncq) + 1;
  }

  /**
   * One page of the active list: identifiers strictly increasing, above {@code after}, within NN.
   */
  static void activeList(ActiveNamespaceList list, int count, int after, long nn) {
    long previous = Integer.toUnsignedLong(after);
    for (int i = 0; i < count; i++) {
      long nsid = Integer.toUnsignedLong(list.nsid(i));
      if (nsid <= previous || nsid > nn) {
        throw new ProtocolException(
            "active namespace list: entry %d is %d, after %d and with NN %d"
                .formatted(i, nsid, previous, nn));
      }
      previous = nsid;
    }
  }

  /** Why blocks of this namespace cannot be read or written, or null if they can. */
  static @Nullable String whyUnusable(IdentifyNamespace id) {
    int index = id.formatIndex();
    if (index > id.getInt(IdentifyNamespace.NLBAF) + id.getInt(IdentifyNamespace.NULBAF)
        || index >= IdentifyNamespace.LBA_FORMATS) {
      return "FLBAS names LBA format "
          + index
          + ", but NLBAF is "
          + id.getInt(IdentifyNamespace.NLBAF);
    }
    LbaFormat format = id.lbaf(index);
    if (format.lbads() < MIN_LBADS || format.lbads() > MAX_LBADS) {
      return "LBADS " + format.lbads() + " is outside " + MIN_LBADS + ".." + MAX_LBADS;
    }
    if (id.getLong(IdentifyNamespace.NSZE) < 0
        || id.getLong(IdentifyNamespace.NSZE) > Long.MAX_VALUE >> format.lbads()) {
      return "NSZE %Xh blocks of 2^%d bytes overflow"
          .formatted(id.getLong(IdentifyNamespace.NSZE), format.lbads());
    }
    if (Long.compareUnsigned(id.getLong(IdentifyNamespace.NCAP), id.getLong(IdentifyNamespace.NSZE))
        > 0) {
      return "NCAP %Xh is above NSZE %Xh"
          .formatted(id.getLong(IdentifyNamespace.NCAP), id.getLong(IdentifyNamespace.NSZE));
    }
    if (format.ms() != 0) {
      return "its blocks carry " + format.ms() + " bytes of metadata, which is not supported";
    }
    if ((id.getInt(IdentifyNamespace.DPS) & 7) != 0) {
      return "it is formatted with end-to-end protection type "
          + (id.getInt(IdentifyNamespace.DPS) & 7);
    }
    return null;
  }
}
