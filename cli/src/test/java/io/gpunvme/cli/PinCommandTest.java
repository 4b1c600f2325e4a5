package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.gpunvme.cuda.Cuda;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** Bus addresses of memory, on the embedded controller. */
class PinCommandTest {
  @Test
  void onePageOfRam() {
    String out = Cli.run("pin", "sim:").succeeded().out();

    assertThat(out)
        .startsWith("4KiB of RAM for sim:: 1 run of bus addresses")
        .containsPattern("0B +[0-9A-F]+h +4KiB")
        .endsWith("unpinned\n");
  }

  @Test
  void asJsonEveryByteHasAnAddress() {
    JsonObject json = Cli.run("pin", "sim:", "65KiB", "--json").succeeded().json();

    assertThat(json.get("memory").getAsString()).isEqualTo("ram");
    assertThat(json.get("bytes").getAsLong()).isEqualTo(68 << 10);
    long at = 0;
    for (JsonElement run : json.getAsJsonArray("runs")) {
      JsonObject one = run.getAsJsonObject();
      assertThat(one.get("offset").getAsLong()).isEqualTo(at);
      assertThat(Long.decode(one.get("bus_address").getAsString()) % 4096).isZero();
      at += one.get("bytes").getAsLong();
    }
    assertThat(at).isEqualTo(68 << 10);
  }

  @Test
  void heldForATime() {
    assertThat(Cli.run("pin", "sim:", "--hold", "1ms").succeeded().out())
        .contains("Ctrl-C unpins it")
        .endsWith("unpinned\n");
  }

  @Test
  void withoutAGpuItSaysSo() {
    Assumptions.assumeFalse(Cuda.isAvailable(), "there is a GPU");
    Cli.run("pin", "sim:", "64KiB", "--gpu").failed(ExitCode.FAILURE, "NVIDIA driver");
    assertThat(Cli.run("pin", "sim:", "--gpu", "--json").json().get("exit_code").getAsInt())
        .isOne();
  }

  @Test
  void withAGpuItsMemoryIsMapped() {
    Assumptions.assumeTrue(Cuda.isAvailable(), "no GPU");
    JsonObject json = Cli.run("pin", "sim:", "64KiB", "--gpu", "--json").succeeded().json();
    assertThat(json.get("memory").getAsString()).isEqualTo("gpu");
    assertThat(json.getAsJsonArray("runs")).isNotEmpty();
  }

  @Test
  void aDeviceThatIsNotThere() {
    Cli.run("pin", "kmod:ffff:ff:1f.7").failed(ExitCode.USAGE, "no PCI function ffff:ff:1f.7");
  }
}
