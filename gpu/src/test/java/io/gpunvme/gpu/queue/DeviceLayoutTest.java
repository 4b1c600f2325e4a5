package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@link DeviceLayout} says the same as the headers. */
class DeviceLayoutTest {
  @TempDir Path folder;

  /** Names that do not follow from the header's by upper case. */
  private static final Map<String, String> FIELDS =
      Map.of("Buffer.bytes", "size", "Storage.current", "");

  @Test
  void everyOffsetIsTheHeaders() throws Exception {
    Map<String, Long> ours = new TreeMap<>();
    StringBuilder program = new StringBuilder();
    program.append(
        """
        #include <cstddef>
        #include <cstdio>
        #include "gpunvme/gpunvme.cuh"
        #define __device__
        #define __global__
        #define __launch_bounds__(n)
        struct Dim { unsigned x; };
        static Dim blockIdx;
        #include "kernels/transfer.cu"
        #define OFFSET(s, java, f) printf("%s.%s %zu\\n", #s, java, offsetof(s, f))
        #define VALUE(name, v) printf("%s %lld\\n", name, static_cast<long long>(static_cast<int>(v)))
        int main() {
        """);
    struct(program, ours, DeviceLayout.Queue.class, "Queue");
    struct(program, ours, DeviceLayout.Buffer.class, "Buffer");
    struct(program, ours, DeviceLayout.Namespace.class, "Namespace");
    struct(program, ours, DeviceLayout.Storage.class, "Storage");
    struct(program, ours, DeviceLayout.TransferArgs.class, "TransferArgs");
    value(
        program,
        ours,
        "flag.doorbells",
        DeviceLayout.Queue.DOORBELLS_IN_MEMORY,
        "queue_flags::kDoorbellsInMemory");
    value(program, ours, "flag.shared", DeviceLayout.Queue.SHARED, "queue_flags::kShared");
    value(
        program,
        ours,
        "flag.rings",
        DeviceLayout.Queue.RINGS_IN_GPU_MEMORY,
        "queue_flags::kRingsInGpuMemory");
    value(program, ours, "slot.inFlight", DeviceLayout.Slot.IN_FLIGHT, "slot::kInFlight");
    value(program, ours, "slot.quarantined", DeviceLayout.Slot.QUARANTINED, "slot::kQuarantined");
    value(program, ours, "slot.free", DeviceLayout.Slot.FREE, "slot::kFree");
    value(program, ours, "slot.info", DeviceLayout.Slot.INFO_SIZE, "sizeof(SlotInfo)");
    value(program, ours, "version", DeviceLayout.Storage.CURRENT, "Storage::kVersion");
    errors(program, ours);
    statuses(program, ours);
    program.append("return blockIdx.x; }\n");
    Path check =
        NativeCompiler.compile(
            folder,
            "layout",
            program.toString(),
            "-Wno-invalid-offsetof",
            "-Wno-missing-field-initializers");

    Map<String, Long> theirs =
        NativeCompiler.run(List.of(check.toString()))
            .lines()
            .map(line -> line.split(" "))
            .collect(Collectors.toMap(p -> p[0], p -> Long.parseLong(p[1])));

    assertThat(ours).hasSizeGreaterThan(80).containsExactlyInAnyOrderEntriesOf(theirs);
  }

  /** Every long constant but SIZE is an offset; the field has its name in lower case. */
  private static void struct(
      StringBuilder program, Map<String, Long> ours, Class<?> layout, String struct)
      throws IllegalAccessException {
    for (Field field : layout.getDeclaredFields()) {
      if (field.getType() != long.class) {
        continue;
      }
      String name = field.getName().toLowerCase(Locale.ROOT);
      ours.put(struct + "." + name, field.getLong(null));
      if (name.equals("size")) {
        program.append("VALUE(\"%s.size\", sizeof(%s));\n".formatted(struct, struct));
      } else {
        String theirs = FIELDS.getOrDefault(struct + "." + name, name);
        program.append("OFFSET(%s, \"%s\", %s);\n".formatted(struct, name, theirs));
      }
    }
  }

  private static void value(
      StringBuilder program, Map<String, Long> ours, String name, long value, String theirs) {
    ours.put(name, value);
    program.append("VALUE(\"%s\", %s);\n".formatted(name, theirs));
  }

  private static void errors(StringBuilder program, Map<String, Long> ours) {
    Map<String, Long> fields =
        Map.of(
            "kind", DeviceLayout.Errors.KIND,
            "status", DeviceLayout.Errors.STATUS,
            "qid", DeviceLayout.Errors.QID,
            "cid", DeviceLayout.Errors.CID,
            "slba", DeviceLayout.Errors.SLBA,
            "opcode", DeviceLayout.Errors.OPCODE,
            "user", DeviceLayout.Errors.USER);
    fields.forEach(
        (name, offset) ->
            value(program, ours, "record." + name, offset, "offsetof(ErrorRecord, " + name + ")"));
    value(program, ours, "record", DeviceLayout.Errors.RECORD_SIZE, "sizeof(ErrorRecord)");
    value(program, ours, "log.count", DeviceLayout.Errors.COUNT, "offsetof(ErrorLog, count)");
    value(
        program,
        ours,
        "log.capacity",
        DeviceLayout.Errors.CAPACITY,
        "offsetof(ErrorLog, capacity)");
    value(program, ours, "log.record", DeviceLayout.Errors.RECORDS, "offsetof(ErrorLog, record)");
    Map<DeviceError.Kind, String> kinds =
        Arrays.stream(DeviceError.Kind.values())
            .collect(Collectors.toMap(Function.identity(), DeviceLayoutTest::constant));
    kinds.forEach(
        (kind, theirs) ->
            value(program, ours, "kind." + kind, kind.ordinal() + 1, "trouble::" + theirs));
  }

  private static String constant(Enum<?> value) {
    return "k" + value.name().charAt(0) + value.name().substring(1).toLowerCase(Locale.ROOT);
  }

  private static void statuses(StringBuilder program, Map<String, Long> ours) {
    value(program, ours, "status.pending", DeviceStatus.PENDING, "status::kPending");
    value(program, ours, "status.timeout", DeviceStatus.TIMEOUT, "status::kTimeout");
    value(program, ours, "status.stopped", DeviceStatus.STOPPED, "status::kStopped");
    value(program, ours, "status.busy", DeviceStatus.BUSY, "status::kBusy");
    value(program, ours, "status.argument", DeviceStatus.ARGUMENT, "status::kArgument");
  }
}
