package io.gpunvme.nvme.pci.vfiouser;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.pci.DmaChecks;
import io.gpunvme.nvme.pci.host.IovaSpace;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.nvme.vfiouser.RefusedException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** The memory that the server has been given, and where. Safe for all threads. */
final class ClientMemory {
  /** Servers take addresses as large as pointers are. */
  static final int ADDRESS_BITS = 47;

  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.pci.vfiouser");
  private static final int PAGE = 4096;
  private static final int MOST_IN_ORDER = 4096;
  private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle().withInvokeExactBehavior();

  private final String name;
  private final boolean messages;
  private final IovaSpace space =
      new IovaSpace(List.of(new IovaSpace.Range(0, (1L << ADDRESS_BITS) - 1)), PAGE);

  /** Whether the server is answered no more; guarded by {@link #mapped}. */
  private boolean revoked;

  /** By first bus address; guarded by itself. What is here is alive. */
  private final TreeMap<Long, MemorySegment> mapped = new TreeMap<>();

  ClientMemory(String name, boolean messages) {
    this.name = name;
    this.messages = messages;
  }

  /**
   * Gives the server memory.
   *
   * @throws DmaMappingException if it cannot be given it
   * @throws DeviceGoneException if there is no server any more
   */
  BusRange map(Requests requests, MemorySegment memory) {
    DmaChecks.check(memory, PAGE);
    Optional<SharedMemory.Place> place = messages ? Optional.empty() : SharedMemory.find(memory);
    if (place.isEmpty() && !messages) {
      throw new DmaMappingException(
          "%d bytes at %Xh have no descriptor that %s could be given; use memory that the device"
                  .formatted(memory.byteSize(), memory.address(), name)
              + " allocates (BusMapper.allocate), or the option messages=true");
    }
    long bytes = memory.byteSize();
    long iova = space.take(bytes, IovaSpace.suitableAlignment(memory.address(), bytes));
    synchronized (mapped) {
      mapped.put(iova, memory);
    }
    ByteBuffer ask =
        Protocol.payload(Protocol.DMA_MAP_BYTES)
            .putInt(Protocol.DMA_MAP_BYTES)
            .putInt(Protocol.DMA_READABLE | Protocol.DMA_WRITABLE)
            .putLong(place.map(SharedMemory.Place::offset).orElse(0L))
            .putLong(iova)
            .putLong(bytes)
            .flip();
    int[] descriptors = place.map(p -> new int[] {p.fd()}).orElseGet(() -> new int[0]);
    try {
      requests.call(Command.DMA_MAP, ask, descriptors).close();
    } catch (RuntimeException | Error e) {
      forget(iova);
      if (e instanceof RefusedException refused) {
        throw refused(bytes, refused);
      }
      throw e;
    }
    return BusRange.contiguous(memory, iova, () -> unmap(requests, iova, bytes));
  }

  private DmaMappingException refused(long bytes, RefusedException e) {
    String what = "%s could not be given %d bytes (%s)".formatted(name, bytes, e.getMessage());
    return new DmaMappingException(
        e.errno() == Errno.ENOSPC || e.errno() == Errno.EMFILE
            ? what + ": too many ranges are mapped; map fewer and larger ones"
            : what,
        e);
  }

  private void forget(long iova) {
    boolean known;
    synchronized (mapped) {
      known = mapped.remove(iova) != null;
    }
    // A range may be closed after the function that had taken it back.
    if (known) {
      space.release(iova);
    }
  }

  private void unmap(Requests requests, long iova, long bytes) {
    synchronized (mapped) {
      if (!mapped.containsKey(iova)) {
        return; // closed before the range was
      }
    }
    ByteBuffer ask =
        Protocol.payload(Protocol.DMA_UNMAP_BYTES)
            .putInt(Protocol.DMA_UNMAP_BYTES)
            .putInt(0)
            .putLong(iova)
            .putLong(bytes)
            .flip();
    try {
      requests.call(Command.DMA_UNMAP, ask).close();
    } catch (DeviceGoneException | ProtocolException e) {
      // The server has let go of everything, or will before it serves anybody else.
    } catch (RefusedException e) {
      // It may use the memory still: the address is not given out again.
      LOG.log(System.Logger.Level.WARNING, "{0}: {1}", name, e.getMessage());
      synchronized (mapped) {
        mapped.remove(iova);
      }
      return;
    }
    forget(iova);
  }

  /** Takes back what nobody has. */
  void unmapAll(Requests requests) {
    Map<Long, MemorySegment> left;
    synchronized (mapped) {
      left = new TreeMap<>(mapped);
    }
    left.forEach((iova, memory) -> unmap(requests, iova, memory.byteSize()));
  }

  /** The server reads and writes nothing by messages any more when this returns. */
  void revoke() {
    synchronized (mapped) {
      revoked = true;
    }
  }

  /**
   * What the server reads and writes by messages.
   *
   * @throws RefusedException if it is not all mapped
   */
  ByteBuffer answer(Message request) {
    ByteBuffer payload = request.payload();
    boolean write = request.command() == Command.DMA_WRITE;
    if (payload.remaining() < Protocol.DMA_ACCESS_BYTES) {
      throw new RefusedException(request.command(), Errno.EINVAL);
    }
    long address = payload.getLong(0);
    long bytes = payload.getLong(8);
    int data = payload.remaining() - Protocol.DMA_ACCESS_BYTES;
    boolean fits = bytes >= 0 && bytes <= Protocol.DEFAULT_MAX_TRANSFER;
    if (!fits || data != (write ? bytes : 0) || !request.descriptors().isEmpty()) {
      throw new RefusedException(request.command(), Errno.EINVAL);
    }
    int room = write ? 0 : (int) bytes;
    ByteBuffer answer =
        Protocol.payload(Protocol.DMA_ACCESS_BYTES + room).putLong(address).putLong(bytes);
    // The monitor keeps the memory alive: whoever unmaps it waits.
    synchronized (mapped) {
      var below = mapped.floorEntry(address);
      MemorySegment memory = below == null ? MemorySegment.NULL : below.getValue();
      long offset = below == null ? 0 : address - below.getKey();
      if (revoked
          || offset < 0
          || offset > memory.byteSize()
          || bytes > memory.byteSize() - offset) {
        throw new RefusedException(request.command(), Errno.EFAULT);
      }
      if (write) {
        write(payload, memory, offset, (int) bytes);
      } else {
        MemorySegment.copy(memory, offset, MemorySegment.ofBuffer(answer), 0, bytes);
      }
    }
    return answer.clear();
  }

  /** Completions are polled for: of their 16 bytes those with the phase come last. */
  private static void write(ByteBuffer payload, MemorySegment memory, long offset, int bytes) {
    if (bytes > MOST_IN_ORDER || (offset | bytes) % (2 * Long.BYTES) != 0) {
      MemorySegment data = MemorySegment.ofBuffer(payload.position(Protocol.DMA_ACCESS_BYTES));
      MemorySegment.copy(data, 0, memory, offset, bytes);
      return;
    }
    for (int i = 0; i < bytes; i += Long.BYTES) {
      // Release: whoever acquires it, a driver that polls, finds what was written before.
      LONG.setRelease(memory, offset + i, payload.getLong(Protocol.DMA_ACCESS_BYTES + i));
    }
  }
}
