package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.gpunvme.cuda.CudaException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.BufferCopies;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.accel.MemoryInUse;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.plan.Ranges;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Rounds of planned reads by two halves of staging memory: what goes on at the same time. */
class StagedReadsTest {
  private static final int SIZE = 1 << 20;
  private static final long HALF = 64 << 10;

  private final byte[] content = new byte[SIZE];
  private final Recorder accelerator = new Recorder();
  private final PathCall call = new PathCall("data", new PathCounters());
  private final SpyPath path = new SpyPath(content, 512);
  private final Ranges ranges = near(100);
  private final DeviceBuffer target = accelerator.gpu.allocate(SIZE);
  private final PlannedReads planned = new PlannedReads(accelerator, Registrar.NONE, HALF);

  StagedReadsTest() {
    new Random(11).nextBytes(content);
    path.before(reads -> accelerator.events.add("read " + accelerator.half(reads)));
  }

  @AfterEach
  void close() {
    planned.close();
    assertThat(accelerator.open).as("buffers and copies that nobody closed").isEmpty();
    target.close();
    accelerator.close();
  }

  /** Four rounds of a half: 100 ranges, 300 KB with what lies between them. */
  private static Ranges near(int count) {
    Ranges.Builder all = Ranges.builder();
    for (int i = 0; i < count; i++) {
      all.add(100 + i * 2500L, 500);
    }
    return all.build();
  }

  private void read() {
    planned.read(path, ranges, List.of(target), SIZE, call);
  }

  private StorageException failure() {
    return catchThrowableOfType(StorageException.class, this::read);
  }

  private void assertRead() {
    byte[] expected = new byte[SIZE];
    for (int i = 0; i < ranges.size(); i++) {
      System.arraycopy(
          content, (int) ranges.offset(i), expected, (int) ranges.targetOffset(i), 500);
    }
    byte[] seen = new byte[SIZE];
    target.copyToHost(0, MemorySegment.ofArray(seen));
    assertThat(Arrays.mismatch(seen, expected)).isEqualTo(-1);
  }

  @Test
  void aRoundIsReadWhileTheOneBeforeIsCopied() {
    read();
    assertThat(accelerator.events)
        .startsWith(
            "read 0", "start 0", "read 1", "start 1", "await 0", "read 0", "start 0", "await 1")
        .endsWith("read 1", "start 1", "await 0", "await 1");
    assertThat(path.transfers()).hasSize(4);
    assertThat(accelerator.allocated).isEqualTo(2);
    assertRead();
  }

  @Test
  void theNextReadTakesTheSameMemory() {
    read();
    read();
    assertThat(path.transfers()).hasSize(8);
    assertThat(accelerator.allocated).isEqualTo(2);
    assertRead();
  }

  @Test
  void whenAReadFailsTheCopiesBeforeItHaveEnded() {
    // In the third round.
    path.failAt(140_000, Kind.GONE);
    StorageException e = failure();
    assertThat(e.kind()).isEqualTo(Kind.GONE);
    assertThat(accelerator.events).endsWith("start 1", "await 0", "read 0", "await 1");
    assertThat(accelerator.underWay()).isZero();
    path.failAt(-1, Kind.IO);
    read();
    assertThat(accelerator.allocated).as("it is not thrown away").isEqualTo(2);
    assertRead();
  }

  @Test
  void whatIsReadAsItIsAfterAFailureMeetsNoCopies() {
    // Between two ranges: nobody has asked for it.
    path.failAt(140_000 / 2500 * 2500 + 1000, Kind.IO);
    path.before(
        reads -> {
          if (reads.size() == ranges.size()) {
            assertThat(accelerator.underWay()).isZero();
          }
        });
    read();
    assertThat(path.transfers().getLast()).hasSize(ranges.size());
    assertThat(call.counters().snapshot().retries()).isEqualTo(1);
    assertRead();
  }

  @Test
  void aCancelledReadEndsWithNothingUnderWay() {
    path.before(
        _ -> {
          if (path.transfers().size() == 1) {
            call.cancel();
          }
        });
    StorageException e = failure();
    assertThat(e.kind()).isEqualTo(Kind.CANCELLED);
    assertThat(path.transfers()).hasSize(2);
    assertThat(accelerator.underWay()).isZero();
  }

  @Test
  void copiesThatFailNameTheirRound() {
    accelerator.failing = 1;
    StorageException e = failure();
    assertThat(e.kind()).isEqualTo(Kind.ACCELERATOR);
    // The second round's, which the third has been read and started beside.
    assertThat(e.offset()).isEqualTo(path.transfers().get(1).getFirst().offset());
    assertThat(e.length()).isEqualTo(path.transfers().get(1).getFirst().length());
    assertThat(path.transfers()).hasSize(3);
    assertThat(accelerator.copies.getFirst().started).as("those of the other half").isEmpty();
    assertThat(accelerator.open).as("of no use any more").isEmpty();
    accelerator.failing = -1;
    read();
    assertThat(accelerator.allocated).isEqualTo(4);
    assertRead();
  }

  @Test
  void withoutRoomForBothHalvesRangesAreReadAsTheyAre() {
    accelerator.room = 1;
    read();
    assertThat(path.transfers()).hasSize(1);
    assertThat(path.ios()).isEqualTo(ranges.size());
    assertThat(accelerator.open).isEmpty();
    assertRead();
  }

