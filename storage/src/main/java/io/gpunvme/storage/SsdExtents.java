package io.gpunvme.storage;

import io.gpunvme.gpu.queue.DeviceExtent;
import io.gpunvme.storage.fs.FileExtent;
import java.util.ArrayList;
import java.util.List;

/**
 * Where a part of a device is on an SSD, or a set of them: the device may be a part of one itself.
 */
final class SsdExtents {
  private SsdExtents() {}

  /**
   * Follows places on the device to blocks of the SSD or set.
   *
   * @param part what the places are of
   * @param places in the order of its bytes
   * @return in that order; what is nowhere, here or in the device, is left out
   * @throws io.gpunvme.storage.path.StorageException if a piece does not begin with a block
   */
  static List<DeviceExtent> of(Source part, GpuStorage device, List<FileExtent> places) {
    List<DeviceExtent> all = new ArrayList<>();
    int block = part.set().blockSize();
    List<DeviceExtent> outer = device.extents();
    for (FileExtent place : places) {
      for (DeviceExtent o : outer) {
        long from = Math.max(place.deviceOffset(), o.offset());
        long end = Math.min(place.deviceOffset() + place.length(), o.end());
        if (!place.isZeros() && from < end) {
          long at = place.fileOffset() + from - place.deviceOffset();
          long within = from - o.offset();
          if (at % block != 0 || within % block != 0) {
            throw part.unsupported(
                "a piece of it, at byte %d, begins no block of %d bytes of the SSD"
                    .formatted(at, block));
          }
          all.add(new DeviceExtent(at, end - from, o.block() + within / block));
        }
      }
    }
    return all;
  }
}
