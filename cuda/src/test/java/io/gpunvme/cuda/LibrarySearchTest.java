package io.gpunvme.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.library.LibrarySearch;
import io.gpunvme.cuda.library.NativeLibrary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class LibrarySearchTest {
  @TempDir private Path folder;

  private LibrarySearch search(String... names) {
    return new LibrarySearch(
        "the library", "GPUNVME_TEST", List.of(names), List.of(folder), "install it");
  }

  private Path place(String name) throws IOException {
    return Files.copy(StandIn.compile("nvrtc"), folder.resolve(name));
  }

  @Test
  void namesGoThroughTheLoader() {
    NativeLibrary library = search("libnone.so", "libc.so.6").open(Map.of());
    assertThat(library.file()).isEqualTo("libc.so.6");
    assertThat(library.find("strlen")).isPresent();
    assertThat(library.function("gpunvme_none").isPresent()).isFalse();
  }

  @Test
  void foldersAreLookedIntoAfterThat() throws IOException {
    Path file = place("libgpunvme-test.so.2");
    NativeLibrary library =
        search("libgpunvme-test.so", "libgpunvme-test.so.2").open(Map.of("GPUNVME_TEST", ""));
    assertThat(library.file()).isEqualTo(file.toString());
    assertThat(library.find("nvrtcVersion")).isPresent();
  }

  @Test
  void aFileThatIsNoLibraryIsPassedOver() throws IOException {
    Files.copy(Path.of("/bin/true"), folder.resolve("libgpunvme-a.so"));
    Path file = place("libgpunvme-b.so");
    NativeLibrary library = search("libgpunvme-a.so", "libgpunvme-b.so").open(Map.of());
    assertThat(library.file()).isEqualTo(file.toString());
  }

  @Test
  void theVariableNamesTheOnlyFile() throws IOException {
    Path chosen = place("chosen.so");
    assertThat(search("libc.so.6").open(Map.of("GPUNVME_TEST", chosen.toString())).file())
        .isEqualTo(chosen.toString());
    String missing = folder.resolve("missing.so").toString();
    assertThatThrownBy(() -> search("libc.so.6").open(Map.of("GPUNVME_TEST", missing)))
        .isInstanceOf(CudaNotFoundException.class)
        .hasMessage(
            "the library: GPUNVME_TEST names "
                + missing
                + ", which cannot be opened as a library; correct it or unset it");
  }

  @Test
  void whatIsMissingIsSaidWithThePlaces() {
    assertThatThrownBy(() -> search("libnone.so.1", "libnone.so").open(Map.of()))
        .isInstanceOf(CudaNotFoundException.class)
        .hasMessage(
            "the library not found: looked for libnone.so.1, libnone.so where the dynamic loader"
                + " looks (LD_LIBRARY_PATH, system folders) and in "
                + folder
                + "; install it, or set GPUNVME_TEST to the file");
  }

  @Test
  void nvrtcIsLookedForInToolkits() throws IOException {
    Files.createDirectories(folder.resolve("cuda-12.8"));
    Files.createDirectories(folder.resolve("cuda-13.0"));
    LibrarySearch search = Nvrtc.search(Map.of("CUDA_HOME", "/opt/toolkit"), folder);
    assertThat(search.folders())
        .containsExactly(
            Path.of("/opt/toolkit/lib64"),
            folder.resolve("cuda/lib64"),
            folder.resolve("cuda-13.0/lib64"),
            folder.resolve("cuda-12.8/lib64"));
    assertThat(Nvrtc.search(Map.of(), folder.resolve("none")).folders())
        .containsExactly(folder.resolve("none/cuda/lib64"));
  }
}
