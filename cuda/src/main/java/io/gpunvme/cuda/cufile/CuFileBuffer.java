package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.ContextAttachment;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.Hold;
import io.gpunvme.cuda.library.NativeFunction;
import java.lang.invoke.MethodHandle;
import java.util.Set;

/**
 * GPU memory that is registered with cuFile. It ends when it is closed or, at the latest, right
 * before the memory is freed: memory that is freed while the kernel has it pinned can hang it. Safe
 * for all threads.
 */
public final class CuFileBuffer implements AutoCloseable {
  private static final MethodHandle REGISTER = CuFileCalls.status(JAVA_LONG, JAVA_LONG, JAVA_INT);
  private static final MethodHandle DEREGISTER = CuFileCalls.status(JAVA_LONG);
  private static final int NO_FLAGS = 0;

  /** Answers to deregistering that say that cuFile has not got the memory. */
  private static final Set<CuFileError> GONE =
      Set.of(
          CuFileError.MEMORY_NOT_REGISTERED,
          CuFileError.INVALID_VALUE,
          CuFileError.DRIVER_NOT_INITIALIZED);

  private final CuFileDriver driver;
  private final DeviceMemory memory;
  private final long address;
  private final ContextAttachment attachment;
  private final Hold step;

  /** Whether cuFile has it; guarded by this. */
  private boolean registered = true;

  private CuFileBuffer(CuFileDriver driver, DeviceMemory memory) {
    this.driver = driver;
    this.memory = memory;
    address = memory.address();
    attachment =
        driver.adopt(
            memory.size() + " bytes of GPU memory, registered with cuFile,", this::deregister);
    step = memory.beforeFree(this::deregister);
  }

  static CuFileBuffer register(CuFileDriver driver, DeviceMemory memory) {
    NativeFunction function = driver.calls().function("cuFileBufRegister");
    try (Hold _ = memory.hold()) {
      long address = memory.address();
      long bytes = memory.size();
      driver
          .calls()
          .run(
              function,
              () -> bytes + " bytes at 0x" + Long.toHexString(address),
              f -> (long) REGISTER.invokeExact(f, address, bytes, NO_FLAGS));
      CuFileBuffer buffer = new CuFileBuffer(driver, memory);
      driver.enter(buffer);
      return buffer;
    }
  }

  /** The memory. */
  public DeviceMemory memory() {
    return memory;
  }

  /** Keeps the memory and, if it has not ended, the registration. */
  Hold hold() {
    Hold held = memory.hold();
    try {
      return held.and(attachment.hold());
    } catch (IllegalStateException e) {
      // It is being closed. No transfer may begin while cuFile lets go of the memory.
      return CloseAll.orClose(
          () -> {
            deregister();
            return held;
          },
          held::close);
    }
  }

  /** Takes effect once; no transfer uses the registration. */
  private synchronized void deregister() {
    if (!registered) {
      return;
    }
    NativeFunction function = driver.calls().function("cuFileBufDeregister");
    String subject = "0x" + Long.toHexString(address);
    try {
      driver.calls().run(function, () -> subject, f -> (long) DEREGISTER.invokeExact(f, address));
    } catch (CuFileException e) {
      if (e.error().filter(GONE::contains).isEmpty()) {
        throw e;
      }
    }
    registered = false;
    driver.leave(this);
    driver.forget(attachment);
  }

  /**
   * Deregisters the memory; a second call does nothing.
   *
   * @throws IllegalStateException if a transfer with it is running; closing can be tried again
   */
  @Override
  public void close() {
    driver.disown(attachment);
    step.close();
  }
}
