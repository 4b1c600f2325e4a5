package io.gpunvme.sim;

import static io.gpunvme.sim.MalformedRow.nothing;
import static io.gpunvme.sim.MalformedRow.nsid;
import static io.gpunvme.sim.MalformedRow.or;
import static io.gpunvme.sim.MalformedRow.row;
import static io.gpunvme.sim.MalformedRow.set;

import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.HostMemoryBufferEntry;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Rows about Get Features and Set Features. */
final class MalformedFeatureRows {
  private static final StatusCode FIELD = StatusCode.INVALID_FIELD;
  private static final StatusCode NAMESPACE = StatusCode.INVALID_NAMESPACE_OR_FORMAT;
  private static final int SV = 1 << 31;

  private MalformedFeatureRows() {}

  static Stream<MalformedRow> rows() {
    return Stream.of(unknown(), getting(), setting(), values(), hmb()).flatMap(List::stream);
  }

  private static List<MalformedRow> unknown() {
    int[] fids = {
      0x00,
      FeatureId.LBA_RANGE_TYPE,
      FeatureId.AUTONOMOUS_POWER,
      FeatureId.HOST_CONTROLLED_THERMAL,
      FeatureId.NON_OPERATIONAL_POWER,
      0x7F,
      FeatureId.HOST_IDENTIFIER,
      FeatureId.WRITE_PROTECTION,
      0xC0,
      0xFF
    };
    return IntStream.of(fids)
        .boxed()
        .flatMap(
            fid ->
                Stream.of(
                    row(Example.GET_FEATURES, "FID %02Xh".formatted(fid), set(10, fid), FIELD),
                    row(Example.SET_POWER, "FID %02Xh".formatted(fid), set(10, fid), FIELD)
                        .in("Base 2.0, 5.27")))
        .toList();
  }

  private static List<MalformedRow> getting() {
    Example get = Example.GET_FEATURES;
    Example recovery = Example.GET_ERROR_RECOVERY;
    return List.of(
        row(get, "SEL reserved 4", or(10, 4 << 8), FIELD),
        row(get, "SEL reserved 7", or(10, 7 << 8), FIELD),
        row(get, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE),
        row(get, "VWC not present", set(10, FeatureId.VOLATILE_WRITE_CACHE), FIELD)
            .with(b -> b.volatileWriteCache(false)),
        row(get, "no HMB wanted", set(10, FeatureId.HOST_MEMORY_BUFFER), FIELD)
            .with(b -> b.hmbPreferred(0).hmbMinimum(0)),
        row(get, "KAS = 0", set(10, FeatureId.KEEP_ALIVE_TIMER), FIELD)
            .with(b -> b.keepAlive(false)),
        row(Example.GET_TEMPERATURE, "TMPSEL sensor 1", or(11, 1 << 16), FIELD),
        row(Example.GET_TEMPERATURE, "THSEL reserved", or(11, 2 << 20), FIELD),
        row(Example.GET_TEMPERATURE, "CDW11 bit 0 unused", or(11, 1), FIELD),
        row(Example.GET_VECTOR, "IV beyond the vectors", set(11, 4), FIELD),
        row(Example.GET_VECTOR, "CDW11 bit 16 unused", or(11, 1 << 16), FIELD),
        row(recovery, "NSID 0", nsid(0), NAMESPACE),
        row(recovery, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE),
        row(recovery, "NSID all", nsid(-1), NAMESPACE),
        row(recovery, "NSID inactive", nsid(CommandLab.INACTIVE), FIELD));
  }

