package io.gpunvme.storage.path;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What every path does with a file (or an image that a controller serves), whatever it is. */
public abstract class DataPathContract {
  /** Bytes of the source; a multiple of 4096 plus {@link #tail}. */
  private static final int SIZE = 3 << 20;

  private static final int BUFFER = 1 << 20;

  @TempDir Path folder;

  private final long seed = Long.getLong("gpunvme.seed", System.nanoTime());
  private final SplittableRandom random = new SplittableRandom(seed);
  private final PathCounters counters = new PathCounters();
  private Path file;
  private byte[] content;
  private Accelerator accelerator;
  private DataPath path;

  /** The accelerator whose memory is read into. */
  protected abstract Accelerator accelerator();

  /** Opens the path, writable. */
  protected abstract DataPath open(Path file, Accelerator accelerator);

  /** How long the source is past a multiple of 4096 bytes. */
  protected int tail() {
    return 1234;
  }

  /** Whether the source is a file that can shrink while it is open. */
  protected boolean shrinks() {
    return true;
  }

  /** Whether it can be written. */
  protected boolean writes() {
    return true;
  }

  /** What the source holds after the path was closed. */
  protected byte[] written(Path source) throws IOException {
    return Files.readAllBytes(source);
  }

  /** Changes what the source is to hold, before it is made. */
  protected void shape(byte[] bytes) {}

  /** How many random requests are compared. */
  protected int requests() {
    return 1000;
  }

  @BeforeEach
  void prepare() throws IOException {
    System.out.println(getClass().getSimpleName() + " seed " + seed);
    content = new byte[SIZE + tail()];
    new java.util.Random(seed).nextBytes(content);
    shape(content);
    file = folder.resolve("source.bin");
    Files.write(file, content);
    accelerator = accelerator();
    path = open(file, accelerator);
  }

  @AfterEach
  void close() {
    // A test that was skipped before it began has neither.
    if (path != null) {
      path.close();
      path.close();
    }
    if (accelerator != null) {
      accelerator.close();
    }
  }

  private PathCall call() {
    return new PathCall("source.bin", counters);
  }

  /** An interrupted thread reads, or is told that it is; what others need stays open. */
  @Test
  void anInterruptOfOneThreadIsNoEndOfThePath() {
    try (DeviceBuffer buffer = buffer(true)) {
      Range range = new Range(4096, buffer, 0, 8192);
      Thread.currentThread().interrupt();
      try {
        path.transfer(Direction.READ, List.of(range), call());
      } catch (StorageException e) {
        assertThat(e.kind()).isEqualTo(Kind.CANCELLED);
      } finally {
        Thread.interrupted();
      }
      path.transfer(Direction.READ, List.of(range), call());
      assertThat(Arrays.copyOf(bytes(buffer), 8192))
          .isEqualTo(Arrays.copyOfRange(content, 4096, 4096 + 8192));
    }
  }

  private static byte[] bytes(DeviceBuffer buffer) {
    byte[] all = new byte[(int) buffer.size()];
    buffer.copyToHost(0, MemorySegment.ofArray(all));
    return all;
  }

  private DeviceBuffer buffer(boolean pinned) {
    return pinned ? accelerator.allocatePinned(BUFFER) : accelerator.allocate(BUFFER);
  }

  /** A random range, often at an edge, often aligned in some way. */
  private Range range(DeviceBuffer buffer, long bufferFrom, long bufferTo) {
    int length = (int) Math.min(length(), bufferTo - bufferFrom);
    long room = content.length - length;
    long offset =
        switch (random.nextInt(4)) {
          case 0 -> room;
          case 1 -> random.nextLong(room + 1) & -4096;
          default -> random.nextLong(room + 1);
        };
    long slack = bufferTo - bufferFrom - length;
    long at = bufferFrom + (slack == 0 ? 0 : random.nextLong(slack + 1));
    return new Range(offset, buffer, random.nextBoolean() ? at : bufferFrom, length);
  }

  private int length() {
    return switch (random.nextInt(6)) {
      case 0 -> 0;
      case 1 -> 1 + random.nextInt(16);
      case 2 -> 4096 * (1 + random.nextInt(16));
      case 3 -> 1 + random.nextInt(300_000);
      default -> 1 + random.nextInt(9000);
    };
  }

  private static void apply(byte[] source, List<Range> ranges, byte[] target) {
    for (Range r : ranges) {
      System.arraycopy(source, (int) r.offset(), target, (int) r.bufferOffset(), (int) r.length());
    }
  }

  private static long total(List<Range> ranges) {
    return ranges.stream().mapToLong(Range::length).sum();
  }

  @Test
  void tellsItsSize() {
    assertThat(path.size()).isEqualTo(content.length);
    assertThat(Integer.bitCount(path.alignment())).isEqualTo(1);
    assertThat(path.mode()).isNotBlank();
    assertThat(path.expected(new RequestShape(Direction.READ, 1, 1 << 20, 0.5))).isPositive();
  }

  @Test
  void randomReadsBringTheBytesAndTouchNothingElse() {
    long asked = 0;
    try (DeviceBuffer device = buffer(false);
        DeviceBuffer pinned = buffer(true)) {
      byte[] expected = new byte[BUFFER];
      byte[] expectedPinned = new byte[BUFFER];
      for (int i = 0; i < requests(); i++) {
        boolean host = random.nextInt(4) == 0;
        List<Range> one = List.of(range(host ? pinned : device, 0, BUFFER));
        path.transfer(Direction.READ, one, call());
        apply(content, one, host ? expectedPinned : expected);
        asked += total(one);
        if (i % 16 == 0) {
          assertThat(Arrays.mismatch(bytes(device), expected)).as("%s", one).isEqualTo(-1);
          assertThat(Arrays.mismatch(bytes(pinned), expectedPinned)).as("%s", one).isEqualTo(-1);
        }
      }
      assertThat(Arrays.mismatch(bytes(device), expected)).isEqualTo(-1);
      assertThat(Arrays.mismatch(bytes(pinned), expectedPinned)).isEqualTo(-1);
    }
    PathStats stats = counters.snapshot();
    assertThat(stats.operations()).isPositive();
    assertThat(stats.latency().getTotalCount()).isEqualTo(stats.operations());
    assertThat(stats.readBytes()).isEqualTo(asked);
  }

