package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.pci.PciFunction;
import io.gpunvme.nvme.pci.vfiouser.VfioUserOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** The contract between two processes; one server, and a client for each test. */
class VfioUserProcessContractTest extends ControllerContract {
  private static final long SIZE = 64 << 20;

  @TempDir static Path folder;

  private static ServedController served;

  @BeforeAll
  static void serve() throws IOException {
    String file = folder.resolve("ns1").toString();
    served =
        ServedController.apart(
            folder.resolve("ssd"), "size=64MiB,mdts=8MiB,latency=10us,file=" + file);
  }

  @AfterAll
  static void end() {
    served.close();
  }

  @Override
  PciFunction function() {
    return served.connect(VfioUserOptions.defaults());
  }

  @Override
  List<Expected> expected() {
    return List.of(new Expected(1, 512, SIZE / 512));
  }

  @Override
  boolean mayFormat() {
    return true;
  }
}
