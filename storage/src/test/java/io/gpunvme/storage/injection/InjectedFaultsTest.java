package io.gpunvme.storage.injection;

import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Whatever the host refuses, and whenever: a storage says so or does without, leaves buffers as
 * they were or as read, leaves nothing behind, and does the next transfer.
 */
class InjectedFaultsTest {
  @TempDir Path folder;

  @ParameterizedTest
  @MethodSource("io.gpunvme.storage.injection.StorageScenarios#names")
  void eachFault(String scenario) throws Exception {
    new Injection(StorageScenarios.class, folder).run(scenario);
  }
}