  @Test
  void manyRangesAtOnce() {
    int parts = 4096;
    int each = BUFFER / parts;
    try (DeviceBuffer buffer = buffer(false)) {
      byte[] expected = new byte[BUFFER];
      List<Range> ranges = new ArrayList<>();
      for (int i = 0; i < parts; i++) {
        int length = 1 + random.nextInt(each);
        long offset = random.nextLong(content.length - length + 1);
        ranges.add(new Range(offset, buffer, (long) i * each, length));
      }
      path.transfer(Direction.READ, ranges, call());
      apply(content, ranges, expected);
      assertThat(Arrays.mismatch(bytes(buffer), expected)).isEqualTo(-1);
    }
  }

  @Test
  void theWholeSourceInOne() {
    try (DeviceBuffer buffer = accelerator.allocate(content.length + 7)) {
      path.transfer(Direction.READ, List.of(new Range(0, buffer, 7, content.length)), call());
      byte[] seen = Arrays.copyOfRange(bytes(buffer), 7, 7 + content.length);
      assertThat(Arrays.mismatch(seen, content)).isEqualTo(-1);
    }
  }

  @Test
  void writesReachTheSourceAndNothingBesideThem() throws IOException {
    if (!writes()) {
      try (DeviceBuffer buffer = buffer(false)) {
        assertThatExceptionOfType(StorageException.class)
            .isThrownBy(
                () -> path.transfer(Direction.WRITE, List.of(new Range(0, buffer, 0, 10)), call()))
            .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.UNSUPPORTED));
      }
      return;
    }
    try (DeviceBuffer buffer = buffer(false)) {
      byte[] data = new byte[BUFFER];
      new java.util.Random(seed + 1).nextBytes(data);
      buffer.copyFromHost(MemorySegment.ofArray(data), 0);
      byte[] expected = content.clone();
      for (int i = 0; i < requests() / 4; i++) {
        Range r = range(buffer, 0, BUFFER);
        path.transfer(Direction.WRITE, List.of(r), call());
        System.arraycopy(
            data, (int) r.bufferOffset(), expected, (int) r.offset(), (int) r.length());
      }
      try (DeviceBuffer back = accelerator.allocate(content.length)) {
        path.transfer(Direction.READ, List.of(new Range(0, back, 0, content.length)), call());
        byte[] seen = Arrays.copyOf(bytes(back), content.length);
        assertThat(Arrays.mismatch(seen, expected)).isEqualTo(-1);
      }
      path.close();
      assertThat(Arrays.mismatch(written(file), expected)).isEqualTo(-1);
    }
  }

  @Test
  void severalThreadsAtATime() throws InterruptedException, ExecutionException {
    try (ExecutorService pool = Executors.newFixedThreadPool(4);
        DeviceBuffer buffer = buffer(false)) {
      byte[] expected = new byte[BUFFER];
      List<List<Range>> perThread = new ArrayList<>();
      int quarter = BUFFER / 4;
      for (int t = 0; t < 4; t++) {
        List<Range> ranges = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
          ranges.add(range(buffer, (long) t * quarter, (long) (t + 1) * quarter));
        }
        perThread.add(ranges);
        ranges.forEach(r -> apply(content, List.of(r), expected));
      }
      List<Future<?>> all = new ArrayList<>();
      for (List<Range> ranges : perThread) {
        all.add(
            pool.submit(
                () -> ranges.forEach(r -> path.transfer(Direction.READ, List.of(r), call()))));
      }
      for (Future<?> f : all) {
        f.get();
      }
      assertThat(Arrays.mismatch(bytes(buffer), expected)).isEqualTo(-1);
    }
  }

  @Test
  void aCancelledTransferSaysSo() {
    try (DeviceBuffer buffer = buffer(false)) {
      PathCall call = call();
      call.cancel();
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(
              () -> path.transfer(Direction.READ, List.of(new Range(3, buffer, 0, 5000)), call))
          .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.CANCELLED));
      path.transfer(Direction.READ, List.of(new Range(3, buffer, 0, 5000)), call());
      assertThat(Arrays.mismatch(bytes(buffer), 0, 5000, content, 3, 5003)).isEqualTo(-1);
    }
  }

  @Test
  void aFileThatShrinksIsAShortRead() throws IOException {
    if (!shrinks()) {
      return;
    }
    try (var channel =
            java.nio.channels.FileChannel.open(file, java.nio.file.StandardOpenOption.WRITE);
        DeviceBuffer buffer = buffer(false)) {
      channel.truncate(100_000);
      assertThatExceptionOfType(StorageException.class)
          .isThrownBy(
              () ->
                  path.transfer(
                      Direction.READ, List.of(new Range(90_000, buffer, 0, 20_000)), call()))
          .satisfies(
              e -> {
                assertThat(e.kind()).isEqualTo(Kind.SHORT_READ);
                assertThat(e.offset()).isBetween(90_000L, 110_000L);
                assertThat(e.source()).isEqualTo("source.bin");
              });
      path.transfer(Direction.READ, List.of(new Range(1, buffer, 0, 5000)), call());
      assertThat(Arrays.mismatch(bytes(buffer), 0, 5000, content, 1, 5001)).isEqualTo(-1);
    }
  }
}
