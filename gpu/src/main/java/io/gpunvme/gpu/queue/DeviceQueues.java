package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout.Queue;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.driver.ExternalQueuePair;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair.State;
import io.gpunvme.nvme.driver.QueueRings;
import io.gpunvme.nvme.driver.RecoveryOutcome;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Queue pairs of one controller that kernels drive, their structures one after the other in the
 * accelerator's memory.
 *
 * <p>While a kernel runs, only {@link #stop}, {@link #broken} and {@link #troubled} may be called.
 * Not safe for several threads otherwise.
 */
public final class DeviceQueues implements AutoCloseable {
  private final NvmeController controller;
  private final QueueSizes sizes;
  private final List<DeviceQueue> queues = new ArrayList<>();
  private final List<Runnable> memory = new ArrayList<>();
  private final DeviceBuffer submissions;
  private final DeviceBuffer completions;
  private final DeviceBuffer state;
  private final StopWord stop;
  private final @Nullable LiveRecovery live;

  private boolean closed;
  private volatile boolean abandoned;

  /**
   * Allocates the queues and creates them at the controller.
   *
   * @throws InvalidRequestException if a number is out of range
   * @throws DmaMappingException if the accelerator cannot reach the doorbells, or the controller
   *     the rings
   * @throws io.gpunvme.nvme.ProtocolException if the controller granted no I/O queues
   */
  public DeviceQueues(
      NvmeController controller, Accelerator accelerator, DeviceQueueOptions options) {
    if (!options.placement().hostQueues() && !accelerator.gpu()) {
      throw new InvalidRequestException(
          "placement %s needs a GPU, not %s".formatted(options.placement(), accelerator.name()));
    }
    controller.requireQueuePairs();
    int entries = controller.maxQueueEntries();
    boolean shared = options.shared();
    int most = QueueSizes.maxDepth(shared, entries);
    int depth = options.depth() == 0 ? Math.min(DeviceQueueOptions.DEPTH, most) : options.depth();
    this.controller = controller;
    this.sizes = QueueSizes.of(depth, shared, entries);
    int count = count(options.queuePairs());
    try {
      Doorbells doorbells = Doorbells.open(controller, accelerator);
      memory.addFirst(doorbells::close);
      stop = new StopWord(accelerator);
      memory.addFirst(stop::close);
      boolean hostSubmissions = options.placement().hostQueues();
      boolean hostCompletions =
          CompletionPlace.of(options.placement(), accelerator.gpu(), controller.function()).host();
      submissions = keep(rings(accelerator, hostSubmissions, count * pages(sizes.sqBytes())));
      completions = keep(rings(accelerator, hostCompletions, count * pages(sizes.cqBytes())));
      BusRange sqRange = submissions.mapFor(controller.function());
      BusRange cqRange = completions.mapFor(controller.function());
      state = keep(accelerator.allocate(count * (Queue.SIZE + DeviceQueue.arrayBytes(sizes))));
      live = options.recovering() ? new LiveRecovery(this, controller, accelerator, count) : null;
      if (live != null) {
        memory.addFirst(live::close);
      }
      for (int i = 0; i < count; i++) {
        Rings ring =
            new Rings(sqRange, i * pages(sizes.sqBytes()), cqRange, i * pages(sizes.cqBytes()));
        add(i, count, ring, doorbells, hostSubmissions);
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  private int count(int wanted) {
    int most = controller.maxQueuePairs();
    int count =
        wanted == 0
            ? Math.clamp(controller.freeQueuePairs(), 1, DeviceQueueOptions.QUEUE_PAIRS)
            : wanted;
    if (count < 1 || count > most) {
      throw new InvalidRequestException("queue pairs " + count + " is outside 1.." + most);
    }
    return count;
  }

  /** Those in host memory are near the SSD, which reads and writes them. */
  private DeviceBuffer rings(Accelerator accelerator, boolean host, long bytes) {
    if (!host) {
      return accelerator.allocate(bytes);
    }
    try (var _ = controller.function().home().memory()) {
      return accelerator.allocatePinned(bytes);
    }
  }

  private DeviceBuffer keep(DeviceBuffer buffer) {
    memory.addFirst(buffer::close);
    return buffer;
  }

  private long pages(long bytes) {
    return Math.ceilDiv(bytes, controller.pageSize()) * controller.pageSize();
  }

  private void add(int i, int count, Rings ring, Doorbells doorbells, boolean hostSubmissions) {
    DeviceQueue queue =
        new DeviceQueue(
            controller.createExternalQueuePair(ring),
            sizes,
            state,
            i * Queue.SIZE,
            count * Queue.SIZE + i * DeviceQueue.arrayBytes(sizes));
    queues.add(queue);
    int flags =
        (doorbells.inMemory() ? Queue.DOORBELLS_IN_MEMORY : 0)
            | (sizes.shared() ? Queue.SHARED : 0)
            | (hostSubmissions ? 0 : Queue.RINGS_IN_GPU_MEMORY);
    queue.create(
        flags,
        submissions.deviceAddress() + ring.sq,
        completions.deviceAddress() + ring.cq,
        doorbells,
        stop.deviceAddress(),
        live == null ? 0 : live.deviceAddress(),
        controller.options().ioTimeout().toNanos());
  }

  /** The rings of one queue inside the memories of all. */
  private final class Rings implements QueueRings {
    private final long sq;
    private final long cq;
    private final long sqBus;
    private final long cqBus;

    Rings(BusRange sqRange, long sq, BusRange cqRange, long cq) {
      this.sq = sq;
      this.cq = cq;
      sqBus = bus(sqRange, sq, sizes.sqBytes());
      cqBus = bus(cqRange, cq, sizes.cqBytes());
    }

    private static long bus(BusRange range, long offset, long bytes) {
      if (range.contiguous(offset, bytes) < bytes) {
        throw new DmaMappingException(
            "a ring of %d bytes is not contiguous on the bus; use a smaller depth, or an IOMMU"
                .formatted(bytes));
      }
      return range.busAddress(offset);
    }

    @Override
    public int sqSize() {
      return sizes.sqSize();
    }

    @Override
    public int cqSize() {
      return sizes.cqSize();
    }

    @Override
    public long sqBusAddress() {
      return sqBus;
    }

    @Override
    public long cqBusAddress() {
      return cqBus;
    }

    @Override
    public void clear() {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment zeroes = arena.allocate(Math.max(sizes.sqBytes(), sizes.cqBytes()));
        submissions.copyFromHost(zeroes.asSlice(0, sizes.sqBytes()), sq);
        completions.copyFromHost(zeroes.asSlice(0, sizes.cqBytes()), cq);
      }
    }
  }

  // ---- for those who launch kernels

  /** The queues, in the order of their structures. */
  public List<DeviceQueue> queues() {
    return List.copyOf(queues);
  }

  /** Commands in flight per queue at most. */
  public int depth() {
    return sizes.depth();
  }

  /** Whether they are for any number of threads, not each for one warp. */
  public boolean shared() {
    return sizes.shared();
  }

  /** Where the accelerator finds the first {@code struct Queue}. */
  public long deviceAddress() {
    return state.deviceAddress();
  }

  /**
   * Tells every kernel that waits on these queues to end its waits, or cancels that. Waiting
   * kernels check this now and then.
   */
  public void stop(boolean value) {
    stop.stop(value);
  }

  /** What {@link #stop} writes. */
  StopWord stopWord() {
    return stop;
  }

  /** Whether the controller has lost a queue: the controller was reset meanwhile, or is gone. */
  public boolean broken() {
    return queues.stream().anyMatch(q -> q.pair().state() != State.READY);
  }

  /** Whether waiting is pointless: {@link #broken}, or the controller reports a failure. */
  public boolean troubled() {
    return broken() || controller.troubled();
  }

  /** Whether waiting is pointless, and no recovery while a kernel runs may help. */
  boolean hopeless() {
    return live == null ? troubled() : live.failed() || abandoned;
  }

  /** What recovers these queues while kernels run; null: nothing does. */
  @Nullable LiveRecovery live() {
    return live;
  }

  /** The counters of all queues so far. No kernel runs. */
  public QueueCounters counters() {
    return QueueCounters.sum(countersOfEach());
  }

  /** The counters of each queue so far; while a kernel runs, those that have got there. */
  public List<QueueCounters> countersOfEach() {
    return ends().stream().map(QueueEnd::counters).toList();
  }

  /**
   * Commands that have a slot: quarantined ones, and those that no kernel has waited for. No kernel
   * runs.
   */
  int outstanding() {
    return queues.stream().mapToInt(DeviceQueue::outstanding).sum();
  }

  /** What the queues are, by one copy. */
  private List<QueueEnd> ends() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(queues.size() * Queue.SIZE, Long.BYTES);
      state.copyToHost(0, all);
      return IntStream.range(0, queues.size())
          .mapToObj(i -> QueueEnd.of(all.asSlice(i * Queue.SIZE, Queue.SIZE), sizes.depth()))
          .toList();
    }
  }

  /** The errors of all queues since the last call. No kernel runs. */
  public DeviceErrors takeErrors() {
    List<DeviceError> records = new ArrayList<>();
    long total = 0;
    for (DeviceQueue queue : queues) {
      DeviceErrors errors = queue.takeErrors();
      records.addAll(errors.records());
      total += errors.total();
    }
    return new DeviceErrors(records, total);
  }

  /**
   * Makes a queue usable again, whatever happened to it: {@link NvmeController#recover} climbs its
   * ladder, and the structures return to their initial state. No kernel runs. Commands in flight
   * are over then, and their data moves no more.
   */
  public RecoveryOutcome recover(DeviceQueue queue) {
    RecoveryOutcome outcome = controller.recover(queue.pair());
    if (outcome.recovered()) {
      queue.reset();
    }
    return outcome;
  }

  /**
   * Recovers every queue that the controller has lost or that has commands outstanding: quarantined
   * ones, or commands that no kernel has waited for. No kernel runs.
   */
  public List<RecoveryOutcome> recover() {
    if (!broken() && !sizes.shared() && ends().stream().allMatch(QueueEnd::quiet)) {
      return List.of();
    }
    List<RecoveryOutcome> outcomes = new ArrayList<>();
    // One queue's recovery may reset the controller, which takes those before it away again.
    boolean again = true;
    for (int pass = 0; again && pass <= queues.size(); pass++) {
      again = false;
      for (DeviceQueue queue : queues) {
        if (queue.pair().state() != State.READY
            || queue.quarantined() > 0
            || queue.outstanding() > 0) {
          RecoveryOutcome outcome = recover(queue);
          outcomes.add(outcome);
          if (outcome.failure() != null) {
            return outcomes;
          }
          again = true;
        }
      }
    }
    return outcomes;
  }

  // ---- the end

  /**
   * Makes the controller forget the queues, so that it touches neither rings nor data any more. No
   * kernel uses them any more. Nothing is freed before {@link #close}.
   */
  public void forget() {
    forget(controller::deleteExternalQueuePair);
  }

  /**
   * As {@link #forget}, under a kernel that hangs. When it goes on it may still store to the
   * doorbells, so nobody gets these queues' identifiers any more.
   */
  public void abandon() {
    abandoned = true;
    forget(controller::retireExternalQueuePair);
  }

  /**
   * Makes the controller forget the queues and frees them. No kernel uses them any more.
   *
   * @throws NvmeException if the controller would not let go of a queue, not even after recovery;
   *     then nothing is freed, and closing can be tried again after the controller was closed
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    forget();
    closed = true;
    memory.forEach(Runnable::run);
  }

  private void forget(Consumer<ExternalQueuePair> how) {
    CloseAll.each(queues, queue -> forget(queue, how));
  }

  private void forget(DeviceQueue queue, Consumer<ExternalQueuePair> how) {
    try {
      how.accept(queue.pair());
    } catch (NvmeException | InvalidRequestException e) {
      RecoveryOutcome outcome = controller.recover(queue.pair());
      if (outcome.failure() != null) {
        e.addSuppressed(outcome.failure());
        throw e;
      }
      how.accept(queue.pair());
    }
  }
}
