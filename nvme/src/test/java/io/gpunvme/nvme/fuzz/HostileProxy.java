package io.gpunvme.nvme.fuzz;

import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.ffi.UnixListener;
import io.gpunvme.ffi.UnixSocket;
import io.gpunvme.nvme.ProtocolException;
import io.gpunvme.nvme.vfiouser.Command;
import io.gpunvme.nvme.vfiouser.Connection;
import io.gpunvme.nvme.vfiouser.Message;
import io.gpunvme.nvme.vfiouser.Protocol;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Stands between a client and an honest server and changes what the server says. One client at a
 * time.
 */
final class HostileProxy implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(5);
  private static final int LARGEST = 2 << 20;
  private static final long[] INTERESTING = {
    0,
    1,
    -1,
    4,
    8,
    15,
    16,
    31,
    32,
    64,
    4095,
    4096,
    8192,
    1 << 20,
    0x7FFF_FFFFL,
    0x8000_0000L,
    0xFFFF_FFFFL,
    1L << 32,
    1L << 46,
    1L << 62,
    Long.MAX_VALUE,
    Long.MIN_VALUE
  };

  private final UnixListener listener;
  private final Path server;
  private final AtomicLong messages = new AtomicLong();
  private final AtomicInteger lies = new AtomicInteger();
  private final SharedMemory other = SharedMemory.allocate("hostile", 1 << 14);
  private final int small = Posix.memfdCreate("hostile", Posix.MFD_CLOEXEC);
  private volatile SplittableRandom random = new SplittableRandom(0);

  // One in so many messages is a lie; 0 for none.
  private volatile int oneIn;

  private volatile @Nullable CuttableRegions cuttable;

  private @Nullable Session session;

  HostileProxy(Path listen, Path server) {
    this.listener = UnixListener.at(listen);
    this.server = server;
    Thread.ofPlatform().daemon().name("hostile").start(this::accept);
  }

  Path path() {
    return listener.path();
  }

  /** What the next client meets. */
  void prepare(SplittableRandom generator, int oneLieIn) {
    random = generator;
    oneIn = oneLieIn;
  }

  /** The files that clients are given to be mapped from now on. */
  void cuttable(CuttableRegions regions) {
    cuttable = regions;
  }

  /** How many messages have gone to clients. */
  long messages() {
    return messages.get();
  }

  /** How many lies. */
  int lies() {
    return lies.get();
  }

  private void accept() {
    Optional<UnixSocket> next = listener.accept();
    while (next.isPresent()) {
      Session fresh = new Session(next.get(), UnixSocket.connect(server, PATIENCE), random);
      synchronized (this) {
        session = fresh;
      }
      fresh.run();
      next = listener.accept();
    }
  }

  @Override
  public void close() {
    synchronized (this) {
      if (session != null) {
        session.end();
      }
    }
    listener.close();
    other.close();
    Posix.close(small);
  }

  /** One client and its connection to the server. */
  private final class Session {
    private final UnixSocket socket;
    private final Connection client;
    private final Connection upstream;
    private final SplittableRandom random;

    Session(UnixSocket socket, UnixSocket upstream, SplittableRandom random) {
      this.socket = socket;
      socket.sendTimeout(PATIENCE);
      client = new Connection(socket, LARGEST, UnixSocket.MAX_DESCRIPTORS);
      this.upstream = new Connection(upstream, LARGEST, UnixSocket.MAX_DESCRIPTORS);
      this.random = random;
    }

    void end() {
      client.shutdown();
      upstream.shutdown();
    }

    void run() {
      Thread asking = Thread.ofPlatform().daemon().name("hostile").start(this::ask);
      try {
        Optional<Message> next = upstream.receive();
        while (next.isPresent()) {
          try (Message message = next.get()) {
            answer(message);
          }
          next = upstream.receive();
        }
      } catch (PosixException | ProtocolException | IllegalStateException e) {
        // It is over.
      }
      end();
      try {
        asking.join();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      client.close();
      upstream.close();
    }

    /** What the client says goes on as it is. */
    private void ask() {
      try {
        Optional<Message> next = client.receive();
        while (next.isPresent()) {
          try (Message m = next.get()) {
            int[] fds = m.descriptors().stream().mapToInt(Integer::intValue).toArray();
            if (m.isReply() && m.error() != 0) {
              upstream.refuse(m, m.error());
            } else if (m.isReply()) {
              upstream.reply(m, m.payload(), fds);
            } else {
              upstream.command(m.id(), m.command(), m.flags(), m.payload(), fds);
            }
          }
          next = client.receive();
        }
      } catch (PosixException | ProtocolException | IllegalStateException e) {
        // It is over.
      }
      end();
    }

    private void answer(Message m) {
      messages.incrementAndGet();
      byte[] body = new byte[m.payload().remaining()];
      m.payload().duplicate().get(body);
      List<Integer> fds = new ArrayList<>(m.descriptors());
      CuttableRegions instead = cuttable;
      if (instead != null && m.command() == Command.DEVICE_GET_REGION_INFO && !fds.isEmpty()) {
        fds.set(0, instead.instead(m.payload().getInt(8), fds.getFirst()));
      }
      Header header = new Header(m.id(), m.command(), 16 + body.length, m.flags(), 0);
      if (m.error() != 0) {
        header = new Header(m.id(), m.command(), 16, m.flags(), m.error());
      }
      if (oneIn == 0 || random.nextInt(oneIn) != 0) {
        send(header, body, fds);
        return;
      }
      lies.incrementAndGet();
      lie(header, body, fds);
    }

    private void lie(Header h, byte[] body, List<Integer> fds) {
      switch (random.nextInt(20)) {
        case 0 -> send(h.withId(random.nextInt(4) == 0 ? random.nextInt() : h.id + 1), body, fds);
        case 1 -> send(h.withCommand(random.nextInt(20)), body, fds);
        case 2 -> send(h.withFlags(random.nextInt(64)), body, fds);
        case 3 ->
            send(new Header(h.id, h.command, 16, 0x21, random.nextInt(140)), new byte[0], fds);
        case 4 -> send(h.withSize((int) interesting()), body, fds);
        case 5 -> send(h.withSize(h.size + 1 + random.nextInt(32)), body, fds);
        case 6 -> {} // silence
        case 7 -> pauseThen(h, body, fds);
        case 8 -> {
          send(h, body, fds);
          send(h, body, fds);
        }
        case 9 -> end();
        case 10 -> {
          byte[] part = Arrays.copyOf(body, random.nextInt(body.length + 1));
          send(h.withSize(16 + part.length), part, fds);
        }
        case 11 -> {
          byte[] more = Arrays.copyOf(body, body.length + 1 + random.nextInt(64));
          send(h.withSize(16 + more.length), more, fds);
        }
        case 12 -> send(h, body, List.of());
        case 13 -> send(h, body, otherDescriptors(fds));
        case 14 -> {
          request();
          send(h, body, fds);
        }
        case 15 -> {
          byte[] noise = new byte[1 + random.nextInt(100)];
          random.nextBytes(noise);
          sendRaw(noise, List.of());
        }
        default -> send(h, changed(body), fds);
      }
    }

    private void pauseThen(Header header, byte[] body, List<Integer> fds) {
      try {
        Thread.sleep(random.nextInt(60));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      send(header, body, fds);
    }

    private List<Integer> otherDescriptors(List<Integer> fds) {
      List<Integer> all = new ArrayList<>(random.nextBoolean() ? fds : List.of());
      int count = random.nextInt(8) == 0 ? 1 + random.nextInt(40) : 1;
      for (int i = 0; i < count; i++) {
        int fd = random.nextInt(3) == 0 ? small : other.fd();
        all.add(random.nextBoolean() ? 0 : all.size(), fd);
      }
      return all;
    }

    /** The server wants something of the client that it has no right to, or may have. */
    private void request() {
      int command = random.nextInt(4) == 0 ? random.nextInt(20) : 11 + random.nextInt(2);
      long count = random.nextInt(3) == 0 ? interesting() : random.nextInt(8192);
      int data = command == Command.DMA_WRITE ? (int) Math.clamp(count, 0, 4096) : 0;
      byte[] body =
          Protocol.payload(16 + data)
              .putLong(random.nextInt(3) == 0 ? interesting() : random.nextInt(64) * 4096L)
              .putLong(random.nextInt(8) == 0 ? interesting() : count)
              .array();
      // Nobody waits for the answer: the server gets it, and ends the connection.
      int flags = random.nextInt(8) == 0 ? 0 : Protocol.NO_REPLY;
      send(new Header(random.nextInt(), command, 16 + body.length, flags, 0), body, List.of());
    }

    private long interesting() {
      return INTERESTING[random.nextInt(INTERESTING.length)] + random.nextInt(3) - 1;
    }

    private byte[] changed(byte[] body) {
      ByteBuffer copy = Protocol.payload(body.length).put(body).clear();
      if (body.length >= 8 && random.nextBoolean()) {
        copy.putLong(random.nextInt(body.length / 4 - 1) * 4, interesting());
      } else if (body.length >= 4 && random.nextInt(3) != 0) {
        copy.putInt(random.nextInt(body.length / 4) * 4, (int) interesting());
      } else if (body.length > 0) {
        copy.put(random.nextInt(body.length), (byte) random.nextInt());
      }
      return copy.array();
    }

    private void send(Header header, byte[] body, List<Integer> fds) {
      sendRaw(
          Protocol.payload(16 + body.length)
              .putShort((short) header.id)
              .putShort((short) header.command)
              .putInt(header.size)
              .putInt(header.flags)
              .putInt(header.errno)
              .put(body)
              .array(),
          fds);
    }

    private void sendRaw(byte[] bytes, List<Integer> fds) {
      try (Arena arena = Arena.ofConfined()) {
        socket.send(
            arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes),
            fds.stream().mapToInt(Integer::intValue).toArray());
      }
    }
  }

  private record Header(int id, int command, int size, int flags, int errno) {
    Header withId(int other) {
      return new Header(other, command, size, flags, errno);
    }

    Header withCommand(int other) {
      return new Header(id, other, size, flags, errno);
    }

    Header withSize(int other) {
      return new Header(id, command, other, flags, errno);
    }

    Header withFlags(int other) {
      return new Header(id, command, size, other, errno);
    }
  }
}
