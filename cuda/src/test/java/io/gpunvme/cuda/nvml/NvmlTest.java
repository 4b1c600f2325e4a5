package io.gpunvme.cuda.nvml;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.StandIn;
import io.gpunvme.testing.CLibrary;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** With a stand-in for the library, {@code fake_nvml.c}. */
final class NvmlTest {
  private static final int GPU = 0;
  private static final int SWITCH = 2;

  private final CLibrary library = new CLibrary(StandIn.compile("nvml"));

  @BeforeEach
  void nothing() {
    library.call("fake_nvml_reset");
  }

  @Test
  void linksHaveBothEndsAndARate() {
    library.call("fake_nvml_gpu", "00000000:01:00.0");
    library.call("fake_nvml_gpu", "00000000:02:00.0");
    library.call("fake_nvml_link", 0, 3, 4, GPU, "00000000:02:00.0");
    library.call("fake_nvml_link", 1, 17, 7, SWITCH, "");
    library.call("fake_nvml_link", 1, 0, 99, 1, "00000000:05:00.0");

    assertThat(Nvml.load(library.file()).links())
        .containsExactly(
            new NvLink("00000000:01:00.0", 3, 4, NvLink.End.GPU, "00000000:02:00.0"),
            new NvLink("00000000:02:00.0", 0, 99, NvLink.End.OTHER, "00000000:05:00.0"),
            new NvLink("00000000:02:00.0", 17, 7, NvLink.End.SWITCH, ""))
        .extracting(NvLink::gigabytesPerSecond)
        .containsExactly(25.0, 0.0, 50.0);
    assertThat(library.callInt("fake_nvml_open")).isZero();
  }

  @Test
  void aGpuWithoutNvLinkHasNone() {
    library.call("fake_nvml_gpu", "00000000:01:00.0");

    assertThat(Nvml.load(library.file()).links()).isEmpty();
    assertThat(library.callInt("fake_nvml_open")).isZero();
  }

  @Test
  void anAddressThatFillsItsFieldEndsThere() {
    String longest = "0123456789abcdef0123456789abcdef";
    library.call("fake_nvml_gpu", longest);
    library.call("fake_nvml_link", 0, 0, 6, SWITCH, "");

    assertThat(Nvml.load(library.file()).links()).extracting(NvLink::gpu).containsExactly(longest);
  }

  @Test
  void aDriverThatIsNotThereIsSaid() {
    library.call("fake_nvml_fail_init", 9);

    assertThatThrownBy(() -> Nvml.load(library.file()).links())
        .isInstanceOf(NvmlException.class)
        .hasMessage("nvmlInit: Driver Not Loaded (9)");
    assertThat(library.callInt("fake_nvml_open")).isZero();
  }

  @Test
  void aLibraryThatIsNotThereIsSaid() {
    assertThatThrownBy(() -> Nvml.load(Map.of("GPUNVME_LIBNVML", "/nowhere/libnvidia-ml.so.1")))
        .isInstanceOf(CudaNotFoundException.class)
        .hasMessageContaining("GPUNVME_LIBNVML names /nowhere/libnvidia-ml.so.1");
  }
}
