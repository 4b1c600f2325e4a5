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
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * One SSD of a benchmark: transfers are planned, carried out, and checked, one after the other. For
 * one thread at a time.
 *
 * <p>A plan that writes has no block twice: whatever order its commands end in, each read has found
 * what the CPU still finds there afterwards, and each written block has what was written. Each plan
 * writes other bytes.
 */
final class SsdLane implements AutoCloseable {
  private static final byte POISON = (byte) 0xA5;
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

  /** Decides what the plan writes. */
  private long salt;

  /** Latencies of a plan that writes, by command, ns. */
  private long[] nanos = new long[0];

  /** Of transfers one after the other: the blocks that were moved. */
  private long position;

  /**
   * Opens queue pairs and allocates memory.
   *
   * @param runs of one namespace, at least one
   * @param accelerator stays the caller's
   * @param bytes that are moved at a time, at most
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

  /** Bytes of a logical block. */
  int blockSize() {
    return namespace.blockSize();
  }

  Initiator initiator() {
    return initiator;
  }

  // ---- what is moved next

  /**
   * Requires that there are blocks of so many bytes.
   *
   * @throws InvalidRequestException if the SSD cannot move such blocks, or has none of them, or not
   *     as many as the mix needs
   */
  void requireBlocksOf(int bytes, Mix mix) {
    long most = Math.min(initiator.maxTransferBytes(), target.size());
    if (bytes < 1 || bytes % namespace.blockSize() != 0 || bytes > most) {
      throw new InvalidRequestException(
          "blocks of %d bytes: %s moves whole multiples of %d bytes, at most %d at a time"
              .formatted(bytes, controller.name(), namespace.blockSize(), most));
    }
    long count = new Places(runs, bytes / namespace.blockSize()).count();
    if (count == 0) {
      throw new InvalidRequestException(
          "no block of %d bytes is in the range, on %s".formatted(bytes, controller.name()));
    }
    if (mix.writes() && Math.min(count, target.size() / bytes) < mix.unit()) {
      throw new InvalidRequestException(
          "%d %% reads need %d blocks of %d bytes at a time: the range has %d on %s, memory has %d"
              .formatted(
                  mix.readPercent(),
                  mix.unit(),
                  bytes,
                  count,
                  controller.name(),
                  target.size() / bytes));
    }
  }

  /**
   * Blocks of {@code bytes} at random, of which {@link #requireBlocksOf there are} any.
   *
   * @param commands how many; a plan that writes has fewer if there are not as many blocks, or if
   *     the mix would not be exact
   */
  void planRandom(int bytes, int commands, Mix mix) {
    Places places = new Places(runs, bytes / namespace.blockSize());
    TransferPlan.Builder next = builder();
    if (mix.writes()) {
      int most = (int) Math.min(commands, places.count());
      long[] chosen = distinct(places.count(), most - most % mix.unit());
      for (int i = 0; i < chosen.length; i++) {
        long slba = places.slba(chosen[i]);
        next.add(mix.direction(i), slba, places.blocks(), 0, (long) i * bytes);
      }
    } else {
      for (int i = 0; i < commands; i++) {
        next.add(places.slba(random.nextLong(places.count())), places.blocks(), (long) i * bytes);
      }
    }
    begin(next);
  }

  /** So many reads of the first logical block. */
  void planFirst(int commands) {
    TransferPlan.Builder next = builder();
    for (int i = 0; i < commands; i++) {
      next.add(runs.getFirst().slba(), 1, (long) i * namespace.blockSize());
    }
    begin(next);
  }

  /** One number out of each of {@code n} equal parts of {@code 0..count}, in random order. */
  private long[] distinct(long count, int n) {
    long[] all = new long[n];
    for (int i = 0; i < n; i++) {
      long from = i * count / n;
      all[i] = from + random.nextLong((i + 1) * count / n - from);
    }
    for (int i = n - 1; i > 0; i--) {
      int other = random.nextInt(i + 1);
      long swapped = all[i];
      all[i] = all[other];
      all[other] = swapped;
    }
    return all;
  }

  /** The next blocks, at most {@code bytes}; after the last ones the first ones. */
  void planNext(long bytes, Direction direction) {
    TransferPlan.Builder next = builder();
    long left = bytes / namespace.blockSize();
    long at = 0;
    long skip = position;
    for (BlockRun run : runs) {
      long first = Math.min(skip, run.blocks());
      long count = Math.min(run.blocks() - first, left);
      if (count > 0) {
        next.add(direction, run.slba() + first, count, 0, at);
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

  /** Nothing that lies in the buffer can pass for what is read; what is written lies there. */
  private void begin(TransferPlan.Builder next) {
    plan = next.build();
    MemorySegment image = hostImage();
    image.fill(POISON);
    if (plan.writes()) {
      salt = random.nextLong();
      nanos = new long[plan.commands()];
      writing().parallel().forEach(i -> BlockPattern.hashWords(part(image, i), firstWord(i)));
    }
    if (arrived != null) {
      target.copyFromHost(image, 0);
    }
  }

  private IntStream writing() {
    return IntStream.range(0, plan.commands()).filter(i -> plan.direction(i) == Direction.WRITE);
  }

  private MemorySegment part(MemorySegment image, int command) {
    return image.asSlice(plan.bufferOffset(command), plan.bytes(command));
  }

  /** The number of the first word that a command writes: no two words of a plan have the same. */
  private long firstWord(int command) {
    return salt + plan.slba(command) * (namespace.blockSize() / Long.BYTES);
  }

  // ---- moving, and whether it was right

  /** Carries out what was planned. */
  TransferReport run(TransferListener listener) {
    return initiator.run(plan, target, plan.writes() ? latenciesOfEach(listener) : listener);
  }

  private TransferListener latenciesOfEach(TransferListener listener) {
    long[] each = nanos;
    return new TransferListener() {
      @Override
      public void moved(long bytes) {
        listener.moved(bytes);
      }

      @Override
      public void completed(int command, long took) {
        each[command] = took;
      }

      @Override
      public boolean isCancelled() {
        return listener.isCancelled();
      }
    };
  }

  /** Adds the latencies of the plan that was carried out, which writes. */
  void addLatencies(Histogram reads, Histogram writes) {
    for (int i = 0; i < plan.commands(); i++) {
      (plan.direction(i) == Direction.READ ? reads : writes).recordValue(nanos[i]);
    }
  }

  /**
   * Requires that everything arrived, here and on the SSD.
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
    requireWritten(id, expected.segment());
    long wrong = got.mismatch(expected.segment().asSlice(0, got.byteSize()));
    if (wrong >= 0) {
      throw new BenchException(
          "%s on %s: what arrived from LBA %d is not what the CPU reads there"
              .formatted(id, controller.name(), lbaAt(wrong)));
    }
  }

  private void requireWritten(String id, MemorySegment there) {
    writing()
        .filter(i -> !BlockPattern.areHashes(part(there, i), firstWord(i)))
        .findFirst()
        .ifPresent(
            i -> {
              throw new BenchException(
                  "%s on %s: what was written to LBA %d is not there"
                      .formatted(id, controller.name(), plan.slba(i)));
            });
  }

  /** What is in the target, as far as the plan uses it. */
  private MemorySegment hostView() {
    MemorySegment image = hostImage();
    if (arrived != null) {
      target.copyToHost(0, image);
    }
    return image;
  }

  /** The target itself, or host memory for a copy of it. */
  private MemorySegment hostImage() {
    DeviceBuffer memory = arrived == null ? target : arrived;
    return memory.segment().asSlice(0, plan.bufferEnd(0));
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
