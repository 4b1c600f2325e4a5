package io.gpunvme.sim;

import static io.gpunvme.sim.FuzzMemory.PAGE;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.DsmRange;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.SglDescriptor;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.sim.FuzzMemory.Region;
import io.gpunvme.sim.FuzzMemory.Use;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;

/**
 * Commands that are almost right: a good command of every kind with its data and lists in memory,
 * of which then some fields or list entries are changed. Sometimes 64 random bytes.
 */
final class FuzzCommands {
  private static final int[] ADMIN = {
    AdminOpcode.IDENTIFY,
    AdminOpcode.GET_LOG_PAGE,
    AdminOpcode.GET_FEATURES,
    AdminOpcode.SET_FEATURES,
    AdminOpcode.CREATE_IO_CQ,
    AdminOpcode.CREATE_IO_SQ,
    AdminOpcode.DELETE_IO_CQ,
    AdminOpcode.DELETE_IO_SQ,
    AdminOpcode.ABORT,
    AdminOpcode.ASYNC_EVENT_REQUEST,
    AdminOpcode.FORMAT_NVM,
    AdminOpcode.NS_MANAGEMENT,
    AdminOpcode.NS_ATTACHMENT,
    AdminOpcode.KEEP_ALIVE,
    AdminOpcode.DOORBELL_BUFFER_CONFIG,
    AdminOpcode.FIRMWARE_COMMIT,
    AdminOpcode.SECURITY_SEND
  };
  private static final int[] IO = {
    IoOpcode.READ,
    IoOpcode.READ,
    IoOpcode.WRITE,
    IoOpcode.WRITE,
    IoOpcode.COMPARE,
    IoOpcode.FLUSH,
    IoOpcode.WRITE_ZEROES,
    IoOpcode.WRITE_UNCORRECTABLE,
    IoOpcode.DATASET_MANAGEMENT,
    IoOpcode.VERIFY,
    IoOpcode.COPY
  };
  private static final int[] CNS = {
    Cns.NAMESPACE,
    Cns.CONTROLLER,
    Cns.ACTIVE_NAMESPACES,
    Cns.NAMESPACE_DESCRIPTORS,
    5,
    6,
    8,
    0x10,
    0x11,
    0x12,
    0x13
  };
  private static final int[] LOGS = {
    LogId.SUPPORTED,
    LogId.ERROR,
    LogId.SMART,
    LogId.FIRMWARE_SLOT,
    LogId.CHANGED_NAMESPACES,
    LogId.COMMANDS_EFFECTS,
    LogId.FEATURE_EFFECTS
  };
  private static final int[] FEATURES = {
    FeatureId.ARBITRATION,
    FeatureId.POWER_MANAGEMENT,
    FeatureId.TEMPERATURE_THRESHOLD,
    FeatureId.ERROR_RECOVERY,
    FeatureId.VOLATILE_WRITE_CACHE,
    FeatureId.NUMBER_OF_QUEUES,
    FeatureId.INTERRUPT_COALESCING,
    FeatureId.INTERRUPT_VECTOR_CONFIG,
    FeatureId.ASYNC_EVENT_CONFIG,
    FeatureId.HOST_MEMORY_BUFFER,
    FeatureId.TIMESTAMP,
    FeatureId.KEEP_ALIVE_TIMER,
    FeatureId.HOST_BEHAVIOR
  };
  private static final int[] INTS = {
    0,
    1,
    2,
    -1,
    -2,
    0xFFFF,
    0x1_0000,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_0000,
    PAGE - 1,
    PAGE,
    511,
    512,
    0xFF,
    0x100
  };
  private static final int IDENTIFY_BYTES = 4096;
  private static final int MOST_CHANGES = 4;

  private final FuzzHost host;
  private final SplittableRandom random;
  private final MemorySegment sqe = MemorySegment.ofArray(new long[Sqe.SIZE / Long.BYTES]);

  /** An active namespace and its blocks, as far as is known. */
  int nsid = 1;

  int blockShift = 9;
  long blocks = 1;

  FuzzCommands(FuzzHost host, SplittableRandom random) {
    this.host = host;
    this.random = random;
  }

