package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.ContextAttachment;
import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.Hold;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedSet;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * cuFile's driver, open for work with the memory of one context, and the owner of everything opened
 * through it. Safe for all threads.
 *
 * <p>It ends with its context at the latest. Use after close throws {@link IllegalStateException}.
 */
public final class CuFileDriver implements AutoCloseable {
  private static final MethodHandle GET = CuFileCalls.status(ADDRESS);
  private static final long PAGE = 4096;

  private final CuFile library;
  private final CudaContext context;
  private final ContextAttachment attachment;

  /** Open objects, in the order they were made; guarded by itself. */
  private final SequencedSet<ContextAttachment> children = new LinkedHashSet<>();

  /** By the memory that is registered. */
  private final Map<DeviceMemory, CuFileBuffer> buffers = new ConcurrentHashMap<>();

  /** Only for the thread that closes this. */
  private boolean released;

  /** The caller has opened the library's driver, which is this object's to give back. */
  CuFileDriver(CuFile library, CudaContext context) {
    this.library = library;
    this.context = context;
    attachment = context.attach("cuFile's driver", this::end);
  }

  /** The library. */
  public CuFile library() {
    return library;
  }

  /** The context whose memory it works with. */
  public CudaContext context() {
    return context;
  }

  CuFileCalls calls() {
    return library.calls();
  }

  /** What the driver says of itself. */
  public CuFileProperties properties() {
    try (Hold _ = attachment.hold();
        Arena arena = Arena.ofConfined()) {
      // Room for versions that add to the structure's end.
      MemorySegment properties = arena.allocate(PAGE, Long.BYTES);
      calls()
          .run(
              calls().function("cuFileDriverGetProperties"),
              () -> "",
              f -> (long) GET.invokeExact(f, properties));
      return CuFileProperties.of(properties);
    }
  }

  /**
   * Opens a file and registers it.
   *
   * @param direct past the page cache ({@code O_DIRECT}); needed before cuFile 1.7, which decides
   *     for each call by itself from then on
   * @throws io.gpunvme.ffi.PosixException if it cannot be opened
   * @throws CuFileException if cuFile does not take it
   */
  public CuFileHandle open(String file, boolean writable, boolean direct) {
    try (Hold _ = attachment.hold()) {
      return CuFileHandle.open(this, file, writable, direct);
    }
  }

  /**
   * Registers memory: transfers with it go straight to it from then on, where they can. For memory
   * that is used for many transfers. Closing the memory closes the registration first.
   *
   * @param memory of this driver's context, all of it
   * @throws CuFileException {@link CuFileError#INVALID_MAPPING_SIZE} if that is more than may be
   *     pinned
   */
  public CuFileBuffer register(DeviceMemory memory) {
    try (Hold _ = attachment.hold()) {
      return CuFileBuffer.register(this, memory);
    }
  }

  /**
   * Prepares a stream for {@link CuFileHandle#readAsync}; the stream cannot be closed before what
   * this returns.
   *
   * @param fixed what is known when a call is put into the stream; all that is true makes it faster
   */
  public CuFileStream register(CudaStream stream, CuFileStream.Fixed... fixed) {
    try (Hold _ = attachment.hold()) {
      return CuFileStream.register(this, stream, List.of(fixed));
    }
  }

  /**
   * A batch.
   *
   * @param capacity most requests at a time, from 1; {@link CuFileProperties#maxBatch} at most
   */
  public CuFileBatch batch(int capacity) {
    try (Hold _ = attachment.hold()) {
      return CuFileBatch.open(this, capacity);
    }
  }

  // ---- for what it owns

  /** A new object's attachment; {@code closing} undoes what was made, and is run if this fails. */
  ContextAttachment adopt(String what, Runnable closing) {
    try {
      ContextAttachment child = context.attach(what, closing);
      synchronized (children) {
        children.add(child);
      }
      return child;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, closing::run);
      throw e;
    }
  }

  /** Closes an object by its attachment. */
  void disown(ContextAttachment child) {
    child.close();
    synchronized (children) {
      children.remove(child);
    }
  }

  /** A child that has nothing to close any more. */
  void forget(ContextAttachment child) {
    synchronized (children) {
      children.remove(child);
    }
  }

  void enter(CuFileBuffer buffer) {
    buffers.put(buffer.memory(), buffer);
  }

  void leave(CuFileBuffer buffer) {
    buffers.remove(buffer.memory(), buffer);
  }

  /** Keeps memory, and its registration if it has one, until the hold's end. */
  Hold use(DeviceMemory memory) {
    CuFileBuffer buffer = buffers.get(memory);
    return buffer == null ? memory.hold() : buffer.hold();
  }

  /** How many objects are open; for tests. */
  int open() {
    synchronized (children) {
      return children.size();
    }
  }

  private void end() {
    @Nullable ContextAttachment last;
    while ((last = newest()) != null) {
      disown(last);
    }
    if (!released) {
      released = true; // Also if closing cuFile's driver fails: that is said once.
      library.release();
    }
  }

  private @Nullable ContextAttachment newest() {
    synchronized (children) {
      return children.isEmpty() ? null : children.getLast();
    }
  }

  /**
   * Closes everything opened through it, and cuFile's driver with the last of these objects; a
   * second call does nothing.
   *
   * @throws IllegalStateException if another thread is inside a call; part may be closed then, and
   *     closing can be tried again
   */
  @Override
  public void close() {
    attachment.close();
  }
}
