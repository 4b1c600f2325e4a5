package io.gpunvme.tools.example;

import static io.gpunvme.gpu.queue.DeviceLayout.setInt;
import static io.gpunvme.gpu.queue.DeviceLayout.setLong;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.DeviceError;
import io.gpunvme.gpu.queue.DeviceErrors;
import io.gpunvme.gpu.queue.GpuModule;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.tools.ssd.KernelFailures;
import io.gpunvme.tools.ssd.Places;
import io.gpunvme.tools.ssd.Ssds;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A kernel decides on the GPU what to read: each thread walks through a table on SSDs whose rows
 * name the rows to read next. Any bytes are such a table. The CPU reads the table from start to
 * end, walks through it in its own memory, and compares. The CPU can be the initiator, too: then
 * the walks go on together, a row at a time.
 */
public final class Gather {
  private static final ValueLayout.OfInt WORD =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final int BLOCK_THREADS = 128;
  private static final int NEIGHBOURS = 8;
  private static final int FIRST_ROW = 0x9E3779B1; // 2654435761, as in the kernel
  private static final Duration LIMIT = Duration.ofSeconds(60);

  // struct Run of the kernel.
  private static final int RUN_BYTES = 24;
  private static final int RUN_END = 0;
  private static final int RUN_SLBA = 8;
  private static final int RUN_SSD = 16;
  private static final int RUN_FIRST = 20;

  // struct Walk of the kernel.
  private static final int WALK_WORDS = 5;
  private static final int WALK_SUM = 0;
  private static final int WALK_ROW = 1;
  private static final int WALK_READS = 2;
  private static final int WALK_RETRIES = 3;
  private static final int WALK_STATUS = 4;

  private final GatherOptions options;
  private final List<NvmeController> controllers;
  private final int nsid;
  private final Places rows;

  private Gather(GatherOptions options, List<BlockRun> table) {
    this.options = options;
    controllers = Ssds.controllers(table);
    nsid = table.getFirst().namespace().nsid();
    int block = table.getFirst().namespace().blockSize();
    if (table.stream().anyMatch(run -> run.namespace().blockSize() != block)) {
      throw new InvalidRequestException("the SSDs have logical blocks of different sizes");
    }
    if (options.rowBytes() % block != 0 || options.rowBytes() < NEIGHBOURS * WORD.byteSize()) {
      throw new InvalidRequestException(
          "rows of %d bytes are not whole blocks of %d".formatted(options.rowBytes(), block));
    }
    rows = new Places(table, options.rowBytes() / block);
    if (rows.count() < options.rows()) {
      throw new InvalidRequestException(
          "%d rows of %d bytes do not fit: there are %d places for them"
              .formatted(options.rows(), options.rowBytes(), rows.count()));
    }
  }

  /**
   * Lets the initiator walk, and checks. Writes nothing.
   *
   * @param table where the rows lie: the first ones of these blocks that fit; at least one run. The
   *     controllers stay the caller's
   * @param accelerator whose memory the rows are read into; a GPU for {@link InitiatorKind#GPU}
   * @param who reads, with which queues and where they and the rows lie; {@link InitiatorKind#AUTO}
   *     is the GPU if there is one
   * @throws InvalidRequestException if the numbers do not fit each other or the SSDs
   * @throws IllegalStateException if a walk has another result than the CPU's
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails, or the walks take longer than a minute
   */
  public static GatherReport run(
      GatherOptions options, List<BlockRun> table, Accelerator accelerator, InitiatorOptions who) {
    return new Gather(options, table).run(accelerator, who);
  }

  /**
   * Makes a table for {@link #run}, of words that lead everywhere. Overwrites these blocks; their
   * controllers must allow writing.
   */
  public static void fill(GatherOptions options, List<BlockRun> table) {
    new Gather(options, table).fill();
  }

  private GatherReport run(Accelerator accelerator, InitiatorOptions who) {
    InitiatorKind kind = who.initiator(accelerator);
    Placement placement = who.placement(controllers.getFirst(), accelerator);
    InitiatorOptions queues = who.with(kind, placement);
    // Before any memory is allocated: an SSD of another process reaches only what is made for it.
    controllers.forEach(one -> accelerator.servePinned(one.function()));
    List<Walk> walks = new ArrayList<>();
    Used used =
        kind == InitiatorKind.GPU
            ? byGpu(InitiatorOptions.requireGpu(accelerator), queues, placement, walks)
            : byCpu(accelerator, queues, placement, walks);
    long reads = check(walks);
    return new GatherReport(
        options,
        accelerator.name(),
        kind.name(),
        placement,
        used.queuePairs,
        used.depth,
        controllers.size(),
        reads,
        reads * options.rowBytes(),
        used.nanos,
        used.retries,
        true);
  }

  /** What the walks had, and how long they took. */
  private record Used(int queuePairs, int depth, long nanos, long retries) {}

