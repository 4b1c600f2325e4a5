package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.KernelRun;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.DeviceLayout.Buffer;
import io.gpunvme.gpu.queue.DeviceLayout.Storage;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.RecoveryOutcome;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * One namespace of each of one or several SSDs, for your own kernels: {@link #deviceHandle} is the
 * {@code const gpunvme::Storage*} that you pass to them.
 *
 * <p>Any thread of such a kernel may read and write at any time. {@code
 * ControllerOptions.allowWrite} does not stop a kernel from writing, because the host does not see
 * its commands. Safe for all threads while no kernel runs; while one does, only {@link #await},
 * {@link #stop}, {@link #handle}, {@link #file}, {@link #directory}, {@link #set}, {@link
 * #register}, {@link #recoveries}, {@link PageCache#counters} and {@link #troubled} may be called.
 *
 * <p>Several kernels may run at once. Those that are given {@link #deviceHandle} are stopped
 * together; a kernel that is given a {@link #handle} of its own is stopped alone.
 */
public final class KernelStorage implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("io.gpunvme.gpu.queue");

  /** NLB is a 16-bit 0-based count (NVM Command Set 1.0, 3.2.4). */
  private static final long MAX_BLOCKS = 65536;

  private final Accelerator accelerator;
  private final List<NvmeController> controllers;
  private final int nsid;
  private final Placement placement;
  private final List<DeviceQueues> queues = new ArrayList<>();
  private final List<KernelTraffic> traffic = new ArrayList<>();

  /** By number; null where none is registered, or not any more. */
  private final @Nullable Registered[] registered;

  private final DeviceBuffer handle;

  /** Of kernels that have their own. To tell these to stop waits for nobody. */
  private final List<KernelHandle> handles = new CopyOnWriteArrayList<>();

  private final List<DeviceTable> tables = new ArrayList<>();
  private final List<PageCache> caches = new ArrayList<>();

  /** Kernels that are waited for. */
  private final AtomicInteger running = new AtomicInteger();

  /** Numbers that kernels may know: from here on none was ever given. */
  private int numbers;

  // Written by whoever waited for the kernel, which need not be who asks next.
  private volatile boolean hung;

  private boolean closed;

  private KernelStorage(
      List<NvmeController> controllers, Accelerator accelerator, KernelStorageOptions options) {
    if (options.buffers() < 1 || options.buffers() > 65536) {
      throw new InvalidRequestException("buffers " + options.buffers() + " is outside 1..65536");
    }
    this.controllers = controllers;
    this.accelerator = accelerator;
    nsid = options.nsid();
    placement = options.placement();
    registered = new Registered[options.buffers()];
    try {
      for (NvmeController controller : controllers) {
        queues.add(
            new DeviceQueues(
                controller,
                accelerator,
                new DeviceQueueOptions(
                    options.placement(),
                    true,
                    options.queuePairs(),
                    options.depth(),
                    options.recovering())));
      }
      handle = accelerator.allocate(bufferOffset((long) registered.length * controllers.size()));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, queues, DeviceQueues::close);
      throw e;
    }
    try {
      describe();
      for (int i = 0; i < controllers.size(); i++) {
        traffic.add(new KernelTraffic(controllers.get(i), queues.get(i)));
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, handle::close);
      CloseAll.after(e, queues, DeviceQueues::close);
      throw e;
    }
  }

  /** One SSD. */
  public static KernelStorage open(
      Device device, Accelerator accelerator, KernelStorageOptions options) {
    return open(List.of(device), accelerator, options);
  }

  /**
   * Creates shared queues on every SSD and describes them for kernels.
   *
   * @param devices at least one; the order is that of {@code Storage::namespaces}; must stay open
   * @throws InvalidRequestException if a number is out of range, or a namespace cannot be used
   * @throws io.gpunvme.nvme.DmaMappingException if the placement is not possible here
   */
  public static KernelStorage open(
      List<Device> devices, Accelerator accelerator, KernelStorageOptions options) {
    if (devices.isEmpty()) {
      throw new InvalidRequestException("no device: a storage needs at least one");
    }
    return over(devices.stream().map(Device::controller).toList(), accelerator, options);
  }

  /** As {@link #open(List, Accelerator, KernelStorageOptions)}, for controllers that are open. */
  public static KernelStorage over(
      List<NvmeController> controllers, Accelerator accelerator, KernelStorageOptions options) {
    return new KernelStorage(List.copyOf(controllers), accelerator, options);
  }

  // ---- layout of the handle: struct Storage, namespaces, buffers

  private long bufferOffset(long index) {
    return Storage.SIZE + controllers.size() * DeviceLayout.Namespace.SIZE + index * Buffer.SIZE;
  }

  private void describe() {
    int count = controllers.size();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(bufferOffset(0), Long.BYTES);
      DeviceLayout.setInt(all, Storage.VERSION, Storage.CURRENT);
      DeviceLayout.setInt(all, Storage.NAMESPACE_COUNT, count);
      DeviceLayout.setLong(all, Storage.NAMESPACES, handle.deviceAddress() + Storage.SIZE);
      DeviceLayout.setLong(all, Storage.BUFFERS, handle.deviceAddress() + bufferOffset(0));
      for (int i = 0; i < count; i++) {
        long at = Storage.SIZE + i * DeviceLayout.Namespace.SIZE;
        describe(all.asSlice(at, DeviceLayout.Namespace.SIZE), i);
      }
      handle.copyFromHost(all, 0);
    }
  }

  private void describe(MemorySegment struct, int ssd) {
    NvmeController controller = controllers.get(ssd);
    Namespace namespace = controller.namespace(nsid);
    int blockSize = namespace.blockSize();
    int most = maxBlocks(ssd);
    if (most == 0) {
      throw new InvalidRequestException(
          "blocks of %d bytes do not fit into one command of %s"
              .formatted(blockSize, controller.name()));
    }
    DeviceLayout.setLong(struct, DeviceLayout.Namespace.BLOCKS, namespace.blocks());
    DeviceLayout.setInt(struct, DeviceLayout.Namespace.NSID, nsid);
    DeviceLayout.setInt(
        struct, DeviceLayout.Namespace.BLOCK_SHIFT, Integer.numberOfTrailingZeros(blockSize));
    DeviceLayout.setInt(struct, DeviceLayout.Namespace.MAX_BLOCKS, most);
    DeviceLayout.setInt(
        struct, DeviceLayout.Namespace.QUEUE_COUNT, queues.get(ssd).queues().size());
    DeviceLayout.setLong(struct, DeviceLayout.Namespace.QUEUES, queues.get(ssd).deviceAddress());
  }

  /** Blocks of one command; 0 where not one of them fits. */
  int maxBlocks(int ssd) {
    NvmeController controller = controllers.get(ssd);
    long most = controller.maxTransferBytes() / controller.namespace(nsid).blockSize();
    return (int) Math.min(MAX_BLOCKS, most);
  }

  // ---- for those who write kernels

  /** A buffer and how each SSD reaches it. */
  private record Registered(DeviceBuffer buffer, List<BufferRegistration> parts) {
    void close() {
      try {
        CloseAll.each(parts, BufferRegistration::close);
      } finally {
        buffer.release();
      }
    }
  }

  /**
   * Registers memory that kernels read into and write from. It is mapped for every SSD. Kernels
   * find buffer number n for SSD number i with {@code Storage::buffer(n, i)}.
   *
   * @param buffer in the place that suits the queues; its memory stays until it is unregistered, or
   *     this is closed
   * @return its number, counted from 0: the lowest that no buffer has, or, while a kernel is waited
   *     for, that none ever had; kernels launched from now on may use it
   * @throws InvalidRequestException if there is no such number
   * @throws io.gpunvme.nvme.DmaMappingException if an SSD cannot reach the memory
   */
  public int register(DeviceBuffer buffer) {
    return register(buffer, buffer.size());
  }

  /**
   * The same for the first bytes of a buffer, for instance of one whose last page is not all the
   * caller's: commands that name others end with {@link DeviceStatus#ARGUMENT}.
   *
   * @param bytes 1 to the buffer's size
   */
  public int register(DeviceBuffer buffer, long bytes) {
    settleRows();
    return registerNow(buffer, bytes);
  }

  /** For whoever holds the lock, which the ends of kernels take. */
  synchronized int registerNow(DeviceBuffer buffer, long bytes) {
    requireOpen();
    if (bytes <= 0 || bytes > buffer.size()) {
      throw new InvalidRequestException(
          "%d bytes of a buffer of %d bytes".formatted(bytes, buffer.size()));
    }
    // A kernel that runs may look at a number that was taken back, and would see half of a buffer.
    int number = running.get() == 0 ? 0 : numbers;
    while (number < registered.length && registered[number] != null) {
      number++;
    }
    if (number == registered.length) {
      throw new InvalidRequestException(
          "all %d buffers are registered, or were while a kernel runs; unregister one, or open the"
                  .formatted(number)
              + " storage with more (KernelStorageOptions)");
    }
    buffer.lease();
    List<BufferRegistration> added = new ArrayList<>();
    try {
      for (NvmeController controller : controllers) {
        added.add(BufferRegistration.create(controller, accelerator, buffer));
      }
      List<MemorySegment> structs = added.stream().map(BufferRegistration::struct).toList();
      structs.forEach(struct -> DeviceLayout.setLong(struct, Buffer.BYTES, bytes));
      tell(number, structs);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, added, BufferRegistration::close);
      CloseAll.after(e, buffer::release);
      throw e;
    }
    registered[number] = new Registered(buffer, added);
    return number;
  }

  /**
   * Takes a buffer's registration back: its memory is the caller's alone again, and its number may
   * be given to another buffer. Commands of a kernel that still names it end with {@link
   * DeviceStatus#ARGUMENT}. No kernel runs that uses the buffer.
   *
   * @param number from {@link #register}
   * @throws InvalidRequestException if no buffer has this number, or a page cache has it
   * @throws StorageBusyException if a kernel is waited for, or commands are outstanding, which may
   *     still move data: those that ended with {@link DeviceStatus#TIMEOUT} or {@link
   *     DeviceStatus#STOPPED}, or that no kernel has waited for; {@link #recover} ends them, and
   *     where it cannot, only {@link #close} takes buffers back
   */
  public void unregister(int number) {
    settleRows();
    unregisterNow(number);
  }

  private synchronized void unregisterNow(int number) {
    requireOpen();
    if (caches.stream().anyMatch(c -> c.buffer() == number)) {
      throw new InvalidRequestException(
          "buffer %d is a page cache's, which is closed by itself".formatted(number));
    }
    takeBack(number);
  }

  private void takeBack(int number) {
    Registered one = number < 0 || number >= registered.length ? null : registered[number];
    if (one == null) {
      throw new InvalidRequestException("no buffer is registered with number " + number);
    }
    if (running.get() != 0) {
      throw new StorageBusyException(
          "%d kernels use this storage; unregister buffer %d when they are over"
              .formatted(running.get(), number));
    }
    int outstanding = queues.stream().mapToInt(DeviceQueues::outstanding).sum();
    if (outstanding != 0) {
      throw new StorageBusyException(
          "commands may still move data (%d outstanding); recover() before buffer %d is unregistered"
              .formatted(outstanding, number));
    }
    // A buffer of no bytes: nothing that a kernel asks for is inside.
    MemorySegment none = MemorySegment.ofArray(new long[(int) Buffer.SIZE / Long.BYTES]);
    tell(number, Collections.nCopies(controllers.size(), none));
    registered[number] = null;
    one.close();
  }

  /** Tells kernels what a buffer is at each SSD. */
  private void tell(int number, List<MemorySegment> structs) {
    int count = controllers.size();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(count * Buffer.SIZE, Long.BYTES);
      for (int i = 0; i < count; i++) {
        all.asSlice(i * Buffer.SIZE, Buffer.SIZE).copyFrom(structs.get(i));
      }
      handle.copyFromHost(all, bufferOffset((long) number * count));
      if (number >= numbers) {
        MemorySegment total = arena.allocate(Integer.BYTES, Integer.BYTES);
        DeviceLayout.setInt(total, 0, (number + 1) * count);
        handle.copyFromHost(total, Storage.BUFFER_COUNT);
        handles.forEach(h -> h.tellBuffers((number + 1) * count));
        numbers = number + 1;
      }
    }
  }

  /** The device address of {@code struct Storage}, for kernels. */
  public long deviceHandle() {
    requireOpen();
    return handle.deviceAddress();
  }

  /**
   * A handle for one of several kernels, which is stopped and waited for by itself. Make those of
   * all kernels before the first one is launched: on a GPU this waits for kernels that run, 20 s at
   * most.
   */
  public synchronized KernelHandle handle() {
    requireOpen();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment header = arena.allocate(Storage.SIZE, Long.BYTES);
      handle.copyToHost(0, header);
      KernelHandle made = new KernelHandle(this, accelerator, header);
      handles.add(made);
      return made;
    }
  }

  /** Not after a kernel hung, which may be this one's. */
  synchronized void close(KernelHandle one) {
    if (handles.remove(one) && !hung) {
      one.free();
    }
  }

  /**
   * Describes SSDs as one range of blocks, which kernels read and write with the calls of {@code
   * set.cuh}. Make it before kernels are launched: on a GPU this waits for those that run. {@code
   * GpuStorage.setForKernels} does it for a set with an address.
   *
   * @throws InvalidRequestException if this storage does not have a member
   */
  public synchronized DeviceSet set(StripeSet set) {
    requireOpen();
    return add(DeviceSet.create(this, accelerator, set));
  }

  /**
   * Describes a file for kernels, which read it with {@code read_file}. Make it before kernels are
   * launched: on a GPU this waits for those that run. {@code GpuStorage.fileForKernels} does it for
   * a file with a name.
   *
   * @param set that it is on
   * @param bytes of the file
   * @param extents in the order of their offsets; what is in none of them reads as zeroes
   * @throws InvalidRequestException if this storage does not have a member of the set, or an extent
   *     is not in the file and the set, behind the one before it, and at a multiple of a block
   */
  public synchronized DeviceFile file(StripeSet set, long bytes, List<DeviceExtent> extents) {
    requireOpen();
    return add(DeviceFile.create(this, accelerator, set, bytes, List.copyOf(extents)));
  }

  /**
   * Describes files for kernels, which find them by their paths and read them with {@code
   * read_file}. Make it before kernels are launched: on a GPU this waits for those that run. {@code
   * GpuStorage.directoryForKernels} does it for a directory with a name.
   *
   * @throws InvalidRequestException if this storage does not have a member of the files' set, two
   *     files have the same path, or the hashes of too many paths are the same
   */
  public synchronized DeviceDirectory directory(DirectoryFiles files) {
    requireOpen();
    return add(DeviceDirectory.create(this, accelerator, files));
  }

  /**
   * Makes a cache in which kernels find pages of arrays: of GPU memory, or of pinned host memory
   * with {@link Placement#HOST}. It takes one of the buffers' numbers. Make it before kernels are
   * launched.
   *
   * @throws InvalidRequestException if there is no number
   * @throws io.gpunvme.nvme.DmaMappingException if an SSD cannot reach the memory
   */
  public synchronized PageCache cache(PageCacheOptions options) {
    requireOpen();
    PageCache made = PageCache.create(this, accelerator, placement, options);
    caches.add(made);
    return made;
  }

  /** How many SSDs kernels have. */
  int ssds() {
    return controllers.size();
  }

  /** The number of a member's namespace. */
  int ssd(StripeSet.Member member) {
    int ssd = controllers.indexOf(member.controller());
    if (ssd < 0 || member.namespace().nsid() != nsid) {
      throw new InvalidRequestException(
          "namespace %d of %s is none of this storage: it has namespace %d (KernelStorageOptions) of"
                  .formatted(member.namespace().nsid(), member.controller().name(), nsid)
              + " the controllers that it was opened with");
    }
    return ssd;
  }

  /** Something else that the host describes to kernels; closed with this. */
  synchronized <T extends DeviceTable> T add(T table) {
    tables.add(table);
    return table;
  }

  /** Not after a kernel hung, which may read it. */
  synchronized void close(DeviceTable one) {
    if (tables.remove(one) && !hung) {
      one.free();
    }
  }

  /** Not after a kernel hung. */
  synchronized void close(PageCache one) {
    if (!closed && !hung && caches.contains(one)) {
      takeBack(one.buffer());
      caches.remove(one);
      one.closeTables();
      one.free();
    }
  }

  /** Of a cache that could not be made. */
  synchronized void giveBack(int number) {
    takeBack(number);
  }

  /**
   * A kernel runs whose end nobody will know: its queues are kept from it, and nothing is freed.
   */
  void abandon() {
    hung = true;
    CloseAll.each(queues, DeviceQueues::abandon);
  }

  boolean isHung() {
    return hung;
  }

  void requireOpen() {
    if (closed) {
      throw new IllegalStateException("this storage is closed");
    }
    if (hung) {
      throw new KernelHungException(
          "a kernel that uses this storage did not end, and its queues are gone; open another"
              + " storage");
    }
  }

  /**
   * Waits for a kernel that uses this storage. The kernel is told to stop when an SSD is in trouble
   * (and is not recovered: {@link KernelStorageOptions#withRecovery}), when the time is up, or when
   * this thread is interrupted. Its reads and writes then end with status {@link
   * DeviceStatus#STOPPED}, as do those of other kernels that were given {@link #deviceHandle},
   * until all of them are over.
   *
   * @param limit how long the kernel may run
   * @return false if this call told the kernel to stop, or an SSD is in trouble; else true, also if
   *     {@link #stop} did or whoever waits for another kernel
   * @throws io.gpunvme.nvme.NvmeTimeoutException if it was told to stop but does not end
   * @throws io.gpunvme.cuda.CudaException if it ended in an error of the GPU
   */
  public boolean await(RunningKernel kernel, Duration limit) {
    return await(kernel, limit, queues.stream().map(DeviceQueues::stopWord).toList());
  }

  /** For a kernel that looks at these stop words. */
  boolean await(RunningKernel kernel, Duration limit, List<StopWord> stops) {
    requireOpen();
    KernelWait wait = new KernelWait(queues, stops);
    long end = System.nanoTime() + limit.toNanos();
    boolean[] interrupted = {false};
    KernelRun run = accelerator.runningKernel();
    running.incrementAndGet();
    try {
      wait.await(
          kernel,
          () -> {
            interrupted[0] |= Thread.interrupted();
            long now = System.nanoTime();
            traffic.forEach(t -> t.lookNowAndThen(now));
            lookAfterRecoveries();
            return interrupted[0] || now - end > 0;
          });
      traffic.forEach(KernelTraffic::look);
    } catch (Throwable e) {
      if (wait.hung()) {
        // Each SSD, whatever becomes of another: its DMA must end.
        hung = true;
        CloseAll.after(e, queues, DeviceQueues::abandon);
      }
      throw e;
    } finally {
      // The run of one that hangs never ends: whoever freed memory now would wait for ever.
      if (!wait.hung()) {
        run.close();
        endOfKernel();
      }
      if (interrupted[0]) {
        Thread.currentThread().interrupt();
      }
    }
    return !wait.told() && !troubled();
  }

  /**
   * Whether an SSD is in trouble: it has lost a queue, or its controller reports a failure. Then
   * {@link #recover} comes before the next kernel.
   */
  public boolean troubled() {
    requireOpen();
    return queues.stream().anyMatch(DeviceQueues::troubled);
  }

  private void lookAfterRecoveries() {
    boolean wanted = false;
    boolean looked = false;
    for (DeviceQueues set : queues) {
      LiveRecovery live = set.live();
      if (live != null) {
        looked = true;
        wanted |= live.look();
      }
    }
    if (looked) {
      // One bit for all SSDs, and handles that were made meanwhile.
      boolean value = wanted;
      stopWords().forEach(s -> s.recover(value));
    }
  }

  /**
   * A kernel is about to be launched that somebody will wait for: until {@link #endOfKernel} queues
   * are not recovered as if no kernel ran, nor buffers taken back. Waits for what does that.
   */
  synchronized void beginKernel() {
    requireOpen();
    running.incrementAndGet();
  }

  /**
   * Whoever waits for the last kernel ends what recoveries have begun and no kernel will go on
   * with.
   */
  synchronized void endOfKernel() {
    if (running.decrementAndGet() != 0) {
      return;
    }
    for (int i = 0; i < queues.size(); i++) {
      LiveRecovery live = queues.get(i).live();
      try {
        if (live != null && live.end()) {
          recoverAll(i, live);
        }
      } catch (RuntimeException e) {
        // The kernel's own failure is what is to be told; recover() meets this one again.
        LOG.log(System.Logger.Level.WARNING, "a recovery that a kernel has left", e);
        if (live != null) {
          live.giveUp();
        }
      }
    }
    try {
      stopWords().forEach(s -> s.recover(false));
    } catch (RuntimeException e) {
      LOG.log(System.Logger.Level.WARNING, "a recovery that a kernel has left", e);
    }
  }

  /**
   * Every queue of an SSD whose recovery was left in the middle: a kernel holds some of them, and
   * nothing tells which. No kernel runs.
   */
  private List<RecoveryOutcome> recoverAll(int ssd, LiveRecovery live) {
    DeviceQueues set = queues.get(ssd);
    List<RecoveryOutcome> outcomes = new ArrayList<>();
    for (DeviceQueue queue : set.queues()) {
      RecoveryOutcome outcome = set.recover(queue);
      outcomes.add(outcome);
      if (!outcome.recovered()) {
        live.giveUp();
        return outcomes;
      }
    }
    // One queue's recovery may have reset the controller, which took those before it away again.
    outcomes.addAll(set.recover());
    if (!outcomes.getLast().recovered()) {
      live.giveUp();
      return outcomes;
    }
    live.recovered();
    traffic.get(ssd).recovered();
    caches.forEach(c -> c.recovered(set));
    return outcomes;
  }

  private List<StopWord> stopWords() {
    List<StopWord> all = new ArrayList<>();
    queues.forEach(q -> all.add(q.stopWord()));
    handles.forEach(h -> all.add(h.stopWord()));
    return all;
  }

  /**
   * How many recoveries have come to their end while kernels ran, of all SSDs together. Kernels see
   * those of a queue pair by {@code SharedQueue::epoch}.
   */
  public int recoveries() {
    requireOpen();
    int sum = 0;
    for (DeviceQueues set : queues) {
      LiveRecovery live = set.live();
      sum += live == null ? 0 : live.recoveries();
    }
    return sum;
  }

  /**
   * Tells all kernels that wait on this storage to end their waits, or cancels that: not after a
   * kernel hung, which is told for good.
   */
  public void stop(boolean value) {
    requireOpen();
    queues.forEach(q -> q.stop(value));
    handles.forEach(h -> h.stop(value));
  }

  /** The errors that kernels reported since the last call. No kernel runs. */
  public synchronized DeviceErrors errors() {
    requireOpen();
    List<DeviceError> records = new ArrayList<>();
    long total = 0;
    for (DeviceQueues set : queues) {
      DeviceErrors errors = set.takeErrors();
      records.addAll(errors.records());
      total += errors.total();
    }
    return new DeviceErrors(records, total);
  }

  /** Queue pairs of one SSD: the first, if they have different numbers. */
  public synchronized int queuePairs() {
    requireOpen();
    return queues.getFirst().queues().size();
  }

  /** Commands in flight per queue pair, at most; of the first SSD. */
  public synchronized int depth() {
    requireOpen();
    return queues.getFirst().queues().getFirst().depth();
  }

  /** The counters so far, SSD by SSD. No kernel runs. */
  public synchronized List<QueueCounters> stats() {
    requireOpen();
    return queues.stream().map(DeviceQueues::counters).toList();
  }

  /**
   * Makes queues usable again that an SSD has lost or that have quarantined commands. No kernel
   * runs, but those of {@link DeviceRows}, for which this waits. After this, reads and writes that
   * ended with {@link DeviceStatus#TIMEOUT} or {@link DeviceStatus#STOPPED} move no more data.
   *
   * @return the outcome for each queue that needed recovery
   * @throws io.gpunvme.nvme.NvmeException if an SSD could not be brought back
   * @throws StorageBusyException if a kernel is waited for
   */
  public List<RecoveryOutcome> recover() {
    caches().forEach(PageCache::awaitRows);
    return recoverQueues();
  }

  private synchronized List<RecoveryOutcome> recoverQueues() {
    requireOpen();
    if (running.get() != 0) {
      throw new StorageBusyException(
          "%d kernels use this storage; recover it when they are over".formatted(running.get()));
    }
    List<RecoveryOutcome> outcomes = new ArrayList<>();
    for (int i = 0; i < queues.size(); i++) {
      LiveRecovery live = queues.get(i).live();
      outcomes.addAll(live != null && live.end() ? recoverAll(i, live) : queues.get(i).recover());
    }
    traffic.forEach(KernelTraffic::recovered);
    for (RecoveryOutcome outcome : outcomes) {
      if (outcome.failure() != null) {
        throw outcome.failure();
      }
    }
    queues.forEach(q -> caches.forEach(c -> c.recovered(q)));
    return outcomes;
  }

  /**
   * Deletes the queues at the SSDs and frees everything. No kernel uses it any more, but those of
   * {@link DeviceRows}, for which this waits.
   */
  @Override
  public void close() {
    caches().forEach(cache -> cache.shutRows(true));
    closeQueues();
  }

  private synchronized List<PageCache> caches() {
    return List.copyOf(caches);
  }

  /** Without the lock, which the ends of kernels take. */
  void settleRows() {
    caches().forEach(PageCache::settleRows);
  }

  private synchronized void closeQueues() {
    if (!closed) {
      if (!hung) {
        free();
      }
      traffic.forEach(KernelTraffic::close);
      closed = true;
    }
  }

  private void free() {
    CloseAll.each(queues, DeviceQueues::close);
    CloseAll.each(handles, KernelHandle::free);
    handles.clear();
    CloseAll.each(tables, DeviceTable::free);
    tables.clear();
    CloseAll.each(Arrays.stream(registered).filter(Objects::nonNull).toList(), Registered::close);
    // Behind the registrations, which hold their memory.
    CloseAll.each(caches, PageCache::free);
    caches.clear();
    handle.close();
  }
}
