package io.gpunvme.core.accel;

import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.PinnedMemory;
import io.gpunvme.nvme.memory.RemotePort;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * CUDA copies in a stream of their own. Each has an event from a ring; a stream ends its copies in
 * order, so the event of a later copy answers for one whose own event has been used again.
 */
final class CudaRemotePort implements RemotePort {
  /** Copies whose end can be told one by one. */
  private static final int EVENTS = 64;

  private final CudaContext context;
  private final DeviceMemory memory;
  private final CudaStream stream;
  private final CudaEvent[] events = new CudaEvent[EVENTS];
  private final List<PinnedMemory> bounces = new ArrayList<>();

  /** The last copy that was started; tickets are numbers from 1 on. */
  private long started;

  /** The last copy that is known to be over. */
  private long over;

  private boolean closed;

  CudaRemotePort(CudaContext context, DeviceMemory memory) {
    this.context = context;
    this.memory = memory;
    stream = context.stream();
    try {
      for (int i = 0; i < EVENTS; i++) {
        events[i] = context.event();
      }
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  @Override
  public void read(long offset, MemorySegment to) {
    stream.copyToHostAsync(to, address(offset, to.byteSize()));
    stream.synchronize();
    over = started;
  }

  @Override
  public void write(long offset, MemorySegment from) {
    stream.copyToDeviceAsync(address(offset, from.byteSize()), from);
    stream.synchronize();
    over = started;
  }

  @Override
  public long startRead(long offset, MemorySegment to) {
    stream.copyToHostAsync(to, address(offset, to.byteSize()));
    return ticket();
  }

  @Override
  public long startWrite(long offset, MemorySegment from) {
    stream.copyToDeviceAsync(address(offset, from.byteSize()), from);
    return ticket();
  }

  private long address(long offset, long bytes) {
    Objects.checkFromIndexSize(offset, bytes, memory.size());
    return memory.address() + offset;
  }

  private long ticket() {
    started++;
    stream.record(events[(int) (started % EVENTS)]);
    return started;
  }

  @Override
  public boolean isDone(long ticket) {
    if (ticket > over) {
      long known = Math.max(ticket, started - EVENTS + 1);
      if (events[(int) (known % EVENTS)].isDone()) {
        over = known;
      }
    }
    return ticket <= over;
  }

  @Override
  public MemorySegment bounce(long bytes) {
    PinnedMemory bounce = context.allocatePinned(bytes);
    bounces.add(bounce);
    return bounce.segment();
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    List<Runnable> rest = new ArrayList<>();
    rest.add(stream::synchronize);
    for (CudaEvent event : events) {
      if (event != null) {
        rest.add(event::close);
      }
    }
    bounces.forEach(bounce -> rest.add(bounce::close));
    rest.add(stream::close);
    rest.forEach(CudaRemotePort::quietly);
  }

  private static void quietly(Runnable step) {
    try {
      step.run();
    } catch (CudaException | IllegalStateException e) {
      // A context that failed or is closed copies nothing any more, and frees what it had itself.
    }
  }
}