  // ---- registered with the path

  /** A source with one path. */
  private record OnePath(DataPath path) implements Source {
    @Override
    public Source on(Accelerator other) {
      throw new UnsupportedOperationException();
    }

    @Override
    public String name() {
      return "data";
    }

    @Override
    public long size() {
      return SIZE;
    }

    @Override
    public int blockSize() {
      return 512;
    }

    @Override
    public List<Verdict> verdicts() {
      return List.of(Verdict.yes(PathKind.PINNED, "it is a test"));
    }

    @Override
    public DataPath open(PathKind kind) {
      return path;
    }

    @Override
    public double resident(List<Range> ranges) {
      return 0;
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
  }

  private GpuStorage storage() {
    return new GpuStorage(
        StorageAddress.of("data"), accelerator, StorageOptions.defaults(), new OnePath(path));
  }

  @Test
  void stagingMemoryIsRegisteredUntilItIsFreed() {
    try (GpuStorage storage = storage()) {
      accelerator.beforeFree = buffer -> assertThat(path.registered()).doesNotContain(buffer);
      storage.read(ranges, List.of(target));
      assertThat(path.registered()).hasSize(2).isSubsetOf(accelerator.buffers);
      assertRead();
    }
    assertThat(path.registered()).isEmpty();
    assertThat(accelerator.open).isEmpty();
  }

  @Test
  void memoryThatCannotBeRegisteredServesAsWell() {
    path.refuseBuffers();
    try (GpuStorage storage = storage()) {
      storage.read(ranges, List.of(target));
      assertThat(path.transfers()).hasSize(1);
      assertThat(call.counters().snapshot().retries()).isZero();
      assertRead();
      // One of the caller's is his to know about, each time he tries.
      for (int i = 0; i < 2; i++) {
        assertThat(catchThrowableOfType(StorageException.class, () -> storage.register(target)))
            .hasMessageContaining("no more of them");
      }
    }
  }

  /** A fake GPU that writes down what its copies are told, and knows what is open. */
  private static final class Recorder implements Accelerator {
    private final FakeGpu gpu = new FakeGpu();
    private final List<String> events = new ArrayList<>();
    private final List<DeviceBuffer> buffers = new ArrayList<>();
    private final List<Copies> copies = new ArrayList<>();
    private final Set<Object> open = new HashSet<>();
    private Consumer<DeviceBuffer> beforeFree = _ -> {};
    private int room = Integer.MAX_VALUE;
    private int failing = -1;
    private int allocated;

    /** Which half is read into. */
    private int half(List<Range> reads) {
      return buffers.indexOf(reads.getFirst().buffer()) % 2;
    }

    private int underWay() {
      return copies.stream().mapToInt(c -> c.started.size()).sum();
    }

    @Override
    public DeviceBuffer allocate(long bytes) {
      if (buffers.size() == room) {
        throw new CudaException(
            "cuMemAlloc", CudaException.OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "no room");
      }
      allocated++;
      DeviceBuffer buffer = gpu.allocate(bytes);
      buffers.add(buffer);
      open.add(buffer);
      buffer.beforeFree(
          () -> {
            beforeFree.accept(buffer);
            open.remove(buffer);
          });
      return buffer;
    }

    @Override
    public BufferCopies copies() {
      Copies made = new Copies(copies.size());
      copies.add(made);
      open.add(made);
      return made;
    }

    @Override
    public MemoryInUse memoryInUse() {
      return gpu.memoryInUse();
    }

    @Override
    public String name() {
      return "recorder";
    }

    @Override
    public boolean gpu() {
      return true;
    }

    @Override
    public DeviceBuffer allocatePinned(long bytes) {
      return gpu.allocatePinned(bytes);
    }

    @Override
    public HostWindow mapHost(MemorySegment memory, HostMemoryKind kind) {
      return gpu.mapHost(memory, kind);
    }

    @Override
    public void close() {
      gpu.close();
    }

    /** Nothing moves before it is waited for: who reads into its source earlier spoils it. */
    private final class Copies implements BufferCopies {
      private final int number;
      private final BufferCopies copies = gpu.copies();
      private final List<String> added = new ArrayList<>();
      private final List<String> started = new ArrayList<>();

      Copies(int number) {
        this.number = number;
      }

      @Override
      public void add(DeviceBuffer source, long from, DeviceBuffer to, long at, long bytes) {
        added.add(source + " " + from);
        copies.add(source, from, to, at, bytes);
      }

      @Override
      public void start() {
        if (!added.isEmpty()) {
          events.add("start " + number % 2);
          started.addAll(added);
          added.clear();
          copies.start();
        }
      }

      @Override
      public void await() {
        start();
        if (started.isEmpty()) {
          return;
        }
        events.add("await " + number % 2);
        if (number == failing) {
          // It stays so, as CUDA's failures do.
          throw new CudaException("cuStreamSynchronize", 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "bad");
        }
        started.clear();
        copies.await();
      }

      @Override
      public void close() {
        if (open.remove(this)) {
          await();
          copies.close();
        }
      }
    }
  }
}
