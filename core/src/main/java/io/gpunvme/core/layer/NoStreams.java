package io.gpunvme.core.layer;

import io.gpunvme.core.path.StorageException;
import io.gpunvme.core.path.StorageException.Kind;
import io.gpunvme.cuda.CudaStream;

/** For an accelerator that has none. */
record NoStreams(String source, String accelerator) implements Streams<CudaStream> {
  @Override
  public Gate<CudaStream> gate(int slot) {
    return new NoGate();
  }

  @Override
  public Use<CudaStream> use() {
    throw noStreams();
  }

  @Override
  public boolean mayWait(CudaStream stream) {
    throw noStreams();
  }

  StorageException noStreams() {
    return new StorageException(
        Kind.UNSUPPORTED, source, -1, -1, accelerator + " has no streams; use next()", null);
  }

  @Override
  public void close() {}

  private final class NoGate implements Gate<CudaStream> {
    @Override
    public void await(CudaStream stream, int turn) {
      throw noStreams();
    }

    @Override
    public void open(int turn) {}
  }
}
