package io.gpunvme.cuda.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.CudaNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class CuFileSearchTest {
  @TempDir private Path root;

  private Path place(String name) throws IOException {
    Path file = root.resolve(name);
    Files.createDirectories(file.getParent());
    return Files.writeString(file, "not opened");
  }

  @Test
  void itIsFoundWithoutBeingOpened() throws IOException {
    assertThat(CuFile.find(Map.of(), root)).isEmpty();
    Path old = place("usr/local/cuda-12.9/lib64/libcufile.so.0");
    assertThat(CuFile.find(Map.of(), root)).contains(old);
    Path toolkit = place("usr/local/cuda-13.0/lib64/libcufile.so.0");
    assertThat(CuFile.find(Map.of(), root)).as("the newest toolkit").contains(toolkit);
    Path other = place("elsewhere/libcufile.so");
    assertThat(CuFile.find(Map.of("LD_LIBRARY_PATH", "/none:" + root + "/elsewhere"), root))
        .contains(other);
    assertThat(CuFile.find(Map.of("GPUNVME_LIBCUFILE", other.toString()), root)).contains(other);
    assertThat(CuFile.find(Map.of("GPUNVME_LIBCUFILE", "/none.so"), root)).isEmpty();
  }

  @Test
  void whatIsMissingIsSaidWithThePlaces() {
    Map<String, String> environment = Map.of("GPUNVME_LIBCUFILE", root + "/none.so");
    assertThatThrownBy(() -> CuFile.search(environment, root).open(environment))
        .isInstanceOf(CudaNotFoundException.class)
        .hasMessageStartingWith(
            "cuFile, NVIDIA's GPUDirect Storage library,: GPUNVME_LIBCUFILE names " + root);
  }

  @Test
  void theLogLeavesTheWorkingDirectoryUnlessTheUserChose() throws IOException {
    Path temporary = root.resolve("tmp");
    Path configuration = root.resolve("cufile.json");
    Path chosen = temporary.resolve("gpunvme-cufile-" + ProcessHandle.current().pid() + ".log");
    assertThat(CuFileLog.choose(Map.of(), configuration, temporary)).contains(chosen);
    Files.writeString(configuration, "{ // defaults\n  // \"dir\" : \"/var/log\",\n}");
    assertThat(CuFileLog.choose(Map.of(), configuration, temporary)).contains(chosen);
    assertThat(CuFileLog.choose(Map.of("CUFILE_LOGFILE_PATH", "/x"), configuration, temporary))
        .isEmpty();
    Path own = Files.writeString(root.resolve("own.json"), "\"logging\": {\n \"dir\":\"/l\" }");
    assertThat(
            CuFileLog.choose(
                Map.of("CUFILE_ENV_PATH_JSON", own.toString()), configuration, temporary))
        .isEmpty();
    Files.writeString(configuration, "\"logging\": {\"dir\": \"/var/log\"}");
    assertThat(CuFileLog.choose(Map.of(), configuration, temporary)).isEmpty();
  }
}
