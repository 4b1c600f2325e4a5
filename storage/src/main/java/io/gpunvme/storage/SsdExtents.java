package io.gpunvme.storage;

import io.gpunvme.gpu.queue.DeviceExtent;
import io.gpunvme.gpu.queue.StripeSet;
import io.gpunvme.storage.fs.FileExtent;
import io.gpunvme.storage.path.StorageException;
import java.util.ArrayList;
import java.util.List;

/**
 * Where parts of a device are on an SSD, or a set of them: the device may be a part of one itself.
 */
final class SsdExtents {
  private final StripeSet set;
  private final List<DeviceExtent> outer;

  /**
   * Of parts of a device.
   *
   * @throws StorageException as {@link Source#extents}
   */
  SsdExtents(GpuStorage device) {
    set = device.set();
    outer = device.extents();
  }

  /** The SSD or set. */
  StripeSet set() {
    return set;
  }

  /**
   * Follows places on the device to blocks of the SSD or set.
   *
   * @param name of the part, in messages
   * @param places in the order of its bytes
   * @return in that order; what is nowhere, here or in the device, is left out
   * @throws StorageException if a piece does not begin with a block
   */
  List<DeviceExtent> of(String name, List<FileExtent> places) {
    List<DeviceExtent> all = new ArrayList<>();
    int block = set.blockSize();
    for (FileExtent place : places) {
      long placeEnd = place.deviceOffset() + place.length();
      for (int i = first(place); i < outer.size() && outer.get(i).offset() < placeEnd; i++) {
        DeviceExtent o = outer.get(i);
        long from = Math.max(place.deviceOffset(), o.offset());
        long end = Math.min(placeEnd, o.end());
        long at = place.fileOffset() + from - place.deviceOffset();
        long within = from - o.offset();
        if (at % block != 0 || within % block != 0) {
          throw Source.unsupported(
              name,
              "a piece of it, at byte %d, begins no block of %d bytes of the SSD"
                  .formatted(at, block));
        }
        all.add(new DeviceExtent(at, end - from, o.block() + within / block));
      }
    }
    return all;
  }

  /** The number of the first piece of the device that has bytes of a place or of what follows. */
  private int first(FileExtent place) {
    if (place.isZeros()) {
      return outer.size();
    }
    int low = 0;
    int high = outer.size();
    while (low < high) {
      int middle = low + high >>> 1;
      if (outer.get(middle).end() > place.deviceOffset()) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
}
