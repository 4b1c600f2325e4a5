package io.gpunvme.storage.fs.ext4;

import java.io.IOException;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Damaged images of ext4 as it is made today, with checksums and without. */
class Ext4FuzzIT extends DamagedImages {
  @Override
  @ParameterizedTest
  @ValueSource(
      strings = {
        "-t ext4 -b 1024 -N 128 -I 256 -O ^has_journal,^resize_inode",
        "-t ext4 -b 1024 -N 128 -I 256 -O ^has_journal,^resize_inode,inline_data,large_dir",
        "-t ext4 -b 1024 -N 128 -I 256 -O ^has_journal,^metadata_csum,^resize_inode",
        "-t ext4 -b 1024 -N 128 -I 256 -O ^has_journal,^metadata_csum,^resize_inode,inline_data",
      })
  void damageIsRefusedOrHarmless(String options) throws IOException {
    super.damageIsRefusedOrHarmless(options);
  }
}
