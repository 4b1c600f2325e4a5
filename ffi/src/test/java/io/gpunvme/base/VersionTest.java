package io.gpunvme.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

final class VersionTest {
  @Test
  void isTheBuilds() throws IOException {
    assertThat(Files.readString(Path.of("pom.xml")))
        .contains("<version>" + Version.VERSION + "</version>");
  }
}
