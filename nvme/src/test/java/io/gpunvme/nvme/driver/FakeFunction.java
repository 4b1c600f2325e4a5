package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.DoorbellPoller;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.Aqa;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * A function whose registers a test scripts: a well-behaved controller with an admin queue and no
 * I/O queues unless told otherwise. Commands are answered by a {@link FakeAdmin}.
 */
final class FakeFunction implements PciFunction {
  /** Decides what CSTS reads as. */
  interface Status {
    /**
     * @param normal what a well-behaved controller would say
     * @param sinceCc how often CSTS was read since CC was last written
     */
    int csts(int normal, int sinceCc);
  }

  private static final long BUS_BASE = 0x4000_0000_0000L;

  private final Arena arena = Arena.ofShared();
  private final MemorySegment doorbells = arena.allocate(0x2000, 4096);
  private final ConcurrentSkipListMap<Long, MemorySegment> mapped = new ConcurrentSkipListMap<>();
  private final Map<Integer, Integer> registers = new TreeMap<>();
  private final int[] config = new int[64];
  private final FakeAdmin admin = new FakeAdmin(this);
  private int cstsReads;

  /** Who is told of doorbells. */
  final ToldPoller poller = new ToldPoller();

  /** CC values in the order written. */
  final List<Cc> ccWrites = new CopyOnWriteArrayList<>();

  volatile Cap cap =
      new Cap(0)
          .with(Cap.MQES, 63)
          .with(Cap.CQR, true)
          .with(Cap.TO, 1)
          .with(Cap.CSS, Cap.CSS_NVM)
          .with(Cap.MPSMAX, 4);
  volatile Vs version = Vs.V1_4;
  volatile int crto;
  volatile long barSize = 0x3000;
  volatile Status status = (normal, reads) -> normal;
  volatile int ccReadMask = -1;
  volatile boolean closed;
  volatile Runnable onClose = () -> {};
  volatile Runnable onStopDma = () -> {};
  volatile int functionResets;
  volatile long mapLimit = Long.MAX_VALUE;

  /** The admin queue's other side. */
  FakeAdmin admin() {
    return admin;
  }

  MemorySegment doorbells() {
    return doorbells;
  }

  /** Ranges mapped and not yet unmapped. */
  int mappedRanges() {
    return mapped.size();
  }

  boolean busMaster() {
    return (config[1] & ConfigSpace.COMMAND_BUS_MASTER) != 0;
  }

  /** What is at a bus address; null if nothing is mapped there. */
  MemorySegment at(long bus, long bytes) {
    Map.Entry<Long, MemorySegment> entry = mapped.floorEntry(bus);
    if (entry == null || bus + bytes > entry.getKey() + entry.getValue().byteSize()) {
      return null;
    }
    return entry.getValue().asSlice(bus - entry.getKey(), bytes);
  }

  synchronized int register(int offset) {
    return registers.getOrDefault(offset, 0);
  }

  private synchronized int read(int offset) {
    return switch (offset) {
      case Registers.CAP -> (int) cap.value();
      case Registers.CAP + 4 -> (int) (cap.value() >>> 32);
      case Registers.VS -> version.value();
      case Registers.CRTO -> crto;
      case Registers.CC -> status.csts(0, 1) == -1 ? -1 : register(offset) & ccReadMask;
      case Registers.CSTS -> {
        Cc cc = new Cc(register(Registers.CC));
        int normal = cc.isSet(Cc.EN) ? Csts.RDY.mask() : 0;
        yield status.csts(
            cc.get(Cc.SHN) == 0 ? normal : normal | Csts.SHST_COMPLETE << 2, cstsReads++);
      }
      default -> register(offset);
    };
  }

  private synchronized void write(int offset, int value) {
    Cc before = new Cc(register(Registers.CC));
    registers.put(offset, value);
    if (offset != Registers.CC) {
      return;
    }
    cstsReads = 0;
    Cc cc = new Cc(value);
    ccWrites.add(cc);
    if (cc.isSet(Cc.EN) && !before.isSet(Cc.EN)) {
      Aqa aqa = new Aqa(register(Registers.AQA));
      admin.start(
          address(Registers.ASQ),
          aqa.get(Aqa.ASQS) + 1,
          address(Registers.ACQ),
          aqa.get(Aqa.ACQS) + 1);
    } else if (!cc.isSet(Cc.EN) && before.isSet(Cc.EN)) {
      admin.stop();
    }
  }

  private long address(int register) {
    return Integer.toUnsignedLong(register(register)) | (long) register(register + 4) << 32;
  }

  @Override
  public String name() {
    return "fake";
  }

  @Override
  public Bar bar(int index) {
    return new Bar() {
      @Override
      public long size() {
        return barSize;
      }

      @Override
      public int read32(long offset) {
        return read((int) offset);
      }

      @Override
      public void write32(long offset, int value) {
        write((int) offset, value);
      }

      @Override
      public long read64(long offset) {
        return Integer.toUnsignedLong(read((int) offset)) | (long) read((int) offset + 4) << 32;
      }

      @Override
      public void write64(long offset, long value) {
        write((int) offset, (int) value);
        write((int) offset + 4, (int) (value >>> 32));
      }

      @Override
      public MemorySegment memory(long offset, long bytes) {
        if (offset < Registers.DOORBELLS || offset + bytes > Registers.DOORBELLS + 0x2000) {
          throw new InvalidRequestException("not mapped");
        }
        return doorbells.asSlice(offset - Registers.DOORBELLS, bytes);
      }
    };
  }

  @Override
  public ConfigSpace config() {
    return new ConfigSpace() {
      @Override
      public int size() {
        return 256;
      }

      @Override
      public int read(int offset, int bytes) {
        return config[offset / 4];
      }

      @Override
      public void write(int offset, int bytes, int value) {
        config[offset / 4] = value;
        if (!busMaster()) {
          admin.stop();
        }
      }
    };
  }

  @Override
  public int addressBits() {
    return 64;
  }

  @Override
  public DoorbellPoller poller() {
    return poller;
  }

  @Override
  public void reset() {
    functionResets++;
    write(Registers.CC, 0);
  }

  @Override
  public BusRange map(MemorySegment memory) {
    if (mapped.values().stream().mapToLong(MemorySegment::byteSize).sum() + memory.byteSize()
        > mapLimit) {
      throw new DmaMappingException("no more than " + mapLimit + " bytes can be mapped");
    }
    long bus = BUS_BASE + memory.address();
    mapped.put(bus, memory);
    return BusRange.contiguous(memory, bus, () -> mapped.remove(bus));
  }

  @Override
  public boolean stopDma() {
    onStopDma.run();
    return PciFunction.super.stopDma();
  }

  @Override
  public void close() {
    admin.stop();
    closed = true;
    onClose.run();
  }

  /** The states and notes of a bring-up, for assertions. */
  static List<String> states(List<BringUpStep> steps) {
    List<String> names = new ArrayList<>();
    steps.forEach(step -> names.add(step.state()));
    return names;
  }
}
