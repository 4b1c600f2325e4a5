import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.sim.FaultPlan;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.StorageException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;

/** Gives an embedded SSD faults, one after the other, and checks what a program sees of each. */
public final class Faults {
  private static final int BYTES = 1 << 16;
  private static final int OFFSET = 32768; // LBA 64 of blocks of 512 bytes

  private final NvmeController controller;
  private final FaultPlan faults;
  private final GpuStorage storage;
  private final DeviceBuffer buffer;
  private final byte[] contents = new byte[BYTES];

  private Faults(
      NvmeController controller, FaultPlan faults, GpuStorage storage, DeviceBuffer buffer) {
    this.controller = controller;
    this.faults = faults;
    this.storage = storage;
    this.buffer = buffer;
  }

  public static void main(String[] arguments) {
    SimulatedController ssd = SimulatedController.create(SimConfig.parse("size=16MiB,latency=0"));
    ControllerOptions options =
        ControllerOptions.builder().allowWrite(true).ioTimeout(Duration.ofMillis(300)).build();
    // The CPU issues the commands, with a GPU in the machine too, so that everybody sees the same.
    try (NvmeController controller = NvmeController.open(ssd, options);
        Accelerator accelerator = CpuAccelerator.open();
        GpuStorage storage =
            GpuStorage.over(controller, accelerator, StorageOptions.defaults().withWrite(true));
        DeviceBuffer buffer = accelerator.allocate(BYTES)) {
      new Faults(controller, ssd.faults(), storage, buffer).run();
    }
  }

  private void run() {
    new Random(1).nextBytes(contents);
    buffer.copyFromHost(MemorySegment.ofArray(contents), 0);
    storage.write(OFFSET, buffer, 0, BYTES);

    // What passes is tried again, and the program sees no more than the time that it took.
    see("status=media/unrecovered-read on read count=2", "right bytes, retries 2, resets 0");
    // No completion within the timeout: the driver aborts the command.
    see("drop skip on read count=1", "right bytes, retries 1, resets 0");
    // The controller says that it is broken: the driver resets it.
    see("cfs on read count=1", "right bytes, retries 1, resets 1");
    // DNR, do not retry: the program is told, with the command's first block.
    see("status=media/unrecovered-read dnr on read lba=100", "IO, 512 bytes at 32768");
    // Nobody but a checksum notices this.
    see("corrupt=1 on read count=1", "wrong bytes");
    // Pulled out. It does not come back.
    expect("gone on read count=1", "GONE, 65536 bytes at 32768");
    System.out.println("everything was seen as expected");
  }

  /** With this fault a read is seen so; without it the SSD is as good as new. */
  private void see(String rule, String expected) {
    expect(rule, expected);
    expect("", "right bytes, retries 0, resets 0");
  }

  private void expect(String rule, String expected) {
    faults.add(rule);
    String seen = read();
    faults.clear();
    if (!seen.equals(expected)) {
      throw new IllegalStateException(rule + ": seen " + seen + ", expected " + expected);
    }
    if (!rule.isEmpty()) {
      System.out.println(rule + ": " + seen);
    }
  }

  private String read() {
    buffer.copyFromHost(MemorySegment.ofArray(new byte[BYTES]), 0);
    long retries = retries();
    long resets = controller.resets();
    try {
      storage.read(OFFSET, buffer, 0, BYTES);
    } catch (StorageException e) {
      System.out.println("  " + e.getMessage());
      return "%s, %d bytes at %d".formatted(e.kind(), e.length(), e.offset());
    }
    byte[] arrived = new byte[BYTES];
    buffer.copyToHost(0, MemorySegment.ofArray(arrived));
    return Arrays.equals(arrived, contents)
        ? "right bytes, retries %d, resets %d"
            .formatted(retries() - retries, controller.resets() - resets)
        : "wrong bytes";
  }

  private long retries() {
    return storage.stats().get(PathKind.DIRECT).retries();
  }
}
