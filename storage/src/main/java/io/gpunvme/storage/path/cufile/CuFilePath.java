package io.gpunvme.storage.path.cufile;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.ComputeCapability;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.cufile.CuFile;
import io.gpunvme.cuda.cufile.CuFileBuffer;
import io.gpunvme.cuda.cufile.CuFileDriver;
import io.gpunvme.cuda.cufile.CuFileException;
import io.gpunvme.cuda.cufile.CuFileHandle;
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
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A file by cuFile: its calls, several at a time, between the file and memory of a GPU (or host
 * memory). Any alignment works; what is not aligned goes through memory of cuFile's own.
 *
 * <p>The library is opened by {@link #open} and by nothing before it. Everything is given back at
 * {@link #close}, or when the accelerator is closed.
 */
public final class CuFilePath implements DataPath {
  private static final long DEVICE_CACHE = 128 << 20;

  private static final int PAGE = 4096;

  // Measured on an H200 with cuFile 1.15 in compatibility mode, 10^9 bytes a second.
  private static final double WARM_PER_THREAD = 13;
  private static final double WARM_MOST = 38;
  private static final double COLD = 3.5;

  // And seconds for one small read.
  private static final double WARM_SECONDS = 1 / 119e3;
  private static final double COLD_SECONDS = 1 / 30e3;

  private final GpuAccelerator accelerator;
  private final CuFileOptions options;
  private final boolean writable;
  private final CuFileDriver driver;
  private final CuFileHandle file;
  private final HostFile host;
  private final Routes routes;
  private final CuFileWorkers workers;

  /** Guarded by itself. */
  private final Map<DeviceBuffer, CuFileBuffer> registered = new HashMap<>();

  private volatile String lastRoutes = "";
  private volatile boolean closed;

  private CuFilePath(
      GpuAccelerator accelerator,
      CuFileOptions options,
      boolean writable,
      CuFileDriver driver,
      String file,
      NumaHome home) {
    this.accelerator = accelerator;
    this.options = options;
    this.writable = writable;
    this.driver = driver;
    boolean decides = driver.library().version().atLeast(1, 7);
    host = new HostFile(file, writable);
    try {
      this.file = driver.open(file, writable, options.direct() || !decides);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, host::close);
      throw e;
    }
    routes = new Routes(driver.library(), options.statistics());
    workers = new CuFileWorkers(options.threads() - 1, home);
  }

  // ---- whether it is possible

  /**
   * Whether cuFile can read a file into an accelerator's memory; opens neither the file nor the
   * library.
   */
  public static Verdict judge(String file, Accelerator accelerator) {
    return accelerator
        .cuda()
        .map(gpu -> gpu.context().device())
        .map(gpu -> judge(file, gpu.name(), gpu.computeCapability(), CuFileHost.here()))
        .orElseGet(
            () ->
                Verdict.no(
                    PathKind.CUFILE,
                    accelerator.name() + " is not a GPU, and cuFile is for GPUs",
                    "open the storage for a GPU"));
  }

  /** The same for a GPU by its name and architecture. */
  public static Verdict judge(
      String file, String gpu, ComputeCapability capability, CuFileHost host) {
    return new CuFileJudge(host).file(Path.of(file), gpu, capability);
  }

  /** Whether NVIDIA's library is there, leaving GPUs and files aside. */
  public static Verdict judgeLibrary(CuFileHost host) {
    return new CuFileJudge(host).library();
  }

  /** Whether cuFile can work on a machine with a GPU, leaving files aside. */
  public static Verdict judgeMachine(String gpu, ComputeCapability capability, CuFileHost host) {
    return new CuFileJudge(host).machine(gpu, capability);
  }

  // ---- opening

  /**
   * Opens a file, and cuFile if nobody has yet, which may take seconds.
   *
   * @param home where its threads are
   * @throws StorageException if either cannot be; the message says why and what to do
   */
  public static CuFilePath open(
      String file,
      boolean writable,
      GpuAccelerator accelerator,
      CuFileOptions options,
      NumaHome home) {
    CuFile library;
    try {
      library = CuFile.load();
    } catch (CudaNotFoundException e) {
      throw new StorageException(Kind.UNSUPPORTED, file, -1, -1, String.valueOf(e.getMessage()), e);
    }
    return open(library, file, writable, accelerator, options, home);
  }

  /** The same with a library that is open. */
  static CuFilePath open(
      CuFile library,
      String file,
      boolean writable,
      GpuAccelerator accelerator,
      CuFileOptions options,
      NumaHome home) {
    try {
      CuFileDriver driver = library.openDriver(accelerator.context());
      return CloseAll.orClose(
          () -> new CuFilePath(accelerator, options, writable, driver, file, home), driver::close);
    } catch (PosixException | CuFileException | CudaException e) {
      throw CuFileFailures.of(e, file, -1, -1);
    }
  }

  // ---- what it says of itself

  @Override
  public PathKind kind() {
    return PathKind.CUFILE;
  }

  /**
   * {@code cuFile 1.15, 8 threads, compatibility mode (12 POSIX transfers, 0 peer-to-peer, 0 by
   * nvidia-fs)}: which way the bytes took is what cuFile's statistics say since the path was
   * opened, for all users of cuFile in this process.
   */
  @Override
  public String mode() {
    String way = closed ? lastRoutes : routes.text();
    return "cuFile %s, %d thread%s%s%s, %s"
        .formatted(
            driver.library().version(),
            options.threads(),
            options.threads() == 1 ? "" : "s",
            options.batch() > 0 ? ", batches of " + options.batch() : "",
            options.direct() ? ", O_DIRECT" : "",
            way);
  }

  @Override
  public long size() {
    return file.size();
  }

  @Override
  public int alignment() {
    return PAGE;
  }

  /** The driver's cache; its limit ({@code max_device_cache_size_kb}) is 128 MiB by default. */
  @Override
  public long gpuBytes() {
    return DEVICE_CACHE;
  }

  @Override
  public double expected(RequestShape shape) {
    double calls = Math.max(shape.ranges(), (double) shape.bytes() / options.chunk());
    if (shape.bytes() == 0 || calls == 0) {
      return COLD;
    }
    double parallel = Math.min(calls, options.threads());
    double warm = shape.resident();
    double warmRate = Math.min(WARM_PER_THREAD * parallel, WARM_MOST);
    double bandwidth = shape.bytes() / 1e9 * (warm / warmRate + (1 - warm) / COLD);
    double latency = calls / parallel * (warm * WARM_SECONDS + (1 - warm) * COLD_SECONDS);
    return shape.bytes() / 1e9 / Math.max(bandwidth, latency);
  }

  // ---- transfers

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    boolean writing = direction == Direction.WRITE;
    if (writing && !writable) {
      throw new StorageException(
          Kind.PERMISSION, call.source(), -1, -1, "it is open for reading only", null);
    }
    CuFilePieces pieces = new CuFilePieces(ranges, options.chunk());
    int calls = pieces.count(options.threads() * Math.max(1, options.batch()));
    int threads = options.batch() > 0 ? Math.ceilDiv(calls, options.batch()) : calls;
    CuFileJob job = new CuFileJob(this, file, writing, pieces, call);
    workers.run(
        Math.clamp(threads, 1, options.threads()),
        options.batch() > 0 ? () -> new BatchWorker(job, driver, options.batch()).run() : job);
    job.throwFailure();
  }

  HostFile host() {
    return host;
  }

  Optional<DeviceMemory> memory(DeviceBuffer buffer) {
    return accelerator.deviceMemory(buffer);
  }

  DeviceMemory requireMemory(DeviceBuffer buffer) {
    return memory(buffer)
        .orElseThrow(
            () ->
                new InvalidRequestException(
                    "the buffer is closed, or not memory of "
                        + accelerator.name()
                        + ", for which this path is open"));
  }

  /** Has cuFile pin the buffer; nothing happens for host memory. */
  @Override
  public void register(DeviceBuffer buffer) {
    if (buffer.isHost()) {
      return;
    }
    DeviceMemory memory = requireMemory(buffer);
    synchronized (registered) {
      if (registered.containsKey(buffer)) {
        return;
      }
      try {
        registered.put(buffer, driver.register(memory));
      } catch (CuFileException | CudaException e) {
        throw CuFileFailures.of(e, file.file(), -1, -1);
      }
    }
  }

  @Override
  public void deregister(DeviceBuffer buffer) {
    CuFileBuffer made;
    synchronized (registered) {
      made = registered.remove(buffer);
    }
    if (made != null) {
      made.close();
    }
  }

  @Override
  public void close() {
    if (!closed) {
      lastRoutes = routes.text();
      closed = true;
    }
    try {
      workers.close();
    } finally {
      synchronized (registered) {
        registered.clear();
      }
      CloseAll.all(host, driver);
    }
  }
}