  /** The next command; valid until the next call. Its CID is to be ignored. */
  MemorySegment next(boolean admin) {
    if (random.nextInt(12) == 0) {
      for (int i = 0; i < Sqe.SIZE; i += Long.BYTES) {
        sqe.set(ValueLayout.JAVA_LONG, i, random.nextLong());
      }
      Sqe.opcode(sqe, 0, random.nextBoolean() ? random.nextInt(256) : pick(admin ? ADMIN : IO));
    } else {
      Sqe.clear(sqe, 0);
      Sqe.opcode(sqe, 0, pick(admin ? ADMIN : IO));
      if (admin) {
        fillAdmin();
      } else {
        fillIo();
      }
      int changes = random.nextInt(MOST_CHANGES + 1);
      for (int i = 0; i < changes; i++) {
        change(admin);
      }
    }
    keepOffRings();
    return sqe;
  }

  /** The controller may write a ring where a command tells it to; then nothing could be checked. */
  private void keepOffRings() {
    int opcode = Sqe.opcode(sqe, 0);
    boolean reader = (opcode & 3) == 1 && opcode != AdminOpcode.CREATE_IO_SQ;
    if (!reader && reach().ring()) {
      Sqe.dptr1(sqe, 0, 0x10_0000);
      Sqe.dptr2(sqe, 0, 0x10_0000);
    }
  }

  FuzzMemory.Reach reach() {
    return host.memory.reach(Sqe.dptr1(sqe, 0), Sqe.dptr2(sqe, 0));
  }

  private int pick(int[] from) {
    return from[random.nextInt(from.length)];
  }

  // ---- good commands

  private void fillAdmin() {
    switch (Sqe.opcode(sqe, 0)) {
      case AdminOpcode.IDENTIFY -> {
        int cns = pick(CNS);
        Sqe.cdw10(sqe, 0, cns);
        Sqe.nsid(sqe, 0, cns == Cns.CONTROLLER ? 0 : nsid);
        data(IDENTIFY_BYTES);
      }
      case AdminOpcode.GET_LOG_PAGE -> {
        int bytes = 4 << random.nextInt(13);
        Sqe.nsid(sqe, 0, Sqe.NSID_ALL);
        Sqe.cdw10(sqe, 0, pick(LOGS) | (bytes / 4 - 1) << 16);
        data(bytes);
      }
      case AdminOpcode.GET_FEATURES, AdminOpcode.SET_FEATURES -> feature();
      case AdminOpcode.CREATE_IO_CQ, AdminOpcode.CREATE_IO_SQ -> createQueue();
      case AdminOpcode.DELETE_IO_CQ, AdminOpcode.DELETE_IO_SQ ->
          Sqe.cdw10(sqe, 0, random.nextInt(host.config.ioQueues() + 2));
      case AdminOpcode.ABORT -> Sqe.cdw10(sqe, 0, random.nextInt(3) | random.nextInt() << 16);
      case AdminOpcode.FORMAT_NVM -> {
        Sqe.nsid(sqe, 0, nsid);
        Sqe.cdw10(sqe, 0, random.nextInt(9));
      }
      case AdminOpcode.NS_MANAGEMENT -> manage();
      case AdminOpcode.NS_ATTACHMENT -> {
        Region r = data(IDENTIFY_BYTES);
        r.memory.fill((byte) 0).set(ValueLayout.JAVA_INT, 0, 0x1_0001);
        r.believe();
        Sqe.nsid(sqe, 0, 1 + random.nextInt(4));
        Sqe.cdw10(sqe, 0, random.nextInt(2));
      }
      case AdminOpcode.DOORBELL_BUFFER_CONFIG -> {
        Region r = region(2);
        Sqe.dptr1(sqe, 0, r.base);
        Sqe.dptr2(sqe, 0, r.base + PAGE);
      }
      default -> {}
    }
  }

