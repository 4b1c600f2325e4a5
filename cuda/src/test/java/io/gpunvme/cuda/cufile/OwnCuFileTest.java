package io.gpunvme.cuda.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.testing.NativeCompiler;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** gpunvme's own libcufile, where NVIDIA's is looked for. */
final class OwnCuFileTest {
  private static final String NAME = "libcufile.so.0";
  private static final String BOTH =
      "int cuFileGetVersion(int *version) { *version = 1150; return 0; }"
          + " int cuFileDriverOpen(void) { return 0; } int cuFileDriverClose(void) { return 0; }";

  @TempDir private Path root;
  private Path own;

  @BeforeEach
  void libraries() {
    own = library("own", BOTH + " const char *gpunvme_cufile_version(void) { return \"0\"; }");
  }

  private Path library(String folder, String text) {
    try {
      Path path = Files.createDirectories(root.resolve(folder));
      return NativeCompiler.C.compile(path, NAME, text, "-shared", "-fPIC", "-Wl,-soname," + NAME);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void itIsKnownByItsSymbolWithoutBeingOpened() throws IOException {
    Path others = library("others", BOTH + " int a_gpunvme_cufile_version_b;");
    assertThat(OwnCuFile.is(own)).isTrue();
    assertThat(OwnCuFile.is(others)).isFalse();
    assertThat(OwnCuFile.is(root)).as("a folder").isFalse();
    assertThat(OwnCuFile.is(root.resolve("none"))).isFalse();
    Path text = Files.writeString(root.resolve("text"), "\0gpunvme_cufile_version\0");
    assertThat(OwnCuFile.is(text)).isFalse();
    byte[] whole = Files.readAllBytes(own);
    for (int bytes = 0; bytes < whole.length; bytes += 97) {
      Path cut = Files.write(root.resolve("cut"), Arrays.copyOf(whole, bytes));
      assertThat(OwnCuFile.is(cut)).as("%d bytes of it", bytes).isFalse();
    }
  }

  @Test
  void theSearchGoesOnBehindIt() throws IOException {
    Map<String, String> environment = Map.of("LD_LIBRARY_PATH", own.getParent().toString());
    assertThat(CuFile.find(environment, root)).isEmpty();
    assertThat(OwnCuFile.find(environment, root)).contains(own);
    Path nvidia = library("usr/lib64", BOTH);
    assertThat(CuFile.find(environment, root)).contains(nvidia);
    assertThat(OwnCuFile.find(Map.of(), root)).isEmpty();
    assertThat(
            CuFile.find(
                Map.of("LD_LIBRARY_PATH", own.getParent() + ":" + nvidia.getParent()), root))
        .contains(nvidia);
  }

  @Test
  void theVariableThatNamesItIsRefused() {
    Map<String, String> environment = Map.of("GPUNVME_LIBCUFILE", own.toString());
    assertThat(CuFile.find(environment, root)).isEmpty();
    assertThatThrownBy(() -> CuFile.search(environment, root).open(environment))
        .isInstanceOf(CudaNotFoundException.class)
        .hasMessageContaining(
            "GPUNVME_LIBCUFILE names " + own + ", which is gpunvme's own libcufile; correct it");
  }

  @Test
  void inAProcessThatHasItNvidiasIsNotLoaded() {
    assertThat(OwnCuFile.inProcess()).as("this process").isEmpty();
    Path nvidia = library("nvidia", BOTH);
    String theirs = "GPUNVME_LIBCUFILE=" + nvidia;
    assertThat(inProcess(theirs)).containsExactly("Optional.empty", nvidia.toString());
    assertThat(inProcess(theirs, "LD_PRELOAD=" + own))
        .containsExactly(
            "Optional[" + own + "]",
            "this process has loaded gpunvme's own libcufile ("
                + own
                + "), and NVIDIA's does not work beside it");
  }

  @Test
  void byNameItIsPassedOver() {
    List<String> said = inProcess("GPUNVME_LIBCUFILE=", "LD_LIBRARY_PATH=" + own.getParent());
    assertThat(said.getFirst()).isEqualTo("Optional.empty");
    assertThat(said.getLast())
        .as("another's, or none")
        .isNotEqualTo(NAME)
        .doesNotContain(own.toString());
  }

  /** What a process with these variables prints. */
  private static List<String> inProcess(String... variables) {
    List<Object> command = new ArrayList<>(List.of("env"));
    command.addAll(List.of(variables));
    command.addAll(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java"),
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            System.getProperty("java.class.path"),
            Load.class.getName()));
    return Programs.text(List.of(0), command.toArray()).lines().toList();
  }

  /** Says what of ours the process has, and which library it loads, or why none. */
  static final class Load {
    private Load() {}

    public static void main(String[] args) {
      Optional<String> own = OwnCuFile.inProcess();
      System.out.println(own);
      try {
        System.out.println(CuFile.load().library());
      } catch (CudaNotFoundException e) {
        System.out.println(e.getMessage());
      }
    }
  }
}
