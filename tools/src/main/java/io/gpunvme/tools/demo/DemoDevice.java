package io.gpunvme.tools.demo;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.sim.FaultSyntax;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.tools.ssd.FreeSpace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** The demo's own SSD, with defaults that suit the file and this machine. */
final class DemoDevice {
  private final DeviceAddress address;
  private final @Nullable Path image;
  private final int blockSize;

  private DemoDevice(DeviceAddress address, @Nullable Path image, int blockSize) {
    this.address = address;
    this.image = image;
    this.blockSize = blockSize;
  }

  /**
   * Checks what was asked for.
   *
   * @param ram whether an SSD in memory suits better than one in a file, if neither was asked for
   * @throws InvalidRequestException if it makes no sense, or names a file that exists
   */
  static DemoDevice of(DemoOptions options, boolean ram) {
    DeviceAddress wanted = options.device();
    if (!wanted.isEmbedded()) {
      throw new InvalidRequestException(
          "%s is somebody's SSD: name the bytes that the demo may use and put back, or only read"
                  .formatted(wanted)
              + " (--write OFFSET+SIZE, --read OFFSET+SIZE)");
    }
    if (!ram && !wanted.has("file") && !wanted.has("media")) {
      wanted = wanted.with("file", options.folder().resolve("ssd.img").toString());
    }
    NamespaceConfig first = SimConfig.parse(wanted.optionText()).namespaces().getFirst();
    if (first.readOnly()) {
      throw new InvalidRequestException(
          "the demo writes to its SSD, so readonly="
              + wanted.option("readonly")
              + " is not possible; --read reads what is there");
    }
    Path image = first.file();
    FaultSyntax.parse(options.faults());
    if (image != null && Files.exists(image)) {
      throw new InvalidRequestException(
          "file="
              + image
              + " exists; the demo makes a new image and overwrites none: name another file,"
              + " or read what is there (--read)");
    }
    return new DemoDevice(wanted, image, first.lbaSize());
  }

  /** The address with a size, if none was asked for. */
  DeviceAddress sizedFor(long bytes) throws IOException {
    long needed = Math.ceilDiv(bytes, blockSize) * blockSize;
    Path file = image;
    if (file != null) {
      Path folder = file.toAbsolutePath().getParent();
      if (folder != null && Files.isDirectory(folder)) {
        FreeSpace.require(folder, needed);
      }
    }
    if (!address.has("size")) {
      return address.with("size", Long.toString(needed));
    }
    long size = SimConfig.parse(address.optionText()).namespaces().getFirst().size();
    if (size < needed) {
      throw new InvalidRequestException(
          "size=" + size + " is too small for a file of " + bytes + " bytes");
    }
    return address;
  }

  /** The file behind it, or null. */
  @Nullable Path image() {
    return image;
  }
}
