package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Commands whose heap is too small for what they are given end with one line. */
class SmallHeapTest {
  private static final int HEADER = 20 << 20;

  @TempDir private Path folder;

  private static String run(Object... words) {
    List<Object> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java"),
                "-Xmx32m",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                "io.gpunvme.cli.Main"));
    command.addAll(List.of(words));
    return Programs.text(List.of(ExitCode.FAILURE), command.toArray());
  }

  private Path model(String json) throws IOException {
    byte[] header = json.getBytes(StandardCharsets.UTF_8);
    ByteBuffer file = ByteBuffer.allocate(8 + header.length).order(ByteOrder.LITTLE_ENDIAN);
    return Files.write(
        folder.resolve("m.safetensors"), file.putLong(header.length).put(header).array());
  }

  @Test
  void aHeaderThatDoesNotFit() throws IOException {
    Path model = model("{\"__metadata__\": {\"a\": \"" + "x".repeat(HEADER) + "\"}}");
    assertThat(run("inspect", model, "--layers", "--accelerator", "cpu"))
        .startsWith("gpunvme inspect: ")
        .contains("Java's heap of 32 MiB")
        .doesNotContain("\tat ")
        .hasLineCount(1);
  }

  @Test
  void anythingElseThatDoesNotFit() throws IOException {
    Path model = model("{\"__metadata__\": {}}");
    Path order = folder.resolve("order");
    try (RandomAccessFile file = new RandomAccessFile(order.toFile(), "rw")) {
      file.setLength(60 << 20);
    }
    assertThat(run("load", model, "--order", "@" + order, "--accelerator", "cpu"))
        .startsWith("gpunvme: ")
        .contains("heap", "GPUNVME_JAVA_OPTS")
        .doesNotContain("\tat ")
        .hasLineCount(1);
  }
}
