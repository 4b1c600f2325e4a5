package io.gpunvme.storage.layer;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;

/** For an accelerator that has none. */
record NoStreams(String source, String accelerator) implements LayerStreams<CudaStream> {
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
