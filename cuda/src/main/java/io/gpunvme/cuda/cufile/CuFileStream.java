package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.ContextAttachment;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.Hold;
import java.lang.invoke.MethodHandle;
import java.util.Collection;

/**
 * A stream that cuFile has prepared for its calls. It keeps the stream open. Close it, after the
 * stream's end or its failure, before the stream.
 */
public final class CuFileStream implements AutoCloseable {
  private static final MethodHandle REGISTER = CuFileCalls.status(JAVA_LONG, JAVA_INT);
  private static final MethodHandle DEREGISTER = CuFileCalls.status(JAVA_LONG);

  /** What is known of every transfer when it is put into the stream. */
  public enum Fixed {
    /** The offset in the memory. */
    BUFFER_OFFSET,
    /** The offset in the file. */
    FILE_OFFSET,
    /** The number of bytes. */
    BYTES,
    /** All of them are multiples of 4096. */
    PAGE_ALIGNED;

    int bit() {
      return 1 << ordinal();
    }
  }

  private final CuFileDriver driver;
  private final long handle;
  private final ContextAttachment attachment;

  private CuFileStream(CuFileDriver driver, long handle, Hold stream) {
    this.driver = driver;
    this.handle = handle;
    attachment =
        driver.adopt(
            "a CUDA stream, registered with cuFile,",
            () -> {
              end(driver.calls(), handle);
              stream.close();
            });
  }

  static CuFileStream register(CuFileDriver driver, CudaStream stream, Collection<Fixed> fixed) {
    int flags = fixed.stream().mapToInt(Fixed::bit).reduce(0, (a, b) -> a | b);
    CuFileCalls calls = driver.calls();
    Hold hold = stream.hold();
    long handle = stream.handle();
    return CloseAll.orClose(
        () -> {
          calls.run(
              calls.function("cuFileStreamRegister"),
              () -> name(handle),
              f -> (long) REGISTER.invokeExact(f, handle, flags));
          return new CuFileStream(driver, handle, hold);
        },
        hold::close);
  }

  private static void end(CuFileCalls calls, long handle) {
    calls.run(
        calls.function("cuFileStreamDeregister"),
        () -> name(handle),
        f -> (long) DEREGISTER.invokeExact(f, handle));
  }

  private static String name(long handle) {
    return "stream 0x" + Long.toHexString(handle);
  }

  /** Gives back what cuFile holds for the stream; a second call does nothing. */
  @Override
  public void close() {
    driver.disown(attachment);
  }

  @Override
  public String toString() {
    return name(handle);
  }
}
