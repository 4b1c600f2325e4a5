package io.gpunvme.nvme.fuzz;

import io.gpunvme.nvme.fuzz.HostileQueues.Command;
import io.gpunvme.nvme.fuzz.HostileQueues.Pair;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongFunction;

/**
 * Decides which lies a controller tells. Registers are read by the host's thread, everything else
 * happens on the device's; each has a generator of its own, so that a case can be repeated.
 */
final class Malice {
  /** What it lies about. */
  enum Kind {
    /** What Identify, Get Log Page and Get Features return. */
    DATA,
    /** Status, dword 0, dword 1 and SQHD of completions; asynchronous events. */
    STATUS,
    /** Completions a second time, long after the first, and such as are written in two steps. */
    ECHOES,
    /** Completions: lost, doubled, torn, of other commands and queues, with the wrong phase. */
    COMPLETIONS,
    /** Completions of nothing, without end, instead of the right one. */
    FLOOD,
    /** Registers. */
    REGISTERS
  }

  private static final int ONE_PAGE = 4096;
  private static final long FLOOD_NANOS = 30_000_000_000L;
  private static final long BURST_NANOS = 200_000;
  private static final int EVENTS = 8;

  // Offsets and sizes of what the driver looks at.
  private static final int[][] CONTROLLER_FIELDS = {
    {0, 2}, {72, 1}, {77, 1}, {80, 4}, {88, 4}, {92, 4}, {96, 4}, {111, 1}, {256, 2}, {258, 1},
    {259, 1}, {260, 1}, {261, 1}, {262, 1}, {263, 1}, {272, 4}, {276, 4}, {320, 2}, {332, 4},
    {336, 2}, {512, 1}, {513, 1}, {514, 2}, {516, 4}, {520, 2}, {525, 1}, {536, 4}, {540, 4}
  };
  private static final int[][] NAMESPACE_FIELDS = {
    {0, 8}, {8, 8}, {16, 8}, {24, 1}, {25, 1}, {26, 1}, {27, 1}, {28, 1}, {29, 1}, {30, 1}, {96, 1},
    {99, 1}, {130, 1}, {130, 1}, {128, 4}, {132, 4}, {136, 4}, {140, 4}
  };
  private static final int[][] TEXTS = {{4, 20}, {24, 40}, {64, 8}, {768, 256}};
  private static final int[] REGISTERS = {
    Registers.CAP,
    Registers.CAP + 4,
    Registers.VS,
    Registers.CC,
    Registers.CSTS,
    Registers.CMBLOC,
    Registers.CMBSZ,
    Registers.CRTO
  };

  private final Set<Kind> kinds;
  private final SplittableRandom device;
  private final SplittableRandom host;
  private final AtomicInteger lies = new AtomicInteger();
  private LongFunction<MemorySegment> memory = bus -> null;
  private final int rarity;

  /** How many things are wrong in one data structure, at most. */
  private final int intensity;

  // Lies about registers: fixed ones, and how many in 1024 reads are lies of the moment.
  private final Map<Integer, Integer> fixed = new HashMap<>();
  private final int flicker;
  private int readsToVanish;
  private int readsToFatal;

  private volatile boolean quiet;
  private volatile boolean gone;

  // Guarded by the queues' lock.
  private volatile Pair flooded;
  private boolean rude;
  private boolean lucky;
  private int withheld;
  private long floodEnd;
  private volatile Runnable later;

  Malice(Set<Kind> kinds, SplittableRandom random) {
    this.kinds = EnumSet.copyOf(kinds);
    device = random.split();
    host = random.split();
    rarity = 1 + random.nextInt(2);
    intensity = 1 << random.nextInt(6);
    flicker = random.nextInt(3) == 0 ? random.nextInt(40) : 0;
    readsToVanish = random.nextInt(5) == 0 ? random.nextInt(120) : Integer.MAX_VALUE;
    readsToFatal = random.nextInt(5) == 0 ? random.nextInt(120) : Integer.MAX_VALUE;
    if (random.nextInt(3) == 0) {
      int register = REGISTERS[random.nextInt(REGISTERS.length)];
      fixed.put(register, random.nextBoolean() ? 1 << random.nextInt(32) : random.nextInt());
    }
  }

