package io.gpunvme.nvme.fuzz;

import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * An embedded controller behind a function that lies: what the host reads from registers, finds in
 * its data and gets as completions goes through a {@link Malice} first.
 *
 * <p>The embedded controller is honest and does the work, which is what makes the lies good ones.
 */
final class HostileFunction implements PciFunction {
  /**
   * Reads of CSTS while nothing happens, after which the device vanishes: it keeps no test waiting.
   */
  private static final int PATIENCE = 200;

  private static final int HIGH = 4;

  private final SimulatedController sim;
  private final Malice malice;
  private final HostileQueues queues;
  private final Bar registers = new Registers0();
  private final ConcurrentSkipListMap<Long, MemorySegment> mapped = new ConcurrentSkipListMap<>();
  private long completionQueue;
  private volatile int statusReads;
  private volatile boolean closed;

  HostileFunction(SimulatedController sim, Malice malice) {
    this.sim = sim;
    this.malice = malice;
    queues = new HostileQueues(this, sim, malice);
    malice.memory(this::from);
  }

  HostileQueues queues() {
    return queues;
  }

  /** How many ranges the host has mapped and not unmapped. */
  int mappedRanges() {
    return mapped.size();
  }

  boolean isClosed() {
    return closed;
  }

  /** The host's memory at a bus address; null unless all of it is mapped. */
  MemorySegment at(long bus, long bytes) {
    Map.Entry<Long, MemorySegment> entry = mapped.floorEntry(bus);
    if (entry == null || bus - entry.getKey() > entry.getValue().byteSize() - bytes) {
      return null;
    }
    return entry.getValue().asSlice(bus - entry.getKey(), bytes);
  }

  /** The host's memory from a bus address to the end of what is mapped; null if it is not. */
  private MemorySegment from(long bus) {
    Map.Entry<Long, MemorySegment> entry = mapped.floorEntry(bus);
    return entry == null || bus - entry.getKey() >= entry.getValue().byteSize()
        ? null
        : entry.getValue().asSlice(bus - entry.getKey());
  }

  private void locked(Runnable action) {
    queues.lock.lock();
    try {
      action.run();
    } finally {
      queues.lock.unlock();
    }
  }

  /** The host sent a command. */
  void progress() {
    statusReads = 0;
  }

  // ---- the function

  @Override
  public String name() {
    return "hostile";
  }

  @Override
  public Bar bar(int index) {
    return index == 0 ? registers : sim.bar(index);
  }

  @Override
  public ConfigSpace config() {
    return sim.config();
  }

  @Override
  public int addressBits() {
    return sim.addressBits();
  }

  @Override
  public void reset() {
    locked(
        () -> {
          queues.forget();
          sim.reset();
        });
  }

  @Override
  public BusRange map(MemorySegment memory) {
    BusRange range = sim.map(memory);
    long bus = range.busAddress(0);
    mapped.put(bus, memory);
    return BusRange.contiguous(
        memory,
        bus,
        () -> {
          locked(() -> mapped.remove(bus));
          range.close();
        });
  }

  @Override
  public void close() {
    locked(
        () -> {
          closed = true;
          queues.forget();
        });
  }

  /** BAR0. */
  private final class Registers0 implements Bar {
    @Override
    public long size() {
      return sim.bar(0).size();
    }

    @Override
    public int read32(long offset) {
      int value = closed ? -1 : sim.bar(0).read32(offset);
      if (offset == Registers.CSTS) {
        statusReads = statusReads + 1;
        if (statusReads > PATIENCE) {
          malice.vanish();
        }
      }
      return malice.register((int) offset, value);
    }

    @Override
    public long read64(long offset) {
      return Integer.toUnsignedLong(read32(offset)) | (long) read32(offset + HIGH) << 32;
    }

    @Override
    public void write64(long offset, long value) {
      write32(offset, (int) value);
      write32(offset + HIGH, (int) (value >>> 32));
    }

    @Override
    public void write32(long offset, int value) {
      if (closed) {
        return;
      }
      locked(() -> write(offset, value));
    }

    private void write(long offset, int value) {
      switch ((int) offset) {
        case Registers.ACQ ->
            completionQueue = completionQueue & -1L << 32 | Integer.toUnsignedLong(value);
        case Registers.ACQ + HIGH ->
            completionQueue = completionQueue & 0xFFFF_FFFFL | (long) value << 32;
        case Registers.CC -> writeCc(value);
        default -> sim.bar(0).write32(offset, value);
      }
    }

    private void writeCc(int value) {
      Bar bar = sim.bar(0);
      boolean before = new Cc(bar.read32(Registers.CC)).isSet(Cc.EN);
      boolean after = new Cc(value).isSet(Cc.EN);
      statusReads = 0;
      if (before != after) {
        queues.forget();
      }
      if (after && !before) {
        bar.write64(Registers.ACQ, queues.bounce(0));
      }
      bar.write32(Registers.CC, value);
      if (after && !before) {
        queues.enable(bar.read32(Registers.AQA), bar.read64(Registers.ASQ), completionQueue);
      }
    }

    @Override
    public MemorySegment memory(long offset, long bytes) {
      return queues.doorbells(offset - Registers.DOORBELLS, bytes);
    }
  }
}
