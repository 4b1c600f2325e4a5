package io.gpunvme.nvme.pci.kmod;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@link KmodAbi} says the same as the module's header. */
class KmodAbiTest {
  private static final Path HEADER = Path.of("../kmod/gpunvme_uapi.h");

  @TempDir Path folder;
  private final Map<String, Long> ours = new TreeMap<>();
  private final StringBuilder program = new StringBuilder();

  private void value(String theirs, long our) {
    ours.put(theirs.replace(" ", "_"), our);
    program.append(
        "  printf(\"%s %%lld\\n\", (long long)(%s));\n"
            .formatted(theirs.replace(" ", "_"), theirs));
  }

  private void field(String struct, String field, long our) {
    value("__builtin_offsetof(struct " + struct + ", " + field + ")", our);
  }

  private void size(String struct, long our) {
    value("sizeof(struct " + struct + ")", our);
  }

  @Test
  void requestsAndStructuresAreTheHeaders() throws Exception {
    value("GPUNVME_ABI_VERSION", KmodAbi.VERSION);
    value("GPUNVME_INFO_TRANSLATED", KmodAbi.DeviceInfo.TRANSLATED);
    value("GPUNVME_INFO_RESET", KmodAbi.DeviceInfo.RESET);
    value("GPUNVME_RANGE_RAM", KmodAbi.Import.RAM);
    value("GPUNVME_RANGE_REMAPPED", KmodAbi.Import.REMAPPED);
    value("GPUNVME_GET_INFO", KmodAbi.GET_INFO);
    value("GPUNVME_PIN", KmodAbi.PIN);
    value("GPUNVME_IMPORT", KmodAbi.IMPORT);
    value("GPUNVME_RELEASE", KmodAbi.RELEASE);
    value("GPUNVME_RESET", KmodAbi.RESET);
    size("gpunvme_info", KmodAbi.DeviceInfo.SIZE);
    field("gpunvme_info", "abi_version", KmodAbi.DeviceInfo.ABI_VERSION);
    field("gpunvme_info", "flags", KmodAbi.DeviceInfo.FLAGS);
    field("gpunvme_info", "bar0_bytes", KmodAbi.DeviceInfo.BAR0_BYTES);
    field("gpunvme_info", "address_bits", KmodAbi.DeviceInfo.ADDRESS_BITS);
    field("gpunvme_info", "page_bytes", KmodAbi.DeviceInfo.PAGE_BYTES);
    field("gpunvme_info", "most_bytes", KmodAbi.DeviceInfo.MOST_BYTES);
    field("gpunvme_info", "bytes", KmodAbi.DeviceInfo.BYTES);
    field("gpunvme_info", "most_ranges", KmodAbi.DeviceInfo.MOST_RANGES);
    field("gpunvme_info", "ranges", KmodAbi.DeviceInfo.RANGES);
    size("gpunvme_run", KmodAbi.Run.SIZE);
    field("gpunvme_run", "bus_address", KmodAbi.Run.BUS_ADDRESS);
    field("gpunvme_run", "bytes", KmodAbi.Run.BYTES);
    size("gpunvme_pin", KmodAbi.Pin.SIZE);
    field("gpunvme_pin", "address", KmodAbi.Pin.ADDRESS);
    field("gpunvme_pin", "bytes", KmodAbi.Pin.BYTES);
    field("gpunvme_pin", "runs", KmodAbi.Pin.RUNS);
    field("gpunvme_pin", "most_runs", KmodAbi.Pin.MOST_RUNS);
    field("gpunvme_pin", "flags", KmodAbi.Pin.FLAGS);
    field("gpunvme_pin", "run_count", KmodAbi.Pin.RUN_COUNT);
    field("gpunvme_pin", "handle", KmodAbi.Pin.HANDLE);
    size("gpunvme_import", KmodAbi.Import.SIZE);
    field("gpunvme_import", "fd", KmodAbi.Import.FD);
    field("gpunvme_import", "flags", KmodAbi.Import.FLAGS);
    field("gpunvme_import", "runs", KmodAbi.Import.RUNS);
    field("gpunvme_import", "most_runs", KmodAbi.Import.MOST_RUNS);
    field("gpunvme_import", "run_count", KmodAbi.Import.RUN_COUNT);
    field("gpunvme_import", "bytes", KmodAbi.Import.BYTES);
    field("gpunvme_import", "handle", KmodAbi.Import.HANDLE);
    size("gpunvme_release", KmodAbi.Release.SIZE);
    field("gpunvme_release", "handle", KmodAbi.Release.HANDLE);
    compare();
  }

  /** Compiles and runs the program. */
  private void compare() throws IOException, InterruptedException {
    Path source = folder.resolve("abi.c");
    Path binary = folder.resolve("abi");
    Files.writeString(
        source,
        """
        #include <stdio.h>
        #include "%s"
        int main(void) {
        %s
          return 0;
        }
        """
            .formatted(HEADER.toRealPath(), program));
    run("cc", "-Wall", "-Werror", "-o", binary.toString(), source.toString());
    Map<String, Long> theirs =
        run(binary.toString())
            .lines()
            .collect(
                Collectors.toMap(
                    line -> line.substring(0, line.lastIndexOf(' ')),
                    line -> Long.parseLong(line.substring(line.lastIndexOf(' ') + 1))));
    assertThat(ours).isNotEmpty().containsExactlyInAnyOrderEntriesOf(theirs);
  }

  private static String run(String... command) throws IOException, InterruptedException {
    Process process;
    try {
      process = new ProcessBuilder(List.of(command)).redirectErrorStream(true).start();
    } catch (IOException e) {
      Assumptions.abort("no " + command[0] + " on this machine");
      throw e;
    }
    String output = new String(process.getInputStream().readAllBytes());
    if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != 0) {
      throw new AssertionError(List.of(command) + ": " + output);
    }
    return output;
  }
}