  /** Where it finds the host's memory from a bus address on; null if it is not mapped. */
  void memory(LongFunction<MemorySegment> from) {
    memory = from;
  }

  /** How many lies were told. */
  int lies() {
    return lies.get();
  }

  /** Whether it only lies in ways that cannot change what a good Read returns. */
  boolean leavesDataAlone() {
    return !kinds.contains(Kind.COMPLETIONS) && !kinds.contains(Kind.FLOOD);
  }

  boolean isGone() {
    return gone;
  }

  /** No lies for a while, or lies again. */
  void quiet(boolean on) {
    quiet = on;
  }

  /** From now on registers read all ones, and no command completes. */
  void vanish() {
    gone = true;
  }

  // ---- registers; on the host's thread

  int register(int offset, int value) {
    if (gone) {
      return -1;
    }
    if (quiet || !kinds.contains(Kind.REGISTERS)) {
      return value;
    }
    if (--readsToVanish <= 0) {
      lies.incrementAndGet();
      vanish();
      return -1;
    }
    int lie = value ^ fixed.getOrDefault(offset, 0);
    if (offset == Registers.CSTS && --readsToFatal <= 0) {
      lie |= Csts.CFS.mask();
    }
    if (host.nextInt(1024) < flicker) {
      lie =
          switch (host.nextInt(4)) {
            case 0 -> -1;
            case 1 -> 0;
            case 2 -> host.nextInt();
            default -> lie ^ 1 << host.nextInt(32);
          };
    }
    if (lie != value) {
      lies.incrementAndGet();
    }
    return lie;
  }

  // ---- completions; on the device's thread

  /** A command of the host has completed: tells it so, or something else. */
  void complete(Pair pair, Command c, int dw0, int sqhd, int cid, int status) {
    if (gone) {
      return;
    }
    boolean lie = !quiet && device.nextInt(rarity) == 0;
    if (lie && kinds.contains(Kind.DATA) && pair.qid == 0 && status == 0) {
      data(c);
    }
    if (lie && kinds.contains(Kind.STATUS) && device.nextInt(3) == 0) {
      status(pair, dw0, sqhd, cid, status);
    } else if (lie && kinds.contains(Kind.ECHOES) && device.nextBoolean()) {
      echo(pair, dw0, sqhd, cid, status);
    } else if (lie && kinds.contains(Kind.COMPLETIONS) && device.nextInt(4) == 0) {
      completion(pair, dw0, sqhd, cid, status);
    } else if (lie && kinds.contains(Kind.FLOOD) && device.nextInt(12) == 0) {
      lies.incrementAndGet();
      rude = device.nextInt(4) == 0;
      lucky = device.nextInt(4) == 0;
      withheld = cid;
      floodEnd = System.nanoTime() + FLOOD_NANOS;
      flooded = pair;
    } else {
      pair.post(dw0, 0, sqhd, pair.qid, cid, status);
    }
  }

  private void status(Pair pair, int dw0, int sqhd, int cid, int status) {
    lies.incrementAndGet();
    int request = device.nextInt(3) == 0 ? pair.takeEventRequest() : -1;
    if (request >= 0) {
      int event = device.nextBoolean() ? device.nextInt() : 0x01_00_01 * device.nextInt(4);
      pair.post(event, 0, sqhd, pair.qid, request, device.nextInt(8) == 0 ? anyStatus() : 0);
    }
    switch (device.nextInt(4)) {
      case 0 -> pair.post(dw0, 0, sqhd, pair.qid, cid, anyStatus());
      case 1 -> pair.post(anyInt(dw0), 0, sqhd, pair.qid, cid, status);
      case 2 -> pair.post(dw0, device.nextInt(), device.nextInt(0x1_0000), pair.qid, cid, status);
      default -> pair.post(anyInt(dw0), -1, 0xFFFF, pair.qid, cid, anyStatus());
    }
  }

