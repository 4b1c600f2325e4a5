package io.gpunvme.capi;

import io.gpunvme.core.kind.Kind;
import io.gpunvme.core.kind.ReadRequest;
import io.gpunvme.core.plan.Ranges;
import io.gpunvme.nvme.InvalidRequestException;
import java.util.ArrayList;
import java.util.List;

/** Kinds of one storage that C has a handle of. Safe for all threads. */
final class Kinds implements AutoCloseable {
  private final Storage storage;
  private final int blockSize;
  private final List<Kind> kinds = new ArrayList<>();
  private ReadRequest request = ReadRequest.builder().build();

  /**
   * @param blockSize bytes of a logical block
   */
  Kinds(Storage storage, int blockSize) {
    this.storage = storage;
    this.blockSize = blockSize;
  }

  synchronized void add(int number, boolean blocks, long offset, long length, long element) {
    long unit = blocks ? blockSize : 1;
    if (offset > Long.MAX_VALUE / unit || length > Long.MAX_VALUE / unit) {
      throw new InvalidRequestException(
          "kind %d: %d blocks at block %d are too far to count".formatted(number, length, offset));
    }
    ReadRequest.Builder all = ReadRequest.builder();
    kinds.forEach(all::add);
    Kind kind = new Kind(number, "", offset * unit, length * unit, element);
    request = all.add(kind).build();
    kinds.add(kind);
  }

  private synchronized ReadRequest request() {
    return request;
  }

  /** Reads, one behind the other in memory. */
  void read(int[] numbers, long[] indexes, long[] elements, long address, long capacity) {
    Ranges packed = request().packed(numbers, indexes, elements, 1);
    List<Storage.Item> items = new ArrayList<>();
    for (int i = 0; i < packed.size(); i++) {
      long at = packed.targetOffset(i);
      if (packed.length(i) > capacity - at) {
        throw new InvalidRequestException(
            "read %d ends %d bytes behind the %d bytes of memory"
                .formatted(i, packed.length(i) - (capacity - at), capacity));
      }
      items.add(new Storage.Item(packed.offset(i), address + at, packed.length(i)));
    }
    storage.transfer(false, items);
  }

  /** Bytes of so many elements of a kind. */
  long bytes(int number, long elements) {
    return Math.multiplyExact(request().kind(number).element(), elements);
  }

  @Override
  public void close() {}
}
