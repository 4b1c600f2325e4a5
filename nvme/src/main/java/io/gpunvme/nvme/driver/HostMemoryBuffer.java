package io.gpunvme.nvme.driver;

import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.Features;
import io.gpunvme.nvme.spec.HostMemoryBufferEntry;
import io.gpunvme.nvme.spec.IdentifyController;
import java.util.ArrayList;
import java.util.List;

/**
 * Host memory lent to a controller that has no DRAM of its own (Base 2.0, 8.9; feature 0Dh). Lent
 * for as long as the controller is up; taken back before it is shut down, or after a reset took it
 * back.
 *
 * <p>It only makes the controller faster, so no failure here is fatal: {@link #status} says what
 * came of it. Changed by one thread at a time.
 */
public final class HostMemoryBuffer {
  /** HMPRE, HMMIN and HMMINDS are in units of this, whatever the page size. */
  private static final long UNIT = 4096;

  /** Few descriptors and yet chunks that the system can still find. */
  private static final long CHUNK = 4 << 20;

  private final BusMapper mapper;
  private final long limit;
  private final List<DmaBuffer> chunks = new ArrayList<>();
  private final List<DmaBuffer> descriptors = new ArrayList<>();
  private int entries;
  private long bytes;
  private String status = "not asked for";

  /**
   * @param limit most bytes to lend; 0: none
   */
  HostMemoryBuffer(BusMapper mapper, long limit) {
    this.mapper = mapper;
    this.limit = limit;
  }

  /** Bytes the controller has at present. */
  public long bytes() {
    return bytes;
  }

  /** The memory that was lent, or the reason why none was, in one line. */
  public String status() {
    return status;
  }

  /** After every bring-up: lends what the controller prefers, as far as limit and memory allow. */
  void enable(AdminQueue admin, IdentifyController id, int pageSize) {
    bytes = 0;
    long preferred = id.hmpre() * UNIT;
    long minimum = id.hmmin() * UNIT;
    if (preferred == 0) {
      status = "the controller asks for none";
    } else if (minimum > preferred) {
      status = "HMMIN %d is above HMPRE %d".formatted(id.hmmin(), id.hmpre());
    } else if (limit == 0) {
      status = "off; the controller prefers " + preferred + " bytes";
    } else if (limit < minimum) {
      status = "the controller needs " + minimum + " bytes, the limit is " + limit;
    } else {
      lend(admin, id, Math.min(preferred, limit), pageSize);
    }
  }

  private void lend(AdminQueue admin, IdentifyController id, long wanted, int pageSize) {
    if (chunks.isEmpty() && !allocate(id, wanted, pageSize)) {
      return;
    }
    long total = chunks.stream().mapToLong(DmaBuffer::size).sum();
    try {
      admin.execute(setFeature(true, (int) (total / pageSize)));
      bytes = total;
      status = total + " bytes in " + entries + " pieces";
    } catch (NvmeStatusException e) {
      free();
      status = "refused: " + e.getMessage();
    }
  }

  /** Halves what it asks the system for until it fits, down to HMMIN. */
  private boolean allocate(IdentifyController id, long wanted, int pageSize) {
    long least = Math.max(id.hmmin() * UNIT, pageSize);
    for (long size = roundUp(wanted, pageSize); size >= least; size = size / 2 / UNIT * UNIT) {
      try {
        allocateChunks(id, size, pageSize);
        return true;
      } catch (DmaMappingException | PosixException e) {
        free();
        status = "no memory for " + size + " bytes: " + e.getMessage();
      }
    }
    return false;
  }

  private void allocateChunks(IdentifyController id, long size, int pageSize) {
    long smallest = Math.max(pageSize, id.hmminds() * UNIT);
    long most = id.hmmaxd() == 0 ? Integer.MAX_VALUE : id.hmmaxd();
    long chunk = Math.max(Math.max(CHUNK, smallest), roundUp(Math.ceilDiv(size, most), pageSize));
    for (long left = size; left >= smallest; left -= chunk) {
      chunks.add(DmaBuffer.allocate(mapper, roundUp(Math.min(chunk, left), pageSize)));
    }
    describe(smallest, most, pageSize);
  }

  /** One entry for each run of bus addresses; a chunk behind an IOMMU is a single run. */
  private void describe(long smallest, long most, int pageSize) {
    List<long[]> runs = new ArrayList<>();
    for (DmaBuffer chunk : chunks) {
      BusRange range = chunk.range();
      for (long at = 0, run; at < chunk.size(); at += run) {
        run = range.contiguous(at, chunk.size() - at);
        if (run % pageSize != 0 || run < smallest) {
          throw new DmaMappingException("memory is scattered in pieces of " + run + " bytes");
        }
        runs.add(new long[] {range.busAddress(at), run / pageSize});
      }
    }
    if (runs.isEmpty() || runs.size() > most) {
      throw new DmaMappingException(runs.size() + " pieces, HMMAXD is " + most);
    }
    entries = runs.size();
    DmaBuffer list = DmaBuffer.allocate(mapper, (long) entries * HostMemoryBufferEntry.SIZE);
    descriptors.add(list);
    if (list.range().contiguous(0, list.size()) < list.size()) {
      throw new DmaMappingException("the descriptor list is scattered on the bus");
    }
    for (int i = 0; i < entries; i++) {
      long[] run = runs.get(i);
      HostMemoryBufferEntry.put(
          list.memory(), (long) i * HostMemoryBufferEntry.SIZE, run[0], (int) run[1]);
    }
  }

  private AdminCommand setFeature(boolean enable, int pages) {
    AdminCommand command =
        AdminCommand.of(AdminOpcode.SET_FEATURES)
            .cdw10(FeatureId.HOST_MEMORY_BUFFER)
            .cdw11(Features.HostMemoryBuffer.of(enable, false).value());
    if (!enable) {
      return command;
    }
    long list = descriptors.getFirst().busAddress(0);
    return command.cdw12(pages).cdw13((int) list).cdw14((int) (list >>> 32)).cdw15(entries);
  }

  /** Before shutdown: the controller copies out what it needs and lets go. */
  void disable(AdminQueue admin) {
    if (bytes != 0) {
      admin.execute(setFeature(false, 0));
      bytes = 0;
      status = "taken back";
    }
  }

  /** Once the controller cannot touch it any more. */
  void free() {
    bytes = 0;
    entries = 0;
    descriptors.forEach(DmaBuffer::close);
    descriptors.clear();
    chunks.forEach(DmaBuffer::close);
    chunks.clear();
  }

  private static long roundUp(long value, long unit) {
    return Math.ceilDiv(value, unit) * unit;
  }
}
