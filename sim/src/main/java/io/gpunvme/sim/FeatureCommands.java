package io.gpunvme.sim;

import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.Features;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Get Features and Set Features (Base 2.0, 5.15 and 5.27). Worker 0 only. */
final class FeatureCommands {
  private static final int TIMESTAMP_BYTES = 8;
  private static final int BEHAVIOR_BYTES = 512;
  private static final int HMB_BYTES = 4096;
  private static final long TIMESTAMP_MASK = 0xFFFF_FFFF_FFFFL;
  private static final int TIMESTAMP_SET_BY_HOST = 1;

  private static final int ALL_SENSORS = 0xF;
  private static final int NO_QUEUES = 0xFFFF;
  private static final int BAD_SLOT = -1;

  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final DataPointer dataPointer;
  private final Namespaces namespaces;
  private final ControllerLogs logs;
  private final QueueAdmin queues;
  private final SimConfig config;
  private final FeatureStore store;
  private final LentMemory hmb;
  private long timestamp;
  private long timestampSetAt = System.nanoTime();
  private int timestampOrigin;
  private byte advancedRetry;

  FeatureCommands(
      SimConfig config,
      DataPointer dataPointer,
      QueueAdmin queues,
      ControllerLogs logs,
      FeatureStore store,
      Namespaces namespaces,
      LentMemory hmb) {
    this.dataPointer = dataPointer;
    this.namespaces = namespaces;
    this.logs = logs;
    this.queues = queues;
    this.config = config;
    this.store = store;
    this.hmb = hmb;
  }

  /** Everything that is not saved returns to its default. */
  void reset() {
    store.reset();
    hmb.reset();
    advancedRetry = 0;
  }

  /** Get Features; the status. */
  int get(SimCommand c, Worker w) {
    int fid = Sqe.cdw10(c.sqe, 0) & 0xFF;
    int select = Sqe.cdw10(c.sqe, 0) >>> 8 & 7;
    FeatureRule rule = store.rule(fid);
    if (rule == null || select > Features.SEL_SUPPORTED) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    int cdw11 = Sqe.cdw11(c.sqe, 0);
    if (strict() && (cdw11 & ~rule.selector()) != 0) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    int status = checkNamespace(c, rule, false);
    if (status != 0) {
      return status;
    }
    if (select == Features.SEL_SUPPORTED) {
      c.dw0 = rule.capabilities();
      return 0;
    }
    int slot = slot(fid, Sqe.nsid(c.sqe, 0), cdw11);
    if (slot == BAD_SLOT) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    c.dw0 =
        switch (select) {
          case Features.SEL_DEFAULT -> store.defaultValue(fid, slot);
          case Features.SEL_SAVED -> store.saved(fid, slot);
          default -> store.current(fid, slot);
        };
    return getData(c, w, fid, select == Features.SEL_CURRENT);
  }

  private int getData(SimCommand c, Worker w, int fid, boolean current) {
    int bytes = dataBytes(fid, true);
    if (bytes == 0) {
      return unusedPointer(c);
    }
    int status = dataPointer.resolve(c, bytes);
    if (status != 0) {
      return status;
    }
    MemorySegment data = w.scratch(bytes).asSlice(0, bytes).fill((byte) 0);
    if (current) {
      switch (fid) {
        case FeatureId.TIMESTAMP -> data.set(LONG, 0, readTimestamp());
        case FeatureId.HOST_BEHAVIOR -> data.set(ValueLayout.JAVA_BYTE, 0, advancedRetry);
        default -> hmb.attributes(data);
      }
    }
    c.data.copyOut(data, 0, bytes);
    return 0;
  }

  private static int dataBytes(int fid, boolean get) {
    return switch (fid) {
      case FeatureId.TIMESTAMP -> TIMESTAMP_BYTES;
      case FeatureId.HOST_BEHAVIOR -> BEHAVIOR_BYTES;
      case FeatureId.HOST_MEMORY_BUFFER -> get ? HMB_BYTES : 0;
      default -> 0;
    };
  }

