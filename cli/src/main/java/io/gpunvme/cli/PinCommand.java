package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.pci.PciFunction;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme pin DEVICE [SIZE]}. */
@Command(
    name = "pin",
    description = {
      "Pin memory for an SSD, print the bus addresses for the SSD, and unpin it.",
      "RAM, or memory of the first GPU (kmod:… and a GPU that exports dma-bufs). The controller is"
          + " not started.",
      "Exit code 1 if the memory cannot be pinned, or there is no GPU."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme pin sim:",
      "  sudo gpunvme pin kmod:0000:01:00.0                 one page of RAM",
      "  sudo gpunvme pin kmod:0000:01:00.0 1MiB --json",
      "  sudo gpunvme pin kmod:0000:01:00.0 64KiB --gpu     64KiB of GPU memory",
      "  sudo gpunvme pin vfio:0000:01:00.0 --hold 60s      until a minute or Ctrl-C"
    })
final class PinCommand extends BaseCommand {
  private static final int INDENT = 2;

  /** Lines of text; --json has them all. */
  private static final int MOST_LINES = 64;

  @Parameters(
      index = "0",
      paramLabel = "DEVICE",
      description =
          "kmod:DDDD:BB:DD.F, vfio:DDDD:BB:DD.F, sysfs:… or sim:key=value,… (see gpunvme help"
              + " sim).")
  private String device = "";

  @Parameters(
      index = "1",
      arity = "0..1",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Bytes to pin, e.g. 64KiB (4KiB); rounded up to whole pages.")
  private long bytes = 4096;

  @Option(names = "--gpu", description = "Memory of the first GPU, by a dma-buf, instead of RAM.")
  private boolean gpu;

  @Option(
      names = "--hold",
      paramLabel = "TIME",
      converter = Converters.Time.class,
      description = "Keep it pinned for this time or until Ctrl-C, e.g. 60s.")
  private @Nullable Duration hold;

  private final CountDownLatch never = new CountDownLatch(1);

  PinCommand(OutputStreams streams) {
    super(streams);
  }

  /** Bytes with consecutive bus addresses. */
  private record Run(long offset, long address, long bytes) {}

  @Override
  int run() {
    DeviceAddress address = DeviceAddress.parse(device);
    if (bytes <= 0) {
      throw new UsageException("SIZE must be above 0");
    }
    if (gpu) {
      // The GPU first: without one the SSD need not be touched.
      try (Accelerator accelerator = GpuAccelerator.open();
          PciFunction function = Device.function(address);
          DeviceBuffer buffer = accelerator.allocate(bytes)) {
        show(accelerator.name(), buffer.mapFor(function), buffer::close);
      }
    } else {
      try (PciFunction function = Device.function(address);
          DmaBuffer buffer = DmaBuffer.allocate(function, bytes)) {
        show("RAM", buffer.range(), buffer::close);
      }
    }
    if (!json()) {
      out().println("unpinned");
    }
    return ExitCode.OK;
  }

  private void show(String memory, BusRange range, Runnable release) {
    List<Run> runs = runs(range);
    Ending.leaves("the memory is unpinned");
    print(() -> printText(memory, range.size(), runs), () -> object(memory, range.size(), runs));
    out().flush();
    Duration time = hold;
    if (time == null) {
      return;
    }
    try (CancelledAtExit exit = new CancelledAtExit()) {
      exit.now(release);
      never.await(time.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static List<Run> runs(BusRange range) {
    List<Run> runs = new ArrayList<>();
    for (long at = 0; at < range.size(); ) {
      long length = range.contiguous(at, range.size() - at);
      runs.add(new Run(at, range.busAddress(at), length));
      at += length;
    }
    return runs;
  }

  private void printText(String memory, long size, List<Run> runs) {
    out()
        .printf(
            "%s of %s for %s: %d %s of bus addresses%n",
            Sizes.format(size), memory, device, runs.size(), runs.size() == 1 ? "run" : "runs");
    Table table = new Table(INDENT).row("OFFSET", "BUS ADDRESS", "SIZE");
    for (Run r : runs.subList(0, Math.min(MOST_LINES, runs.size()))) {
      table.row(Sizes.format(r.offset), "%Xh".formatted(r.address), Sizes.format(r.bytes));
    }
    table.print(out());
    if (runs.size() > MOST_LINES) {
      out().printf("  and %d more (--json prints all)%n", runs.size() - MOST_LINES);
    }
    if (hold != null) {
      out().println("pinned; Ctrl-C unpins it");
    }
  }

  private Map<String, Object> object(String memory, long size, List<Run> runs) {
    List<Object> all = new ArrayList<>();
    for (Run r : runs) {
      Map<String, Object> one = new LinkedHashMap<>();
      one.put("offset", r.offset);
      one.put("bus_address", Register.hex(r.address, Long.BYTES));
      one.put("bytes", r.bytes);
      all.add(one);
    }
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("device", device);
    object.put("memory", gpu ? "gpu" : "ram");
    object.put("of", memory);
    object.put("bytes", size);
    object.put("runs", all);
    return object;
  }
}
