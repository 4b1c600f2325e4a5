package io.gpunvme.storage;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.kind.ReadRequest;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.plan.Ranges;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The example of docs/paths.md, which quotes what is between the lines of dashes. */
final class StorageExample {
  private StorageExample() {}

  // ---- example

  /** Reads parts of a file of at least 64 KiB, and says how; the explanation comes last. */
  static List<String> read(String file) throws InterruptedException {
    List<String> told = new ArrayList<>();
    try (Accelerator accelerator = Accelerators.best().accelerator();
        GpuStorage storage = GpuStorage.open("file:" + file + "?path=auto", accelerator);
        DeviceBuffer buffer = accelerator.allocate(1 << 20)) {
      // One range, and the thread waits. Nothing needs to be aligned.
      TransferResult one = storage.read(777, buffer, 3, 10_000);
      told.add(one.path() + " moved " + one.bytes() + " bytes");

      // Without waiting.
      CompletableFuture<TransferResult> later = storage.readAsync(0, buffer, 0, 4096);
      told.add("later " + later.join().bytes());

      // Many, submitted one by one; each has its own outcome.
      try (Batch batch = storage.batch()) {
        for (int i = 0; i < 16; i++) {
          batch.read(i * 4096L, buffer, i * 4096L, 4096);
        }
        int good = 0;
        while (batch.outstanding() > 0) {
          for (Batch.Outcome outcome : batch.poll(1, Duration.ofSeconds(10))) {
            good += outcome.ok() ? 1 : 0;
          }
        }
        told.add(good + " of the batch");
      }

      // By kind, index and length: ten rows from the third, one label.
      ReadRequest kinds =
          ReadRequest.builder().bytes("rows", 0, 32768, 512).bytes("labels", 32768, 800, 8).build();
      List<Range> ranges = new ArrayList<>();
      long at = 0;
      for (Ranges r : List.of(kinds.ranges("rows", 3, 10), kinds.ranges("labels", 99, 1))) {
        for (int i = 0; i < r.size(); i++) {
          ranges.add(new Range(r.offset(i), buffer, at, r.length(i)));
          at += r.length(i);
        }
      }
      told.add("kinds " + storage.read(ranges).bytes());
      told.add(storage.explain().toString());
    } catch (StorageException e) {
      told.add(e.kind() + " in " + e.source() + " at " + e.offset() + ": " + e.getMessage());
    }
    return told;
  }

  // ---- end of the example
}
