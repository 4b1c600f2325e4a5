package io.gpunvme.capi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageClosedException;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.StorageException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** On the stand-in, as if its transfers reached no memory of the host. */
@Timeout(120)
class HostTransferTest {
  private static final int SIZE = 1 << 20;
  private static final int PIECE = 4096;
  private static final int MOST = 3;

  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final HostPieces pieces = new HostPieces(cpu, PIECE, MOST);
  private final Arena arena = Arena.ofShared();
  private final byte[] content = new byte[SIZE];
  private GpuStorage storage;

  @BeforeEach
  void fill() {
    storage = open("sim:size=1MiB");
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    new SplittableRandom(seed).nextBytes(content);
    MemorySegment all = arena.allocate(SIZE);
    MemorySegment.copy(content, 0, all, CTypes.BYTE, 0, SIZE);
    transfer(storage, true, List.of(new Storage.Item(0, all.address(), SIZE))).carryOut(null);
  }

  @AfterEach
  void close() {
    storage.close();
    cpu.close();
    arena.close();
  }

  private GpuStorage open(String address) {
    return GpuStorage.open(
        StorageAddress.parse(address), cpu, StorageOptions.defaults().withWrite(true));
  }

  private HostTransfer transfer(GpuStorage from, boolean write, List<Storage.Item> items) {
    return new HostTransfer(from, pieces, write, List.of(), items);
  }

  private void allPiecesAreThere() {
    List<DeviceBuffer> all = new ArrayList<>();
    for (int i = 0; i < MOST; i++) {
      all.add(pieces.tryTake());
    }
    assertThat(all).doesNotContainNull();
    assertThat(pieces.tryTake()).isNull();
    all.forEach(pieces::give);
  }

  @Test
  void rangesOfAllLengthsArriveWhereTheyBelong() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    for (int round = 0; round < 30; round++) {
      List<Storage.Item> items = new ArrayList<>();
      List<MemorySegment> memory = new ArrayList<>();
      for (int i = random.nextInt(1, 40); i > 0; i--) {
        int bytes = random.nextInt(1, random.nextInt(4) == 0 ? 20_000 : 600);
        MemorySegment to = arena.allocate(bytes);
        memory.add(to);
        items.add(new Storage.Item(random.nextInt(SIZE - bytes), to.address(), bytes));
      }
      transfer(storage, false, items).carryOut(null);
      for (int i = 0; i < items.size(); i++) {
        MemorySegment expected =
            MemorySegment.ofArray(content).asSlice(items.get(i).offset(), memory.get(i).byteSize());
        assertThat(memory.get(i).mismatch(expected)).as("seed %d", seed).isEqualTo(-1);
      }
    }
    allPiecesAreThere();
  }

  @Test
  void manyShortRangesShareAPiece() {
    MemorySegment memory = arena.allocate(64);
    List<Storage.Item> items = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      items.add(new Storage.Item(i * 1000L, memory.address() + i * 8L, 8));
    }
    long before = operations();
    transfer(storage, false, items).carryOut(null);
    // The blocks of all eight lie in eight pages; one by one each would be a transfer of its own.
    assertThat(operations() - before).isLessThanOrEqualTo(8);
    assertThat(memory.get(CTypes.BYTE, 8)).isEqualTo(content[1000]);
  }

  private long operations() {
    return storage.stats().values().stream().mapToLong(s -> s.operations()).sum();
  }

  @Test
  void whatFailsGivesItsPiecesBack() {
    MemorySegment memory = arena.allocate(SIZE);
    GpuStorage other = open("sim:size=1MiB");
    other.close();
    HostTransfer late =
        transfer(other, false, List.of(new Storage.Item(0, memory.address(), SIZE)));
    assertThatThrownBy(() -> late.carryOut(null)).isInstanceOf(StorageClosedException.class);
    HostTransfer outside =
        transfer(storage, false, List.of(new Storage.Item(SIZE - 8192, memory.address(), 16384)));
    assertThatThrownBy(() -> outside.carryOut(null)).hasMessageContaining("are not inside");
    allPiecesAreThere();
  }

  @ParameterizedTest
  @ValueSource(ints = {PIECE, 5 * PIECE})
  void whoWaitsIsAskedAndEndsIt(int bytes) {
    MemorySegment memory = arena.allocate(bytes);
    List<Storage.Item> items = List.of(new Storage.Item(0, memory.address(), bytes));
    try (GpuStorage slow = open("sim:size=1MiB,latency=100ms")) {
      HostTransfer asking = transfer(slow, false, items);
      assertThatThrownBy(() -> asking.carryOut(() -> true)).hasStackTraceContaining("cancelled");
    }
    allPiecesAreThere();
  }

  @Test
  void whoWaitsForAPieceIsAskedToo() throws Exception {
    List<DeviceBuffer> all = new ArrayList<>();
    for (int i = 0; i < MOST; i++) {
      all.add(pieces.take(() -> false));
    }
    MemorySegment memory = arena.allocate(100);
    HostTransfer waiting =
        transfer(storage, false, List.of(new Storage.Item(0, memory.address(), 100)));
    assertThatThrownBy(() -> waiting.carryOut(() -> true)).hasStackTraceContaining("cancelled");
    all.forEach(pieces::give);
  }

  @Test
  void whoeverIsCancelledWhileItWaitsForAPieceEnds() throws Exception {
    List<DeviceBuffer> all = new ArrayList<>();
    for (int i = 0; i < MOST; i++) {
      all.add(pieces.take(() -> false));
    }
    MemorySegment memory = arena.allocate(100);
    HostTransfer waiting =
        transfer(storage, false, List.of(new Storage.Item(0, memory.address(), 100)));
    Thread thread = Thread.ofPlatform().start(waiting);
    while (thread.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
    assertThat(waiting).isNotDone();
    waiting.cancel(true);
    assertThatThrownBy(waiting::join)
        .hasCauseInstanceOf(StorageException.class)
        .hasMessageContaining("cancelled");
    assertThat(memory.get(CTypes.BYTE, 0)).isZero();
    all.forEach(pieces::give);
    allPiecesAreThere();
  }

  @Test
  void oneThatRunsIsCancelled() {
    try (GpuStorage slow = open("sim:size=1MiB,latency=20ms,mdts=8KiB")) {
      MemorySegment memory = arena.allocate(SIZE);
      HostTransfer slowly =
          transfer(slow, false, List.of(new Storage.Item(0, memory.address(), SIZE)));
      Thread.ofPlatform().start(slowly);
      while (slow.stats().values().stream().mapToLong(s -> s.operations()).sum() == 0) {
        Thread.onSpinWait();
      }
      slowly.cancel(true);
      assertThatThrownBy(slowly::join).hasMessageContaining("cancelled");
    }
    allPiecesAreThere();
  }
}
