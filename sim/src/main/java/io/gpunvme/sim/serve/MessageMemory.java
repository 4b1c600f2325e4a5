package io.gpunvme.sim.serve;

import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.memory.RemotePort;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Exchange;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/** Memory of the client that came without a descriptor: each access is a message and its answer. */
final class MessageMemory implements RemoteMemory {
  private final Exchange exchange;
  private final long address;
  private final long size;
  private final int most;

  /**
   * @param maxTransfer bytes of data that the client takes in one message
   */
  MessageMemory(Exchange exchange, long address, long size, long maxTransfer) {
    this.exchange = exchange;
    this.address = address;
    this.size = size;
    this.most = (int) Math.min(maxTransfer, Protocol.DEFAULT_MAX_TRANSFER);
  }

  @Override
  public String name() {
    return "%d bytes of the client at %Xh".formatted(size, address);
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public boolean mayBeInHost() {
    return true;
  }

  @Override
  public RemotePort openPort(RemotePort.Use use) {
    return new Port();
  }

  private static ByteBuffer request(long at, int bytes, int data) {
    return Protocol.payload(Protocol.DMA_ACCESS_BYTES + data).putLong(at).putLong(bytes);
  }

  private void read(long at, MemorySegment to) {
    int bytes = (int) to.byteSize();
    try (Message answer = exchange.call(Command.DMA_READ, request(at, bytes, 0).flip())) {
      ByteBuffer payload = answer.payload();
      boolean whole =
          payload.remaining() == Protocol.DMA_ACCESS_BYTES + bytes
              && payload.getLong(0) == at
              && payload.getLong(8) == bytes;
      if (!whole) {
        throw wrong(payload, bytes);
      }
      to.copyFrom(MemorySegment.ofBuffer(payload.position(Protocol.DMA_ACCESS_BYTES)));
    }
  }

  private void write(long at, MemorySegment from) {
    int bytes = (int) from.byteSize();
    ByteBuffer ask = request(at, bytes, bytes);
    MemorySegment.ofBuffer(ask).copyFrom(from);
    try (Message answer = exchange.call(Command.DMA_WRITE, ask.clear())) {
      ByteBuffer payload = answer.payload();
      if (payload.remaining() < Protocol.DMA_ACCESS_BYTES || payload.getLong(8) != bytes) {
        throw wrong(payload, bytes);
      }
    }
  }

  private ProtocolException wrong(ByteBuffer payload, int bytes) {
    return exchange.breach(
        "an answer of %d bytes to an access of %d bytes".formatted(payload.remaining(), bytes));
  }

  /** Every copy is over when its method returns. */
  private final class Port implements RemotePort {
    private final Arena memory = Arena.ofShared();
    private long tickets;

    @Override
    public void read(long offset, MemorySegment to) {
      for (long done = 0; done < to.byteSize(); done += most) {
        long n = Math.min(most, to.byteSize() - done);
        MessageMemory.this.read(address + offset + done, to.asSlice(done, n));
      }
    }

    @Override
    public void write(long offset, MemorySegment from) {
      for (long done = 0; done < from.byteSize(); done += most) {
        long n = Math.min(most, from.byteSize() - done);
        MessageMemory.this.write(address + offset + done, from.asSlice(done, n));
      }
    }

    @Override
    public long startRead(long offset, MemorySegment to) {
      read(offset, to);
      return ++tickets;
    }

    @Override
    public long startWrite(long offset, MemorySegment from) {
      write(offset, from);
      return ++tickets;
    }

    @Override
    public boolean isDone(long ticket) {
      return true;
    }

    @Override
    public MemorySegment bounce(long bytes) {
      return memory.allocate(bytes, 64);
    }

    @Override
    public void close() {
      if (memory.scope().isAlive()) {
        memory.close();
      }
    }
  }
}
