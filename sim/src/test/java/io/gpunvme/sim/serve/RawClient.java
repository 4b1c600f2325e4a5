package io.gpunvme.sim.serve;

import io.gpunvme.ffi.UnixSocket;
import io.gpunvme.nvme.vfiouser.Capabilities;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Connection;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/** A client made of messages, which may be wrong in every way. One thread. */
final class RawClient implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(10);
  private static final int MOST_DESCRIPTORS = 16;

  private final UnixSocket socket;
  private final Connection connection;
  private int lastId;

  private RawClient(UnixSocket socket) {
    this.socket = socket;
    connection = new Connection(socket, 2 << 20, MOST_DESCRIPTORS);
  }

  /** Has said nothing yet. */
  static RawClient connect(Path path) {
    return new RawClient(UnixSocket.connect(path, PATIENCE));
  }

  /** Has agreed on a version. */
  static RawClient greeted(Path path) {
    return greeted(path, new Capabilities(0, 1, MOST_DESCRIPTORS, 1 << 20, false));
  }

  /** Has agreed on a version, and told the server of these. */
  static RawClient greeted(Path path, Capabilities capabilities) {
    RawClient client = connect(path);
    client.call(Command.VERSION, capabilities.payload(0)).close();
    return client;
  }

  /** Asks and waits for the answer, an error or not; the caller's to close. */
  Message call(int command, ByteBuffer payload, int... descriptors) {
    int id = ++lastId & 0xFFFF;
    connection.command(id, command, 0, payload, descriptors);
    Message answer =
        next().orElseThrow(() -> new AssertionError("the server has ended the connection"));
    if (!answer.isReply() || answer.id() != id || answer.command() != command) {
      throw new AssertionError(
          "id %d command %d flags %Xh answers id %d command %d"
              .formatted(answer.id(), answer.command(), answer.flags(), id, command));
    }
    return answer;
  }

  /** The error number of the answer; an error comes with nothing else. 0 for success. */
  int errno(int command, ByteBuffer payload, int... descriptors) {
    try (Message answer = call(command, payload, descriptors)) {
      if (answer.error() != 0 && (answer.payload().hasRemaining() || descriptors(answer) > 0)) {
        throw new AssertionError("an error with " + answer.payload().remaining() + " bytes");
      }
      return answer.error();
    }
  }

  private static int descriptors(Message message) {
    return message.descriptors().size();
  }

  void send(int id, int command, int flags, ByteBuffer payload, int... descriptors) {
    connection.command(id, command, flags, payload, descriptors);
  }

  /** Answers what the server asks. */
  void reply(Message request, ByteBuffer payload, int... descriptors) {
    connection.reply(request, payload, descriptors);
  }

  /** Answers what the server asks with an error. */
  void refuse(Message request, int errno) {
    connection.refuse(request, errno);
  }

  /** Ends the connection; whoever waits in {@link #next} learns of it. */
  void hangUp() {
    connection.shutdown();
  }

  /** Sends bytes as they are. */
  void sendRaw(byte[] bytes, int... descriptors) {
    try (Arena arena = Arena.ofConfined()) {
      socket.send(arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes), descriptors);
    }
  }

  /** The next message; empty once the server has ended the connection. */
  Optional<Message> next() {
    return connection.receive();
  }

  /** Whether the server ends the connection before it says anything else. */
  boolean isEnded() {
    Optional<Message> next = next();
    next.ifPresent(Message::close);
    return next.isEmpty();
  }

  // ---- what is asked for

  static ByteBuffer ints(int... values) {
    ByteBuffer payload = Protocol.payload(values.length * Integer.BYTES);
    for (int value : values) {
      payload.putInt(value);
    }
    return payload.flip();
  }

  static ByteBuffer regionInfo(int argsz, int index) {
    return ints(argsz, 0, index, 0, 0, 0, 0, 0);
  }

  /** Where a mapping has its place in the file, and its length. */
  static final int MAP_OFFSET = 8;

  static final int MAP_SIZE = 24;

  static ByteBuffer mapping(int argsz, int flags, long offset, long address, long size) {
    return Protocol.payload(Protocol.DMA_MAP_BYTES)
        .putInt(argsz)
        .putInt(flags)
        .putLong(offset)
        .putLong(address)
        .putLong(size)
        .flip();
  }

  static ByteBuffer mapping(int flags, long offset, long address, long size) {
    return mapping(Protocol.DMA_MAP_BYTES, flags, offset, address, size);
  }

  static ByteBuffer unmapping(int argsz, int flags, long address, long size) {
    return Protocol.payload(Protocol.DMA_UNMAP_BYTES)
        .putInt(argsz)
        .putInt(flags)
        .putLong(address)
        .putLong(size)
        .flip();
  }

  static ByteBuffer unmapping(long address, long size) {
    return unmapping(Protocol.DMA_UNMAP_BYTES, 0, address, size);
  }

  static ByteBuffer access(int region, long offset, int count, byte... data) {
    return Protocol.payload(Protocol.REGION_ACCESS_BYTES + data.length)
        .putLong(offset)
        .putInt(region)
        .putInt(count)
        .put(data)
        .flip();
  }

  static ByteBuffer irqs(int flags, int index, int start, int count, byte... data) {
    return Protocol.payload(Protocol.SET_IRQS_BYTES + data.length)
        .putInt(Protocol.SET_IRQS_BYTES + data.length)
        .putInt(flags)
        .putInt(index)
        .putInt(start)
        .putInt(count)
        .put(data)
        .flip();
  }

  // ---- what usually works

  byte[] read(int region, long offset, int count) {
    try (Message answer = call(Command.REGION_READ, access(region, offset, count))) {
      ByteBuffer payload = answer.payload();
      boolean echoes =
          answer.error() == 0
              && payload.remaining() == Protocol.REGION_ACCESS_BYTES + count
              && payload.getLong(0) == offset
              && payload.getInt(8) == region
              && payload.getInt(12) == count;
      if (!echoes) {
        throw new AssertionError(
            "error %d, %d bytes".formatted(answer.error(), payload.remaining()));
      }
      byte[] data = new byte[count];
      payload.get(Protocol.REGION_ACCESS_BYTES, data);
      return data;
    }
  }

  int read32(int region, long offset) {
    return little(read(region, offset, Integer.BYTES)).getInt();
  }

  long read64(int region, long offset) {
    return little(read(region, offset, Long.BYTES)).getLong();
  }

  private static ByteBuffer little(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(java.nio.ByteOrder.LITTLE_ENDIAN);
  }

  void write(int region, long offset, byte... data) {
    int errno = errno(Command.REGION_WRITE, access(region, offset, data.length, data));
    if (errno != 0) {
      throw new AssertionError("error " + errno + " of a write");
    }
  }

  void write32(int region, long offset, int value) {
    byte[] data = new byte[Integer.BYTES];
    little(data).putInt(value);
    write(region, offset, data);
  }

  void write64(int region, long offset, long value) {
    byte[] data = new byte[Long.BYTES];
    little(data).putLong(value);
    write(region, offset, data);
  }

  void map(Pages pages, long address, int flags) {
    int errno =
        errno(Command.DMA_MAP, mapping(flags, 0, address, pages.memory().byteSize()), pages.fd());
    if (errno != 0) {
      throw new AssertionError("error " + errno + " of DMA_MAP");
    }
  }

  int unmap(long address, long size) {
    return errno(Command.DMA_UNMAP, unmapping(address, size));
  }

  /** The descriptor of the doorbells, the caller's to close. */
  int doorbells() {
    try (Message answer = call(Command.DEVICE_GET_REGION_INFO, regionInfo(4096, 0))) {
      return answer.take(0);
    }
  }

  @Override
  public void close() {
    connection.close();
  }
}