  private int anyStatus() {
    StatusCode[] all = StatusCode.values();
    return switch (device.nextInt(3)) {
      case 0 -> device.nextInt(0x8000);
      case 1 -> all[device.nextInt(all.length)].dnr();
      default -> all[device.nextInt(all.length)].status() | device.nextInt(4) << 11;
    };
  }

  /** Nothing that a host must be disturbed by. */
  private void echo(Pair pair, int dw0, int sqhd, int cid, int status) {
    for (int n = device.nextInt(4); n >= 0 && pair.hasRoom(2); n--) {
      lies.incrementAndGet();
      pair.post(anyInt(dw0), 0, sqhd, pair.qid, pair.finished(device.nextInt()), anyStatus());
    }
    if (device.nextInt(4) == 0) {
      pair.tear(cid, status);
      later = () -> pair.post(dw0, 0, sqhd, pair.qid, cid, status);
    } else {
      pair.post(dw0, 0, sqhd, pair.qid, cid, status);
    }
  }

  private void completion(Pair pair, int dw0, int sqhd, int cid, int status) {
    lies.incrementAndGet();
    int qid = pair.qid;
    switch (device.nextInt(9)) {
      case 0 -> pair.post(dw0, 0, sqhd, qid, device.nextInt(0x1_0000), status);
      case 1 -> pair.post(dw0, 0, sqhd, qid, cid ^ 1 << device.nextInt(16), status);
      case 2 -> pair.post(dw0, 0, sqhd, device.nextInt(0x1_0000), cid, status);
      case 3 -> {
        pair.glitch(dw0, qid, cid, status);
        later = () -> pair.post(dw0, 0, sqhd, qid, cid, status);
      }
      case 4 -> {
        pair.tear(cid, status);
        later = () -> pair.post(dw0, 0, sqhd, qid, cid, status);
      }
      case 5 -> {
        // Lost.
      }
      case 6 -> {
        pair.post(dw0, 0, sqhd, qid, pair.finished(device.nextInt()), anyStatus());
        pair.post(dw0, 0, sqhd, qid, cid, status);
      }
      default -> {
        pair.post(dw0, 0, sqhd, qid, cid, status);
        for (int n = device.nextInt(8); n >= 0 && pair.hasRoom(1); n--) {
          pair.post(anyInt(dw0), 0, sqhd, qid, cid, anyStatus());
          lies.incrementAndGet();
        }
      }
    }
  }

  /** Whether there is something to do without the host having done anything. */
  boolean isBusy() {
    return later != null || flooded != null;
  }

  /** What must happen a little later than the rest, and floods. */
  void act() {
    Runnable now = later;
    later = null;
    if (now != null && !gone) {
      now.run();
    }
    Pair pair = flooded;
    if (pair == null) {
      return;
    }
    if (quiet || gone || System.nanoTime() > floodEnd) {
      flooded = null;
      return;
    }
    long end = System.nanoTime() + BURST_NANOS;
    do {
      pair.flood(rude, this::nonsense);
    } while (System.nanoTime() < end);
  }

  /** Dword 3 of the completion of some command, but for the phase tag. */
  private int nonsense(Pair pair) {
    int cid;
    do {
      cid = device.nextBoolean() ? pair.finished(device.nextInt()) : device.nextInt(0x1_0000);
    } while (!lucky && (cid == withheld || pair.isOutstanding(cid)));
    return Cqe.dw3(cid, device.nextInt(0x8000), 0);
  }

  /** The controller was disabled or enabled. */
  void forget() {
    later = null;
    flooded = null;
  }

  // ---- data

