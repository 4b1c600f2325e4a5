package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.ContextAttachment;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.Hold;
import io.gpunvme.cuda.library.NativeFunction;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * A transfer in a stream. cuFile reads the call's arguments when the stream reaches it, and writes
 * the result when it is done: until then this keeps them, the file and the memory.
 *
 * <p>Safe for all threads.
 */
public final class CuFileTransfer implements AutoCloseable {
  private static final MethodHandle START =
      CuFileCalls.status(JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG);

  // The arguments, one after the other.
  private static final long BYTES = 0;
  private static final long FILE_OFFSET = 8;
  private static final long BUFFER_OFFSET = 16;
  private static final long RESULT = 24;
  private static final long SIZE = 32;

  private final CuFileDriver driver;
  private final String call;
  private final CudaEvent over;
  private final Arena arena;
  private final MemorySegment arguments;
  private final ContextAttachment attachment;

  private CuFileTransfer(CuFileHandle file, String call, CudaEvent over, Arena arena, Hold kept) {
    driver = file.driver();
    this.call = call;
    this.over = over;
    this.arena = arena;
    arguments = arena.allocate(SIZE, Long.BYTES);
    attachment = driver.adopt("a transfer of cuFile in a stream", () -> end(kept));
  }

  static CuFileTransfer start(
      boolean writing,
      CuFileHandle file,
      DeviceMemory memory,
      CuFileRange range,
      CudaStream stream) {
    range.checkInside(memory.size());
    NativeFunction function =
        file.driver().calls().function(writing ? "cuFileWriteAsync" : "cuFileReadAsync");
    Hold handle = file.hold();
    Hold kept = handle.and(CloseAll.orClose(() -> file.driver().use(memory), handle::close));
    String call = function.name() + " " + file.file() + ", " + range;
    CudaEvent over = CloseAll.orClose(file.driver().context()::event, kept::close);
    CuFileTransfer transfer = new CuFileTransfer(file, call, over, Arena.ofShared(), kept);
    try (Hold _ = stream.hold()) {
      transfer.put(function, file.number(), memory.address(), range, stream);
      return transfer;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, transfer::close);
      throw e;
    }
  }

  private void put(
      NativeFunction function, long file, long base, CuFileRange range, CudaStream stream) {
    arguments.set(JAVA_LONG, BYTES, range.bytes());
    arguments.set(JAVA_LONG, FILE_OFFSET, range.fileOffset());
    arguments.set(JAVA_LONG, BUFFER_OFFSET, range.bufferOffset());
    long number = stream.handle();
    driver
        .calls()
        .run(
            function,
            () -> call.substring(function.name().length() + 1),
            f ->
                (long)
                    START.invokeExact(
                        f,
                        file,
                        base,
                        arguments.asSlice(BYTES),
                        arguments.asSlice(FILE_OFFSET),
                        arguments.asSlice(BUFFER_OFFSET),
                        arguments.asSlice(RESULT),
                        number));
    stream.record(over);
  }

  /** Whether the stream has passed it; never waits. */
  public boolean isDone() {
    return over.isDone();
  }

  /**
   * Waits, without a limit, until the stream has passed it.
   *
   * @return bytes moved: fewer than asked for at the end of the file, and sometimes before it
   * @throws PosixException if the file's side failed
   * @throws CuFileException if cuFile or the GPU did
   */
  public long await() {
    over.synchronize();
    long result;
    try (Hold _ = attachment.hold()) {
      result = arguments.get(JAVA_LONG, RESULT);
    }
    if (result == -1) {
      // The number of the error was left in a thread of cuFile's.
      throw new PosixException(call, "in a stream", Errno.EIO);
    }
    if (result < 0) {
      throw new CuFileException(call, (int) -result, 0);
    }
    return result;
  }

  private void end(Hold kept) {
    try {
      over.synchronize();
    } catch (CudaException e) {
      if (!e.contextLost()) {
        throw e;
      }
      // Nothing runs in a context that is lost.
    }
    CloseAll.all(over, arena, kept);
  }

  /** Waits until the stream has passed it, and lets go of what it kept. */
  @Override
  public void close() {
    driver.disown(attachment);
  }
}
