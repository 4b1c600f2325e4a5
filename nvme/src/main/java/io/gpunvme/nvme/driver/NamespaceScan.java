package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.spec.ActiveNamespaceList;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.NamespaceDescriptors;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** Finds the active namespaces and identifies each (Base 2.0, 5.17.2). One scan per instance. */
final class NamespaceScan {
  /** More than anybody has; bounds what a controller can make the driver do. */
  static final int MAX_NAMESPACES = 4096;

  private static final int CSI_NVM = 0;
  private static final ValueLayout.OfLong BIG_ENDIAN =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

  private final AdminQueue admin;
  private final Vs version;
  private final long nn;

  /**
   * @param nn Identify Controller's NN, the largest NSID
   */
  NamespaceScan(AdminQueue admin, Vs version, long nn) {
    this.admin = admin;
    this.version = version;
    this.nn = nn;
  }

  List<Namespace> run() {
    List<Namespace> found = new ArrayList<>();
    for (int nsid : candidates()) {
      Namespace namespace = identify(nsid);
      if (namespace != null) {
        found.add(namespace);
      }
    }
    return List.copyOf(found);
  }

  /** The active list, or every NSID up to NN where the controller knows no such list. */
  private List<Integer> candidates() {
    try {
      return activeList();
    } catch (NvmeStatusException e) {
      NvmeController.LOG.log(
          System.Logger.Level.DEBUG, "no active namespace list, trying each NSID", e);
      List<Integer> all = new ArrayList<>();
      for (int nsid = 1; nsid <= Math.min(nn, MAX_NAMESPACES); nsid++) {
        all.add(nsid);
      }
      return all;
    }
  }

  private List<Integer> activeList() {
    List<Integer> all = new ArrayList<>();
    int after = 0;
    while (true) {
      MemorySegment page =
          admin.fetch(
              AdminCommand.identify(Cns.ACTIVE_NAMESPACES, after), ActiveNamespaceList.SIZE);
      ActiveNamespaceList list = new ActiveNamespaceList(page);
      int count = list.count();
      IdentifyChecks.activeList(list, count, after, nn);
      if (all.size() + count > MAX_NAMESPACES) {
        throw new ProtocolException("more than " + MAX_NAMESPACES + " active namespaces");
      }
      list.stream().forEach(all::add);
      if (count < ActiveNamespaceList.ENTRIES || list.nsid(count - 1) == (int) nn) {
        return all;
      }
      after = list.nsid(count - 1);
    }
  }

  /** The namespace, or null if it is not active. */
  private @Nullable Namespace identify(int nsid) {
    MemorySegment data;
    try {
      data = admin.fetch(AdminCommand.identify(Cns.NAMESPACE, nsid), IdentifyNamespace.SIZE);
    } catch (NvmeStatusException e) {
      NvmeController.LOG.log(
          System.Logger.Level.DEBUG, "namespace " + nsid + " is left out: " + e.getMessage());
      return null;
    }
    IdentifyNamespace identify = new IdentifyNamespace(data);
    if (identify.getLong(IdentifyNamespace.NCAP) == 0) {
      return null;
    }
    NamespaceDescriptors descriptors = descriptors(nsid);
    String reason = otherCommandSet(descriptors);
    if (reason == null) {
      reason = IdentifyChecks.whyUnusable(identify);
    }
    return new Namespace(nsid, identify, uuid(descriptors), reason);
  }

  /** Mandatory from 1.3 on, and all the same not believed to be there. */
  private @Nullable NamespaceDescriptors descriptors(int nsid) {
    if (!version.isAtLeast(Vs.V1_3)) {
      return null;
    }
    try {
      return new NamespaceDescriptors(
          admin.fetch(
              AdminCommand.identify(Cns.NAMESPACE_DESCRIPTORS, nsid), NamespaceDescriptors.SIZE));
    } catch (NvmeStatusException e) {
      return null;
    }
  }

  private static @Nullable String otherCommandSet(@Nullable NamespaceDescriptors descriptors) {
    MemorySegment csi = descriptors == null ? null : descriptors.find(NamespaceDescriptors.CSI);
    if (csi == null || csi.get(ValueLayout.JAVA_BYTE, 0) == CSI_NVM) {
      return null;
    }
    return "it belongs to I/O command set %02Xh, not to the NVM command set"
        .formatted(csi.get(ValueLayout.JAVA_BYTE, 0));
  }

  private static @Nullable String uuid(@Nullable NamespaceDescriptors descriptors) {
    MemorySegment id = descriptors == null ? null : descriptors.find(NamespaceDescriptors.UUID);
    if (id == null || id.byteSize() != 2 * Long.BYTES) {
      return null;
    }
    return new UUID(id.get(BIG_ENDIAN, 0), id.get(BIG_ENDIAN, Long.BYTES)).toString();
  }
}
