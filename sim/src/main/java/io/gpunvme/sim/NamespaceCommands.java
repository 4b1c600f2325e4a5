package io.gpunvme.sim;

import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;

/**
 * Format NVM, Namespace Management and Namespace Attachment (Base 2.0, 5.14, 5.23, 5.22). Worker 0.
 */
final class NamespaceCommands {
  private static final int DATA_BYTES = 4096;
  private static final int SECURE_ERASE_USER_DATA = 1;

  /** SEL of both commands: create, attach. */
  private static final int FIRST = 0;

  /** SEL of both commands: delete, detach. */
  private static final int SECOND = 1;

  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final ControllerLogs logs;
  private final DataPointer dataPointer;
  private final Namespaces namespaces;

  NamespaceCommands(DataPointer dataPointer, ControllerLogs logs, Namespaces namespaces) {
    this.logs = logs;
    this.dataPointer = dataPointer;
    this.namespaces = namespaces;
  }

  /** Format NVM; the status. */
  int format(SimCommand c) {
    int cdw10 = Sqe.cdw10(c.sqe, 0);
    int nsid = Sqe.nsid(c.sqe, 0);
    int status = nsid == Sqe.NSID_ALL ? 0 : namespaces.check(nsid);
    if (status != 0) {
      return status;
    }
    // No cryptographic erase (FNA bit 2 is 0); no protection information without metadata.
    if ((cdw10 >>> 9 & 7) > SECURE_ERASE_USER_DATA) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    int shift = shift(cdw10 & 0xF);
    if (shift == 0 || (cdw10 >>> 5 & 7) != 0) {
      return StatusCode.INVALID_FORMAT.dnr();
    }
    SimNamespace one = namespaces.active(nsid);
    List<SimNamespace> targets = one == null ? namespaces.active() : List.of(one);
    for (SimNamespace ns : targets) {
      status = mayFormat(ns, shift);
      if (status != 0) {
        return status;
      }
    }
    return format(targets, shift);
  }

  private static int shift(int index) {
    List<Integer> formats = IdentifyData.LBA_FORMATS;
    return index < formats.size() ? formats.get(index) : 0;
  }

  private static int mayFormat(SimNamespace ns, int shift) {
    if (ns.readOnly()) {
      return StatusCode.NAMESPACE_WRITE_PROTECTED.dnr();
    }
    boolean fits = ns.media().size() % (1L << shift) == 0;
    return fits ? 0 : StatusCode.INVALID_FORMAT.dnr();
  }

  private int format(List<SimNamespace> targets, int shift) {
    for (SimNamespace ns : targets) {
      try {
        ns.media().trim(0, ns.media().size());
      } catch (IOException e) {
        return StatusCode.WRITE_FAULT.status();
      }
      boolean changed = ns.shift() != shift;
      ns.format(shift);
      if (changed) {
        logs.namespaceChanged(ns.nsid());
      }
    }
    return 0;
  }

  /** Namespace Management; the status, and for a creation the new NSID in dword 0. */
  int manage(SimCommand c, Worker w) {
    return switch (Sqe.cdw10(c.sqe, 0) & 0xF) {
      case FIRST -> create(c, w);
      case SECOND -> delete(Sqe.nsid(c.sqe, 0));
      default -> StatusCode.INVALID_FIELD.dnr();
    };
  }

  private int create(SimCommand c, Worker w) {
    if (Sqe.nsid(c.sqe, 0) != 0 || Sqe.cdw11(c.sqe, 0) >>> 24 != 0) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    MemorySegment data = w.scratch(DATA_BYTES);
    int status = copyIn(c, data);
    if (status != 0) {
      return status;
    }
    IdentifyNamespace wanted = new IdentifyNamespace(data);
    status = checkWanted(wanted);
    if (status != 0) {
      return status;
    }
    int nsid = namespaces.freeId();
    if (nsid == 0) {
      return StatusCode.NAMESPACE_IDENTIFIER_UNAVAILABLE.dnr();
    }
    int shift = shift(wanted.getInt(IdentifyNamespace.FLBAS) & 0xF);
    SimNamespace ns =
        namespaces.create(nsid, wanted.getLong(IdentifyNamespace.NSZE) << shift, 1 << shift);
    if (ns == null) {
      return StatusCode.NAMESPACE_INSUFFICIENT_CAPACITY.status();
    }
    c.dw0 = nsid;
    return 0;
  }

  private int checkWanted(IdentifyNamespace wanted) {
    int shift = shift(wanted.getInt(IdentifyNamespace.FLBAS) & 0xF);
    if (shift == 0 || wanted.getInt(IdentifyNamespace.DPS) != 0) {
      return StatusCode.INVALID_FORMAT.dnr();
    }
    if (wanted.getLong(IdentifyNamespace.NSZE) == 0
        || wanted.getInt(IdentifyNamespace.NMIC) != 0
        || (wanted.getInt(IdentifyNamespace.FLBAS) & ~0xF) != 0) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    if (wanted.getLong(IdentifyNamespace.NCAP) != wanted.getLong(IdentifyNamespace.NSZE)) {
      return StatusCode.THIN_PROVISIONING_NOT_SUPPORTED.dnr();
    }
    long free = namespaces.totalBytes() - namespaces.allocatedBytes();
    return Long.compareUnsigned(wanted.getLong(IdentifyNamespace.NSZE), free >>> shift) <= 0
        ? 0
        : StatusCode.NAMESPACE_INSUFFICIENT_CAPACITY.dnr();
  }

  private int delete(int nsid) {
    SimNamespace one = namespaces.allocated(nsid);
    if (one == null && nsid != Sqe.NSID_ALL) {
      return namespaces.check(nsid);
    }
    for (SimNamespace ns : one == null ? namespaces.allocated() : List.of(one)) {
      boolean active = ns.attached();
      try {
        namespaces.delete(ns);
      } catch (IOException e) {
        return StatusCode.WRITE_FAULT.status();
      }
      if (active) {
        logs.namespaceChanged(ns.nsid());
      }
    }
    return 0;
  }

  /** Namespace Attachment; the status. */
  int attach(SimCommand c, Worker w) {
    int select = Sqe.cdw10(c.sqe, 0) & 0xF;
    if (select > SECOND) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    int nsid = Sqe.nsid(c.sqe, 0);
    SimNamespace ns = namespaces.allocated(nsid);
    if (ns == null) {
      return namespaces.check(nsid);
    }
    MemorySegment list = w.scratch(DATA_BYTES);
    int status = copyIn(c, list);
    if (status != 0) {
      return status;
    }
    return attach(ns, list, select == FIRST);
  }

  /** The list names controllers of the subsystem, of which there is one. */
  private int attach(SimNamespace ns, MemorySegment list, boolean attach) {
    int count = list.get(SHORT, 0) & 0xFFFF;
    if (count != 1 || (list.get(SHORT, 2) & 0xFFFF) != IdentifyData.CONTROLLER_ID) {
      return StatusCode.CONTROLLER_LIST_INVALID.dnr();
    }
    if (attach == ns.attached()) {
      return attach
          ? StatusCode.NAMESPACE_ALREADY_ATTACHED.dnr()
          : StatusCode.NAMESPACE_NOT_ATTACHED.dnr();
    }
    ns.attach(attach);
    logs.namespaceChanged(ns.nsid());
    return 0;
  }

  private int copyIn(SimCommand c, MemorySegment to) {
    int status = dataPointer.resolve(c, DATA_BYTES);
    if (status == 0) {
      c.data.copyIn(to, 0, DATA_BYTES);
    }
    return status;
  }
}
