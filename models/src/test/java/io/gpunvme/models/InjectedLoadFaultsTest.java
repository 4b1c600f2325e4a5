package io.gpunvme.models;

import io.gpunvme.storage.injection.Injection;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Whatever the host refuses, and whenever: a load says so, leaves nothing behind, and the next one
 * has every tensor's bytes.
 */
class InjectedLoadFaultsTest {
  @TempDir Path folder;

  @ParameterizedTest
  @MethodSource("io.gpunvme.models.ModelScenarios#names")
  void eachFault(String scenario) throws Exception {
    new Injection(ModelScenarios.class, folder).run(scenario);
  }
}
