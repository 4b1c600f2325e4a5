package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.SharedLock.Seat;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceArray;
import io.gpunvme.gpu.queue.DeviceDirectory;
import io.gpunvme.gpu.queue.DeviceExtent;
import io.gpunvme.gpu.queue.DeviceFile;
import io.gpunvme.gpu.queue.DeviceRows;
import io.gpunvme.gpu.queue.DeviceSet;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.PageCache;
import io.gpunvme.gpu.queue.StripeSet;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.kind.Kind;
import io.gpunvme.storage.kind.ReadRequest;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.PathStats;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RangeChecks;
import io.gpunvme.storage.path.ReadBytes;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.plan.Ranges;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Bytes in a file or on an SSD, for an accelerator, over any path.
 *
 * <p>Offsets, lengths and buffer offsets are bytes and need no alignment. Safe for all threads.
 * Closing cancels running transfers and waits for them.
 */
public final class GpuStorage implements AutoCloseable {
  private static final RequestShape LONG_READ = new RequestShape(Direction.READ, 1, 1L << 30, 0);

  /** Bytes of a transfer; to put a thread on a node takes it some microseconds. */
  private static final long WORTH_A_MOVE = 1 << 20;

  private final StorageAddress address;
  private final Accelerator accelerator;
  private final StorageOptions options;
  private final Source source;
  private final OpenPaths paths;
  private final PlannedReads planned;
  private final TransferThreads threads;
  private final SharedUse use;

  /** Of all that share the source ({@link #on}). */
  private final WritesInStreams writesInStreams;

  private @Nullable StreamTransfers streams;

  /** Those of {@link #on} that are not closed; guarded by itself. */
  private final List<GpuStorage> others = new ArrayList<>();

  /** Run when this has been closed. */
  private final Consumer<GpuStorage> forget;

  GpuStorage(
      StorageAddress address, Accelerator accelerator, StorageOptions options, Source source) {
    this(address, accelerator, options, source, new WritesInStreams(), _ -> {});
  }

