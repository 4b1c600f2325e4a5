package io.gpunvme.storage.soak;

import io.gpunvme.storage.injection.InjectedClasses;
import io.gpunvme.storage.injection.Scenario;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whatever happens to storages, and however many things at once: no wrong byte, no hang, failures
 * that say what failed, and nothing left behind. {@code -Dgpunvme.soak=30m} for longer.
 */
@Timeout(value = 1, unit = TimeUnit.DAYS)
class SoakIT {
  private static final String TIME = System.getProperty("gpunvme.soak", "6s");

  @TempDir Path folder;

  private final Logger log = Logger.getLogger("io.gpunvme");

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
  void soak() throws Exception {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    System.out.printf("SoakIT: -Dgpunvme.seed=%d -Dgpunvme.soak=%s%n", seed, TIME);
    InjectedClasses classes = new InjectedClasses();
    Scenario soak =
        (Scenario)
            classes
                .load(Soak.class.getName())
                .getDeclaredConstructor(InjectedClasses.class, long.class, Duration.class)
                .newInstance(classes, seed, Duration.parse("PT" + TIME));
    soak.run(folder);
  }
}
