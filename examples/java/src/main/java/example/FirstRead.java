package example;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.TransferResult;
import io.gpunvme.storage.path.StorageException;

/** Reads the first bytes of a file or an SSD into memory of the GPU, or of the CPU stand-in. */
public final class FirstRead {
  private static final int BYTES = 4096;

  private FirstRead() {}

  /** The argument is an address: a file's name, {@code vfio:0000:01:00.0}, {@code sim:}. */
  public static void main(String[] args) {
    try (Accelerator accelerator = Accelerators.best().accelerator();
        GpuStorage storage = GpuStorage.open(args[0], accelerator);
        DeviceBuffer buffer = accelerator.allocate(BYTES)) {
      TransferResult result = storage.read(0, buffer, 0, Math.min(BYTES, storage.size()));
      System.out.printf(
          "%d of %d bytes of %s are in memory of %s, by %s%n",
          result.bytes(), storage.size(), args[0], accelerator.name(), result.path());
    } catch (StorageException e) {
      System.err.println(e.getMessage());
      System.exit(1);
    }
  }
}
