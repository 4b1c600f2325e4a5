package io.gpunvme.tools.ssd;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.BlockRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A shell script that puts borrowed blocks back by hand: for a process that was killed, and for an
 * SSD that did not take them. It is beside the copy, and is made before anything is overwritten.
 */
final class PutBackScript {
  static final String NAME = "put-back.sh";

  private static final String PREPARED = "put-back.prepared";

  private static final String HEAD =
      """
      #!/bin/sh
      # Puts back what gpunvme had borrowed: SSD, namespace, first block; first byte in the copy, bytes.
      # GPUNVME names the command if it is not in the PATH: GPUNVME=./gpunvme sh put-back.sh
      set -e
      folder=$(dirname "$0")
      put() {
        dd if="$folder/COPY" of="$folder/part.blocks" bs=1M iflag=skip_bytes,count_bytes skip="$4" count="$5" status=none
        "${GPUNVME:-gpunvme}" write "$1" --nsid "$2" --lba "$3" --in "$folder/part.blocks" --allow-write
      }
      """;

  private PutBackScript() {}

  /**
   * Writes it, under another name: it is wanted once something has been overwritten.
   *
   * @param runs of all SSDs, in the order of the copy
   * @param copy the file with what was in them, one run after the other
   */
  static Path write(List<BlockRun> runs, Path copy) throws IOException {
    StringBuilder text = new StringBuilder(HEAD.replace("COPY", copy.getFileName().toString()));
    Map<NvmeController, String> addresses = new HashMap<>();
    long at = 0;
    for (BlockRun run : runs) {
      String address = addresses.computeIfAbsent(run.controller(), PutBackScript::addressOf);
      text.append(
          String.format(
              Locale.ROOT,
              "put '%s' %d %d %d %d%n",
              address.replace("'", "'\\''"),
              Integer.toUnsignedLong(run.namespace().nsid()),
              run.slba(),
              at,
              run.bytes()));
      at += run.bytes();
    }
    text.append("rm \"$folder/part.blocks\"\n");
    return Files.writeString(copy.resolveSibling(PREPARED), text);
  }

  /** The address by which a controller is opened alone, with its options. */
  private static String addressOf(NvmeController controller) {
    return Device.addressOf(controller)
        .orElseThrow(
            () ->
                new InvalidRequestException(
                    controller.name()
                        + " was not opened by an address: nothing could be put back by hand"))
        .toString();
  }
}
