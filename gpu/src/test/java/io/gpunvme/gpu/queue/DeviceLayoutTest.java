package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.testing.HeaderNumbers;
import io.gpunvme.testing.NativeCompiler;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** {@link DeviceLayout} says the same as the headers. */
class DeviceLayoutTest {
  private final HeaderNumbers numbers =
      new HeaderNumbers(
          NativeCompiler.CPP,
          "#include \"gpunvme/gpunvme.cuh\"\n"
              + DeviceSources.CUDA_WORDS
              + "#include \"kernels/transfer.cu\"\n");

  @Test
  void everyOffsetIsTheHeaders() {
    numbers.structure(DeviceLayout.Queue.class, "Queue", Map.of());
    numbers.structure(DeviceLayout.Recovery.class, "Recovery", Map.of());
    numbers.structure(DeviceLayout.Buffer.class, "Buffer", Map.of("bytes", "size"));
    numbers.structure(DeviceLayout.Namespace.class, "Namespace", Map.of());
    numbers.structure(DeviceLayout.Storage.class, "Storage", Map.of());
    numbers.structure(DeviceLayout.Set.class, "DeviceSet", Map.of());
    numbers.structure(DeviceLayout.Member.class, "SetMember", Map.of());
    numbers.structure(DeviceLayout.File.class, "DeviceFile", Map.of("bytes", "size"));
    numbers.size("FileExtent", DeviceLayout.Extent.SIZE);
    numbers.field("FileExtent", "offset", DeviceLayout.Extent.OFFSET);
    numbers.field("FileExtent", "block", DeviceLayout.Extent.BLOCK);
    numbers.value("static_cast<long>(FileExtent::kHole)", DeviceLayout.Extent.HOLE);
    numbers.structure(DeviceLayout.Directory.class, "DeviceDirectory", Map.of());
    numbers.size("DirectorySlot", DeviceLayout.PathSlot.SIZE);
    numbers.field("DirectorySlot", "hash", DeviceLayout.PathSlot.HASH);
    numbers.field("DirectorySlot", "file", DeviceLayout.PathSlot.FILE);
    value("DirectorySlot::kNone", DeviceLayout.PathSlot.NONE);
    numbers.structure(DeviceLayout.Cache.class, "PageCache", Map.of());
    value("kWays", DeviceLayout.Cache.WAYS);
    numbers.size("FrameSet", DeviceLayout.FrameSet.SIZE);
    numbers.structure(DeviceLayout.FrameInfo.class, "FrameInfo", Map.of());
    numbers.structure(DeviceLayout.SetSide.class, "SetSide", Map.of());
    numbers.structure(DeviceLayout.Tier.class, "HostTier", Map.of());
    numbers.structure(DeviceLayout.PageSource.class, "PageSource", Map.of());
    numbers.structure(DeviceLayout.Array.class, "DeviceArray", Map.of());
    numbers.structure(DeviceLayout.TransferArgs.class, "TransferArgs", Map.of());
    value("queue_flags::kDoorbellsInMemory", DeviceLayout.Queue.DOORBELLS_IN_MEMORY);
    value("queue_flags::kShared", DeviceLayout.Queue.SHARED);
    value("queue_flags::kRingsInGpuMemory", DeviceLayout.Queue.RINGS_IN_GPU_MEMORY);
    value("slot::kInFlight", DeviceLayout.Slot.IN_FLIGHT);
    value("slot::kQuarantined", DeviceLayout.Slot.QUARANTINED);
    value("slot::kFree", DeviceLayout.Slot.FREE);
    numbers.size("SlotInfo", DeviceLayout.Slot.INFO_SIZE);
    value("Storage::kVersion", DeviceLayout.Storage.CURRENT);
    errors();
    statuses();
    assertThat(numbers.count()).isGreaterThan(80);
    numbers.compare(
        "-Wno-invalid-offsetof", "-Wno-missing-field-initializers", DeviceSources.INCLUDE);
  }

  /** A constant of 32 bits or fewer, as Java's {@code int} has it. */
  private void value(String theirs, int our) {
    numbers.value("static_cast<int>(" + theirs + ")", our);
  }

  private void errors() {
    Map<String, Long> fields =
        Map.of(
            "kind", DeviceLayout.Errors.KIND,
            "status", DeviceLayout.Errors.STATUS,
            "qid", DeviceLayout.Errors.QID,
            "cid", DeviceLayout.Errors.CID,
            "slba", DeviceLayout.Errors.SLBA,
            "opcode", DeviceLayout.Errors.OPCODE,
            "user", DeviceLayout.Errors.USER);
    fields.forEach((name, offset) -> numbers.field("ErrorRecord", name, offset));
    numbers.size("ErrorRecord", DeviceLayout.Errors.RECORD_SIZE);
    numbers.field("ErrorLog", "count", DeviceLayout.Errors.COUNT);
    numbers.field("ErrorLog", "capacity", DeviceLayout.Errors.CAPACITY);
    numbers.field("ErrorLog", "record", DeviceLayout.Errors.RECORDS);
    for (DeviceError.Kind kind : DeviceError.Kind.values()) {
      value("trouble::" + constant(kind), kind.ordinal() + 1);
    }
  }

  private static String constant(Enum<?> value) {
    return "k" + value.name().charAt(0) + value.name().substring(1).toLowerCase(Locale.ROOT);
  }

  private void statuses() {
    value("status::kAbortedByHost", DeviceStatus.ABORTED_BY_HOST);
    value("status::kPending", DeviceStatus.PENDING);
    value("status::kTimeout", DeviceStatus.TIMEOUT);
    value("status::kStopped", DeviceStatus.STOPPED);
    value("status::kBusy", DeviceStatus.BUSY);
    value("status::kArgument", DeviceStatus.ARGUMENT);
    value("status::kCorrupt", DeviceStatus.CORRUPT);
  }
}
