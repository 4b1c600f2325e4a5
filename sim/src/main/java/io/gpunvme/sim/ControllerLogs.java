package io.gpunvme.sim;

import io.gpunvme.nvme.spec.AsyncEvent;
import io.gpunvme.nvme.spec.ChangedNamespaceList;
import io.gpunvme.nvme.spec.CommandsEffectsLog;
import io.gpunvme.nvme.spec.FeatureEffectsLog;
import io.gpunvme.nvme.spec.FirmwareSlotLog;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.SmartLog;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.nvme.spec.SupportedLogPages;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.util.TreeSet;

/**
 * The log pages and Get Log Page (Base 2.0, 5.16).
 *
 * <p>{@link #completed} is called by all workers, the rest by worker 0.
 */
final class ControllerLogs {
  /** Get Log Page, CDW10: do not re-enable the event that goes with the page. */
  private static final int RETAIN_EVENT = 1 << 15;

  private static final int NO_PAGE = -1;
  private static final int IDS = 256;

  /** AFI: slot 1 is active. */
  private static final int SLOT_1_ACTIVE = 1;

  /** What a Get Log Page may transfer when MDTS sets no limit. */
  private static final long MOST_BYTES = 16 << 20;

  private final FeatureStore features;
  private final ControllerEvents events;
  private final DataPointer dataPointer;
  private final SimConfig config;
  private final Namespaces namespaces;
  private final CommandRules rules;
  private final ErrorLog errors;
  private final SmartHealth health;
  private final TreeSet<Integer> changed = new TreeSet<>();

  ControllerLogs(
      SimConfig config,
      DataPointer dataPointer,
      ControllerEvents events,
      FeatureStore features,
      Namespaces namespaces,
      SimStats stats) {
    this.features = features;
    this.events = events;
    this.dataPointer = dataPointer;
    this.config = config;
    this.namespaces = namespaces;
    rules = new CommandRules(config);
    errors = new ErrorLog(config.elpe());
    health = new SmartHealth(features, namespaces, stats, events, errors);
  }

  /**
   * Records how a command ended. Called once for every command, before its completion is posted.
   *
   * @return the status to post: with More set if there is an error log entry
   */
  int completed(SimCommand c, int status) {
    if (!ErrorLog.isLogged(status)) {
      return status;
    }
    errors.add(c, status);
    return status | Status.MORE;
  }

  /** The health of the device. */
  SmartHealth health() {
    return health;
  }

  /** A feature changed that decides about warnings. */
  void warningsChanged() {
    health.warningsChanged();
  }

  /** Controller reset: the log of errors stays. */
  void reset() {
    changed.clear();
    health.reset();
  }

  /** The Identify data of a namespace, or its being there, changed. */
  void namespaceChanged(int nsid) {
    changed.add(nsid);
    if (features.namespaceEventEnabled()) {
      events.raise(
          AsyncEvent.TYPE_NOTICE,
          AsyncEvent.NOTICE_NAMESPACE_ATTRIBUTE_CHANGED,
          LogId.CHANGED_NAMESPACES);
    }
  }

  /** Get Log Page; the status. */
  int get(SimCommand c, Worker w) {
    int cdw10 = Sqe.cdw10(c.sqe, 0);
    int id = cdw10 & 0xFF;
    int size = size(id);
    if (size == NO_PAGE) {
      return StatusCode.INVALID_LOG_PAGE.dnr();
    }
    int status = checkNamespace(Sqe.nsid(c.sqe, 0));
    if (status != 0) {
      return status;
    }
    long dwords = (cdw10 >>> 16 | (Sqe.cdw11(c.sqe, 0) & 0xFFFFL) << 16) + 1;
    long offset = Integer.toUnsignedLong(Sqe.cdw12(c.sqe, 0)) | (long) Sqe.cdw13(c.sqe, 0) << 32;
    if ((offset & 3) != 0 || Long.compareUnsigned(offset, size) > 0 || dwords * 4 > mostBytes()) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    long bytes = dwords * 4;
    status = dataPointer.resolve(c, bytes);
    if (status != 0) {
      return status;
    }
    MemorySegment page = render(id, size);
    MemorySegment out = w.scratch(bytes).asSlice(0, bytes).fill((byte) 0);
    MemorySegment.copy(page, offset, out, 0, Math.min(bytes, size - offset));
    c.data.copyOut(out, 0, bytes);
    if ((cdw10 & RETAIN_EVENT) == 0) {
      wasRead(id);
    }
    return 0;
  }