  private void feature() {
    int fid = pick(FEATURES);
    boolean set = Sqe.opcode(sqe, 0) == AdminOpcode.SET_FEATURES;
    Sqe.cdw10(sqe, 0, fid | (set ? random.nextInt(8) / 7 << 31 : random.nextInt(5) << 8));
    Sqe.nsid(sqe, 0, fid == FeatureId.ERROR_RECOVERY ? nsid : 0);
    Sqe.cdw11(sqe, 0, random.nextInt(4) * (fid == FeatureId.NUMBER_OF_QUEUES ? 0x1_0001 : 1));
    if (fid == FeatureId.TIMESTAMP || fid == FeatureId.HOST_BEHAVIOR) {
      data(512);
    } else if (fid == FeatureId.HOST_MEMORY_BUFFER && !set) {
      data(IDENTIFY_BYTES);
    } else if (fid == FeatureId.HOST_MEMORY_BUFFER) {
      Region list = region(1);
      Region lent = region(4);
      FuzzMemory.word(list.memory, 0, lent.base);
      FuzzMemory.word(list.memory, 8, lent.pages());
      list.believe();
      Sqe.cdw11(sqe, 0, 1);
      Sqe.cdw12(sqe, 0, lent.pages());
      Sqe.cdw13(sqe, 0, (int) list.base);
      Sqe.cdw14(sqe, 0, (int) (list.base >>> 32));
      Sqe.cdw15(sqe, 0, 1);
    }
  }

  private void createQueue() {
    int entry = Sqe.opcode(sqe, 0) == AdminOpcode.CREATE_IO_CQ ? 16 : 64;
    int pages = 1 + random.nextInt(4);
    int qid = 1 + random.nextInt(host.config.ioQueues());
    Sqe.cdw10(sqe, 0, qid | (pages * PAGE / entry - 1) << 16);
    Sqe.dptr1(sqe, 0, region(pages).base);
    int own = host.io == null ? qid : host.io.raw.qid;
    Sqe.cdw11(sqe, 0, 1 | (entry == 64 ? own << 16 : random.nextInt(2) * 2));
  }

  private void manage() {
    Sqe.cdw10(sqe, 0, random.nextInt(2));
    if (Sqe.cdw10(sqe, 0) != 0) {
      Sqe.nsid(sqe, 0, 2 + random.nextInt(3));
      return;
    }
    Region r = data(IDENTIFY_BYTES);
    long size = 1 + random.nextInt(64);
    new IdentifyNamespace(r.memory.fill((byte) 0))
        .set(IdentifyNamespace.NSZE, size)
        .set(IdentifyNamespace.NCAP, size)
        .set(IdentifyNamespace.FLBAS, random.nextInt(8));
    r.believe();
  }

  private void fillIo() {
    int opcode = Sqe.opcode(sqe, 0);
    Sqe.nsid(sqe, 0, nsid);
    if (opcode == IoOpcode.FLUSH) {
      return;
    }
    if (opcode == IoOpcode.DATASET_MANAGEMENT) {
      ranges(DsmRange.SIZE);
      Sqe.cdw11(sqe, 0, random.nextInt(8));
      return;
    }
    Sqe.slba(sqe, 0, random.nextLong(blocks));
    if (opcode == IoOpcode.COPY) {
      ranges(32);
      return;
    }
    int nlb = random.nextInt(Math.max(1, 8 * PAGE >> blockShift));
    Sqe.cdw12(sqe, 0, nlb | random.nextInt(2) << 30);
    if (opcode == IoOpcode.READ || opcode == IoOpcode.WRITE || opcode == IoOpcode.COMPARE) {
      data((nlb + 1) << blockShift);
    }
  }

  /** A list of block ranges for Dataset Management (16 bytes each) or Copy (32). */
  private void ranges(int entryBytes) {
    int count = 1 + random.nextInt(8);
    Region r = data(count * entryBytes);
    r.memory.fill((byte) 0);
    for (int i = 0; i < count; i++) {
      long slba = random.nextLong(blocks);
      int length = 1 + random.nextInt((int) Math.min(64, blocks - slba));
      if (entryBytes == DsmRange.SIZE) {
        DsmRange.put(r.memory, (long) i * entryBytes, 0, length, slba);
        Sqe.cdw10(sqe, 0, count - 1);
      } else {
        FuzzMemory.word(r.memory, (long) i * entryBytes + 8, slba);
        FuzzMemory.word(r.memory, (long) i * entryBytes + 16, length - 1);
        Sqe.cdw12(sqe, 0, count - 1);
      }
    }
    r.believe();
  }

  // ---- good data pointers

