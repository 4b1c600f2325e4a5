package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.SetShape;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.TransferResult;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.plan.Stripes;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;

/**
 * One long read from sets of embedded SSDs in pinned memory, by the storage that programs use,
 * beside a plain copy of as many bytes. Every word that arrived is compared. For one thread.
 */
final class SetBench implements AutoCloseable {
  static final String PREFIX = "set.";

  /** The most that any of them can be: copies of pinned memory, one after the other. */
  static final String LIMIT = PREFIX + "copy";

  private static final String STRIPE = "stripe";
  private static final List<Integer> COUNTS = List.of(1, 2, 4, 8);
  private static final List<Placement> PLACEMENTS = List.of(Placement.HOST, Placement.VRAM_DATA);

  /** Bytes of a member before the next one's turn. */
  private static final long UNIT = 1 << 20;

  private static final int BLOCK_SIZE = 4096;
  private static final double BYTES_PER_MILLI_AND_GB = 1e6;

  /** Of each controller: so the sets of several have more. */
  private static final int WORKERS = 1;

  /** Who looks at what has arrived: words are to be the hashes of their positions. */
  interface Words {
    /** So that what an earlier repetition has brought is not taken for this one's. */
    void clear(DeviceBuffer target);

    /**
     * Looks at all of them.
     *
     * @throws BenchException if some are others
     */
    void check(String id, DeviceBuffer target);
  }

  private final Accelerator accelerator;
  private final Words words;
  private final InitiatorKind initiator;
  private final long bytes;

  /** The SSDs of the last result, and the windows through which their media are pinned. */
  private final List<AutoCloseable> open = new ArrayList<>();

  private final List<BenchDevice> devices = new ArrayList<>();
  private String shape = "";

  /**
   * @param accelerator stays the caller's
   * @param initiator who issues the commands
   * @param bytes of each set, a multiple of 8 MiB
   */
  SetBench(Accelerator accelerator, Words words, InitiatorKind initiator, long bytes) {
    this.accelerator = accelerator;
    this.words = words;
    this.initiator = initiator;
    this.bytes = bytes;
  }

  /** The names of all results, the limit first; those next to each other share SSDs. */
  static List<String> ids() {
    List<String> ids = new ArrayList<>(List.of(LIMIT));
    for (String kind : List.of(STRIPE, "replica")) {
      for (int count : COUNTS) {
        for (Placement placement : PLACEMENTS) {
          ids.add(
              "%s%s.%d.%s".formatted(PREFIX, kind, count, placement.hostData() ? "host" : "vram"));
        }
      }
    }
    return ids;
  }

  /**
   * The rate of a set, 10^9 bytes a second.
   *
   * @param id one of {@link #ids} but the limit
   * @throws BenchException if something else arrived than was on the SSDs, or not from all of them
   */
  Measurement measure(String id, Repetitions repetitions) {
    String[] parts = id.split("\\.");
    boolean striped = parts[1].equals(STRIPE);
    int count = Integer.parseInt(parts[2]);
    Placement placement = parts[3].equals("host") ? Placement.HOST : Placement.VRAM_DATA;
    make(parts[1] + count, striped, count);
    InitiatorOptions by = InitiatorOptions.defaults().with(initiator, placement);
    Map<String, Object> conditions = new LinkedHashMap<>();
    try (DeviceBuffer target = accelerator.allocate(bytes);
        GpuStorage set =
            GpuStorage.over(
                devices.stream().map(BenchDevice::controller).toList(),
                striped ? SetShape.striped(UNIT) : SetShape.replicated(),
                accelerator,
                StorageOptions.defaults().with(by))) {
      double[] samples =
          repetitions.samples(
              () -> {
                words.clear(target);
                TransferResult result = set.read(0, target, 0, bytes);
                words.check(id, target);
                conditions.put("mode", result.mode());
                return result.gigabytesPerSecond();
              });
      List<MemberStats> members = set.members();
      requireAll(id, members, striped);
      conditions.put("bytes", bytes);
      conditions.put("controller_threads", WORKERS);
      conditions.put(
          "bytes_by_member", members.stream().map(MemberStats::bytes).toList().toString());
      MemberStats.slowest(members).ifPresent(m -> conditions.put("slowest", m.name()));
      return Measurement.of(id, "GB/s", samples, conditions);
    }
  }

  /** Copies take what they come to: one that is late may get nothing of it. */
  private static void requireAll(String id, List<MemberStats> members, boolean striped) {
    for (MemberStats m : members) {
      if ((striped && m.bytes() == 0) || m.failures() != 0 || !m.failure().isEmpty()) {
        throw new BenchException(
            "%s: %s moved %d bytes, %d requests failed %s"
                .formatted(id, m.name(), m.bytes(), m.failures(), m.failure()));
      }
    }
  }

  /** SSDs with the words of a set; those of the last result if they are the same. */
  private void make(String wanted, boolean striped, int count) {
    if (shape.equals(wanted)) {
      return;
    }
    closeDevices();
    Stripes stripes = new Stripes(striped ? count : 1, UNIT);
    long each = bytes / stripes.members();
    for (int m = 0; m < count; m++) {
      BenchDevice device =
          new BenchDevice("SSD" + m, each, BLOCK_SIZE, WORKERS, BenchDevice.MAX_TRANSFER);
      devices.add(device);
      open.add(device);
      fill(device.medium(), stripes, striped ? m : 0);
      open.add(accelerator.mapHost(device.medium(), HostMemoryKind.MEMORY));
    }
    shape = wanted;
  }

  private static void fill(MemorySegment medium, Stripes stripes, int member) {
    LongStream.range(0, medium.byteSize() / UNIT)
        .parallel()
        .forEach(
            unit ->
                BlockPattern.hashWords(
                    medium.asSlice(unit * UNIT, UNIT),
                    stripes.offset(member, unit * UNIT) / Long.BYTES));
  }

  /**
   * The rate of copies from pinned memory, 10^9 bytes a second.
   *
   * @throws BenchException if something else arrived
   */
  Measurement limit(GpuAccelerator gpu, Repetitions repetitions) {
    make(STRIPE + 1, true, 1);
    MemorySegment medium = devices.getFirst().medium();
    try (DeviceBuffer target = gpu.allocate(bytes);
        CudaStream stream = gpu.context().stream();
        CudaEvent begin = gpu.context().timingEvent();
        CudaEvent end = gpu.context().timingEvent()) {
      double[] samples =
          repetitions.samples(
              () -> {
                words.clear(target);
                stream.record(begin);
                stream.copyToDeviceAsync(target.deviceAddress(), medium);
                stream.record(end);
                stream.synchronize();
                words.check(LIMIT, target);
                return bytes / end.millisecondsSince(begin) / BYTES_PER_MILLI_AND_GB;
              });
      Map<String, Object> conditions = new LinkedHashMap<>();
      conditions.put("bytes", bytes);
      return Measurement.of(LIMIT, "GB/s", samples, conditions);
    }
  }

  private void closeDevices() {
    shape = "";
    devices.clear();
    CloseAll.newestFirst(open);
  }

  @Override
  public void close() {
    closeDevices();
  }
}
