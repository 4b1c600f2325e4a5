package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaDevice;
import io.gpunvme.cuda.CudaFunctionMissingException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.library.LibrarySearch;
import io.gpunvme.cuda.library.NativeFunction;
import io.gpunvme.cuda.library.NativeLibrary;
import io.gpunvme.cuda.library.Toolkits;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The library libcufile, the way in to everything here. Nothing is opened before {@link #load},
 * which takes up to seconds. Safe for all threads.
 *
 * <p>cuFile writes its log into the working directory unless told otherwise. Where the user has
 * told it nothing ({@code CUFILE_LOGFILE_PATH}, or {@code logging.dir} in its configuration),
 * {@link #load} puts it into the temporary directory; {@link #log} says where. Other {@code
 * CUFILE_...} variables and the configuration work as NVIDIA documents them.
 */
public final class CuFile {
  private static final MethodHandle NO_ARGUMENTS = CuFileCalls.status();
  private static final MethodHandle GET = CuFileCalls.status(ADDRESS);
  private static final MethodHandle GET_BY_NUMBER = CuFileCalls.status(JAVA_INT, ADDRESS);
  private static final MethodHandle GET_TEXT = CuFileCalls.status(JAVA_INT, ADDRESS, JAVA_INT);
  private static final MethodHandle GET_LIMITS = CuFileCalls.status(JAVA_INT, ADDRESS, ADDRESS);
  private static final MethodHandle SET_SIZE = CuFileCalls.status(JAVA_INT, JAVA_LONG);
  private static final MethodHandle SET_SWITCH = CuFileCalls.status(JAVA_INT, JAVA_BOOLEAN);
  private static final MethodHandle SET_TEXT = CuFileCalls.status(JAVA_INT, ADDRESS);
  private static final MethodHandle SET_LEVEL = CuFileCalls.status(JAVA_INT);

  private static final int TEXT_BYTES = 4096;
  private static final int MOST_LEVEL = 3;

  private static @Nullable CuFile loaded;

  private final CuFileCalls calls;
  private final String file;
  private final @Nullable Path log;
  private final CuFileVersion version;
  private final NativeFunction open;
  private final NativeFunction close;

  /** Primary contexts that stay, by their devices' ordinals; guarded by this. */
  private final Map<Integer, CudaContext> kept = new HashMap<>();

  /** Open drivers; guarded by this. cuFile has one for the process. */
  private int drivers;

  /**
   * Whether cuFile's driver is closed at the end of the process only. Closed and opened again a few
   * times, libcufile 1.15.1 was seen to crash the process.
   */
  private final boolean stays;

  private boolean driverOpen;

  private CuFile(NativeLibrary library, @Nullable Path log, boolean stays) {
    this.stays = stays;
    calls = new CuFileCalls(library);
    file = library.file();
    this.log = log;
    open = calls.function("cuFileDriverOpen");
    close = calls.function("cuFileDriverClose_v2", "cuFileDriverClose");
    NativeFunction getVersion = calls.function("cuFileGetVersion");
    version =
        getVersion.isPresent()
            ? CuFileVersion.of(calls.getInt(getVersion, GET))
            : new CuFileVersion(1, 0);
    library.describe("cuFile " + version);
  }

  // ---- the library

  /**
   * Opens the library that {@code GPUNVME_LIBCUFILE} names, or else the system's; later calls
   * return the same.
   *
   * @throws CudaNotFoundException if there is none, or this process has gpunvme's own libcufile;
   *     the message says what was looked for where
   */
  public static synchronized CuFile load() {
    OwnCuFile.inProcess()
        .ifPresent(
            own -> {
              throw new CudaNotFoundException(OwnCuFile.besideOwn(own));
            });
    if (loaded == null) {
      Map<String, String> environment = System.getenv();
      Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
      Optional<Path> log =
          CuFileLog.choose(environment, CuFileLog.CONFIGURATION, temporary.toAbsolutePath());
      log.ifPresent(CuFileLog::set);
      Path root = Path.of("/");
      LibrarySearch search = search(environment, root);
      // The file that find() names, so that both answer alike; the dynamic loader may know others.
      NativeLibrary library =
          search
              .locate(environment, root)
              .flatMap(LibrarySearch::openFile)
              .orElseGet(() -> search.open(environment));
      CuFile whole = new CuFile(library, log.orElse(null), true);
      Runtime.getRuntime().addShutdownHook(new Thread(whole::shutDown, "gpunvme-cufile-end"));
      loaded = whole;
    }
    return loaded;
  }

  /** The library in this file, for tests with another one. */
  static CuFile load(Path file) {
    return new CuFile(
        LibrarySearch.openFile(file)
            .orElseThrow(() -> new CudaNotFoundException(file + " cannot be opened")),
        null,
        false);
  }

  /**
   * Looks for the library's file and opens nothing. gpunvme's own libcufile is passed over.
   *
   * @param environment the process's
   * @param root what {@code usr} and {@code etc} lie in
   * @return the file; empty if it is in none of the places where {@link #load} looks, but for the
   *     dynamic loader's cache
   */
  public static Optional<Path> find(Map<String, String> environment, Path root) {
    return search(environment, root).locate(environment, root);
  }

  /** {@code root} is {@code /} but in tests. */
  static LibrarySearch search(Map<String, String> environment, Path root) {
    List<Path> folders = new ArrayList<>();
    for (Path folder : Toolkits.libraries(environment, root.resolve("usr/local"))) {
      folders.add(folder.startsWith(root) ? Path.of("/").resolve(root.relativize(folder)) : folder);
    }
    for (String folder :
        List.of(
            "/usr/local/cuda/targets/x86_64-linux/lib",
            "/usr/local/cuda/targets/sbsa-linux/lib",
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
            "/usr/local/lib")) {
      folders.add(Path.of(folder));
    }
    return new LibrarySearch(
        "cuFile, NVIDIA's GPUDirect Storage library,",
        "GPUNVME_LIBCUFILE",
        List.of("libcufile.so.0", "libcufile.so"),
        folders,
        "install it (package libcufile-13-0 of NVIDIA's repository, or the CUDA toolkit)",
        OwnCuFile.LIBRARY);
  }

  /** The library, as it was opened. */
  public String library() {
    return file;
  }

  /** Its version; 1.0 where it is too old to say. */
  public CuFileVersion version() {
    return version;
  }

  /** The log file that this class has chosen; empty where the user has. It need not exist. */
  public Optional<Path> log() {
    return Optional.ofNullable(log);
  }

  // ---- the driver

  /**
   * Opens the driver for work with memory of a context. cuFile has one driver for the process: it
   * is really opened by the first of these, which may take a second; it and the device's primary
   * context then stay until the process ends.
   *
   * @throws CuFileException if it does not work
   */
  public CuFileDriver openDriver(CudaContext context) {
    acquire(context);
    return CloseAll.orClose(() -> new CuFileDriver(this, context), this::release);
  }

  private synchronized void acquire(CudaContext context) {
    keep(context.device());
    if (!driverOpen) {
      context.makeCurrent();
      calls.run(open, () -> "", f -> (long) NO_ARGUMENTS.invokeExact(f));
      driverOpen = true;
    }
    drivers++;
  }

  /** The process ends. With its driver open, libcufile 1.15.1 crashes in its own destructors. */
  synchronized void shutDown() {
    if (driverOpen) {
      driverOpen = false;
      calls.run(close, () -> "", f -> (long) NO_ARGUMENTS.invokeExact(f));
    }
  }

  /**
   * A driver that stays open needs its context to stay: with the next primary context of the device
   * libcufile 1.15.1 was seen to crash the process.
   */
  private void keep(CudaDevice device) {
    kept.computeIfAbsent(device.ordinal(), _ -> device.openPrimary());
  }

  /** Comes once for each driver. */
  synchronized void release() {
    drivers--;
    if (drivers == 0 && !stays) {
      driverOpen = false;
      calls.run(close, () -> "", f -> (long) NO_ARGUMENTS.invokeExact(f));
    }
  }

  CuFileCalls calls() {
    return calls;
  }

  // ---- parameters

  /**
   * A parameter: the one at work if the driver is open, else the one that it will be opened with.
   *
   * @throws CudaFunctionMissingException if the library is older than 1.14
   */
  public long get(CuFileSizeParameter parameter) {
    return calls.getLong(
        calls.function("cuFileGetParameterSizeT"),
        parameter::name,
        GET_BY_NUMBER,
        parameter.number());
  }

  /** See {@link #get(CuFileSizeParameter)}. */
  public boolean get(CuFileSwitch parameter) {
    long value =
        calls.getLong(
            calls.function("cuFileGetParameterBool"),
            parameter::name,
            GET_BY_NUMBER,
            parameter.number());
    return (value & 0xFF) != 0; // It leaves one byte.
  }

  /** See {@link #get(CuFileSizeParameter)}. */
  public String get(CuFileTextParameter parameter) {
    NativeFunction function = calls.function("cuFileGetParameterString");
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocate(TEXT_BYTES);
      calls.run(
          function,
          parameter::name,
          f -> (long) GET_TEXT.invokeExact(f, parameter.number(), text, TEXT_BYTES));
      text.set(JAVA_BYTE, TEXT_BYTES - 1, (byte) 0);
      return text.getString(0);
    }
  }

  /**
   * What a parameter may be.
   *
   * @param least and
   * @param most both allowed
   */
  public record Limits(long least, long most) {}

  /** What a parameter may be; since 1.14. */
  public Limits limits(CuFileSizeParameter parameter) {
    NativeFunction function = calls.function("cuFileGetParameterMinMaxValue");
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment least = arena.allocate(JAVA_LONG);
      MemorySegment most = arena.allocate(JAVA_LONG);
      calls.run(
          function,
          parameter::name,
          f -> (long) GET_LIMITS.invokeExact(f, parameter.number(), least, most));
      return new Limits(least.get(JAVA_LONG, 0), most.get(JAVA_LONG, 0));
    }
  }

  /**
   * Sets a parameter for the next opening of the driver. It counts more than the environment, and
   * that more than the configuration.
   *
   * @throws CuFileException {@link CuFileError#DRIVER_ALREADY_OPEN} while the driver is open
   * @throws CudaFunctionMissingException if the library is older than 1.14
   */
  public void set(CuFileSizeParameter parameter, long value) {
    calls.run(
        calls.function("cuFileSetParameterSizeT"),
        () -> parameter + " " + value,
        f -> (long) SET_SIZE.invokeExact(f, parameter.number(), value));
  }

  /** See {@link #set(CuFileSizeParameter, long)}. */
  public void set(CuFileSwitch parameter, boolean value) {
    calls.run(
        calls.function("cuFileSetParameterBool"),
        () -> parameter + " " + value,
        f -> (long) SET_SWITCH.invokeExact(f, parameter.number(), value));
  }

  /** See {@link #set(CuFileSizeParameter, long)}. */
  public void set(CuFileTextParameter parameter, String value) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(value);
      calls.run(
          calls.function("cuFileSetParameterString"),
          () -> parameter + " " + value,
          f -> (long) SET_TEXT.invokeExact(f, parameter.number(), text));
    }
  }

  // ---- statistics

  /** Whether the library counts what it does: 1.15 and newer. */
  public boolean hasStatistics() {
    return calls.function("cuFileGetStatsL1").isPresent()
        && calls.function("cuFileSetStatsLevel").isPresent();
  }

  /** The level of the statistics, 0 (none) to 3. */
  public int statisticsLevel() {
    return calls.getInt(calls.function("cuFileGetStatsLevel"), GET);
  }

  /**
   * Counts at this level from now on; higher levels cost more. While the driver is open.
   *
   * @param level 0 (none) to 3
   * @throws CudaFunctionMissingException without {@link #hasStatistics}
   */
  public void startStatistics(int level) {
    if (level < 0 || level > MOST_LEVEL) {
      throw new IllegalArgumentException("statistics of level " + level + ": must be 0 to 3");
    }
    NativeFunction function = calls.function("cuFileSetStatsLevel");
    calls.run(function, () -> "" + level, f -> (long) SET_LEVEL.invokeExact(f, level));
    if (level > 0) {
      NativeFunction start = calls.function("cuFileStatsStart");
      calls.run(start, () -> "", f -> (long) NO_ARGUMENTS.invokeExact(f));
    }
  }

  /**
   * The counters.
   *
   * @param level 1 to 3, at most the level set
   */
  public CuFileStatistics statistics(int level) {
    if (level < 1 || level > MOST_LEVEL) {
      throw new IllegalArgumentException("statistics of level " + level + ": must be 1 to 3");
    }
    NativeFunction function = calls.function("cuFileGetStatsL" + level);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment counters = arena.allocate(StatisticsLayout.ROOM, Long.BYTES);
      calls.run(function, () -> "", f -> (long) GET.invokeExact(f, counters));
      return StatisticsLayout.read(counters, level);
    }
  }
}
