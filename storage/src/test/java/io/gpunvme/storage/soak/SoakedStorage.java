package io.gpunvme.storage.soak;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.SetShape;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A storage that many use, that is opened again and again, and that must hold what was written. Its
 * first half is never written; then each of its workers has a range.
 */
final class SoakedStorage {
  static final int SIZE = 4 << 20;
  static final int SHARED = SIZE / 2;
  static final int WORKERS = 3;
  private static final int OWNED = SHARED / 4;
  private static final int UNIT = 64 << 10;
  private static final Duration CALM = Duration.ofSeconds(20);

  private static final StorageOptions OPTIONS =
      StorageOptions.defaults()
          .withWrite(true)
          .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));

  /** What an embedded controller does from one opening to the next; most of them do nothing. */
  private static final List<String> FAULTS =
      List.of(
          "",
          "",
          "",
          "status=media/unrecovered-read on read p=0.02",
          "status=media/write-fault on write p=0.02",
          "status=generic/internal-error on io p=0.05",
          "drop on io p=0.003",
          "drop skip on io p=0.003;drop on abort p=0.3",
          "delay=1s on io p=0.003",
          "late=1s on io p=0.003;delay=300ms on flush p=0.3",
          "duplicate on io p=0.05;torn on io p=0.05;reorder=3 on io p=0.05",
          "wrong-cid=0x8000 on io p=0.003",
          "stall=900ms on io p=0.002",
          "cfs on io p=0.002",
          "gone on io p=0.002",
          "drop on io p=0.003;ready-stuck p=0.3",
          "drop on create-sq p=0.2;status=generic/internal-error on create-cq p=0.2");

  private final int number;
  private final String name;
  private final @Nullable SetShape shape;
  private final boolean onGpu;
  private final List<Member> members;
  private final List<OwnedRange> owned = new ArrayList<>();
  private final Tally tally;
  private final ReentrantLock lock = new ReentrantLock();
  private volatile @Nullable Opening current;

  /** The current one, or the one that is being opened. */
  private volatile @Nullable Opening latest;

  /** Where one lies. */
  record Member(Path file, String options, @Nullable Server server) {
    boolean isFile() {
      return server == null && !options.startsWith("sim:");
    }

    String address(Duration patience) {
      if (server != null) {
        return "vfio-user:%s,timeout=%ds".formatted(server.socket(), patience.toSeconds());
      }
      return isFile() ? file + options : options + ",file=" + file;
    }
  }

  /**
   * Makes the files.
   *
   * @param options of each member: {@code ?path=mmap}, {@code sim:…}, {@code serve:…} for a process
   *     of its own
   */
  SoakedStorage(
      int number,
      String name,
      @Nullable SetShape shape,
      boolean onGpu,
      List<String> options,
      Path folder,
      Tally tally)
      throws IOException {
    this.number = number;
    this.name = name;
    this.shape = shape;
    this.onGpu = onGpu;
    this.tally = tally;
    List<byte[]> parts = parts(Content.of(number, 0, 0, SIZE), options.size());
    members = new ArrayList<>();
    for (int m = 0; m < options.size(); m++) {
      Path file = Files.write(folder.resolve("%s-%d.bin".formatted(name, m)), parts.get(m));
      String how = options.get(m);
      Server server =
          how.startsWith("serve:")
              ? new Server(
                  folder.resolve("%s-%d".formatted(name, m)),
                  how.substring("serve:".length()) + ",file=" + file)
              : null;
      members.add(new Member(file, how, server));
    }
    for (int w = 0; w < WORKERS; w++) {
      owned.add(new OwnedRange(number, SHARED + (long) w * OWNED, OWNED));
    }
  }

  String name() {
    return name;
  }

  boolean onGpu() {
    return onGpu;
  }

  boolean isReplicated() {
    return shape != null && !shape.isStriped();
  }

  List<Server> servers() {
    return members.stream().map(Member::server).filter(s -> s != null).toList();
  }

  OwnedRange owned(int worker) {
    return owned.get(worker);
  }

  @Nullable Opening current() {
    return current;
  }

  /**
   * Closes it and opens it anew.
   *
   * @param seen what is to be closed; nothing happens if somebody has done that meanwhile
   */
  void renew(@Nullable Opening seen, Accelerator accelerator, SplittableRandom random) {
    lock.lock();
    try {
      if (current == seen) {
        close();
        Opening next = new Opening(tally);
        // Whoever disturbs a server marks it and looks here then, so one of the two sees the other.
        latest = next;
        servers().stream().filter(Server::isDisturbed).forEach(next::disturbed);
        open(next, accelerator, random);
        current = next;
      }
    } finally {
      lock.unlock();
    }
  }

  /** Until the next {@link #renew}. */
  void close() {
    lock.lock();
    try {
      Opening open = current;
      current = null;
      if (open != null) {
        open.close();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Somebody is about to disturb one of the servers. */
  void disturbs(Server server) {
    server.disturbed(true);
    Opening open = latest;
    if (open != null) {
      open.disturbed(server);
    }
  }

  private void open(Opening opening, Accelerator accelerator, SplittableRandom random) {
    String faults = FAULTS.get(random.nextInt(FAULTS.size()));
    // Only one of several: a copy must be left.
    int faulty = random.nextInt(members.size());
    // On a busy machine a server may be slow; a copy that nobody disturbs is not to be lost by
    // that.
    Duration soon = Duration.ofMillis(isReplicated() ? 2000 : 500);
    ControllerOptions patience =
        ControllerOptions.builder()
            .allowWrite(true)
            .ioTimeout(soon)
            .adminTimeout(soon.multipliedBy(3))
            .recoveryTimeout(soon)
            .shutdownTimeout(soon)
            .build();
    opening.open(
        o -> open(o, accelerator, soon.multipliedBy(2), patience, m -> m == faulty ? faults : ""));
  }

  private GpuStorage open(
      Opening opening,
      Accelerator accelerator,
      Duration answer,
      ControllerOptions patience,
      java.util.function.IntFunction<String> faults) {
    if (members.getFirst().isFile()) {
      return GpuStorage.open(StorageAddress.parse(address(answer)), accelerator, OPTIONS);
    }
    List<NvmeController> controllers = new ArrayList<>();
    for (int m = 0; m < members.size(); m++) {
      Member member = members.get(m);
      Device device =
          Device.open(
              DeviceAddress.parse(member.address(answer)),
              patience,
              member.server() == null ? faults.apply(m) : "");
      controllers.add(opening.add(device).controller());
    }
    return shape == null
        ? GpuStorage.over(controllers.getFirst(), accelerator, OPTIONS)
        : GpuStorage.over(controllers, shape, accelerator, OPTIONS);
  }

  private String address(Duration answer) {
    List<String> all = members.stream().map(m -> m.address(answer)).toList();
    if (shape == null) {
      return all.getFirst();
    }
    return shape.isStriped()
        ? "stripe:" + String.join(",", all) + ";unit=" + shape.unit()
        : "replica:" + String.join(",", all);
  }

  /** Where else the bytes are that are wrong, for whoever looks for the reason. */
  String origin(byte[] seen, int at) {
    byte[] whole = Content.of(number, 0, 0, SIZE);
    int length = Math.min(Long.BYTES, seen.length - at);
    for (int i = 0; i + length <= SIZE; i++) {
      if (Arrays.equals(seen, at, at + length, whole, i, i + length)) {
        return "as at %d first".formatted(i);
      }
    }
    return HexFormat.of().formatHex(seen, at, at + length);
  }

  /**
   * What a read by a worker may find.
   *
   * @param seen what it found: other workers' ranges may hold anything
   * @param at of its first byte in {@code seen}
   */
  Allowed allowed(int worker, long offset, int length, byte[] seen, int at) {
    Allowed allowed = new Allowed(Content.of(number, 0, offset, length));
    for (int w = 0; w < WORKERS; w++) {
      long from = Math.max(offset, SHARED + (long) w * OWNED);
      long to = Math.min(offset + length, SHARED + (w + 1L) * OWNED);
      if (w == worker) {
        owned.get(w).allow(allowed, offset, length);
      } else if (from < to) {
        int i = (int) (from - offset);
        byte[] any = new byte[(int) (to - from)];
        System.arraycopy(seen, at + i, any, 0, any.length);
        allowed.put(i, any, false);
      }
    }
    return allowed;
  }

  /** All of it, when nobody writes. */
  private Allowed allowed() {
    Allowed allowed = new Allowed(Content.of(number, 0, 0, SIZE));
    owned.forEach(range -> range.allow(allowed, 0, SIZE));
    return allowed;
  }

  /** When nobody disturbs it, everything succeeds, and everything is there. */
  void verify(Accelerator accelerator) throws IOException {
    Opening calm = new Opening(tally);
    calm.open(o -> open(o, accelerator, CALM, writing(), _ -> ""));
    try (DeviceBuffer buffer = accelerator.allocate(SIZE)) {
      GpuStorage storage = calm.storage();
      storage.read(0, buffer, 0, SIZE);
      requireAllowed(bytes(buffer), "in the storage");
      for (OwnedRange range : owned) {
        long version = range.newVersion();
        byte[] bytes = range.content(0, range.count(), version);
        buffer.copyFromHost(MemorySegment.ofArray(bytes), range.offset(0));
        storage.write(range.offset(0), buffer, range.offset(0), bytes.length);
        range.written(0, range.count(), version);
      }
      storage.flush();
      storage.read(0, buffer, 0, SIZE);
      requireAllowed(bytes(buffer), "written and read");
    } finally {
      calm.close();
    }
    verifyFiles();
  }

  private static ControllerOptions writing() {
    return ControllerOptions.builder().allowWrite(true).build();
  }

  private static byte[] bytes(DeviceBuffer buffer) {
    byte[] bytes = new byte[SIZE];
    buffer.copyToHost(0, MemorySegment.ofArray(bytes));
    return bytes;
  }

  private void requireAllowed(byte[] bytes, String where) {
    int wrong = allowed().mismatch(bytes, 0);
    if (wrong >= 0) {
      throw new AssertionError("%s: byte %d is wrong %s".formatted(name, wrong, where));
    }
    tally.add(Worker.BYTES, SIZE);
  }

  /** As others see them, who know nothing of storages. */
  private void verifyFiles() throws IOException {
    List<byte[]> files = new ArrayList<>();
    for (Member m : members) {
      files.add(Files.readAllBytes(m.file()));
    }
    if (shape == null || !shape.isStriped()) {
      for (byte[] file : files) {
        requireAllowed(file, "in a file");
      }
      return;
    }
    byte[] whole = new byte[SIZE];
    for (int at = 0; at < SIZE; at += UNIT) {
      int turn = at / UNIT;
      System.arraycopy(files.get(turn % files.size()), turn / files.size() * UNIT, whole, at, UNIT);
    }
    requireAllowed(whole, "in the files");
  }

  /** What each member's file holds. */
  private List<byte[]> parts(byte[] whole, int count) {
    List<byte[]> parts = new ArrayList<>();
    boolean striped = shape != null && shape.isStriped();
    for (int m = 0; m < count; m++) {
      byte[] part = striped ? new byte[SIZE / count] : whole;
      for (int at = m * UNIT; striped && at < SIZE; at += count * UNIT) {
        System.arraycopy(whole, at, part, at / (count * UNIT) * UNIT, UNIT);
      }
      parts.add(part);
    }
    return parts;
  }

  /** The unit of stripes. */
  static SetShape striped() {
    return SetShape.striped(UNIT);
  }

  void endServers() {
    servers().forEach(Server::close);
  }
}
