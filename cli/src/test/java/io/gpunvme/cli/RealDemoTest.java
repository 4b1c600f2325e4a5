package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonObject;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** {@code gpunvme demo} on a real controller. Whatever it does, the SSD is as it was. */
@Tag("qemu")
class RealDemoTest {
  private static final String DEVICE = System.getProperty("gpunvme.device", "");
  private static final int BYTES = 24 << 20;

  private byte[] before = {};

  @BeforeEach
  void look() {
    assumeTrue(!DEVICE.isEmpty(), "no real controller: none is named by -Dgpunvme.device");
    before = content();
  }

  @AfterEach
  void nothingHasChanged() {
    if (!DEVICE.isEmpty()) {
      assertThat(Arrays.mismatch(before, content())).as("first byte that differs").isEqualTo(-1);
    }
  }

  private static byte[] content() {
    Cli.Result read = Cli.run("read", DEVICE, "--lba", 0, "--bytes", BYTES, "--out", "-");
    assertThat(read.code()).as(read.err()).isZero();
    return read.bytes();
  }

  @Test
  void itReadsAndCompares() {
    JsonObject json =
        Cli.run("demo", "--device", DEVICE, "--read", "1MiB+16MiB", "--initiator", "cpu", "--json")
            .json();
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("bytes").getAsLong()).isEqualTo(16 << 20);
    assertThat(json.get("initiator").getAsString()).isEqualTo("CPU");
    assertThat(json.get("placement").getAsString()).isEqualTo("host");
  }

  @Test
  void aFileComesAndGoes() {
    JsonObject json =
        Cli.run(
                "demo",
                "--device",
                DEVICE,
                "--write",
                "2MiB+16MiB",
                "--allow-write",
                "--initiator",
                "cpu",
                "--json")
            .json();
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("restored").getAsBoolean()).isTrue();
    assertThat(json.get("bytes").getAsLong()).isEqualTo(16 << 20);
  }
}
