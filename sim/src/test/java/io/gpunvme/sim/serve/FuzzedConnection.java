package io.gpunvme.sim.serve;

import io.gpunvme.ffi.EventFd;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.vfiouser.Capabilities;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import io.gpunvme.nvme.vfiouser.SleepRegion;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;

/**
 * One connection of a client that says almost anything: messages that are nearly right, and
 * mutations of them. A second thread takes what the server says and answers some of it.
 */
final class FuzzedConnection {
  /** Memory that is given to the server: pages of the file that {@link #pages} maps. */
  static final int FIRST_GIVEN = 16;

  static final int AFTER_GIVEN = 48;

  private static final long AT = 0x10_0000;
  private static final long[] INTERESTING = {
    0,
    1,
    -1,
    2,
    4,
    8,
    15,
    16,
    17,
    31,
    32,
    33,
    4095,
    4096,
    4097,
    1 << 20,
    0x7FFF_FFFFL,
    0x8000_0000L,
    0xFFFF_FFFFL,
    1L << 32,
    1L << 47,
    1L << 62,
    Long.MAX_VALUE,
    Long.MIN_VALUE,
    -4096
  };
  private static final int[] CONFIG_PLACES = {4, 5, 0x10, 0x14, 0x3C, 0x44, 0x50, 0x52, 0x68, 0x69};

  private final SplittableRandom random;
  private final SplittableRandom answers;
  private final Pages pages;
  private final int spare;
  private final EventFd event;
  private final int[] oddities;
  private RawClient client;
  private Thread drain;

  // Written by the draining thread, read by the other as it goes.
  private volatile int taken;

  // Read after that thread has ended.
  private int refused;
  private Throwable failure;

  /**
   * @param spare descriptor of a file as long as that of the pages, for what would give too much
   * @param oddities descriptors of files of other kinds
   */
  FuzzedConnection(
      SplittableRandom random, Pages pages, int spare, EventFd event, int... oddities) {
    this.random = random;
    this.answers = random.split();
    this.pages = pages;
    this.spare = spare;
    this.event = event;
    this.oddities = oddities;
  }

  /** How many messages came from the server. */
  int taken() {
    return taken;
  }

  /** How many of them were errors. */
  int refused() {
    return refused;
  }

  /** Sends up to so many messages; how many it were. */
  int run(Path socket, int messages) {
    boolean greeted = random.nextInt(20) != 0;
    Capabilities ours = new Capabilities(0, 1, 16, 1 << 20, random.nextBoolean());
    client = greeted ? RawClient.greeted(socket, ours) : RawClient.connect(socket);
    int sent = 0;
    RawNvme nvme = null;
    try {
      if (greeted && random.nextInt(4) == 0) {
        nvme = RawNvme.start(client);
      }
      drain = Thread.ofPlatform().daemon().name("drain").start(this::drain);
      for (; sent < messages; sent++) {
        if (nvme != null && random.nextInt(4) == 0) {
          work(nvme);
        }
        if (!message()) {
          break;
        }
        if (random.nextInt(16) == 0) {
          settle();
        }
      }
      settle();
    } catch (PosixException | IllegalStateException e) {
      // The server has ended the connection.
    } finally {
      end(nvme);
    }
    if (failure != null) {
      throw new AssertionError("the server said something that makes no sense", failure);
    }
    return sent;
  }

  /** Mostly lets the server come to an end with what it has been sent. */
  private void settle() {
    if (random.nextInt(8) == 0) {
      return;
    }
    int before = -1;
    while (before != taken) {
      before = taken;
      LockSupport.parkNanos(500_000);
    }
  }

