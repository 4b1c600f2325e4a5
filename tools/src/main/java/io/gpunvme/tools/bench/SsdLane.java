package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.tools.ssd.Places;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * One SSD of a benchmark: reads of it are planned, carried out, and checked, one after the other.
 * For one thread at a time.
 */
final class SsdLane implements AutoCloseable {
  private static final byte POISON = (byte) 0xA5;
  private static final int POISONED = 1 << 20;
  private static final long SEED = 42;

  /** For the reads that the others are compared with. */
  private static final InitiatorOptions BY_CPU =
      InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST).with(1, 0, 1);

  private final List<AutoCloseable> open = new ArrayList<>();
  private final List<BlockRun> runs;
  private final NvmeController controller;
  private final Namespace namespace;
  private final Initiator initiator;
  private final DeviceBuffer target;
  private final SplittableRandom random = new SplittableRandom(SEED);

  /** Host memory for what arrived, and for what the CPU reads. */
  private final CpuAccelerator host;

  private final @Nullable DeviceBuffer arrived;

  /** Null if it is known what is on the SSD. */
  private final @Nullable Initiator comparing;

  private final @Nullable DeviceBuffer there;

  private TransferPlan plan;

  /** Of reads one after the other: the blocks that were read. */
  private long position;

  /**
   * Opens queue pairs and allocates memory.
   *
   * @param runs of one namespace, at least one
   * @param accelerator stays the caller's
   * @param bytes that are read at a time, at most
   * @param known whether every word is the hash of its position, as {@link BlockPattern} says;
   *     otherwise the CPU reads the same blocks, in their order
   */
  SsdLane(
      List<BlockRun> runs,
      Accelerator accelerator,
      InitiatorOptions options,
      long bytes,
      boolean known) {
    this.runs = runs;
    controller = runs.getFirst().controller();
    namespace = runs.getFirst().namespace();
    plan = TransferPlan.builder(Direction.READ, namespace, controller.maxTransferBytes()).build();
    try {
      host = kept(CpuAccelerator.open());
      Placement placement = options.placement(controller, accelerator);
      // First: the others may want all queue pairs that are left.
      comparing = known ? null : kept(BY_CPU.open(controller, host));
      initiator = kept(options.open(controller, accelerator));
      target = kept(placement.allocate(accelerator, bytes));
      arrived = placement.hostData() ? null : kept(host.allocatePinned(bytes));
      there = known ? null : kept(host.allocatePinned(bytes));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  private <T extends AutoCloseable> T kept(T part) {
    open.add(part);
    return part;
  }

  Initiator initiator() {
    return initiator;
  }

  // ---- what is read next

  /**
   * Requires that there are blocks of so many bytes.
   *
   * @throws InvalidRequestException if the SSD cannot read such blocks, or has none of them
   */
  void requireBlocksOf(int bytes) {
    long most = Math.min(initiator.maxTransferBytes(), target.size());
    if (bytes < 1 || bytes % namespace.blockSize() != 0 || bytes > most) {
      throw new InvalidRequestException(
          "blocks of %d bytes: %s reads whole multiples of %d bytes, at most %d at a time"
              .formatted(bytes, controller.name(), namespace.blockSize(), most));
    }
    if (new Places(runs, bytes / namespace.blockSize()).count() == 0) {
      throw new InvalidRequestException(
          "no block of %d bytes is in the range, on %s".formatted(bytes, controller.name()));
    }
  }

  /** So many blocks of {@code bytes} at random, of which {@link #requireBlocksOf there are} any. */
  void planRandom(int bytes, int commands) {
    Places places = new Places(runs, bytes / namespace.blockSize());
    TransferPlan.Builder next = builder();
    for (int i = 0; i < commands; i++) {
      next.add(places.slba(random.nextLong(places.count())), places.blocks(), (long) i * bytes);
    }
    begin(next);
  }

  /** The next blocks, at most {@code bytes}; after the last ones the first ones. */
  void planNext(long bytes) {
    TransferPlan.Builder next = builder();
    long left = bytes / namespace.blockSize();
    long at = 0;
    long skip = position;
    for (BlockRun run : runs) {
      long first = Math.min(skip, run.blocks());
      long count = Math.min(run.blocks() - first, left);
      if (count > 0) {
        next.add(run.slba() + first, count, at);
        at += count * namespace.blockSize();
        left -= count;
      }
      skip -= first;
    }
    position += at / namespace.blockSize();
    if (position >= runs.stream().mapToLong(BlockRun::blocks).sum()) {
      position = 0;
    }
    begin(next);
  }

  private TransferPlan.Builder builder() {
    return TransferPlan.builder(Direction.READ, namespace, initiator.maxTransferBytes());
  }

  /** Nothing that lies in the buffer can pass for what is read. */
  private void begin(TransferPlan.Builder next) {
    plan = next.build();
    byte[] poison = new byte[POISONED];
    Arrays.fill(poison, POISON);
    for (long at = 0; at < plan.bufferEnd(0); at += POISONED) {
      long part = Math.min(POISONED, plan.bufferEnd(0) - at);
      target.copyFromHost(MemorySegment.ofArray(poison).asSlice(0, part), at);
    }
  }

  // ---- reading, and whether it was right

  /** Carries out what was planned. */
  TransferReport run(TransferListener listener) {
    return initiator.run(plan, target, listener);
  }

  /**
   * Requires that everything arrived.
   *
   * @param id of the benchmark, for the message
   * @throws BenchException if something else did
   */
  void check(String id) {
    MemorySegment got = hostView();
    DeviceBuffer expected = there;
    Initiator byCpu = comparing;
    if (expected == null || byCpu == null) {
      for (int i = 0; i < plan.commands(); i++) {
        BlockPattern.requireWords(
            got.asSlice(plan.bufferOffset(i), plan.bytes(i)),
            plan.slba(i) * namespace.blockSize(),
            id + " on " + controller.name());
      }
      return;
    }
    byCpu.run(inOrder(), expected, TransferListener.NONE);
    long wrong = got.mismatch(expected.segment().asSlice(0, got.byteSize()));
    if (wrong >= 0) {
      throw new BenchException(
          "%s on %s: what arrived from LBA %d is not what the CPU reads there"
              .formatted(id, controller.name(), lbaAt(wrong)));
    }
  }

  private MemorySegment hostView() {
    DeviceBuffer copy = arrived;
    if (copy == null) {
      return target.segment().asSlice(0, plan.bufferEnd(0));
    }
    MemorySegment view = copy.segment().asSlice(0, plan.bufferEnd(0));
    target.copyToHost(0, view);
    return view;
  }

  /** The same commands in the order of the blocks: other commands than those before. */
  private TransferPlan inOrder() {
    TransferPlan.Builder sorted = builder();
    commands()
        .sorted((a, b) -> Long.compare(plan.slba(a), plan.slba(b)))
        .forEach(i -> sorted.add(plan.slba(i), plan.blocks(i), plan.bufferOffset(i)));
    return sorted.build();
  }

  private Stream<Integer> commands() {
    return IntStream.range(0, plan.commands()).boxed();
  }

  private long lbaAt(long offset) {
    return commands()
        .filter(
            i -> plan.bufferOffset(i) <= offset && offset < plan.bufferOffset(i) + plan.bytes(i))
        .findFirst()
        .map(i -> plan.slba(i) + (offset - plan.bufferOffset(i)) / namespace.blockSize())
        .orElse(-1L);
  }

  @Override
  public void close() {
    CloseAll.newestFirst(open);
  }
}