  /** Set Features; the status. */
  int set(SimCommand c, Worker w) {
    int fid = Sqe.cdw10(c.sqe, 0) & 0xFF;
    boolean save = (Sqe.cdw10(c.sqe, 0) & Features.SV) != 0;
    FeatureRule rule = store.rule(fid);
    if (rule == null || (strict() && !reservedClear(c, rule))) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    if (save && !rule.saveable()) {
      return StatusCode.FEATURE_NOT_SAVEABLE.dnr();
    }
    int status = checkNamespace(c, rule, true);
    if (status != 0) {
      return status;
    }
    int value = Sqe.cdw11(c.sqe, 0) & rule.used();
    int slot = slot(fid, Sqe.nsid(c.sqe, 0), value);
    if (slot == BAD_SLOT) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    if (!rule.changeable()) {
      boolean same = value == store.current(fid, slot);
      return same ? 0 : StatusCode.FEATURE_NOT_CHANGEABLE.dnr();
    }
    return apply(c, w, rule, slot, value, save);
  }

  private boolean reservedClear(SimCommand c, FeatureRule rule) {
    int dwords = Sqe.cdw11(c.sqe, 0) & ~rule.used();
    if (rule.fid() != FeatureId.HOST_MEMORY_BUFFER) {
      dwords |=
          Sqe.cdw12(c.sqe, 0) | Sqe.cdw13(c.sqe, 0) | Sqe.cdw14(c.sqe, 0) | Sqe.cdw15(c.sqe, 0);
    }
    return dwords == 0 && (dataBytes(rule.fid(), false) != 0 || unusedPointer(c) == 0);
  }

  private int unusedPointer(SimCommand c) {
    boolean clear = Sqe.dptr1(c.sqe, 0) == 0 && Sqe.dptr2(c.sqe, 0) == 0;
    return clear || !strict() ? 0 : StatusCode.INVALID_FIELD.dnr();
  }

  private int apply(SimCommand c, Worker w, FeatureRule rule, int slot, int value, boolean save) {
    return switch (rule.fid()) {
      case FeatureId.NUMBER_OF_QUEUES -> setQueues(c, value);
      case FeatureId.TIMESTAMP -> setTimestamp(c, w);
      case FeatureId.HOST_BEHAVIOR -> setBehavior(c, w);
      case FeatureId.TEMPERATURE_THRESHOLD -> store(rule, slot, value & 0xFFFF, save);
      case FeatureId.POWER_MANAGEMENT -> {
        // NPSS is 0: there is power state 0 and no other.
        boolean exists = (value & 0x1F) == 0;
        yield exists ? store(rule, slot, value, save) : StatusCode.INVALID_FIELD.dnr();
      }
      case FeatureId.HOST_MEMORY_BUFFER -> {
        int status = hmb.set(c);
        yield status != 0 ? status : store(rule, slot, value, save);
      }
      case FeatureId.VOLATILE_WRITE_CACHE -> {
        // In this order: a write that completes after the flush sees the new value already.
        int status = store(rule, slot, value, save);
        namespaces.flush();
        yield status;
      }
      case FeatureId.KEEP_ALIVE_TIMER -> {
        store.keepAlive(w.now());
        yield store(rule, slot, value, save);
      }
      default -> store(rule, slot, value, save);
    };
  }

  private int store(FeatureRule rule, int slot, int value, boolean save) {
    if (rule.namespaceSpecific() && slot == 0) {
      // The first is read by hosts that leave the namespace out.
      storeSlot(rule, slot, value, save);
      for (SimNamespace ns : namespaces.active()) {
        storeSlot(rule, ns.nsid(), value, save);
      }
    } else {
      storeSlot(rule, slot, value, save);
    }
    logs.warningsChanged();
    return 0;
  }

  private void storeSlot(FeatureRule rule, int slot, int value, boolean save) {
    store.set(rule.fid(), slot, value);
    if (save) {
      store.save(rule.fid(), slot, value);
    }
  }

