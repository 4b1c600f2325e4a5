package io.gpunvme.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A queue of work for the GPU: its work runs in the order of submission, concurrently with other
 * streams and independent of the default stream.
 *
 * <p>Safe for all threads; work of several threads gets some order. The calls named {@code
 * ...Async} return before the work is done: until then the caller keeps memory open and unchanged.
 * With host memory that is not pinned they may wait. An error of the work itself shows in a later
 * call.
 */
public final class CudaStream extends ContextResource {
  private final long handle;
  private final boolean owned;

  /**
   * @param owned whether closing it destroys it
   */
  CudaStream(CudaContext context, long handle, boolean owned) {
    super(context, "CUDA stream " + Driver.hex(handle));
    this.handle = handle;
    this.owned = owned;
  }

  static void requireWritable(MemorySegment target) {
    if (target.isReadOnly()) {
      throw new IllegalArgumentException("the target of the copy is a read-only segment");
    }
  }

  /**
   * The {@code CUstream}, for other libraries of this process.
   *
   * @throws IllegalStateException if it is closed
   */
  public long handle() {
    requireOpen();
    return handle;
  }

  /**
   * Copies from host to device memory.
   *
   * @param target device address
   * @param source native memory
   */
  public void copyToDeviceAsync(long target, MemorySegment source) {
    begin();
    try {
      api().copies().toDevice(target, source, handle);
    } finally {
      end();
    }
  }

  /**
   * Copies from device to host memory.
   *
   * @param target native memory
   * @param source device address
   */
  public void copyToHostAsync(MemorySegment target, long source) {
    requireWritable(target);
    begin();
    try {
      api().copies().toHost(target, source, handle);
    } finally {
      end();
    }
  }

  /**
   * Copies between device addresses; the ranges do not overlap. It may run as a kernel, and wait
   * for a free multiprocessor then.
   */
  public void copyOnDeviceAsync(long target, long source, long bytes) {
    begin();
    try {
      api().copies().onDevice(target, source, bytes, handle);
    } finally {
      end();
    }
  }

  /**
   * Starts all copies of the batch, in any order, but after the earlier work in the stream. The
   * batch can be filled again when this returns.
   *
   * @throws CudaFunctionMissingException if the driver is older than CUDA 12.8 (see {@link
   *     CudaContext#hasBatchCopies})
   */
  public void copyBatchAsync(CopyBatch batch) {
    begin();
    try {
      if (batch.size() > 0) {
        api().copies().batch(batch, handle);
      }
    } finally {
      end();
    }
  }

  /**
   * Sets {@code bytes} bytes from the device address {@code target} on. It may run as a kernel, and
   * wait for a free multiprocessor then.
   */
  public void fillAsync(long target, byte value, long bytes) {
    begin();
    try {
      api().copies().fill(target, value, bytes, handle);
    } finally {
      end();
    }
  }

  /** Makes {@code event} stand for the work that is in the stream now. */
  public void record(CudaEvent event) {
    begin();
    try {
      event.begin();
      try {
        api().streams().record(event.handle(), handle);
      } finally {
        event.end();
      }
    } finally {
      end();
    }
  }

  /** Makes later work in the stream wait for {@code event}; this thread does not wait. */
  public void await(CudaEvent event) {
    begin();
    try {
      event.begin();
      try {
        api().streams().await(handle, event.handle());
      } finally {
        event.end();
      }
    } finally {
      end();
    }
  }

  /**
   * Makes later work in the stream wait until a word is {@code value} or a little more (as cyclic
   * 32-bit numbers); this thread does not wait. The writer of the word must make its data visible
   * before the word. Other streams may share a hardware queue with this one and then wait too: the
   * work before the store of the word must not need them.
   *
   * @param word device address of 4 bytes of device or pinned memory, a multiple of 4
   * @throws CudaFunctionMissingException if the driver has no such call
   */
  public void awaitValue(long word, int value) {
    begin();
    try {
      api().streams().awaitValue(handle, word, value);
    } finally {
      end();
    }
  }

  /**
   * Whether everything in it has ended; never waits.
   *
   * @throws CudaException if the work, or earlier work of the context, failed
   */
  public boolean isIdle() {
    begin();
    try {
      return api().streams().isIdle(handle);
    } finally {
      end();
    }
  }

  /** Whether new work becomes part of a graph, or an invalid capture has not ended yet. */
  public boolean isCapturing() {
    begin();
    try {
      return api().streams().isCapturing(handle);
    } finally {
      end();
    }
  }

  /** Waits, without a limit, until {@link #isIdle}. */
  public void synchronize() {
    begin();
    try {
      api().streams().synchronize(handle);
    } finally {
      end();
    }
  }

  /**
   * Starts a kernel.
   *
   * @throws IllegalArgumentException if the arguments have not the sizes of the kernel's parameters
   *     (checked with drivers of CUDA 12.4 and newer)
   */
  public void launch(CudaFunction function, LaunchShape shape, KernelArguments arguments) {
    launch(function, shape, arguments, api().functions()::launch);
  }

  /** Starts a kernel whose blocks all run at the same time; fails where they do not fit. */
  public void launchCooperative(
      CudaFunction function, LaunchShape shape, KernelArguments arguments) {
    launch(function, shape, arguments, api().functions()::launchCooperative);
  }

  /** One of the two ways to launch. */
  private interface Launch {
    void run(long function, String name, LaunchShape shape, long stream, MemorySegment arguments);
  }

  private void launch(
      CudaFunction function, LaunchShape shape, KernelArguments arguments, Launch launch) {
    function.requireMatch(arguments);
    begin();
    try (Arena arena = Arena.ofConfined()) {
      function.module().begin();
      try {
        launch.run(function.handle(), function.name(), shape, handle, arguments.pointers(arena));
      } finally {
        function.module().end();
      }
    } finally {
      end();
    }
  }

  @Override
  void free() {
    if (owned) {
      api().streams().destroy(handle);
    }
  }
}
