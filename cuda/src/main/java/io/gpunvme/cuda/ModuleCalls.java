package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Module management of the driver API. */
final class ModuleCalls {
  private static final MethodHandle LOAD =
      Downcall.status(ADDRESS, ADDRESS, JAVA_INT, ADDRESS, ADDRESS);
  private static final MethodHandle UNLOAD = Downcall.status(JAVA_LONG);
  private static final MethodHandle GET_FUNCTION = Downcall.status(ADDRESS, JAVA_LONG, ADDRESS);
  private static final MethodHandle GET_GLOBAL =
      Downcall.status(ADDRESS, ADDRESS, JAVA_LONG, ADDRESS);

  // CUjit_option
  private static final int INFO_LOG_BUFFER = 3;
  private static final int INFO_LOG_BUFFER_SIZE_BYTES = 4;
  private static final int ERROR_LOG_BUFFER = 5;
  private static final int ERROR_LOG_BUFFER_SIZE_BYTES = 6;

  private static final long LOG_BYTES = 64 * 1024;

  /** Enough for an ELF image; PTX needs none. */
  private static final long IMAGE_ALIGNMENT = 64;

  private final Driver driver;
  private final NativeFunction load;
  private final NativeFunction unload;
  private final NativeFunction getFunction;
  private final NativeFunction getGlobal;

  ModuleCalls(Driver driver) {
    this.driver = driver;
    load = driver.function("cuModuleLoadDataEx");
    unload = driver.function("cuModuleUnload");
    getFunction = driver.function("cuModuleGetFunction");
    getGlobal = driver.function("cuModuleGetGlobal_v2");
  }

  /** A loaded module and what the driver's compiler wrote about it. */
  record Loaded(long handle, String log) {}

  Loaded load(byte[] image) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment infoLog = arena.allocate(LOG_BYTES);
      MemorySegment errorLog = arena.allocate(LOG_BYTES);
      MemorySegment options =
          arena.allocateFrom(
              JAVA_INT,
              INFO_LOG_BUFFER,
              INFO_LOG_BUFFER_SIZE_BYTES,
              ERROR_LOG_BUFFER,
              ERROR_LOG_BUFFER_SIZE_BYTES);
      MemorySegment values =
          arena.allocateFrom(
              JAVA_LONG, infoLog.address(), LOG_BYTES, errorLog.address(), LOG_BYTES);
      MemorySegment module = arena.allocate(JAVA_LONG);
      MemorySegment code = terminated(arena, image);
      int status =
          driver.status(load, f -> (int) LOAD.invokeExact(f, module, code, 4, options, values));
      if (status != 0) {
        throw driver.moduleFailure(
            load, image.length + " bytes", status, errorLog.getString(0).strip());
      }
      return new Loaded(module.get(JAVA_LONG, 0), infoLog.getString(0).strip());
    }
  }

  /** PTX is a string: it ends with a zero byte. */
  private static MemorySegment terminated(Arena arena, byte[] image) {
    MemorySegment code = arena.allocate(image.length + 1L, IMAGE_ALIGNMENT);
    MemorySegment.copy(MemorySegment.ofArray(image), 0, code, 0, image.length);
    return code;
  }

  void unload(long module) {
    driver.run(unload, () -> Driver.hex(module), f -> (int) UNLOAD.invokeExact(f, module));
  }

  long function(long module, String name) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(name);
      return driver.getLong(
          getFunction,
          () -> name,
          (f, out) -> (int) GET_FUNCTION.invokeExact(f, out, module, text));
    }
  }

  GlobalVariable global(long module, String name) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(name);
      MemorySegment address = arena.allocate(JAVA_LONG);
      MemorySegment size = arena.allocate(JAVA_LONG);
      driver.run(
          getGlobal, () -> name, f -> (int) GET_GLOBAL.invokeExact(f, address, size, module, text));
      return new GlobalVariable(address.get(JAVA_LONG, 0), size.get(JAVA_LONG, 0));
    }
  }
}