  private long mostBytes() {
    long mdts = config.maxTransfer();
    return mdts == 0 ? MOST_BYTES : mdts;
  }

  /** All pages are about the controller: the NSID is unused or all (Base 2.0, 5.16). */
  private int checkNamespace(int nsid) {
    if (nsid == 0 || nsid == Sqe.NSID_ALL) {
      return 0;
    }
    return namespaces.valid(nsid)
        ? StatusCode.INVALID_FIELD.dnr()
        : StatusCode.INVALID_NAMESPACE_OR_FORMAT.dnr();
  }

  private void wasRead(int id) {
    if (id == LogId.CHANGED_NAMESPACES) {
      changed.clear();
    }
    events.logRead(id);
  }

  private int size(int id) {
    boolean v2 = config.version().isAtLeast(Vs.V2_0);
    return switch (id) {
      case LogId.ERROR -> errors.size();
      case LogId.SMART -> SmartLog.SIZE;
      case LogId.FIRMWARE_SLOT -> FirmwareSlotLog.SIZE;
      case LogId.CHANGED_NAMESPACES -> ChangedNamespaceList.SIZE;
      case LogId.COMMANDS_EFFECTS -> CommandsEffectsLog.SIZE;
      case LogId.SUPPORTED -> v2 ? SupportedLogPages.SIZE : NO_PAGE;
      case LogId.FEATURE_EFFECTS -> v2 ? FeatureEffectsLog.SIZE : NO_PAGE;
      default -> NO_PAGE;
    };
  }

  private MemorySegment render(int id, int size) {
    MemorySegment page = MemorySegment.ofArray(new long[size / Long.BYTES]);
    switch (id) {
      case LogId.ERROR -> errors.render(page);
      case LogId.SMART -> health.render(page);
      case LogId.FIRMWARE_SLOT ->
          new FirmwareSlotLog(page)
              .set(FirmwareSlotLog.AFI, SLOT_1_ACTIVE)
              .set(FirmwareSlotLog.FRS.getFirst(), config.firmware());
      case LogId.CHANGED_NAMESPACES -> renderChanged(page);
      case LogId.COMMANDS_EFFECTS -> renderEffects(page);
      case LogId.SUPPORTED -> renderSupported(page);
      default -> renderFeatures(page);
    }
    return page;
  }

  private void renderChanged(MemorySegment page) {
    ChangedNamespaceList list = new ChangedNamespaceList(page);
    int index = 0;
    for (int nsid : changed) {
      list.nsid(index++, nsid);
    }
  }

  private void renderEffects(MemorySegment page) {
    CommandsEffectsLog log = new CommandsEffectsLog(page);
    for (int opcode = 0; opcode < IDS; opcode++) {
      CommandRule admin = rules.admin(opcode);
      if (admin != null) {
        log.admin(opcode, admin.effects());
      }
      CommandRule io = rules.io(opcode);
      if (io != null) {
        log.io(opcode, io.effects());
      }
    }
  }

  private void renderSupported(MemorySegment page) {
    SupportedLogPages log = new SupportedLogPages(page);
    for (int id = 0; id < IDS; id++) {
      if (size(id) != NO_PAGE) {
        log.page(id, SupportedLogPages.LSUPP);
      }
    }
  }

  private void renderFeatures(MemorySegment page) {
    FeatureEffectsLog log = new FeatureEffectsLog(page);
    for (int fid = 0; fid < IDS; fid++) {
      FeatureRule rule = features.rule(fid);
      if (rule != null) {
        int scope =
            rule.namespaceSpecific()
                ? FeatureEffectsLog.SCOPE_NAMESPACE
                : FeatureEffectsLog.SCOPE_CONTROLLER;
        log.feature(fid, FeatureEffectsLog.FSUPP | scope);
      }
    }
  }
}