  private GpuStorage(
      StorageAddress address,
      Accelerator accelerator,
      StorageOptions options,
      Source source,
      WritesInStreams writesInStreams,
      Consumer<GpuStorage> forget) {
    this.writesInStreams = writesInStreams;
    this.forget = forget;
    this.address = address;
    this.accelerator = accelerator;
    this.options = options;
    this.source = source;
    use = new SharedUse(source.name());
    try {
      paths = new OpenPaths(source, address.path());
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, source::close);
      throw e;
    }
    planned = new PlannedReads(accelerator, paths);
    threads = new TransferThreads(options.threads());
  }

  /**
   * Opens a file or an SSD for reading.
   *
   * @param address text as {@link StorageAddress#parse} reads it
   * @param accelerator the one whose buffers are read into; the caller closes it after this
   */
  public static GpuStorage open(String address, Accelerator accelerator) {
    return open(StorageAddress.parse(address), accelerator, StorageOptions.defaults());
  }

  /**
   * Opens a file or an SSD.
   *
   * @throws io.gpunvme.base.InvalidRequestException if an option makes no sense
   * @throws StorageException if the file cannot be opened, or not by the requested path
   * @throws io.gpunvme.nvme.NvmeException if the controller does not come up
   */
  public static GpuStorage open(
      StorageAddress address, Accelerator accelerator, StorageOptions options) {
    return new GpuStorage(
        address, accelerator, options, Sources.open(address, accelerator, options));
  }

  /**
   * A namespace of a controller that is open already.
   *
   * @param controller the caller closes it after this; its options must allow writing, too
   */
  public static GpuStorage over(
      NvmeController controller, Accelerator accelerator, StorageOptions options) {
    return new GpuStorage(
        StorageAddress.of(controller.name()),
        accelerator,
        options,
        new DeviceSource(controller, accelerator, options));
  }

  /**
   * A set of namespaces of controllers that are open already; otherwise as for one.
   *
   * @param controllers at least one, in the order of the stripes
   */
  public static GpuStorage over(
      List<NvmeController> controllers,
      SetShape shape,
      Accelerator accelerator,
      StorageOptions options) {
    StorageOptions each =
        options.with(options.initiator().forEachOf(controllers.size(), accelerator));
    List<Source> members =
        controllers.stream().<Source>map(c -> new DeviceSource(c, accelerator, each)).toList();
    StorageAddress address =
        StorageAddress.of(controllers.stream().map(NvmeController::name).toList(), shape);
    return new GpuStorage(address, accelerator, options, new SetSource(members, shape));
  }

  /**
   * A file in a file system of a device that is open, read-only.
   *
   * @param name in messages
   * @param device the caller closes it after this
   * @param extents the places of its bytes on the device, from byte 0 without gaps
   */
  public static GpuStorage over(GpuStorage device, String name, List<FileExtent> extents) {
    return new GpuStorage(
        StorageAddress.of(name).with(device.address.path()),
        device.accelerator,
        StorageOptions.defaults(),
        new ExtentSource(device, name, extents, () -> {}));
  }

  /**
   * The same bytes for another accelerator: over the same open file or SSDs, with paths, queue
   * pairs, threads and counters of its own. Both can be used at the same time, by kernels too. A
   * write that fills a block in part is alone among the writes of both.
   *
   * @param other the caller closes it after this; another GPU, or another accelerator on the same
   * @return to be closed before this, which closes it otherwise
   */
  public GpuStorage on(Accelerator other) {
    return use.during(
        () -> {
          GpuStorage theirs =
              new GpuStorage(
                  address, other, options, source.on(other), writesInStreams, this::forget);
          synchronized (others) {
            others.add(theirs);
          }
          return theirs;
        });
  }

  private void forget(GpuStorage closed) {
    synchronized (others) {
      others.remove(closed);
    }
  }

  private void closeOthers() {
    List<GpuStorage> open;
    synchronized (others) {
      open = List.copyOf(others);
    }
    CloseAll.each(open, GpuStorage::close);
  }

  /**
   * Queues for kernels that read and write by themselves the SSD that this is, or is on, or each of
   * a stripe set's: all of their namespaces, whatever part of them this is. {@link #fileForKernels}
   * tells them of this part, {@link #setForKernels} of the set.
   *
   * @return to be closed before this
   * @throws StorageException if this is on no SSD of our own, on a replica, or on a set with
   *     members that are in pieces or sets themselves
   * @throws InvalidRequestException if a set's unit is shorter than the largest block of its SSDs
   */
  public KernelStorage forKernels(KernelStorageOptions kernelOptions) {
    return forKernels(List.of(this), kernelOptions);
  }

  /**
   * The same for the SSDs of several storages.
   *
   * @param storages at least one, on the same accelerator; kernels count SSDs in their order, each
   *     once; a stripe set counts as its SSDs, in turn
   * @throws InvalidRequestException if there is none, one is there twice, or accelerators differ
   */
  public static KernelStorage forKernels(
      List<GpuStorage> storages, KernelStorageOptions kernelOptions) {
    if (storages.isEmpty()) {
      throw new InvalidRequestException("no storage: kernels need the SSD of at least one");
    }
    GpuStorage first = storages.getFirst();
    for (GpuStorage other : storages) {
      if (Collections.frequency(storages, other) > 1) {
        throw new InvalidRequestException(other.address + " is there twice");
      }
      if (other.accelerator != first.accelerator) {
        throw new InvalidRequestException(
            "%s is for %s, and %s for %s: kernels of one accelerator cannot use both"
                .formatted(
                    first.address,
                    first.accelerator.name(),
                    other.address,
                    other.accelerator.name()));
      }
    }
    return duringAll(
        storages,
        () ->
            KernelStorage.over(
                storages.stream()
                    .flatMap(s -> s.source.set().controllers().stream())
                    .distinct()
                    .toList(),
                first.accelerator,
                kernelOptions));
  }

  /** None of them is closed meanwhile. */
  private static <T> T duringAll(List<GpuStorage> storages, Supplier<T> action) {
    return storages.isEmpty()
        ? action.get()
        : storages
            .getFirst()
            .use
            .during(() -> duringAll(storages.subList(1, storages.size()), action));
  }

  /**
   * Tells kernels where the bytes of this are: of a file of an SSD or a stripe set, a partition, a
   * namespace, or all of a set. They read them with {@code read_file}.
   *
   * @param kernels made by {@link #forKernels} of this, or of something else that is on the same
   *     namespaces by the same open device
   * @return to be closed before {@code kernels}, which closes it otherwise
   * @throws StorageException as {@link #forKernels}, or if this is not at whole blocks
   * @throws io.gpunvme.base.InvalidRequestException if {@code kernels} has other namespaces
   */
  public DeviceFile fileForKernels(KernelStorage kernels) {
    return use.during(() -> kernels.file(source.set(), source.size(), source.extents()));
  }

  /**
   * Tells kernels how a stripe set is laid out: the one that this is, or is on. They read and write
   * its blocks with the calls of {@code set.cuh}. An SSD, or a partition or file on one, is on a
   * set of one member: all of its namespace.
   *
   * @param kernels as for {@link #fileForKernels}
   * @return to be closed before {@code kernels}, which closes it otherwise
   * @throws StorageException as {@link #forKernels}
   * @throws io.gpunvme.base.InvalidRequestException if {@code kernels} has other namespaces
   */
  public DeviceSet setForKernels(KernelStorage kernels) {
    return use.during(() -> kernels.set(source.set()));
  }

  /**
   * Tells kernels of elements of this: of a file of an SSD or a stripe set, a partition, a
   * namespace, or all of a set. They read them by their numbers, through a cache in their memory,
   * and store them if they may. This stays open as long as the cache.
   *
   * @param cache of a {@link KernelStorage} as for {@link #fileForKernels}
   * @param offset bytes before element 0, a multiple of {@code elementBytes}
   * @param count elements, above 0
   * @param elementBytes of one: a power of two, at most a page of the cache
   * @param writable whether kernels may store elements: if this was opened for writing, and is all
   *     there, in whole blocks
   * @return to be closed before the cache, which closes it otherwise
   * @throws StorageException as {@link #forKernels}, or if this is not at whole blocks
   * @throws io.gpunvme.base.InvalidRequestException if a number is not as described, or the cache's
   *     storage has other namespaces
   */
  public DeviceArray arrayForKernels(
      PageCache cache, long offset, long count, int elementBytes, boolean writable) {
    return forCache(
        cache, writable, file -> cache.array(file, offset, count, elementBytes, writable));
  }

  /**
   * Tells the GPU of a matrix whose rows lie one behind the other in this, as {@link
   * #arrayForKernels}: it gathers and updates rows by their numbers, through a cache in its memory.
   *
   * @param cache of a {@link KernelStorage} as for {@link #fileForKernels}
   * @param offset bytes before row 0
   * @param rows above 0
   * @param rowBytes above 0
   * @param writable whether rows may be updated, as for {@link #arrayForKernels}
   * @return to be closed before the cache, which closes it otherwise
   * @throws StorageException as {@link #arrayForKernels}
   * @throws io.gpunvme.base.InvalidRequestException as {@link #arrayForKernels}, or if the
   *     accelerator is no GPU that kernels can be launched on
   */
  public DeviceRows rowsForKernels(
      PageCache cache, long offset, long rows, long rowBytes, boolean writable) {
    return forCache(cache, writable, file -> cache.rows(file, offset, rows, rowBytes, writable));
  }

  private <T> T forCache(PageCache cache, boolean writable, Function<DeviceFile, T> make) {
    if (writable && !options.allowWrite()) {
      throw new InvalidRequestException(
          "%s was not opened for writing: kernels may read it only".formatted(address));
    }
    return use.during(
        () -> {
          try (DeviceFile file = fileForKernels(cache.storage())) {
            return make.apply(file);
          }
        });
  }

  /**
   * Tells kernels where the files below a directory are, of the ext4 or FAT32 file system on this:
   * an SSD, a stripe set, a partition of one, or an image that is a file there. Kernels find them
   * by their paths from the directory on, or count through them, and read them with {@code
   * read_file}. A symbolic link to a file counts as a file. Nobody changes the file system
   * meanwhile.
   *
   * @param kernels as for {@link #fileForKernels}
   * @param directory its path, {@code /} for all of the file system; a symbolic link is followed
   * @return to be closed before {@code kernels}, which closes it otherwise
   * @throws StorageException as {@link #forKernels}, or for the first name below the directory that
   *     kernels cannot be told of: data in an inode, encrypted or compressed data, pieces that
   *     begin with no block of the SSD, a symbolic link to something else than a file, a device, a
   *     socket, a pipe, or a folder that cannot be read
   * @throws io.gpunvme.storage.fs.FileSystemException if there is no file system or no such
   *     directory, it is damaged, or its journal must be replayed first
   * @throws io.gpunvme.base.InvalidRequestException if {@code kernels} has other namespaces, there
   *     are more files or bytes than {@link io.gpunvme.gpu.queue.DirectoryFiles} allows, or a path
   *     is none that it allows
   */
  public DeviceDirectory directoryForKernels(KernelStorage kernels, String directory) {
    return directoryForKernels(
        kernels,
        directory,
        e -> {
          throw e;
        });
  }

  /**
   * The same without the names that kernels cannot be told of.
   *
   * @param leftOut is told of each, with its path and the reason; what it throws ends the call
   */
  public DeviceDirectory directoryForKernels(
      KernelStorage kernels, String directory, Consumer<StorageException> leftOut) {
    return use.during(() -> kernels.directory(DirectoryWalk.of(this, directory, leftOut)));
  }

  /** As {@link Source#set}. */
  StripeSet set() {
    return use.during(source::set);
  }

  /** As {@link Source#extents}. */
  List<DeviceExtent> extents() {
    return use.during(source::extents);
  }

  /** One of its paths, open; closed with this. */
  DataPath path(PathKind kind) {
    return use.during(() -> paths.get(kind));
  }

  /** The opened address. */
  public StorageAddress address() {
    return address;
  }

  /** The accelerator. */
  public Accelerator accelerator() {
    return accelerator;
  }

  /** Bytes in it now. */
  public long size() {
    return use.during(source::size);
  }

  /**
   * Where bytes of it are, for those who give an SSD commands of their own: on one SSD, or on each
   * member of a set. The members of a replica each have all. What lies nowhere is left out, as are
   * bytes that do not fill a block.
   *
   * @return in no order; valid until this is closed
   * @throws io.gpunvme.base.InvalidRequestException if they are not all inside
   * @throws StorageException if this is a file of a mounted file system
   */
  public List<BlockRun> blocks(long offset, long length) {
    return use.during(
        () -> {
          RangeChecks.inside(source.name(), source.size(), offset, length);
          return source.blocks(offset, length);
        });
  }

  /** The logical block in bytes, by which LBAs count; 512 of files, which have none. */
  public int blockSize() {
    return use.during(source::blockSize);
  }

  /**
   * The best alignment of offsets, lengths and buffer offsets for the path of long reads: a power
   * of two, bytes. Other values work.
   */
  public int alignment() {
    return use.during(() -> paths.choose(LONG_READ).alignment());
  }

  /**
   * The most memory of the accelerator, bytes, that reads take besides the caller's buffers, on the
   * path of long reads.
   */
  public long gpuBytes() {
    return use.during(
        () -> {
          DataPath path = paths.choose(LONG_READ);
          return path.gpuBytes() + planned.gpuBytes(path);
        });
  }

  /**
   * Reads into a buffer. Short reads into host memory allocate their result and hardly more;
   * docs/paths.md says which.
   *
   * @throws io.gpunvme.base.InvalidRequestException if the range is not inside the source or the
   *     buffer
   * @throws IllegalStateException if this or the buffer is closed. A buffer that is closed
   *     meanwhile keeps its memory until the transfer is over
   * @throws StorageException if it fails; nothing uses the buffer any more
   */
  public TransferResult read(long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    return transfer(Direction.READ, offset, buffer, bufferOffset, length);
  }

  /** Writes from a buffer; as {@link #read(long, DeviceBuffer, long, long)}. */
  public TransferResult write(long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    return transfer(Direction.WRITE, offset, buffer, bufferOffset, length);
  }

  /**
   * Reads many ranges at once, which is faster than one by one.
   *
   * @param ranges they do not overlap in the buffers
   */
  public TransferResult read(List<Range> ranges) {
    return transfer(Direction.READ, ranges, null);
  }

  /**
   * Writes many ranges at once.
   *
   * @param ranges they do not overlap in the source
   */
  public TransferResult write(List<Range> ranges) {
    return transfer(Direction.WRITE, ranges, null);
  }

  /**
   * Reads many ranges at once, and ends early if it is told to.
   *
   * @param cancelled asked by this thread every 10 ms or so while it reads
   * @throws StorageException {@link StorageException.Kind#CANCELLED} if it said so
   */
  public TransferResult read(List<Range> ranges, BooleanSupplier cancelled) {
    return transfer(Direction.READ, ranges, new PathCall(source.name(), cancelled));
  }

  /**
   * Writes many ranges at once, and ends early if it is told to; as {@link #read(List,
   * BooleanSupplier)}.
   */
  public TransferResult write(List<Range> ranges, BooleanSupplier cancelled) {
    return transfer(Direction.WRITE, ranges, new PathCall(source.name(), cancelled));
  }

  /**
   * Reads many ranges at once; one I/O reads ranges that are close together.
   *
   * @param targets a buffer for each target of the ranges, which do not overlap in them
   * @throws io.gpunvme.base.InvalidRequestException if a range has no buffer, or is not inside the
   *     source or its buffer
   * @throws StorageException if it fails; nothing uses the buffers any more
   */
  public TransferResult read(Ranges ranges, List<DeviceBuffer> targets) {
    return read(ranges, targets, (PathCall) null);
  }

  /**
   * The same, which ends early if it is told to.
   *
   * @param cancelled as for {@link #read(List, BooleanSupplier)}
   */
  public TransferResult read(Ranges ranges, List<DeviceBuffer> targets, BooleanSupplier cancelled) {
    return read(ranges, targets, new PathCall(source.name(), cancelled));
  }

  private TransferResult read(Ranges ranges, List<DeviceBuffer> targets, @Nullable PathCall given) {
    return transfer(
        Direction.READ,
        new RangeList(ranges, targets),
        targets,
        given,
        (path, call) -> planned.read(path, ranges, targets, source.size(), call));
  }

  /**
   * Reads elements of a kind, one after the other.
   *
   * @param kind its name, or its number in decimal
   * @param index the first element
   * @param length how many
   * @throws io.gpunvme.base.InvalidRequestException if there is no such kind, the elements are not
   *     all inside, or the buffer is too small
   */
  public TransferResult read(
      ReadRequest request,
      String kind,
      long index,
      long length,
      DeviceBuffer buffer,
      long bufferOffset) {
    Kind of = request.kind(kind);
    return read(of.offset(index, length), buffer, bufferOffset, length * of.element());
  }

  /**
   * Reads elements of many kinds, each to its place. All arrays are equally long.
   *
   * @param kinds numbers
   * @param indexes first elements
   * @param lengths how many elements
   * @param bufferOffsets first bytes in the buffer; the reads do not overlap there
   * @throws io.gpunvme.base.InvalidRequestException as for one read
   */
  public TransferResult read(
      ReadRequest request,
      int[] kinds,
      long[] indexes,
      long[] lengths,
      DeviceBuffer buffer,
      long[] bufferOffsets) {
    Ranges ranges = request.ranges(kinds, indexes, lengths, new int[kinds.length], bufferOffsets);
    return read(ranges, List.of(buffer));
  }

  /**
   * Reads without waiting.
   *
   * @return completes when the bytes are there; its {@code cancel} asks the transfer to end
   * @throws RejectedExecutionException if the system has no thread left; nothing has begun
   */
  public CompletableFuture<TransferResult> readAsync(
      long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    return start(Direction.READ, List.of(new Range(offset, buffer, bufferOffset, length)));
  }

  /** Writes without waiting; the buffer stays unchanged until the future completes. */
  public CompletableFuture<TransferResult> writeAsync(
      long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    return start(Direction.WRITE, List.of(new Range(offset, buffer, bufferOffset, length)));
  }

  /** Reads many ranges without waiting. */
  public CompletableFuture<TransferResult> readAsync(List<Range> ranges) {
    return start(Direction.READ, ranges);
  }

  /** Writes many ranges without waiting. */
  public CompletableFuture<TransferResult> writeAsync(List<Range> ranges) {
    return start(Direction.WRITE, ranges);
  }

  /**
   * Transfers in the order of CUDA streams: later work in a stream sees the data of a read, and a
   * transfer uses its buffer only after the earlier work in the stream.
   *
   * <p>The first call takes what transfers may need while streams wait for them: 32 MiB of pinned
   * memory, for files as much as path pinned may use ({@code ring}), which they share, and for each
   * SSD that is driven at most 144 MiB, or 16 MiB of GPU memory if its data is placed there.
   *
   * @throws StorageException if the accelerator has no streams
   */
  public synchronized StreamTransfers streams() {
    StreamTransfers there = streams;
    if (there == null) {
      there = new StreamTransfers(this, accelerator, writesInStreams);
      streams = there;
    }
    return there;
  }

  /** An empty batch: transfers that are submitted one by one and carried out together. */
  public Batch batch() {
    use.requireOpen();
    return new Batch(this);
  }

  private TransferFuture start(Direction direction, List<Range> ranges) {
    return start(direction, ranges, call(direction, ranges));
  }

  /**
   * Begins to carry out a transfer.
   *
   * @param call of {@link #call}, or a part of one
   */
  TransferFuture start(Direction direction, List<Range> ranges, PathCall call) {
    use.requireOpen();
    TransferFuture future = new TransferFuture(call);
    use.began(call);
    try {
      execute(() -> run(direction, ranges, call, future));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> use.ended(call));
      throw e;
    }
    return future;
  }

  /**
   * Has another thread do some work; as {@link TransferThreads#execute}.
   *
   * @throws StorageClosedException if this is closed or being closed
   * @throws RejectedExecutionException if the system has no thread left
   */
  void execute(Supplier<Runnable> work) {
    try {
      threads.execute(work);
    } catch (RejectedExecutionException e) {
      use.requireOpen();
      throw e;
    }
  }

  /** What tells the caller comes after everything else: it may close this storage. */
  private Runnable run(
      Direction direction, List<Range> ranges, PathCall call, TransferFuture future) {
    try {
      TransferResult result =
          transfer(
              direction,
              ranges,
              buffers(ranges),
              call,
              (path, part) -> moveAtHome(path, direction, ranges, part));
      return () -> future.complete(result);
    } catch (Throwable e) {
      return () -> future.completeExceptionally(e);
    } finally {
      use.ended(call);
    }
  }

  /** A transfer to come; checks what can be checked before. */
  PathCall call(Direction direction, List<Range> ranges) {
    RangeChecks.check(source.name(), use.during(source::size), ranges);
    requireAllowed(direction);
    return new PathCall(source.name());
  }

  private void requireAllowed(Direction direction) {
    if (direction == Direction.WRITE && !options.allowWrite()) {
      throw new StorageException(
          StorageException.Kind.PERMISSION,
          source.name(),
          -1,
          -1,
          "is open for reading only; open it for writing with --allow-write"
              + " (StorageOptions.withWrite; in C GPUNVME_WRITE, in Python write=True)",
          null);
    }
  }

  /**
   * Carries out a transfer on this thread.
   *
   * @param given what the caller may cancel; null for none
   */
  TransferResult transfer(Direction direction, List<Range> ranges, @Nullable PathCall given) {
    return transfer(
        direction,
        ranges,
        buffers(ranges),
        given,
        (path, call) -> move(path, direction, ranges, call));
  }

  /** Of ranges that are next to each other and have the same one, it is there once. */
  private static List<DeviceBuffer> buffers(List<Range> ranges) {
    List<DeviceBuffer> all = new ArrayList<>();
    for (Range r : ranges) {
      if (all.isEmpty() || all.getLast() != r.buffer()) {
        all.add(r.buffer());
      }
    }
    return all;
  }

  /** On the node of the SSD or file, if this is a thread of ours. */
  private void moveAtHome(DataPath path, Direction direction, List<Range> ranges, PathCall call) {
    NumaHome home = source.home();
    // Most machines have one node: there, nothing is added up.
    boolean moves =
        home.node() >= 0 && ranges.stream().mapToLong(Range::length).sum() >= WORTH_A_MOVE;
    try (var _ = (moves ? home : NumaHome.NONE).thread()) {
      move(path, direction, ranges, call);
    }
  }

  private static void move(DataPath path, Direction direction, List<Range> ranges, PathCall call) {
    if (ranges.size() == 1) {
      // Paths have less to do for one, however it was named.
      Range r = ranges.getFirst();
      path.transfer(direction, r.offset(), r.buffer(), r.bufferOffset(), r.length(), call);
    } else {
      path.transfer(direction, ranges, call);
    }
  }

  private TransferResult transfer(
      Direction direction,
      List<Range> ranges,
      List<DeviceBuffer> buffers,
      @Nullable PathCall given,
      BiConsumer<DataPath, PathCall> mover) {
    Seat<PathCall> seat = use.enter();
    PathCall call = seat.belonging();
    if (given != null) {
      call = given;
      use.began(given);
    }
    try {
      long size = sizeFor(direction, RangeChecks.end(ranges));
      long bytes = RangeChecks.check(source.name(), size, ranges);
      requireAllowed(direction);
      DataPath path = paths.choose(direction, ranges, bytes);
      call.countIn(paths.counters(path.kind()));
      long start = System.nanoTime();
      DeviceBuffer.leaseAll(buffers);
      try {
        mover.accept(path, call);
      } finally {
        DeviceBuffer.releaseAll(buffers);
      }
      return result(path, direction, ranges.size(), bytes, System.nanoTime() - start);
    } finally {
      if (given != null) {
        use.ended(given);
      }
      use.leave(seat);
    }
  }

  /** The same for one range: what it allocates is its result. */
  private TransferResult transfer(
      Direction direction, long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    Seat<PathCall> seat = use.enter();
    try {
      long size = sizeFor(direction, offset + length);
      RangeChecks.check(source.name(), size, offset, buffer, bufferOffset, length);
      requireAllowed(direction);
      DataPath path = paths.choose(direction, offset, buffer, bufferOffset, length);
      PathCall call = seat.belonging();
      call.countIn(paths.counters(path.kind()));
      long start = System.nanoTime();
      buffer.lease();
      try {
        path.transfer(direction, offset, buffer, bufferOffset, length, call);
      } finally {
        buffer.release();
      }
      return result(path, direction, 1, length, System.nanoTime() - start);
    } finally {
      use.leave(seat);
    }
  }

  private long sizeFor(Direction direction, long end) {
    return direction == Direction.READ ? source.sizeForRead(end) : source.size();
  }

  private TransferResult result(
      DataPath path, Direction direction, int ranges, long bytes, long nanos) {
    paths.measured(direction, ranges, bytes, path.kind(), nanos);
    return new TransferResult(path.kind(), path.mode(), ranges, bytes, nanos);
  }

  /**
   * Returns when the data of all completed writes, on any path, is on stable storage: it uses an
   * NVMe Flush of the namespace, {@code fdatasync} of a file, and for a set the one that suits each
   * member.
   *
   * @throws StorageException if it fails, or this is open for reading only
   */
  public void flush() {
    requireAllowed(Direction.WRITE);
    use.during(paths::flush);
  }

  /**
   * Has the paths that are open take memory for what cannot go straight to buffers: for files as
   * much as path pinned may use, for each SSD at most 144 MiB, or 16 MiB of GPU memory if its data
   * is placed there. Otherwise they do when they first need it; a GPU's driver may then wait for
   * streams, and those for a transfer.
   */
  public void takeStaging() {
    use.during(paths::takeStaging);
  }

  /**
   * Prepares a buffer for transfers, which makes some paths faster. The preparation ends by itself
   * before the buffer is freed.
   */
  public void register(DeviceBuffer buffer) {
    use.during(() -> paths.register(buffer));
  }

  /** Undoes {@link #register}. No transfer uses the buffer. */
  public void deregister(DeviceBuffer buffer) {
    paths.deregister(buffer);
  }

  /** What was read so far, path by path. */
  public Map<PathKind, ReadBytes> readBytes() {
    return paths.readBytes();
  }

  /**
   * The counts so far, path by path. Adding the latencies up takes milliseconds: {@link #readBytes}
   * is for those who want to know what was read.
   */
  public Map<PathKind, PathStats> stats() {
    return paths.stats();
  }

  /**
   * The counts of each member of a set so far; empty if this is not a set, or nothing was read yet.
   */
  public List<MemberStats> members() {
    return paths.members();
  }

  /**
   * The path that a request would take now. Opens the paths that may be chosen.
   *
   * @throws StorageException if none can be opened
   */
  public PathKind pathFor(RequestShape shape) {
    return use.during(() -> paths.choose(shape).kind());
  }

  /** The path in use, the reasons against the others, and their fixes. */
  public Explanation explain() {
    return Explanation.of(address, paths.verdicts(), paths.modes(), homes());
  }

  /** Where our threads that serve it are. */
  NumaHome home() {
    return source.home();
  }

  /** What was chosen of NUMA nodes, by the name of an SSD, a file or a GPU. */
  Map<String, String> homes() {
    Map<String, String> all = new TreeMap<>(source.homes());
    if (accelerator.gpu()) {
      all.put(accelerator.name(), accelerator.home().toString());
    }
    return all;
  }

  /** Cancels running transfers, waits for them and frees everything. Idempotent. */
  @Override
  public void close() {
    use.cancel();
    threads.end();
    CloseAll steps = new CloseAll();
    // Its threads come into this storage to learn that it is closed.
    steps.run(this::closeStreams);
    steps.run(this::closeOthers);
    steps.run(() -> use.close(this::free));
    steps.run(() -> forget.accept(this));
    steps.<RuntimeException>end();
  }

  private void closeStreams() {
    StreamTransfers own;
    synchronized (this) {
      own = streams;
    }
    if (own != null) {
      own.close();
    }
  }

  private void free() {
    // Those that were being opened when this began to close.
    CloseAll.all(this::closeOthers, planned, paths);
  }
}