  private Region region(int pages) {
    while (true) {
      Region r = host.memory.any(random, Use.DATA);
      if (r.pages() >= pages) {
        return r;
      }
    }
  }

  /** Points to data of {@code bytes}, by PRPs or an SGL. Returns where it starts. */
  private Region data(int bytes) {
    if (bytes > 9 * PAGE) {
      Sqe.dptr1(sqe, 0, region(1).base);
      return region(1);
    }
    Region r = region(Math.ceilDiv(bytes, PAGE));
    Sqe.dptr1(sqe, 0, r.base);
    if (random.nextInt(4) == 0) {
      sgl(r, bytes);
    } else if (bytes > 2 * PAGE) {
      Sqe.dptr2(sqe, 0, prpList(r, Math.ceilDiv(bytes, PAGE) - 1));
    } else if (bytes > PAGE) {
      Sqe.dptr2(sqe, 0, r.base + PAGE);
    }
    return r;
  }

  /** A list of the pages of {@code r} but the first; starts anywhere in its page, may chain. */
  private long prpList(Region r, int entries) {
    Region list = host.memory.regions().getLast();
    list.memory.fill((byte) 0);
    int slot = random.nextBoolean() ? 0 : 512 - random.nextInt(1, 6);
    long start = list.base + slot * 8L;
    for (int i = 0; i < entries; i++, slot++) {
      if (slot == 511 && i < entries - 1) {
        FuzzMemory.word(list.memory, slot * 8L, list.base + PAGE);
        slot++;
      }
      FuzzMemory.word(list.memory, slot * 8L, r.base + (i + 1L) * PAGE);
    }
    list.believe();
    return start;
  }

  /** A data block descriptor in the command, or a segment of several, sometimes in two segments. */
  private void sgl(Region r, int bytes) {
    Sqe.psdt(sqe, 0, Sqe.PSDT_SGL);
    if (random.nextBoolean()) {
      SglDescriptor.put(sqe, Sqe.DPTR1, SglDescriptor.DATA_BLOCK, r.base, bytes);
      return;
    }
    Region list = host.memory.regions().getLast();
    MemorySegment s = list.memory.fill((byte) 0);
    int half = bytes / 2;
    boolean chain = random.nextBoolean();
    SglDescriptor.put(s, 0, SglDescriptor.DATA_BLOCK, r.base, half);
    long second = chain ? PAGE : 16;
    if (chain) {
      SglDescriptor.put(s, 16, SglDescriptor.LAST_SEGMENT, list.base + PAGE, 16);
    }
    SglDescriptor.put(s, second, SglDescriptor.DATA_BLOCK, r.base + half, bytes - half);
    list.believe();
    int type = chain ? SglDescriptor.SEGMENT : SglDescriptor.LAST_SEGMENT;
    SglDescriptor.put(sqe, Sqe.DPTR1, type, list.base, 32);
  }

  // ---- changes

  private void change(boolean admin) {
    switch (random.nextInt(8)) {
      case 0 -> flip(sqe, Sqe.SIZE);
      case 1 -> Sqe.flags(sqe, 0, 1 << random.nextInt(8));
      case 2 -> Sqe.nsid(sqe, 0, nsidLike());
      case 3 -> pointer(Sqe.DPTR1);
      case 4 -> pointer(Sqe.DPTR2);
      case 5 -> {
        if (admin || random.nextBoolean()) {
          dword(Sqe.CDW10 + 4 * random.nextInt(6));
        } else {
          Sqe.slba(sqe, 0, random.nextBoolean() ? lbaLike() : -1 - random.nextInt(70_000));
        }
      }
      case 6 -> list();
      default -> dword(4 * random.nextInt(16));
    }
  }

  private void dword(int offset) {
    int old = sqe.get(ValueLayout.JAVA_INT, offset);
    int fresh =
        switch (random.nextInt(4)) {
          case 0 -> random.nextInt();
          case 1 -> old + random.nextInt(5) - 2;
          case 2 -> old ^ 1 << random.nextInt(32);
          default -> pick(INTS);
        };
    if (offset != 0 || random.nextInt(4) == 0) {
      sqe.set(ValueLayout.JAVA_INT, offset, fresh);
    }
  }

