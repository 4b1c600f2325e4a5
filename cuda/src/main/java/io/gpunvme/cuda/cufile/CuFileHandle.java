package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.ContextAttachment;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.Hold;
import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import io.gpunvme.ffi.Posix;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * A file that cuFile knows. Its descriptor stays open until the handle is deregistered, for cuFile
 * tells files apart by the descriptor's number. Safe for all threads; transfers of several threads
 * run side by side.
 */
public final class CuFileHandle implements AutoCloseable {
  private static final MethodHandle REGISTER = CuFileCalls.status(ADDRESS, ADDRESS);
  private static final MethodHandle DEREGISTER = Downcall.of(FunctionDescriptor.ofVoid(JAVA_LONG));

  // CUfileDescr_t: the type (1: a descriptor), a union with the descriptor, a table for file
  // systems in user space.
  static final long DESCRIPTION_BYTES = 24;
  private static final long DESCRIPTOR = 8;
  private static final int OPAQUE_FD = 1;

  private final CuFileDriver driver;
  private final String file;
  private final int descriptor;
  private final long handle;
  private final ContextAttachment attachment;

  private CuFileHandle(CuFileDriver driver, String file, int descriptor, long handle) {
    this.driver = driver;
    this.file = file;
    this.descriptor = descriptor;
    this.handle = handle;
    attachment = driver.adopt(file + ", registered with cuFile,", this::end);
  }

  static CuFileHandle open(CuFileDriver driver, String file, boolean writable, boolean direct) {
    int flags = writable ? Posix.O_RDWR : Posix.O_RDONLY;
    int descriptor = Posix.open(file, flags | Posix.O_CLOEXEC | (direct ? Posix.O_DIRECT : 0), 0);
    long handle =
        CloseAll.orClose(
            () -> register(driver.calls(), file, descriptor), () -> Posix.close(descriptor));
    return new CuFileHandle(driver, file, descriptor, handle);
  }

  private static long register(CuFileCalls calls, String file, int descriptor) {
    NativeFunction function = calls.function("cuFileHandleRegister");
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment description = arena.allocate(DESCRIPTION_BYTES, Long.BYTES);
      description.set(JAVA_INT, 0, OPAQUE_FD);
      description.set(JAVA_INT, DESCRIPTOR, descriptor);
      MemorySegment handle = arena.allocate(JAVA_LONG);
      calls.run(function, () -> file, f -> (long) REGISTER.invokeExact(f, handle, description));
      return handle.get(JAVA_LONG, 0);
    }
  }

  /** Its path, as it was opened. */
  public String file() {
    return file;
  }

  /** The file's length in bytes now. */
  public long size() {
    try (Hold _ = hold()) {
      return Posix.size(descriptor);
    }
  }

  Hold hold() {
    return attachment.hold();
  }

  /** cuFile's handle. */
  long number() {
    return handle;
  }

  CuFileDriver driver() {
    return driver;
  }

  // ---- calls that wait

  /**
   * Reads into GPU memory and returns when the bytes are there. Not ordered with any stream.
   *
   * @return bytes read: fewer than asked for at the end of the file, and sometimes before it
   * @throws io.gpunvme.ffi.PosixException if the file's side fails
   * @throws CuFileException if cuFile or the GPU does
   */
  public long read(DeviceMemory memory, CuFileRange range) {
    return transfer(false, memory, range);
  }

  /** Writes GPU memory; else like {@link #read(DeviceMemory, CuFileRange)}. */
  public long write(DeviceMemory memory, CuFileRange range) {
    return transfer(true, memory, range);
  }

  private long transfer(boolean writing, DeviceMemory memory, CuFileRange range) {
    range.checkInside(memory.size());
    try (Hold _ = hold();
        Hold _ = driver.use(memory)) {
      return driver.calls().transfer(writing, file, handle, memory.address(), range);
    }
  }

  /**
   * * Reads into host memory.
   *
   * @param memory native; pinned is best
   */
  public long read(MemorySegment memory, CuFileRange range) {
    if (memory.isReadOnly()) {
      throw new IllegalArgumentException("the target of the read is a read-only segment");
    }
    return transfer(false, memory, range);
  }

  /** Writes host memory; else like {@link #read(MemorySegment, CuFileRange)}. */
  public long write(MemorySegment memory, CuFileRange range) {
    return transfer(true, memory, range);
  }

  private long transfer(boolean writing, MemorySegment memory, CuFileRange range) {
    range.checkInside(memory.byteSize());
    try (Hold _ = hold()) {
      return driver.calls().transfer(writing, file, handle, memory, range);
    }
  }

  // ---- calls in a stream

  /**
   * Puts a read into a stream: it begins after what is in the stream already, and what comes later
   * sees the bytes. Needs a configuration file of cuFile ({@link CuFileError#ASYNC_NOT_SUPPORTED}
   * without one).
   *
   * @return keeps what the call needs until it is closed
   */
  public CuFileTransfer readAsync(DeviceMemory memory, CuFileRange range, CudaStream stream) {
    return CuFileTransfer.start(false, this, memory, range, stream);
  }

  /** Puts a write into a stream; else like {@link #readAsync}. */
  public CuFileTransfer writeAsync(DeviceMemory memory, CuFileRange range, CudaStream stream) {
    return CuFileTransfer.start(true, this, memory, range, stream);
  }

  private void end() {
    NativeFunction function = driver.calls().function("cuFileHandleDeregister");
    try {
      DEREGISTER.invokeExact(function.address(), handle);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
    Posix.close(descriptor);
  }

  /**
   * Deregisters the file, then closes it; a second call does nothing.
   *
   * @throws IllegalStateException if a transfer with it is running; closing can be tried again
   */
  @Override
  public void close() {
    driver.disown(attachment);
  }
}