  private void data(Command c) {
    MemorySegment page = memory.apply(c.prp1());
    if ((c.opcode() & 3) != 2 || page == null) {
      return;
    }
    MemorySegment s = page.asSlice(0, Math.min(page.byteSize(), ONE_PAGE));
    int rounds = 1 + device.nextInt(intensity);
    lies.addAndGet(rounds);
    for (int i = 0; i < rounds; i++) {
      if (c.opcode() == AdminOpcode.IDENTIFY && device.nextInt(4) != 0) {
        identify(s, c.cdw10() & 0xFF);
      } else {
        bytes(s);
      }
    }
  }

  private void identify(MemorySegment s, int cns) {
    switch (cns) {
      case Cns.CONTROLLER -> {
        if (device.nextInt(3) == 0) {
          text(s, TEXTS[device.nextInt(TEXTS.length)]);
        } else {
          field(s, CONTROLLER_FIELDS[device.nextInt(CONTROLLER_FIELDS.length)]);
        }
      }
      case Cns.NAMESPACE -> field(s, NAMESPACE_FIELDS[device.nextInt(NAMESPACE_FIELDS.length)]);
      case Cns.ACTIVE_NAMESPACES -> {
        int from = device.nextInt(8) == 0 ? 0 : device.nextInt(4);
        int count = device.nextInt(64) == 0 ? 1024 : device.nextInt(8);
        int nsid = device.nextInt(3);
        for (int i = from; i < Math.min(from + count, 1024); i++) {
          s.setAtIndex(ValueLayout.JAVA_INT, i, nsid);
          nsid += device.nextInt(16) == 0 ? anyInt(1) : 1;
        }
      }
      default -> {
        int at = device.nextInt(64);
        s.set(ValueLayout.JAVA_BYTE, at, (byte) device.nextInt(5));
        s.set(ValueLayout.JAVA_BYTE, at + 1L, (byte) anyInt(16));
      }
    }
  }

  private void field(MemorySegment s, int[] field) {
    long value = device.nextInt(3) == 0 ? device.nextLong() : anyInt(device.nextInt(70));
    for (int i = 0; i < field[1]; i++) {
      s.set(ValueLayout.JAVA_BYTE, field[0] + i, (byte) (value >> 8 * Math.min(i, 7)));
    }
  }

  /** What would do something to a terminal. */
  private void text(MemorySegment s, int[] field) {
    for (int i = 0; i < field[1]; i++) {
      int c =
          switch (device.nextInt(4)) {
            case 0 -> 0x1B;
            case 1 -> device.nextInt(0x20);
            case 2 -> 0x7F + device.nextInt(0x81);
            default -> '[';
          };
      s.set(ValueLayout.JAVA_BYTE, field[0] + i, (byte) c);
    }
  }

  private void bytes(MemorySegment s) {
    int most = (int) Math.min(s.byteSize(), 1 << 6 + device.nextInt(7));
    switch (device.nextInt(6)) {
      case 0 -> s.asSlice(0, most).fill((byte) 0xFF);
      case 1 -> s.asSlice(0, most).fill((byte) 0);
      case 2 -> {
        for (int i = 0; i < most; i++) {
          s.set(ValueLayout.JAVA_BYTE, i, (byte) device.nextInt());
        }
      }
      default -> {
        for (int n = device.nextInt(6); n >= 0; n--) {
          int at = device.nextInt(most);
          int old = s.get(ValueLayout.JAVA_BYTE, at);
          s.set(ValueLayout.JAVA_BYTE, at, (byte) (old ^ 1 << device.nextInt(8)));
        }
      }
    }
  }

  private int anyInt(int near) {
    return switch (device.nextInt(EVENTS)) {
      case 0 -> 0;
      case 1 -> -1;
      case 2 -> Integer.MAX_VALUE;
      case 3 -> Integer.MIN_VALUE;
      case 4 -> near + device.nextInt(3) - 1;
      case 5 -> device.nextInt(256);
      default -> device.nextInt();
    };
  }
}
