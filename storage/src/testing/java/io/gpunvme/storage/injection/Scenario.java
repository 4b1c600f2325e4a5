package io.gpunvme.storage.injection;

import java.nio.file.Path;

/**
 * Something that is done from beginning to end, and checks what it did. The loader defines the
 * classes of implementations anew, like those of the product.
 */
public interface Scenario {
  /**
   * Does it.
   *
   * @param folder empty, for files of its own
   * @throws Exception if anything is not as it should be
   */
  void run(Path folder) throws Exception;
}
