package io.gpunvme.tools.demo;

import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * What the demo is to do.
 *
 * @param folder an existing folder that takes the sample and the SSD's image; both stay there
 * @param file the file to move, or null to make a sample
 * @param sampleBytes size of the sample
 * @param seed decides what is in the sample
 * @param device the SSD that is made for the demo: without {@code size}, {@code file} and {@code
 *     media} it gets as much as is needed, memory for a GPU and else an image in {@code folder}
 * @param faults how that SSD misbehaves, in the syntax of {@link io.gpunvme.sim.FaultSyntax}
 * @param controller how the driver treats that SSD; must allow writing
 * @param initiator who moves the data, where it lies, queues and threads
 */
public record DemoOptions(
    Path folder,
    @Nullable Path file,
    long sampleBytes,
    long seed,
    DeviceAddress device,
    String faults,
    ControllerOptions controller,
    InitiatorOptions initiator) {
  /** Size of the sample unless another is asked for. */
  public static final long SAMPLE_BYTES = 256L << 20;

  /** A sample of {@link #SAMPLE_BYTES} and an SSD made for it. */
  public static DemoOptions in(Path folder) {
    return new DemoOptions(
        folder,
        null,
        SAMPLE_BYTES,
        1,
        DeviceAddress.embedded(),
        "",
        ControllerOptions.builder().allowWrite(true).build(),
        InitiatorOptions.defaults());
  }

  /** Another file than the sample. */
  public DemoOptions withFile(Path theFile) {
    return new DemoOptions(
        folder, theFile, sampleBytes, seed, device, faults, controller, initiator);
  }

  /** A sample of this size. */
  public DemoOptions withSample(long bytes) {
    return new DemoOptions(folder, null, bytes, seed, device, faults, controller, initiator);
  }

  /** Another SSD, and how it misbehaves. */
  public DemoOptions withDevice(DeviceAddress address, String rules) {
    return new DemoOptions(folder, file, sampleBytes, seed, address, rules, controller, initiator);
  }

  /** Other timeouts and the like. */
  public DemoOptions withController(ControllerOptions options) {
    return new DemoOptions(folder, file, sampleBytes, seed, device, faults, options, initiator);
  }

  /** Other queues and threads. */
  public DemoOptions withInitiator(InitiatorOptions options) {
    return new DemoOptions(folder, file, sampleBytes, seed, device, faults, controller, options);
  }
}