  private static List<MalformedRow> setting() {
    StatusCode scope = StatusCode.FEATURE_NOT_NAMESPACE_SPECIFIC;
    StatusCode saveable = StatusCode.FEATURE_NOT_SAVEABLE;
    Example recovery = Example.SET_ERROR_RECOVERY;
    return List.of(
        row(Example.SET_ARBITRATION, "NSID of one namespace", nsid(1), scope),
        row(Example.SET_ARBITRATION, "NSID inactive", nsid(CommandLab.INACTIVE), scope),
        row(Example.SET_ARBITRATION, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE),
        row(Example.SET_TIMESTAMP, "NSID of one namespace", nsid(1), scope),
        row(recovery, "NSID 0", nsid(0), NAMESPACE),
        row(recovery, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE),
        row(recovery, "NSID inactive", nsid(CommandLab.INACTIVE), FIELD),
        row(Example.SET_QUEUES, "SV", or(10, SV), saveable),
        row(Example.SET_POWER, "SV", or(10, SV), saveable),
        row(Example.SET_EVENTS, "SV", or(10, SV), saveable),
        row(Example.SET_TIMESTAMP, "SV", or(10, SV), saveable),
        row(Example.SET_HMB, "SV", or(10, SV), saveable),
        row(
            Example.SET_ATOMICITY,
            "DN, fixed here",
            set(11, 1),
            StatusCode.FEATURE_NOT_CHANGEABLE));
  }

  private static List<MalformedRow> values() {
    Example queues = Example.SET_QUEUES;
    return List.of(
        row(Example.SET_POWER, "PS beyond NPSS", set(11, 1), FIELD),
        row(Example.SET_TEMPERATURE, "TMPSEL sensor 8", or(11, 8 << 16), FIELD),
        row(Example.SET_TEMPERATURE, "THSEL reserved", or(11, 3 << 20), FIELD),
        row(Example.SET_VECTOR, "IV beyond the vectors", set(11, 4), FIELD),
        row(Example.SET_EVENTS, "firmware event, not in OAES", set(11, 1 << 9), FIELD),
        row(Example.SET_ERROR_RECOVERY, "DULBE, not in NSFEAT", or(11, 1 << 16), FIELD),
        row(queues, "NSQR FFFFh", set(11, 0xFFFF), FIELD),
        row(queues, "NCQR FFFFh", set(11, 0xFFFF_0000), FIELD),
        row(
            queues,
            "an I/O queue exists",
            (lab, s) -> lab.host.adminOk(RawHost.createCq(1, 4, lab.bus(), 1, 0)),
            StatusCode.COMMAND_SEQUENCE_ERROR),
        row(Example.SET_WRITE_CACHE, "VWC not present", nothing(), FIELD)
            .with(b -> b.volatileWriteCache(false)));
  }

  private static MalformedRow.Spoil descriptor(long offset, int pages) {
    return (lab, s) -> HostMemoryBufferEntry.put(lab.list.memory(), 0, lab.bus() + offset, pages);
  }

  private static List<MalformedRow> hmb() {
    Example e = Example.SET_HMB;
    StatusCode transfer = StatusCode.DATA_TRANSFER_ERROR;
    return List.of(
        row(e, "HSIZE 0", set(12, 0), FIELD),
        row(e, "HSIZE below HMMIN", set(12, 1), FIELD),
        row(e, "HSIZE more than the descriptors hold", set(12, 5), FIELD),
        row(e, "HMDLLA not 16 byte aligned", or(13, 8), FIELD),
        row(e, "list not mapped", set(13, 0x1000).and(set(14, 0)), transfer).retryable(),
        row(e, "HMDLEC 0", set(15, 0), FIELD),
        row(e, "HMDLEC beyond HMMAXD", set(15, 1025), FIELD),
        row(e, "HMDLEC 2^31", set(15, 1 << 31), FIELD),
        row(e, "BADD not page aligned", descriptor(512, 4), FIELD),
        row(e, "BSIZE 0", descriptor(0, 0), FIELD),
        row(e, "buffer not mapped", descriptor(64 << 10, 32), transfer).retryable(),
        row(e, "BSIZE FFFFFFFFh", descriptor(0, -1), transfer).retryable(),
        row(
            e,
            "enabled already",
            (lab, s) -> {
              MemorySegment first = lab.setHmb();
              lab.host.adminOk(first);
            },
            StatusCode.COMMAND_SEQUENCE_ERROR));
  }
}
