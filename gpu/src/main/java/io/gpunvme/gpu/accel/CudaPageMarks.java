package io.gpunvme.gpu.accel;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaModule;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.DeviceMemory;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.bar.MarkKey;
import io.gpunvme.gpu.bar.PageCut;
import io.gpunvme.gpu.bar.PageMarks;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** {@link PageMarks} by the kernels of {@code marks.cu}, in a stream of their own. */
final class CudaPageMarks implements PageMarks {
  private static final String KERNELS = "/io/gpunvme/gpu/ptx/marks.ptx";
  private static final int THREADS = 256;
  private static final int MOST_BLOCKS = 1024;

  private final GpuAccelerator accelerator;
  private final CudaModule module;
  private final MemorySegment marked;
  private final LaunchShape shape;
  private final DeviceBuffer saved;
  private final DeviceBuffer wrong;
  private final CudaStream stream;
  private boolean isSaved;
  private boolean closed;

  CudaPageMarks(GpuAccelerator accelerator, DeviceMemory memory, PageCut cut) {
    this.accelerator = accelerator;
    long numbers = (long) cut.pages() * PageCut.MARKS;
    marked =
        MemorySegment.ofArray(new long[] {memory.address(), cut.pageOffset(), cut.size(), numbers});
    shape = LaunchShape.of((int) Math.min(Math.ceilDiv(numbers, THREADS), MOST_BLOCKS), THREADS);
    module = accelerator.shared(CudaModule.class, "marks", () -> load(accelerator));
    stream = accelerator.betweenKernels(accelerator.context()::stream);
    DeviceBuffer before = null;
    try {
      before = accelerator.allocateUncleared(numbers * PageCut.MARK);
      wrong = accelerator.allocatePinned(Long.BYTES);
    } catch (RuntimeException | Error e) {
      if (before != null) {
        CloseAll.after(e, before::close);
      }
      CloseAll.after(e, () -> accelerator.closeBetweenKernels(stream::close));
      throw e;
    }
    saved = before;
  }

  private static CudaModule load(GpuAccelerator accelerator) {
    try (InputStream file = CudaPageMarks.class.getResourceAsStream(KERNELS)) {
      if (file == null) {
        throw new IllegalStateException("this build has no " + KERNELS);
      }
      return accelerator.context().loadModule(file.readAllBytes());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void write(MarkKey key) {
    if (!isSaved) {
      run("gpunvme_marks_save", arguments().addLong(saved.deviceAddress()));
      isSaved = true;
    }
    run("gpunvme_marks_write", arguments().addStruct(words(key)));
  }

  @Override
  public long firstWrong(MarkKey key) {
    wrong.segment().set(ValueLayout.JAVA_LONG, 0, -1);
    run("gpunvme_marks_check", arguments().addStruct(words(key)).addLong(wrong.deviceAddress()));
    return wrong.segment().get(ValueLayout.JAVA_LONG, 0);
  }

  private static MemorySegment words(MarkKey key) {
    return MemorySegment.ofArray(new long[] {key.low(), key.high()});
  }

  private KernelArguments arguments() {
    return new KernelArguments().addStruct(marked);
  }

  private void run(String kernel, KernelArguments arguments) {
    CudaFunction function = module.function(kernel);
    stream.launch(function, shape, arguments);
    stream.synchronize();
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      if (isSaved) {
        run("gpunvme_marks_restore", arguments().addLong(saved.deviceAddress()));
      }
    } finally {
      accelerator.closeBetweenKernels(stream::close);
      wrong.close();
      saved.close();
    }
  }
}
