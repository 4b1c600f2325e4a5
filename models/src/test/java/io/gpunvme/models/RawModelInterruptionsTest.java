package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Writing a raw model ends half-way: what is on the device is a whole model or none. */
class RawModelInterruptionsTest extends RawModels {
  /** What is there afterwards is the model that was, none, or the new one: never a part. */
  private void requireWhole(StorageAddress address) {
    try {
      Weights.open(address, accelerator).close();
    } catch (FormatException e) {
      return;
    }
    requireModel(address);
  }

  private void failing(StorageAddress address, String faults, RawWriteOptions options) {
    try (Device device = Device.open(DeviceAddress.parse(address.toString()), WRITABLE, faults);
        Weights weights = source();
        GpuStorage target =
            GpuStorage.over(
                device.controller(), accelerator, StorageOptions.defaults().withWrite(true))) {
      RawModelWriter.prepare(weights, target, options, BATCH).run(LoadListener.NONE);
    }
  }

  private void writeOther(StorageAddress address) throws IOException {
    Path wanted = model;
    Map<String, byte[]> expected = Map.copyOf(content);
    SafetensorsWriter writer = new SafetensorsWriter();
    writer.tensor("other", ElementType.U8, 300_001);
    model = write("other.safetensors", writer, 12);
    write(address, options().withOverwrite(true));
    model = wanted;
    content.clear();
    content.putAll(expected);
  }

  @ParameterizedTest
  @CsvSource({"write, false", "write, true", "flush, false", "flush, true"})
  void aFailureOfAnyCommandLeavesNoPart(String command, boolean over) throws IOException {
    StorageAddress address = StorageAddress.parse("sim:file=" + image());
    int failures = 0;
    boolean whole = false;
    for (int n = 1; !whole; n++) {
      if (over) {
        writeOther(address);
      } else {
        image();
      }
      String faults = "status=generic/internal-error dnr on %s nth=%d".formatted(command, n);
      try {
        failing(address, faults, options().withOverwrite(true));
        whole = true;
      } catch (StorageException e) {
        failures++;
        if (over && n == 1 && command.equals("write")) {
          // What is first is that the other one becomes invalid: here it did not.
          try (Weights other = Weights.open(address, accelerator)) {
            assertThat(other.tensors().keySet()).containsExactly("other");
          }
        } else if (command.equals("write")) {
          requireNoModel(address);
        } else {
          requireWhole(address);
        }
      }
    }
    requireModel(address);
    assertThat(failures).isGreaterThan(command.equals("write") ? 10 : 2);
  }

  @Test
  void cancelledAtAnyTimeItLeavesNoPart() throws IOException {
    StorageAddress address = StorageAddress.parse("sim:file=" + image());
    boolean whole = false;
    int cancelled = 0;
    for (int n = 1; !whole; n++) {
      int at = n;
      writeOther(address);
      try (Weights weights = source();
          GpuStorage target = target(address)) {
        RawModelWriter writer =
            RawModelWriter.prepare(
                weights, target, options().withOverwrite(true).withVerify(true), BATCH);
        AtomicInteger calls = new AtomicInteger();
        AtomicInteger bytes = new AtomicInteger();
        writer.run(
            b -> {
              bytes.addAndGet((int) b);
              if (calls.incrementAndGet() == at) {
                writer.cancel();
              }
            });
        whole = true;
        assertThat(bytes.get()).isEqualTo((int) writer.listenedBytes());
      } catch (StorageException e) {
        assertThat(e.kind()).isEqualTo(Kind.CANCELLED);
        cancelled++;
        requireNoModel(address);
      }
    }
    requireModel(address);
    assertThat(cancelled).isGreaterThan(10);
  }

  @Test
  void whatReadsBackOtherwiseIsNoModel() throws IOException {
    StorageAddress address = StorageAddress.parse("sim:file=" + image());
    assertThatExceptionOfType(StorageException.class)
        .isThrownBy(
            () -> failing(address, "corrupt on read lba=400..401", options().withVerify(true)))
        .satisfies(e -> assertThat(e.kind()).isEqualTo(Kind.IO))
        .withMessageContaining("CRC-32C");
    requireNoModel(address);
  }
}
