package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.storage.kind.Kind;
import io.gpunvme.storage.kind.ReadRequest;
import io.gpunvme.storage.plan.Ranges;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;

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
          "kind %d: %d blocks at block %d end at byte 2^63 or later"
              .formatted(number, length, offset));
    }
    if (element > 0 && length * unit % element != 0) {
      throw new InvalidRequestException(
          "kind %d: %d bytes are not a multiple of the element, %d bytes"
              .formatted(number, length * unit, element));
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
  void read(int[] numbers, long[] indexes, long[] elements, long address, long capacity)
      throws Throwable {
    ReadRequest known = request();
    for (int number : numbers) {
      requireThere(known, number);
    }
    Ranges packed = known.packed(numbers, indexes, elements, 1);
    List<Storage.Item> items = new ArrayList<>();
    for (int i = 0; i < packed.size(); i++) {
      long at = packed.targetOffset(i);
      if (packed.length(i) > capacity - at) {
        throw new InvalidRequestException(
            "read %d ends %d bytes after the end of the memory of %d bytes"
                .formatted(i, packed.length(i) - (capacity - at), capacity));
      }
      items.add(new Storage.Item(packed.offset(i), address + at, packed.length(i)));
    }
    storage.transfer(false, items, null);
  }

  private static void requireThere(ReadRequest known, int number) {
    if (known.kinds().stream().noneMatch(k -> k.number() == number)) {
      throw new NoSuchElementException(
          "no kind %d: the kinds are %s".formatted(number, known.kinds()));
    }
  }

  @Override
  public void close() {}
}