  private void end(RawNvme nvme) {
    client.hangUp();
    try {
      if (drain != null) {
        drain.join();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    client.close();
    if (nvme != null) {
      nvme.close();
    }
  }

  // ---- what the controller is given to do

  private void work(RawNvme nvme) {
    int qid = random.nextInt(2);
    MemorySegment entries = nvme.queues.memory().asSlice(2L * qid * RawNvme.QUEUE, RawNvme.QUEUE);
    for (int i = 0; i < RawNvme.ENTRIES; i++) {
      int opcode = random.nextInt(8) == 0 ? random.nextInt(256) : random.nextInt(qid == 0 ? 12 : 6);
      Sqe.put(
          entries,
          (long) i * Sqe.SIZE,
          Sqe.cdw0(opcode, random.nextInt(8) == 0 ? random.nextInt(256) : 0, i),
          random.nextInt(3),
          0,
          given(),
          given(),
          random.nextInt(32),
          random.nextInt(16) == 0 ? random.nextInt() : 0,
          random.nextInt(16),
          0,
          0,
          0);
    }
    int value = random.nextInt(16) == 0 ? random.nextInt() : random.nextInt(RawNvme.ENTRIES);
    long doorbell = 8L * qid + (random.nextInt(8) == 0 ? 4 : 0);
    nvme.doorbells().set(ValueLayout.JAVA_INT, doorbell, value);
  }

  /** A bus address that is mapped if its range was. */
  private long given() {
    return AT + random.nextInt(AFTER_GIVEN - FIRST_GIVEN + 4) * Pages.PAGE;
  }

  // ---- messages

  /** Whether the stream is still one of messages. */
  private boolean message() {
    int command = random.nextInt(40) == 0 ? random.nextInt(0x1_0000) : 1 + random.nextInt(13);
    ByteBuffer payload = payload(command);
    int[] descriptors = descriptors(command);
    int kind = random.nextInt(100);
    if (kind < 55) {
      client.send(random.nextInt(0x1_0000), command, flags(), payload, descriptors);
      return true;
    }
    if (kind < 99) {
      ByteBuffer odd = mutated(payload);
      if (command == Command.DMA_MAP && givesTooMuch(odd)) {
        Arrays.setAll(descriptors, i -> descriptors[i] == pages.fd() ? spare : descriptors[i]);
      }
      client.send(random.nextInt(0x1_0000), command, flags(), odd, descriptors);
      return true;
    }
    raw(command, payload, descriptors);
    return random.nextBoolean();
  }

  /** Whether a mapping gives the server other pages than those that it may write to. */
  private static boolean givesTooMuch(ByteBuffer mapping) {
    if (mapping.limit() < Protocol.DMA_MAP_BYTES) {
      return false;
    }
    long offset = mapping.getLong(RawClient.MAP_OFFSET);
    long size = mapping.getLong(RawClient.MAP_SIZE);
    return offset < FIRST_GIVEN * Pages.PAGE || size > AFTER_GIVEN * Pages.PAGE - offset;
  }

  private int flags() {
    return switch (random.nextInt(400)) {
      case 0 -> random.nextInt();
      case 1 -> Protocol.TYPE_REPLY;
      case 2, 3, 4, 5 -> Protocol.ERROR;
      case 6, 7, 8, 9, 10, 11, 12, 13 -> Protocol.NO_REPLY;
      default -> 0;
    };
  }

  /** Sizes that lie, headers that end early, noise. */
  private void raw(int command, ByteBuffer payload, int[] descriptors) {
    byte[] body = new byte[payload.remaining()];
    payload.duplicate().get(body);
    int size =
        switch (random.nextInt(4)) {
          case 0 -> (int) INTERESTING[random.nextInt(INTERESTING.length)];
          case 1 -> 16 + body.length + 1 + random.nextInt(64);
          case 2 -> Math.max(16, 16 + body.length - 1 - random.nextInt(8));
          default -> random.nextInt();
        };
    byte[] message =
        Protocol.payload(16 + body.length)
            .putShort((short) random.nextInt())
            .putShort((short) command)
            .putInt(size)
            .putInt(flags())
            .putInt(0)
            .put(body)
            .array();
    int bytes = random.nextBoolean() ? message.length : 1 + random.nextInt(message.length);
    client.sendRaw(Arrays.copyOf(message, bytes), descriptors);
  }

  private ByteBuffer mutated(ByteBuffer payload) {
    ByteBuffer copy = Protocol.payload(payload.remaining());
    copy.put(payload.duplicate().order(payload.order())).clear();
    switch (random.nextInt(6)) {
      case 0 -> {
        return copy.limit(random.nextInt(copy.capacity() + 1));
      }
      case 1 -> {
        int more = random.nextInt(200) == 0 ? 1 << 20 : 1 + random.nextInt(64);
        return Protocol.payload(copy.capacity() + more).put(copy).clear();
      }
      case 2 -> {
        for (int i = random.nextInt(4); i >= 0 && copy.hasRemaining(); i--) {
          copy.put(random.nextInt(copy.capacity()), (byte) random.nextInt());
        }
      }
      default -> {
        long value = INTERESTING[random.nextInt(INTERESTING.length)] + random.nextInt(3) - 1;
        if (copy.capacity() >= Long.BYTES && random.nextBoolean()) {
          copy.putLong(random.nextInt(copy.capacity() / Integer.BYTES - 1) * Integer.BYTES, value);
        } else if (copy.capacity() >= Integer.BYTES) {
          copy.putInt(random.nextInt(copy.capacity() / Integer.BYTES) * Integer.BYTES, (int) value);
        }
      }
    }
    return copy;
  }

  private int[] descriptors(int command) {
    int count = command == Command.DMA_MAP || command == Command.DEVICE_SET_IRQS ? 1 : 0;
    count =
        switch (random.nextInt(80)) {
          case 0 -> 2 + random.nextInt(3);
          case 1 -> random.nextInt(10) == 0 ? 17 + random.nextInt(200) : 16;
          case 2, 3, 4 -> 1 - count;
          default -> count;
        };
    int[] all = new int[count];
    for (int i = 0; i < count; i++) {
      int usual = command == Command.DEVICE_SET_IRQS ? event.fd() : pages.fd();
      all[i] = random.nextInt(10) == 0 ? oddities[random.nextInt(oddities.length)] : usual;
    }
    return all;
  }

  private ByteBuffer payload(int command) {
    return switch (command) {
      case Command.DMA_MAP -> map();
      case Command.DMA_UNMAP -> unmap();
      case Command.DEVICE_GET_REGION_INFO ->
          RawClient.regionInfo(random.nextBoolean() ? 4096 : 32, random.nextInt(11));
      case Command.DEVICE_GET_INFO, Command.DEVICE_GET_IRQ_INFO, Command.DEVICE_GET_REGION_IO_FDS ->
          RawClient.ints(16, 0, random.nextInt(6), 0);
      case Command.DEVICE_SET_IRQS -> irqs();
      case Command.REGION_READ -> access(false);
      case Command.REGION_WRITE -> access(true);
      case Command.DEVICE_RESET -> Protocol.payload(0);
      default -> RawClient.ints(new int[random.nextInt(12)]);
    };
  }

  private ByteBuffer map() {
    int first = FIRST_GIVEN + random.nextInt(AFTER_GIVEN - FIRST_GIVEN);
    int count = 1 + random.nextInt(AFTER_GIVEN - first);
    int flags = random.nextInt(4) == 0 ? 1 + random.nextInt(2) : 3;
    long address = AT + (first - FIRST_GIVEN) * Pages.PAGE;
    return RawClient.mapping(flags, first * Pages.PAGE, address, count * Pages.PAGE);
  }

  private ByteBuffer unmap() {
    if (random.nextInt(6) == 0) {
      return RawClient.unmapping(24, 2, 0, 0);
    }
    int pagesThere = 1 + random.nextInt(AFTER_GIVEN - FIRST_GIVEN);
    boolean queues = random.nextInt(40) == 0;
    return queues
        ? RawClient.unmapping(RawNvme.QUEUES, RawNvme.ALL_QUEUES)
        : RawClient.unmapping(given(), pagesThere * Pages.PAGE);
  }

  private ByteBuffer irqs() {
    int data = 1 << random.nextInt(3);
    int action = 8 << random.nextInt(3);
    int index = random.nextInt(3) == 0 ? random.nextInt(5) : Protocol.IRQ_MSIX;
    int count = random.nextInt(4) == 0 ? random.nextInt(5) : 1;
    byte[] bytes = new byte[data == Protocol.SET_BOOL ? count : 0];
    Arrays.fill(bytes, (byte) 1);
    return RawClient.irqs(data | action, index, random.nextInt(4) == 0 ? 1 : 0, count, bytes);
  }

  private ByteBuffer access(boolean write) {
    int region = random.nextInt(3) == 0 ? random.nextInt(10) : random.nextBoolean() ? 0 : 7;
    int count = random.nextBoolean() ? 4 : 8;
    long offset = random.nextInt(0x80) & -count;
    byte[] data = new byte[write ? count : 0];
    random.nextBytes(data);
    if (region == Protocol.REGION_CONFIG) {
      count = 1 + random.nextInt(8);
      offset = CONFIG_PLACES[random.nextInt(CONFIG_PLACES.length)];
      data = new byte[write ? count : 0];
      random.nextBytes(data);
      if (write && random.nextBoolean()) {
        data[0] = (byte) (ConfigSpace.COMMAND_MEMORY | ConfigSpace.COMMAND_BUS_MASTER);
        offset = ConfigSpace.COMMAND;
      }
    } else if (region == 0 && write && random.nextInt(3) == 0) {
      count = 4;
      offset = Registers.CC;
      data = new byte[] {(byte) random.nextInt(2), 0, 0x46, 0};
    } else if (region == SleepRegion.INDEX) {
      offset = SleepRegion.SILENT * random.nextInt(3);
    } else if (region == 0 && random.nextInt(20) == 0) {
      offset = Registers.DOORBELLS + (random.nextInt(64) & -count);
    }
    return RawClient.access(region, offset, count, data);
  }

  // ---- what the server says

  private void drain() {
    try {
      Optional<Message> next = client.next();
      while (next.isPresent()) {
        try (Message message = next.get()) {
          count();
          take(message);
        }
        next = client.next();
      }
    } catch (PosixException | IllegalStateException e) {
      // It is over.
    } catch (ProtocolException | AssertionError e) {
      failure = e;
      client.hangUp();
    }
  }

  @SuppressWarnings("NonAtomicVolatileUpdate") // by one thread only
  private void count() {
    taken++;
  }

  private void take(Message message) {
    if (message.isCommand()) {
      answer(message);
      return;
    }
    if (!message.isReply()) {
      throw new AssertionError("flags " + message.flags());
    }
    if (message.error() != 0) {
      refused++;
      if (message.payload().hasRemaining() || !message.descriptors().isEmpty()) {
        throw new AssertionError("an error with a payload");
      }
    }
  }

  private void answer(Message request) {
    boolean read = request.command() == Command.DMA_READ;
    if (!read && request.command() != Command.DMA_WRITE) {
      throw new AssertionError("the server asks for " + Command.name(request.command()));
    }
    long count = request.payload().getLong(8);
    if (count <= 0 || count > 1 << 20) {
      throw new AssertionError("the server asks for " + count + " bytes");
    }
    int kind = answers.nextInt(60);
    if (kind == 0) {
      client.refuse(request, answers.nextInt(100));
      return;
    }
    int room = kind == 1 ? answers.nextInt(64) : 16 + (read ? (int) count : 0);
    ByteBuffer payload = Protocol.payload(room);
    if (room >= 16) {
      payload.putLong(request.payload().getLong(0)).putLong(kind == 2 ? count + 1 : count);
    }
    client.reply(request, payload.clear(), kind == 3 ? new int[] {pages.fd()} : new int[0]);
  }

  /** Whether all that was never given to the server is as it was. */
  static boolean isUntouched(Pages pages, byte mark) {
    MemorySegment m = pages.memory();
    for (long i = 0; i < m.byteSize(); i++) {
      long page = i / Pages.PAGE;
      boolean given = page >= FIRST_GIVEN && page < AFTER_GIVEN;
      if (!given && m.get(ValueLayout.JAVA_BYTE, i) != mark) {
        return false;
      }
    }
    return true;
  }

  /** A descriptor of the same file that may only be read. */
  static int readOnly(Pages pages) {
    return Posix.open("/proc/self/fd/" + pages.fd(), Posix.O_RDONLY | Posix.O_CLOEXEC, 0);
  }
}
