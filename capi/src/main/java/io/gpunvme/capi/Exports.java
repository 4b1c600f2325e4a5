package io.gpunvme.capi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.nvme.driver.ShutdownGuard;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;

/** The functions for the C library. */
public final class Exports {
  /** GPUNVME_TABLE_VERSION. */
  static final int VERSION = 11;

  private static final MemoryLayout A = ADDRESS;
  private static final MemoryLayout I = JAVA_INT;
  private static final MemoryLayout J = JAVA_LONG;

  /**
   * A function of the table.
   *
   * @param name of the method in {@link Calls}
   * @param arguments without the failure, which is the last of each
   */
  record Export(String name, MemoryLayout... arguments) {
    FunctionDescriptor type() {
      return FunctionDescriptor.of(JAVA_INT, arguments).appendArgumentLayouts(ADDRESS);
    }
  }

  /** In the order of {@code struct table}, behind the function that makes them. */
  static final List<Export> TABLE =
      List.of(
          new Export("close", J),
          new Export("open", A, A, I, A),
          new Export("on", J, A, A),
          new Export("info", J, A),
          new Export("transfer", J, I, A, J, A, A),
          new Export("flush", J),
          new Export("submit", J, I, A, J, A),
          new Export("submitOnStream", J, I, A, J, A),
          new Export("await", J, J),
          new Export("cancel", J),
          new Export("plan", J, A, J, A),
          new Export("text", J, I, A, J, A),
          new Export("allocate", J, J, A),
          new Export("release", J, J),
          new Export("copy", J, I, J, A, J),
          new Export("memoryAllocate", A, J, A),
          new Export("memoryFree", A, J),
          new Export("memoryCopy", A, I, J, A, J),
          new Export("dequantize", A, A, J, J),
          new Export("kindsOpen", J, A),
          new Export("kindsAdd", J, I, I, J, J, J),
          new Export("kindsRead", J, A, A, A, J, J, J),
          new Export("layersOpen", J, J, I, A),
          new Export("layersLoad", J, J, J, J),
          new Export("layersPrefetch", J, A, A, J),
          new Export("layersOpenModel", J, J, I, A),
          new Export("layersPrefetchTensors", J, A, A, J),
          new Export("layersCancel", J),
          new Export("layersNext", J, I, J, A, A),
          new Export("layersTake", J, J, A, A),
          new Export("weightsOpen", A, A, A),
          new Export("weightsShards", J, A, I, A, J),
          new Export("weightsRead", J, A, J),
          new Export("gpuOpen", A, A),
          new Export("gpuTransfer", J, I, J, J, J),
          new Export("gpuStart", J, I, J, J, J, J),
          new Export("gpuSynchronize", J),
          new Export("planLayers", A, J, J, I, A, A),
          new Export("kernelsOpen", A, J, A, A),
          new Export("kernelsHandle", J, A),
          new Export("kernelsDeviceHandle", J, A),
          new Export("kernelsRegister", J, J, J, A, A),
          new Export("kernelsUnregister", J, I),
          new Export("kernelsFile", J, J, A),
          new Export("kernelsDirectory", J, J, A, I, A),
          new Export("kernelsSkipped", J, J, A, J, A),
          new Export("kernelsFree", J, J),
          new Export("kernelsAwait", J, J, J, A, A),
          new Export("kernelsAwaitEvent", J, J, J, A, A),
          new Export("kernelsStop", J, I),
          new Export("kernelsRecover", J),
          new Export("kernelsRecoveries", J, A),
          new Export("cacheOpen", J, A, A),
          new Export("cacheArray", J, J, J, J, I, I, A),
          new Export("cacheFlush", J, J),
          new Export("rowsOpen", J, J, J, J, J, I, A),
          new Export("rowsGather", J, J, J, J, J),
          new Export("rowsFetch", J, J, J, J),
          new Export("rowsUpdate", J, J, J, J, J),
          new Export("rowsSynchronize", J));

  private static final VarHandle PLACE = ADDRESS.varHandle();

  private final MemorySegment table;
  private final Calls calls = new Calls();

  private Exports(MemorySegment table) {
    this.table = table;
  }

  /**
   * Writes the address of the function that makes the others. Called once by the C library, which
   * keeps them for as long as the process lives.
   *
   * @param table address of a {@code struct table}
   * @param version GPUNVME_TABLE_VERSION of the library
   * @throws IllegalArgumentException if the library is of another version
   */
  public static void fill(long table, int version) {
    if (version != VERSION) {
      throw new IllegalArgumentException(
          "libgpunvme has version %d of the table, and the jars have %d: install both together"
              .formatted(version, VERSION));
    }
    MemorySegment all = CTypes.at(table, (1L + TABLE.size()) * ADDRESS.byteSize());
    Exports exports = new Exports(all);
    exports.put(0, stub(Exports.class, exports, new Export("make", J)));
    // Where a program ends the virtual machine; the C library cares for those that never do.
    ShutdownGuard.install();
    Archive.makeIfWanted();
  }

  /**
   * Makes a function of the table, if nobody has: each takes milliseconds, and most programs call
   * few. For C, as those of {@link Calls}.
   *
   * @param place in the table, from 1
   */
  int make(long place, MemorySegment f) {
    return Calls.codeOf(
        f,
        () -> {
          Export export = TABLE.get(Math.toIntExact(place - 1));
          synchronized (this) {
            if (table.getAtIndex(ADDRESS, place).address() == 0) {
              put(place, stub(Calls.class, calls, export));
            }
          }
          return CapiStatus.OK;
        });
  }

  /** Whoever sees the address may call it. */
  private void put(long place, MemorySegment function) {
    PLACE.setRelease(table, place * ADDRESS.byteSize(), function);
  }

  @SuppressWarnings("restricted")
  private static MemorySegment stub(Class<?> owner, Object object, Export export) {
    FunctionDescriptor type = export.type();
    try {
      MethodHandle handle =
          MethodHandles.lookup()
              .findVirtual(owner, export.name(), type.toMethodType())
              .bindTo(object);
      return Linker.nativeLinker().upcallStub(handle, type, Arena.global());
    } catch (NoSuchMethodException | IllegalAccessException e) {
      throw new LinkageError("no function " + export.name() + " of type " + type, e);
    }
  }
}
