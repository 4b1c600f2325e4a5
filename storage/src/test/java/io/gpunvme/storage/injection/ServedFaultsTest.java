package io.gpunvme.storage.injection;

import java.nio.file.Path;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The same as {@link InjectedFaultsTest} for a controller that a server has. */
class ServedFaultsTest {
  @TempDir Path folder;

  private final Logger log = Logger.getLogger("io.gpunvme.nvme");

  /** The driver tells of each controller that it could not shut down. */
  @BeforeEach
  void quiet() {
    log.setLevel(Level.OFF);
  }

  @AfterEach
  void loud() {
    log.setLevel(null);
  }

  @Test
  void someFaults() throws Exception {
    new Injection(ServedScenarios.class, folder).run("read");
  }

  /** They are short enough for all of their places. */
  @ParameterizedTest
  @ValueSource(strings = {"drain", "listen"})
  void eachFault(String scenario) throws Exception {
    new Injection(ServedScenarios.class, folder).runAll(scenario);
  }
}