  // ---- the table

  private static int mix(int x) {
    int a = (x ^ x >>> 16) * 0x7feb352d;
    int b = (a ^ a >>> 15) * 0x846ca68b;
    return b ^ b >>> 16;
  }

  private void fill() {
    move(
        Direction.WRITE,
        segment -> {
          long words = segment.byteSize() / WORD.byteSize();
          for (long i = 0; i < words; i++) {
            segment.setAtIndex(WORD, i, mix((int) i + options.seed()));
          }
        },
        segment -> {});
  }

  /** What is done with a table in host memory. */
  private interface Use {
    void of(MemorySegment table);
  }

  /** By the CPU, in runs as long as there are: other commands than those of the walks. */
  private void move(Direction direction, Use before, Use after) {
    InitiatorOptions cpu = InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST);
    try (Accelerator host = CpuAccelerator.open();
        DeviceBuffer buffer = host.allocate((long) options.rows() * options.rowBytes())) {
      before.of(buffer.segment());
      for (int run = 0; run < rows.runs().size(); run++) {
        BlockRun there = rows.runs().get(run);
        long first = first(run);
        long count = Math.min(rows.end(run), options.rows()) - first;
        if (count > 0) {
          try (Initiator initiator = cpu.open(there.controller(), host)) {
            initiator.move(
                direction,
                there.namespace(),
                rows.first(run),
                count * rows.blocks(),
                buffer,
                first * options.rowBytes(),
                TransferListener.NONE);
          }
        }
      }
      after.of(buffer.segment());
    }
  }

  /** The first row of a run. */
  private long first(int run) {
    return run == 0 ? 0 : rows.end(run - 1);
  }

  // ---- walks

  /** Where a walk stands. */
  private static final class Walk {
    private int sum;
    private int row;
    private int reads;

    Walk(int sum, int row, int reads) {
      this.sum = sum;
      this.row = row;
      this.reads = reads;
    }

    static Walk begin(int thread, int rows) {
      return new Walk(0, Integer.remainderUnsigned(thread * FIRST_ROW, rows), 0);
    }

    /** Takes in the row that lies in memory, and goes on to the next. */
    void visit(MemorySegment memory, long at, int bytes, int rows) {
      for (int i = 0; i < bytes; i += 4) {
        sum += memory.get(WORD, at + i);
      }
      int next = memory.get(WORD, at + (sum & NEIGHBOURS - 1) * WORD.byteSize());
      row = Integer.remainderUnsigned(next, rows);
      reads++;
    }
  }

  private Used byGpu(
      GpuAccelerator gpu, InitiatorOptions who, Placement placement, List<Walk> walks) {
    int threads = options.threads();
    long bytes = (long) threads * options.rowBytes();
    long walkBytes = (long) threads * WALK_WORDS * Integer.BYTES;
    KernelStorageOptions queues =
        KernelStorageOptions.in(placement).at(nsid).with(who.queuePairs(), who.depth());
    try (GpuModule module = GpuModule.resource(gpu, "gather");
        DeviceBuffer data = placement.allocate(gpu, bytes);
        DeviceBuffer results = gpu.allocate(walkBytes);
        DeviceBuffer runs = describe(gpu);
        KernelStorage storage = KernelStorage.over(controllers, gpu, queues)) {
      storage.register(data);
      CudaFunction kernel = module.function("gpunvme_gather");
      CudaStream stream = gpu.context().stream();
      long start = System.nanoTime();
      stream.launch(
          kernel,
          LaunchShape.of(Math.ceilDiv(threads, BLOCK_THREADS), BLOCK_THREADS),
          new KernelArguments()
              .addLong(storage.deviceHandle())
              .addLong(results.deviceAddress())
              .addLong(runs.deviceAddress())
              .addInt(rows.runs().size())
              .addInt(threads)
              .addInt(options.hops())
              .addInt(options.rows())
              .addInt(rows.blocks())
              .addInt(controllers.getFirst().options().retries()));
      // A kernel that was told to stop may have all results already: then nothing is wrong.
      storage.await(stream::isIdle, LIMIT);
      long nanos = System.nanoTime() - start;
      long retries = read(results, storage, walks);
      return new Used(storage.queuePairs(), storage.depth(), nanos, retries);
    }
  }

  /** Where the rows lie, as the kernel wants to know it. */
  private DeviceBuffer describe(GpuAccelerator gpu) {
    int count = rows.runs().size();
    DeviceBuffer buffer = gpu.allocate((long) count * RUN_BYTES);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate((long) count * RUN_BYTES, Long.BYTES);
      for (int i = 0; i < count; i++) {
        long at = (long) i * RUN_BYTES;
        setLong(all, at + RUN_END, rows.end(i));
        setLong(all, at + RUN_SLBA, rows.first(i));
        setInt(all, at + RUN_SSD, controllers.indexOf(rows.runs().get(i).controller()));
        setInt(all, at + RUN_FIRST, (int) Math.min(first(i), options.rows()));
      }
      buffer.copyFromHost(all, 0);
      return buffer;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, buffer::close);
      throw e;
    }
  }

  /** Returns how many reads were repeated. */
  private long read(DeviceBuffer results, KernelStorage storage, List<Walk> walks) {
    MemorySegment words = MemorySegment.ofArray(new int[options.threads() * WALK_WORDS]);
    results.copyToHost(0, words);
    long retries = 0;
    for (int t = 0; t < options.threads(); t++) {
      long at = (long) t * WALK_WORDS;
      int row = words.getAtIndex(WORD, at + WALK_ROW);
      int status = words.getAtIndex(WORD, at + WALK_STATUS);
      if (status != 0) {
        throw failure(t, row, status, storage.errors());
      }
      retries += Integer.toUnsignedLong(words.getAtIndex(WORD, at + WALK_RETRIES));
      walks.add(
          new Walk(
              words.getAtIndex(WORD, at + WALK_SUM), row, words.getAtIndex(WORD, at + WALK_READS)));
    }
    return retries;
  }

  private RuntimeException failure(int thread, int row, int status, DeviceErrors told) {
    BlockRun run = rows.runs().get(rows.run(row));
    long slba = rows.slba(row);
    Optional<DeviceError> error =
        told.records().stream().filter(e -> e.status() == status && e.slba() == slba).findFirst();
    String what =
        "thread %d's read of LBA %d of %s".formatted(thread, slba, run.controller().name());
    return KernelFailures.read(status, what, error, nsid, slba, run.controller().troubled(), LIMIT);
  }

  /** All walks at once: the reads of a hop are one transfer of each SSD. */
  private Used byCpu(
      Accelerator accelerator, InitiatorOptions who, Placement placement, List<Walk> walks) {
    int bytes = options.rowBytes();
    for (int t = 0; t < options.threads(); t++) {
      walks.add(Walk.begin(t, options.rows()));
    }
    long all = (long) options.threads() * bytes;
    List<Initiator> initiators = new ArrayList<>();
    try (DeviceBuffer data = placement.allocate(accelerator, all);
        Arena arena = Arena.ofConfined()) {
      for (NvmeController controller : controllers) {
        initiators.add(who.open(controller, accelerator));
      }
      MemorySegment arrived = data.isHost() ? data.segment() : arena.allocate(all, WORD.byteSize());
      long retries = 0;
      long start = System.nanoTime();
      for (int hop = 0; hop < options.hops(); hop++) {
        for (int ssd = 0; ssd < controllers.size(); ssd++) {
          retries += hop(walks, ssd, initiators.get(ssd), data);
        }
        if (!data.isHost()) {
          data.copyToHost(0, arrived);
        }
        for (int t = 0; t < walks.size(); t++) {
          walks.get(t).visit(arrived, (long) t * bytes, bytes, options.rows());
        }
      }
      Initiator first = initiators.getFirst();
      return new Used(first.queuePairs(), first.depth(), System.nanoTime() - start, retries);
    } finally {
      CloseAll.newestFirst(initiators);
    }
  }

  /** Returns how many reads were repeated. */
  private long hop(List<Walk> walks, int ssd, Initiator initiator, DeviceBuffer data) {
    NvmeController controller = controllers.get(ssd);
    Namespace namespace = controller.namespace(nsid);
    TransferPlan.Builder plan =
        TransferPlan.builder(Direction.READ, namespace, initiator.maxTransferBytes());
    for (int t = 0; t < walks.size(); t++) {
      int row = walks.get(t).row;
      if (rows.runs().get(rows.run(row)).controller() == controller) {
        plan.add(rows.slba(row), rows.blocks(), (long) t * options.rowBytes());
      }
    }
    return plan.isEmpty() ? 0 : initiator.run(plan.build(), data, TransferListener.NONE).retries();
  }

  /** The same walks through the CPU's copy of the table. Returns how many rows were read. */
  private long check(List<Walk> walks) {
    long[] reads = new long[1];
    move(Direction.READ, segment -> {}, table -> reads[0] = check(walks, table));
    return reads[0];
  }

  private long check(List<Walk> walks, MemorySegment table) {
    long reads = 0;
    for (int t = 0; t < walks.size(); t++) {
      Walk right = Walk.begin(t, options.rows());
      while (right.reads < options.hops()) {
        long at = (long) right.row * options.rowBytes();
        right.visit(table, at, options.rowBytes(), options.rows());
      }
      Walk walk = walks.get(t);
      if (walk.sum != right.sum || walk.row != right.row || walk.reads != right.reads) {
        throw new IllegalStateException(
            "thread " + t + " has another result than the CPU, which read the table again");
      }
      reads += walk.reads;
    }
    return reads;
  }
}
