package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LeftoversTest {
  @TempDir Path folder;

  @Test
  void foldersGoWithEverythingInThem() throws IOException {
    Path tree = Leftovers.add(Files.createDirectories(folder.resolve("a/b")).getParent());
    Files.writeString(tree.resolve("b/file"), "x");
    Path outside = Files.createDirectory(folder.resolve("outside"));
    Files.writeString(outside.resolve("file"), "x");
    Files.createSymbolicLink(tree.resolve("link"), outside);

    Leftovers.delete(tree);

    assertThat(tree).doesNotExist();
    assertThat(outside.resolve("file")).exists();
  }

  @Test
  void whatIsNotThereIsNoProblem() {
    Leftovers.delete(Leftovers.add(folder.resolve("missing")));
    assertThat(Ending.begun()).isFalse();
  }
}
