package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProgramNameTest {
  @TempDir private Path folder;

  private Path program(String name) throws IOException {
    Path file = folder.resolve(name).resolve("gpunvme");
    Files.createDirectories(file.getParent());
    Files.createFile(file);
    return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  @Test
  void nobodySaidIt() {
    assertThat(ProgramName.of(null, "/bin")).isEqualTo(new ProgramName("gpunvme", "gpunvme"));
    assertThat(ProgramName.of("", null)).isEqualTo(new ProgramName("gpunvme", "gpunvme"));
  }

  @Test
  void aShellFindsIt() throws IOException {
    Path one = program("one");
    Path link = Files.createSymbolicLink(folder.resolve("link"), one.getParent());
    String path = "/nonexistent::" + link + ":/bin";
    assertThat(ProgramName.of(one.toString(), path))
        .as("sudo looks elsewhere")
        .isEqualTo(new ProgramName("gpunvme", one.toString()));
  }

  @Test
  void aShellDoesNotFindItOrFindsAnother() throws IOException {
    Path one = program("one");
    Path other = program("other");
    for (String path : new String[] {"/bin", "", other.getParent() + ":" + one.getParent()}) {
      assertThat(ProgramName.of(one.toString(), path))
          .as(path)
          .isEqualTo(new ProgramName(one.toString(), one.toString()));
    }
    assertThat(ProgramName.of(one.toString(), null).own()).isEqualTo(one.toString());
  }

  @Test
  void aPathIsAsItWasGivenButNotForRoot() {
    String here = Path.of("").toAbsolutePath().toString();
    assertThat(ProgramName.of("./gpunvme", "/bin"))
        .isEqualTo(new ProgramName("./gpunvme", ProgramName.quoted(here + "/gpunvme")));
    assertThat(ProgramName.of("gpunvme", "/bin").own()).isEqualTo("./gpunvme");
  }

  @Test
  void aShellTakesItWhateverItIs() {
    assertThat(ProgramName.of("/my disk/it's/gpunvme", "").own())
        .isEqualTo("'/my disk/it'\\''s/gpunvme'");
  }
}