  private int setQueues(SimCommand c, int value) {
    int submission = value & 0xFFFF;
    int completion = value >>> 16;
    if (submission == NO_QUEUES || completion == NO_QUEUES) {
      return StatusCode.INVALID_FIELD.dnr();
    }
    if (queues.created()) {
      return StatusCode.COMMAND_SEQUENCE_ERROR.dnr();
    }
    int most = config.ioQueues() - 1;
    submission = Math.min(submission, most);
    completion = Math.min(completion, most);
    queues.grant(submission, completion);
    c.dw0 = submission | completion << 16;
    store.set(FeatureId.NUMBER_OF_QUEUES, 0, c.dw0);
    return 0;
  }

  private int setTimestamp(SimCommand c, Worker w) {
    int status = dataPointer.resolve(c, TIMESTAMP_BYTES);
    if (status == 0) {
      MemorySegment data = w.scratch(TIMESTAMP_BYTES);
      c.data.copyIn(data, 0, TIMESTAMP_BYTES);
      timestamp = data.get(LONG, 0) & TIMESTAMP_MASK;
      timestampSetAt = System.nanoTime();
      timestampOrigin = TIMESTAMP_SET_BY_HOST;
    }
    return status;
  }

  /** Milliseconds in 48 bits, then the origin in bits 3:1 of byte 6 (Base 2.0, 5.27.1.11). */
  private long readTimestamp() {
    long elapsed = (System.nanoTime() - timestampSetAt) / 1_000_000;
    return (timestamp + elapsed & TIMESTAMP_MASK) | (long) timestampOrigin << 49;
  }

  private int setBehavior(SimCommand c, Worker w) {
    int status = dataPointer.resolve(c, BEHAVIOR_BYTES);
    if (status != 0) {
      return status;
    }
    MemorySegment data = w.scratch(BEHAVIOR_BYTES);
    c.data.copyIn(data, 0, BEHAVIOR_BYTES);
    byte retry = data.get(ValueLayout.JAVA_BYTE, 0);
    boolean bad = (retry & ~1) != 0;
    for (int i = 1; i < BEHAVIOR_BYTES && strict(); i++) {
      bad |= data.get(ValueLayout.JAVA_BYTE, i) != 0;
    }
    if (!bad) {
      advancedRetry = retry;
    }
    return bad ? StatusCode.INVALID_FIELD.dnr() : 0;
  }

  /** Which of the feature's values is meant; {@link #BAD_SLOT} if there is no such one. */
  private int slot(int fid, int nsid, int cdw11) {
    return switch (fid) {
      case FeatureId.ERROR_RECOVERY -> nsid == Sqe.NSID_ALL ? 0 : nsid;
      case FeatureId.TEMPERATURE_THRESHOLD -> {
        int sensor = cdw11 >>> 16 & 0xF;
        int type = cdw11 >>> 20 & 3;
        yield (sensor == 0 || sensor == ALL_SENSORS) && type <= 1 ? type : BAD_SLOT;
      }
      case FeatureId.INTERRUPT_VECTOR_CONFIG -> {
        int vector = cdw11 & 0xFFFF;
        yield vector < config.vectors() ? vector : BAD_SLOT;
      }
      default -> 0;
    };
  }

  private int checkNamespace(SimCommand c, FeatureRule rule, boolean set) {
    int nsid = Sqe.nsid(c.sqe, 0);
    if (!rule.namespaceSpecific()) {
      if (nsid == 0 || nsid == Sqe.NSID_ALL) {
        return 0;
      }
      if (!namespaces.valid(nsid)) {
        return StatusCode.INVALID_NAMESPACE_OR_FORMAT.dnr();
      }
      return set ? StatusCode.FEATURE_NOT_NAMESPACE_SPECIFIC.dnr() : 0;
    }
    boolean leftOut = nsid == 0 && !strict();
    if (leftOut || set && nsid == Sqe.NSID_ALL) {
      return 0;
    }
    if (!namespaces.valid(nsid)) {
      return StatusCode.INVALID_NAMESPACE_OR_FORMAT.dnr();
    }
    return namespaces.active(nsid) == null ? StatusCode.INVALID_FIELD.dnr() : 0;
  }

  private boolean strict() {
    return config.strict();
  }
}
