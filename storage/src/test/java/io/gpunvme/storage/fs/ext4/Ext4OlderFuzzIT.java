package io.gpunvme.storage.fs.ext4;

import java.io.IOException;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Damaged images with clusters, scattered descriptors and block maps. */
class Ext4OlderFuzzIT extends DamagedImages {
  @Override
  @ParameterizedTest
  @ValueSource(
      strings = {
        "-t ext4 -b 1024 -N 128 -I 128 -O ^has_journal,^resize_inode,^metadata_csum,^uninit_bg,"
            + "bigalloc,^64bit -C 2048",
        "-t ext4 -b 1024 -g 256 -N 128 -I 128 -O ^has_journal,^metadata_csum,uninit_bg,meta_bg,"
            + "^resize_inode,^filetype",
        "-t ext2 -b 1024 -N 128 -I 128",
      })
  void damageIsRefusedOrHarmless(String options) throws IOException {
    super.damageIsRefusedOrHarmless(options);
  }
}
