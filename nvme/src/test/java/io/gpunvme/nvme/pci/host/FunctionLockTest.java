package io.gpunvme.nvme.pci.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.PciAddress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FunctionLockTest {
  @TempDir Path folder;

  @Test
  void oneAtATimeAndAgainAfterClose() throws IOException {
    FakeFunctionTree machine = new FakeFunctionTree(folder);
    Path path = folder.resolve("run/lock/gpunvme-0000:01:00.0.lock");
    try (FunctionLock lock = FunctionLock.take(machine.paths(), FakeFunctionTree.ADDRESS)) {
      assertThat(lock.path()).isEqualTo(path);
      assertThatThrownBy(() -> FunctionLock.take(machine.paths(), FakeFunctionTree.ADDRESS))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("0000:01:00.0 is in use")
          .hasMessageContaining(path.toString());
      FunctionLock.take(machine.paths(), new PciAddress(0, 2, 0, 0)).close();
      lock.close();
    }
    FunctionLock.take(machine.paths(), FakeFunctionTree.ADDRESS).close();
  }

  @Test
  void goesElsewhereWithoutAFolderForLocks() throws IOException {
    FakeFunctionTree machine = new FakeFunctionTree(folder);
    Files.delete(folder.resolve("run/lock"));
    Files.createDirectory(folder.resolve("tmp"));
    try (FunctionLock lock = FunctionLock.take(machine.paths(), FakeFunctionTree.ADDRESS)) {
      assertThat(lock.path().getParent()).isEqualTo(folder.resolve("tmp"));
    }
  }

  @Test
  void saysWhereItLooked() throws IOException {
    FakeFunctionTree machine = new FakeFunctionTree(folder);
    Files.delete(folder.resolve("run/lock"));
    assertThatThrownBy(() -> FunctionLock.take(machine.paths(), FakeFunctionTree.ADDRESS))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("run/lock")
        .hasMessageContaining("ENOENT");
  }
}
