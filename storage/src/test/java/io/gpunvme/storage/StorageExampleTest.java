package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** docs/paths.md: its example is what is compiled here, and it names everything that there is. */
class StorageExampleTest {
  @TempDir Path folder;

  private static String text(String name) throws IOException {
    Path here = Path.of(name);
    return Files.readString(Files.exists(here) ? here : Path.of("..").resolve(here));
  }

  @Test
  void theExampleWorks() throws Exception {
    Path file = folder.resolve("data.bin");
    Files.write(file, new byte[1 << 20]);

    List<String> told = StorageExample.read(file.toString());

    assertThat(told.subList(1, 4)).containsExactly("later 4096", "16 of the batch", "kinds 5128");
    assertThat(told.getFirst()).endsWith(" moved 10000 bytes");
    assertThat(told.getLast()).startsWith("path auto: ");
    assertThat(StorageExample.read(folder + "/missing"))
        .singleElement()
        .asString()
        .startsWith("GONE in ");
  }

  @Test
  void thePageQuotesTheExample() throws IOException {
    String source =
        text("storage/src/test/java/io/gpunvme/storage/StorageExample.java")
            .replaceAll("(?s).*// ---- example\n\n(.*)\n  // ---- end of the example.*", "$1");
    String quoted =
        source.lines().map(l -> l.replaceFirst("^ {2}", "")).reduce("", (a, b) -> a + b + "\n");

    assertThat(text("docs/paths.md")).contains("```java\n" + quoted + "```");
  }

  @Test
  void thePageNamesAllPathsAndAllFailures() throws IOException {
    String page = text("docs/paths.md");
    for (PathKind path : PathKind.values()) {
      assertThat(page).contains("| `" + path + "` |");
    }
    for (StorageException.Kind kind : StorageException.Kind.values()) {
      assertThat(page).contains("| `" + kind + "` |");
    }
  }
}
