package io.gpunvme.storage.path.pinned;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.ffi.IoUringUnavailableException;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.storage.path.file.FileErrors;
import io.gpunvme.storage.path.file.SourceFile;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A file, or a block device for reading, over pinned host memory: I/O at depth past the page cache,
 * or by several threads through it, at the same time as copies in several CUDA streams. Where the
 * buffer is host memory and blocks agree, I/O is done in it and nothing is copied.
 *
 * <p>Reads past the page cache move whole blocks; what nobody asked for is counted as over-read and
 * never reaches a buffer. Writes past it are whole blocks of 4096 bytes or more; the edges follow
 * through it, so that a read by either way sees them. Writes may make the file longer. What is
 * written is on stable storage after {@link #flush}.
 *
 * <p>Threads are taken when first needed. Open files of a block device share them on a GPU, and all
 * files pinned memory, which the GPU keeps; on the stand-in both are the path's own. Allocating
 * pinned memory may wait for kernels that run, so the first transfer should not be one that a
 * running kernel waits for.
 */
public final class PinnedPath implements DataPath {
  /** Bytes of the longest short read: one load. */
  private static final int SHORT = PinnedOptions.LEAST_CHUNK;

  private final SourceFile file;
  private final boolean ownsFile;
  private final Accelerator accelerator;
  private final PinnedOptions options;
  private final Lanes lanes;
  private final SlotStock stock;
  private final SlotPool pool;
  private final List<CudaStream> streams = new ArrayList<>();
  private final AtomicInteger nextStream = new AtomicInteger();
  private final CopyWorkers workers;
  private final Rates rates;
  private volatile Mode mode;
  private volatile boolean closed;

  private PinnedPath(
      SourceFile file,
      boolean ownsFile,
      Accelerator accelerator,
      PinnedOptions options,
      NumaHome home,
      UnaryOperator<LaneIo> wrapper) {
    this.file = file;
    this.ownsFile = ownsFile;
    this.accelerator = accelerator;
    this.options = options;
    requireDirect(file, options);
    lanes = lanes(file, options, wrapper);
    stock = accelerator.cuda().map(SlotStock::of).orElseGet(() -> new SlotStock(accelerator, home));
    pool = new SlotPool(file.name(), stock, options.chunk(), options.ringBytes());
    int most = Math.max(options.threads(), lanes.most(true, 1));
    rates = new Rates(file.device() + " to " + accelerator.name(), options.threads());
    boolean direct = options.direct() != DirectIo.FALSE && file.hasDirect();
    mode =
        mode(
            direct ? lanes.most(true, options.threads()) : 0,
            options.direct() != DirectIo.TRUE ? options.threads() : 0,
            options.chunk());
    // The last: nothing fails after it.
    workers = stock.takeWorkers(file.device(), most, home);
  }

  private static void requireDirect(SourceFile file, PinnedOptions options) {
    if (options.direct() == DirectIo.TRUE && !file.hasDirect()) {
      throw unsupported(file, file.directRefusal() + "; use direct=auto", null);
    }
    if (file.hasDirect() && options.chunk() % file.directAlignment() != 0) {
      throw unsupported(
          file, "a chunk must be a multiple of " + file.directAlignment() + " bytes", null);
    }
  }

  private static Lanes lanes(
      SourceFile file, PinnedOptions options, UnaryOperator<LaneIo> wrapper) {
    try {
      return new Lanes(options, wrapper);
    } catch (IoUringUnavailableException e) {
      throw unsupported(file, e.getMessage() + "; or use engine=auto", e);
    } catch (PosixException e) {
      throw FileErrors.of(file.name(), e);
    }
  }

  private static StorageException unsupported(
      SourceFile file, String what, @Nullable Throwable cause) {
    return new StorageException(Kind.UNSUPPORTED, file.name(), -1, -1, what, cause);
  }

  /**
   * Opens a file, which is closed with the path; see {@link SourceFile#open}. Threads are anywhere.
   */
  public static PinnedPath open(
      String file, boolean writable, Accelerator accelerator, PinnedOptions options) {
    SourceFile source = SourceFile.open(file, writable);
    return CloseAll.orClose(
        () -> open(source, true, accelerator, options, NumaHome.NONE, UnaryOperator.identity()),
        source::close);
  }

  /**
   * Opens the path for a file of the caller's, who closes it after the path.
   *
   * @param home where its threads are, and memory that is not a GPU's
   * @throws StorageException {@link Kind#UNSUPPORTED} if the options ask for what this file or
   *     machine has not, {@link Kind#ACCELERATOR}
   */
  public static PinnedPath open(
      SourceFile file, Accelerator accelerator, PinnedOptions options, NumaHome home) {
    return open(file, false, accelerator, options, home, UnaryOperator.identity());
  }

  static PinnedPath open(
      SourceFile file,
      boolean ownsFile,
      Accelerator accelerator,
      PinnedOptions options,
      NumaHome home,
      UnaryOperator<LaneIo> wrapper) {
    PinnedPath path = new PinnedPath(file, ownsFile, accelerator, options, home, wrapper);
    try {
      return CloseAll.orClose(path::openStreams, path::closeOwn);
    } catch (CudaException e) {
      throw new StorageException(
          Kind.ACCELERATOR, file.name(), -1, -1, String.valueOf(e.getMessage()), e);
    }
  }

  private PinnedPath openStreams() {
    accelerator
        .cuda()
        .ifPresent(
            gpu -> {
              for (int i = 0; i < options.streams(); i++) {
                streams.add(stock.takeStream(gpu));
              }
            });
    return this;
  }

  /** Whether the path is possible for a file, and how it would work. */
  public static Verdict judge(String file, PinnedOptions options) {
    try (SourceFile source = SourceFile.open(file, false)) {
      requireDirect(source, options);
      lanes(source, options, UnaryOperator.identity()).close();
      return Verdict.yes(
          PathKind.PINNED,
          source.hasDirect()
              ? "O_DIRECT or page cache on " + source.fileSystem()
              : "page cache only: " + source.directRefusal());
    } catch (StorageException e) {
      return Verdict.no(PathKind.PINNED, String.valueOf(e.getMessage()), fix(e.kind()));
    }
  }

  private static String fix(Kind kind) {
    return switch (kind) {
      case GONE -> "name a file that exists";
      case PERMISSION -> "give this user the right to read the file";
      case UNSUPPORTED -> "use other options, or another file";
      default -> "";
    };
  }

  @Override
  public PathKind kind() {
    return PathKind.PINNED;
  }

  /** As it was for the last transfer, or may be for the first. */
  @Override
  public String mode() {
    return mode.text();
  }

  @Override
  public long size() {
    return file.size();
  }

  @Override
  public int alignment() {
    return options.direct() != DirectIo.FALSE && file.hasDirect() ? file.directAlignment() : 1;
  }

  @Override
  public double expected(RequestShape shape) {
    return rates.expected(shape);
  }

  /** The file, for its residency and its cache. */
  public SourceFile file() {
    return file;
  }

  /** Bytes of pinned memory that transfers have had in use at the same time, at most. */
  public long pinnedBytes() {
    return pool.peakBytes();
  }

  /** Pinned memory that is in use by transfers, in chunks; 0 while there are none. */
  public int chunksInUse() {
    return pool.inUse();
  }

  /** Returns once everything written is on stable storage. */
  public void flush() {
    file.sync();
  }

  // ---- transfers

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    if (closed) {
      throw new IllegalStateException("the pinned path to " + file.name() + " is closed");
    }
    List<Range> fixed = List.copyOf(ranges);
    fixed.forEach(PinnedPath::check);
    if (direction == Direction.WRITE && !file.writable()) {
      throw new StorageException(
          Kind.PERMISSION, file.name(), -1, -1, "it is open for reading only", null);
    }
    try (Rates.Transfer measuring = rates.begin()) {
      carryOut(direction, fixed, call, measuring);
    }
  }

  private void carryOut(
      Direction direction, List<Range> fixed, PathCall call, Rates.Transfer measuring) {
    Transfer transfer = new Transfer(direction, fixed, call);
    Cutter cutter = new Cutter(file, options, direction, fixed);
    Cutter.Cut cut = direction == Direction.READ ? cutter.reads() : cutter.writes();
    List<Runnable> direct = tasks(transfer, cut.direct(), true);
    List<Runnable> cached = tasks(transfer, cut.cached(), false);
    Mode last = mode;
    if (!last.is(direct.size(), cached.size(), cutter.loadBytes())) {
      mode = mode(direct.size(), cached.size(), cutter.loadBytes());
    }
    if (direction == Direction.READ) {
      workers.run(Stream.concat(direct.stream(), cached.stream()).toList());
    } else {
      // Edges share pages of the cache with what lies beside them: that must be written by now.
      workers.run(direct);
      workers.run(cached);
    }
    transfer.throwIfFailed();
    if (direction == Direction.READ && direct.isEmpty() != cached.isEmpty()) {
      measuring.measured(direct.isEmpty(), cutter.bytes(), fixed.size());
    }
  }

  /**
   * A short read of host memory that the page cache has is one system call of the caller's thread.
   */
  @Override
  public void transfer(
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    boolean done =
        direction == Direction.READ
            && length > 0
            && length <= SHORT
            && buffer.isHost()
            && isInside(offset, buffer, bufferOffset, length)
            && readCached(offset, buffer.segment().asSlice(bufferOffset, length), call);
    if (!done) {
      DataPath.super.transfer(direction, offset, buffer, bufferOffset, length, call);
    }
  }

  /** Whether all of it has been read. Where not, the ordinary way does it, and says what it met. */
  private boolean readCached(long offset, MemorySegment target, PathCall call) {
    if (closed || !lanes.areCalls() || !goesThroughCache(offset + target.byteSize() / 2)) {
      return false;
    }
    call.throwIfCancelled(offset, target.byteSize());
    long start = System.nanoTime();
    if (Posix.tryPread(file.fd(), target, offset) != target.byteSize()) {
      return false;
    }
    call.operation(System.nanoTime() - start);
    call.counters().read(target.byteSize());
    Mode last = mode;
    if (!last.is(0, 1, SHORT)) {
      mode = mode(0, 1, SHORT);
    }
    return true;
  }

  /** As the {@link Cutter} decides for a range shorter than a load. */
  private boolean goesThroughCache(long place) {
    DirectIo direct = file.hasDirect() ? options.direct() : DirectIo.FALSE;
    return direct == DirectIo.FALSE || (direct == DirectIo.AUTO && file.isResident(place));
  }

  private static boolean isInside(
      long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    return offset >= 0
        && length >= 0
        && length <= Long.MAX_VALUE - offset
        && bufferOffset >= 0
        && length <= buffer.size() - bufferOffset;
  }

  private static void check(Range range) {
    if (!isInside(range.offset(), range.buffer(), range.bufferOffset(), range.length())) {
      throw new InvalidRequestException(
          "%d bytes at %d, and at %d of a buffer of %d bytes"
              .formatted(
                  range.length(), range.offset(), range.bufferOffset(), range.buffer().size()));
    }
  }

  private List<Runnable> tasks(Transfer transfer, IoList list, boolean direct) {
    int count = Math.min(lanes.most(direct, options.threads()), list.loads());
    return Collections.nCopies(count, () -> runLane(transfer, list, direct));
  }

  private void runLane(Transfer transfer, IoList list, boolean direct) {
    try {
      LaneIo io = lanes.take(direct);
      try {
        int fd = direct ? file.directFd() : file.fd();
        int alignment = direct ? file.directAlignment() : 1;
        new PinnedLane(transfer, list, fd, alignment, io, pool, copies()).run();
      } finally {
        lanes.give(io, direct);
      }
    } catch (IoUringUnavailableException e) {
      transfer.fail(unsupported(file, e.getMessage() + "; or use engine=threads", e));
    } catch (PosixException e) {
      transfer.fail(FileErrors.of(file.name(), e));
    } catch (RuntimeException | Error e) {
      transfer.stop();
      throw e;
    }
  }

  private Copies copies() {
    return accelerator.cuda().<Copies>map(this::stagedCopies).orElseGet(SyncCopies::new);
  }

  private Copies stagedCopies(GpuAccelerator gpu) {
    int stream = Math.floorMod(nextStream.getAndIncrement(), streams.size());
    return new StagedCopies(streams.get(stream), gpu.context().hasBatchCopies());
  }

  /** How a transfer was carried out, and the words for it. */
  private record Mode(int directLanes, int cachedLanes, int chunk, String text) {
    boolean is(int direct, int cached, int bytes) {
      return directLanes == direct && cachedLanes == cached && chunk == bytes;
    }
  }

  private Mode mode(int directLanes, int cachedLanes, int chunk) {
    List<String> ways = new ArrayList<>();
    if (directLanes > 0) {
      ways.add("O_DIRECT by " + lanes.describe(true, directLanes));
    }
    if (cachedLanes > 0) {
      ways.add("page cache by " + lanes.describe(false, cachedLanes));
    }
    String copies = streams.isEmpty() ? "" : ", " + streams.size() + " streams";
    String text = "%s; chunks of %d KiB%s".formatted(String.join(", ", ways), chunk >> 10, copies);
    return new Mode(directLanes, cachedLanes, chunk, text);
  }

  /** The stand-in has no streams that wait for anything. */
  @Override
  public void takeStaging() {
    if (accelerator.gpu()) {
      pool.fill();
    }
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      CloseAll.all(this::closeOwn, ownsFile ? file : null);
    }
  }

  private void closeOwn() {
    CloseAll.all(() -> stock.giveWorkers(workers), lanes, this::closeStock);
  }

  private void closeStock() {
    streams.forEach(stock::giveStream);
    streams.clear();
    if (accelerator.cuda().isEmpty()) {
      // It is of this path alone.
      stock.close();
    }
  }
}