  private int nsidLike() {
    return switch (random.nextInt(4)) {
      case 0 -> random.nextInt();
      case 1 -> pick(INTS);
      default -> random.nextInt(host.config.maxNamespaces() + 2);
    };
  }

  private long lbaLike() {
    return blocks + random.nextInt(20) - 10;
  }

  private void pointer(int offset) {
    long value = address();
    sqe.set(ValueLayout.JAVA_LONG, offset, value);
    if (random.nextInt(4) == 0) {
      int type = random.nextInt(16) << 4 | random.nextInt(8) / 7;
      sqe.set(ValueLayout.JAVA_INT, Sqe.DPTR2, random.nextBoolean() ? pick(INTS) : 16);
      sqe.set(ValueLayout.JAVA_BYTE, Sqe.DPTR2 + 7L, (byte) type);
      Sqe.psdt(sqe, 0, 1 + random.nextInt(2));
    }
  }

  /** An address that is mapped, or nearly, or not at all. */
  private long address() {
    Region r = host.memory.any(random, Use.DATA);
    long page = r.base + (long) random.nextInt(r.pages()) * PAGE;
    return switch (random.nextInt(12)) {
      case 0 -> page + 4L * random.nextInt(PAGE / 4);
      case 1 -> page + random.nextInt(PAGE);
      case 2 -> page + PAGE - 8;
      case 3 -> r.base + r.memory.byteSize() - random.nextInt(64);
      case 4 -> r.base + r.memory.byteSize();
      case 5 -> r.base - 1 - random.nextInt(2 * PAGE);
      case 6 -> r.memory.address();
      case 7 -> random.nextLong();
      case 8 -> -1 - (long) random.nextInt(2 * PAGE);
      case 9 -> random.nextInt(PAGE);
      case 10 -> host.memory.any(random, Use.RING).base;
      default -> page;
    };
  }

  /** Changes what is in a list or in data. */
  private void list() {
    boolean lists = random.nextInt(3) != 0;
    Region r = lists ? host.memory.regions().getLast() : host.memory.any(random, Use.DATA);
    for (int i = random.nextInt(4); i >= 0; i--) {
      int at = (random.nextBoolean() ? random.nextInt(8) : random.nextInt(500, 520)) * 8;
      if (at + 8 <= r.memory.byteSize()) {
        switch (random.nextInt(4)) {
          case 0 -> FuzzMemory.word(r.memory, at, random.nextLong());
          case 1 -> FuzzMemory.word(r.memory, at, r.base + random.nextInt(2) * 4088L);
          case 2 -> flip(r.memory.asSlice(at, 8), 8);
          default -> FuzzMemory.word(r.memory, at, address());
        }
      }
    }
    if (random.nextInt(8) == 0) {
      loop(r);
    }
    for (long at = 0; at < r.memory.byteSize(); at += Long.BYTES) {
      // Lists are read again by commands sent earlier, which were checked with what was in them.
      Region named = host.memory.find(r.memory.get(ValueLayout.JAVA_LONG, at));
      if (named != null && named.use == Use.RING) {
        FuzzMemory.word(r.memory, at, 0);
      }
    }
    r.believe();
  }

  /** An SGL segment that leads to itself, or a PRP list whose last entry does. */
  private void loop(Region r) {
    if (random.nextBoolean()) {
      SglDescriptor.put(r.memory, 0, SglDescriptor.DATA_BLOCK, r.base, 0);
      SglDescriptor.put(r.memory, 16, SglDescriptor.SEGMENT, r.base, 32);
      SglDescriptor.put(sqe, Sqe.DPTR1, SglDescriptor.SEGMENT, r.base, 32);
      Sqe.psdt(sqe, 0, Sqe.PSDT_SGL);
    } else {
      FuzzMemory.word(r.memory, PAGE - 8, r.base);
      Sqe.dptr2(sqe, 0, r.base + PAGE - 8);
    }
  }

  private void flip(MemorySegment s, int bytes) {
    for (int i = random.nextInt(3); i >= 0; i--) {
      int bit = random.nextInt(bytes * 8);
      long at = bit / 8;
      s.set(ValueLayout.JAVA_BYTE, at, (byte) (s.get(ValueLayout.JAVA_BYTE, at) ^ 1 << bit % 8));
    }
  }
}
