package io.gpunvme.nvme.pci.kmod;

import io.gpunvme.testing.HeaderNumbers;
import io.gpunvme.testing.NativeCompiler;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** {@link KmodAbi} says the same as the module's header. */
class KmodAbiTest {
  private static final Path HEADER = Path.of("../kmod/gpunvme_uapi.h").toAbsolutePath();

  private final HeaderNumbers numbers =
      new HeaderNumbers(NativeCompiler.C, "#include \"" + HEADER + "\"");

  @Test
  void requestsAndStructuresAreTheHeaders() {
    numbers.value("GPUNVME_ABI_VERSION", KmodAbi.VERSION);
    numbers.value("GPUNVME_INFO_TRANSLATED", KmodAbi.DeviceInfo.TRANSLATED);
    numbers.value("GPUNVME_INFO_RESET", KmodAbi.DeviceInfo.RESET);
    numbers.value("GPUNVME_INFO_ISOLATED", KmodAbi.DeviceInfo.ISOLATED);
    numbers.value("GPUNVME_RANGE_RAM", KmodAbi.Import.RAM);
    numbers.value("GPUNVME_RANGE_REMAPPED", KmodAbi.Import.REMAPPED);
    numbers.value("GPUNVME_GET_INFO", KmodAbi.GET_INFO);
    numbers.value("GPUNVME_PIN", KmodAbi.PIN);
    numbers.value("GPUNVME_IMPORT", KmodAbi.IMPORT);
    numbers.value("GPUNVME_RELEASE", KmodAbi.RELEASE);
    numbers.value("GPUNVME_RESET", KmodAbi.RESET);
    numbers.size("struct gpunvme_info", KmodAbi.DeviceInfo.SIZE);
    numbers.field("struct gpunvme_info", "abi_version", KmodAbi.DeviceInfo.ABI_VERSION);
    numbers.field("struct gpunvme_info", "flags", KmodAbi.DeviceInfo.FLAGS);
    numbers.field("struct gpunvme_info", "bar0_bytes", KmodAbi.DeviceInfo.BAR0_BYTES);
    numbers.field("struct gpunvme_info", "address_bits", KmodAbi.DeviceInfo.ADDRESS_BITS);
    numbers.field("struct gpunvme_info", "page_bytes", KmodAbi.DeviceInfo.PAGE_BYTES);
    numbers.field("struct gpunvme_info", "most_bytes", KmodAbi.DeviceInfo.MOST_BYTES);
    numbers.field("struct gpunvme_info", "bytes", KmodAbi.DeviceInfo.BYTES);
    numbers.field("struct gpunvme_info", "most_ranges", KmodAbi.DeviceInfo.MOST_RANGES);
    numbers.field("struct gpunvme_info", "ranges", KmodAbi.DeviceInfo.RANGES);
    numbers.field("struct gpunvme_info", "pci_domain", KmodAbi.DeviceInfo.PCI_DOMAIN);
    numbers.field("struct gpunvme_info", "pci_function", KmodAbi.DeviceInfo.PCI_FUNCTION);
    numbers.size("struct gpunvme_run", KmodAbi.Run.SIZE);
    numbers.field("struct gpunvme_run", "bus_address", KmodAbi.Run.BUS_ADDRESS);
    numbers.field("struct gpunvme_run", "bytes", KmodAbi.Run.BYTES);
    numbers.size("struct gpunvme_pin", KmodAbi.Pin.SIZE);
    numbers.field("struct gpunvme_pin", "address", KmodAbi.Pin.ADDRESS);
    numbers.field("struct gpunvme_pin", "bytes", KmodAbi.Pin.BYTES);
    numbers.field("struct gpunvme_pin", "runs", KmodAbi.Pin.RUNS);
    numbers.field("struct gpunvme_pin", "most_runs", KmodAbi.Pin.MOST_RUNS);
    numbers.field("struct gpunvme_pin", "flags", KmodAbi.Pin.FLAGS);
    numbers.field("struct gpunvme_pin", "run_count", KmodAbi.Pin.RUN_COUNT);
    numbers.field("struct gpunvme_pin", "handle", KmodAbi.Pin.HANDLE);
    numbers.size("struct gpunvme_import", KmodAbi.Import.SIZE);
    numbers.field("struct gpunvme_import", "fd", KmodAbi.Import.FD);
    numbers.field("struct gpunvme_import", "flags", KmodAbi.Import.FLAGS);
    numbers.field("struct gpunvme_import", "runs", KmodAbi.Import.RUNS);
    numbers.field("struct gpunvme_import", "most_runs", KmodAbi.Import.MOST_RUNS);
    numbers.field("struct gpunvme_import", "run_count", KmodAbi.Import.RUN_COUNT);
    numbers.field("struct gpunvme_import", "bytes", KmodAbi.Import.BYTES);
    numbers.field("struct gpunvme_import", "handle", KmodAbi.Import.HANDLE);
    numbers.size("struct gpunvme_release", KmodAbi.Release.SIZE);
    numbers.field("struct gpunvme_release", "handle", KmodAbi.Release.HANDLE);
    numbers.compare();
  }
}
