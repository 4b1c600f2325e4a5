package io.gpunvme.bench;

import com.sun.management.ThreadMXBean;
import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.tools.bench.BenchException;
import io.gpunvme.tools.bench.BenchMachine;
import io.gpunvme.tools.bench.BlockPattern;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.bench.MeasurementFile;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.IntToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * What one short read costs, from Java, C and Python; {@link BindingsBenchOptions#USAGE} has the
 * options, of which {@code --out}, {@code --capi}, {@code --python} and {@code --package} are for
 * it. Beside reads of {@code GpuStorage} stand those that nothing can be faster than: the queue
 * pair of the same embedded controller, and {@code FileChannel.read} of the same file, which has 64
 * MiB and lies in the working directory. C and Python are processes with an embedded SSD of their
 * own. One thread, one read at a time, the rows in turn; a sample is the median of its reads.
 * {@link CrowdedReads} has the rows with more.
 */
public final class SmallReadsBench {
  private static final long BYTES = 64L << 20;
  private static final int BLOCK = 4096;
  private static final int READS = 20_000;

  /** As small.py has it: each costs more there. */
  private static final int PYTHON_READS = 5_000;

  private static final int CHECKED = 200;
  private static final int REPETITIONS = 9;
  private static final int WARMUPS = 2;
  private static final String SSD = "sim:size=64MiB,lba=4096,latency=0";
  private static final Map<String, Integer> LENGTHS = lengths();
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private static final List<String> PATHS = List.of("sim", "auto", "mmap", "pinned");

  private final BindingsCommands commands;
  private final List<Row> rows = new ArrayList<>();

  private SmallReadsBench(BindingsCommands commands) {
    this.commands = commands;
  }

  private static Map<String, Integer> lengths() {
    Map<String, Integer> lengths = new LinkedHashMap<>();
    lengths.put("512", 512);
    lengths.put("4k", 4 << 10);
    lengths.put("64k", 64 << 10);
    return lengths;
  }

  /** Reads {@code length} bytes at an offset into the row's buffer. */
  private interface Read {
    void run(long offset) throws IOException;
  }

  /** Measures one sample. */
  private interface Sampler {
    /** Many reads at places that follow from the seed: the median, ns, or their rate. */
    double once(int seed) throws IOException;
  }

  /** One result to be. */
  private static final class Row {
    private final String id;
    private final @Nullable String limit;
    private final Sampler sampler;
    private final Map<String, Object> conditions = new LinkedHashMap<>();
    private String unit = "ns";
    private final double[] samples = new double[REPETITIONS];

    Row(String id, @Nullable String limit, int length, Sampler sampler) {
      this.id = id;
      this.limit = limit;
      this.sampler = sampler;
      conditions.put("bytes", length);
      conditions.put("threads", 1);
    }

    Measurement measurement() {
      if (sampler instanceof JavaSampler java) {
        conditions.put("allocated_bytes_per_read", BenchMain.round(java.allocated));
      }
      return new Measurement(id, unit, samples, conditions, null, null);
    }
  }

  /** Reads in this process. */
  private static final class JavaSampler implements Sampler {
    private final String id;
    private final int length;
    private final MemorySegment target;
    private final Read read;
    private double allocated;

    JavaSampler(String id, int length, MemorySegment target, Read read) {
      this.id = id;
      this.length = length;
      this.target = target;
      this.read = read;
    }

    @Override
    public double once(int seed) throws IOException {
      SplittableRandom random = new SplittableRandom(seed);
      long[] nanos = new long[READS];
      long before = THREADS.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < READS; i++) {
        long offset = offset(random);
        long begin = System.nanoTime();
        read.run(offset);
        nanos[i] = System.nanoTime() - begin;
      }
      allocated = (double) (THREADS.getCurrentThreadAllocatedBytes() - before) / READS;
      for (int i = 0; i < CHECKED; i++) {
        check(offset(random));
      }
      Arrays.sort(nanos);
      return nanos[READS / 2];
    }

    private long offset(SplittableRandom random) {
      return random.nextLong((BYTES - (64 << 10)) / BLOCK) * BLOCK;
    }

    private void check(long offset) throws IOException {
      target.asSlice(0, length).fill((byte) 0);
      read.run(offset);
      for (long i = 0; i < length; i += Long.BYTES) {
        if (target.get(ValueLayout.JAVA_LONG, i) != BlockPattern.hash((offset + i) / Long.BYTES)) {
          throw new BenchException(id + ": wrong data at byte " + (offset + i));
        }
      }
    }
  }

  /** See the class. */
  public static void main(String[] args) throws IOException {
    BindingsBenchOptions options;
    try {
      options = BindingsBenchOptions.parse(List.of(args), System.getenv());
    } catch (IllegalArgumentException e) {
      System.err.println(e.getMessage() + "\n" + BindingsBenchOptions.USAGE);
      System.exit(2);
      return;
    }
    Path file = Path.of("gpunvme-small-reads.bin").toAbsolutePath();
    // Also when the process is told to end.
    file.toFile().deleteOnExit();
    // Written just now, or read whole: the page cache has it.
    PatternFile.at(file, BYTES);
    List<Measurement> results = new SmallReadsBench(new BindingsCommands(options)).measure(file);
    MeasurementFile out =
        MeasurementFile.beside(options.out(), BenchMachine.withoutGpu(), GpuBench.commit());
    for (Measurement m : results) {
      System.out.println(GpuBench.line(m));
      out.add(m);
    }
    System.out.println("wrote " + out.path());
  }

  private List<Measurement> measure(Path file) throws IOException {
    byte[] data = Files.readAllBytes(file);
    StorageOptions writable = StorageOptions.defaults().withWrite(true);
    ControllerOptions options = ControllerOptions.builder().allowWrite(true).build();
    try (CpuAccelerator cpu = CpuAccelerator.open();
        DeviceBuffer buffer = cpu.allocate(64 << 10);
        Device engine = Device.open(DeviceAddress.parse(SSD), options, "");
        GpuStorage sim = GpuStorage.open(StorageAddress.parse(SSD), cpu, writable);
        FileChannel channel = FileChannel.open(file, StandardOpenOption.READ);
        GpuStorage auto = open(file, null, cpu);
        GpuStorage mmap = open(file, PathKind.MMAP, cpu);
        GpuStorage pinned = open(file, PathKind.PINNED, cpu)) {
      fill(cpu, sim, data);
      MemorySegment.copy(MemorySegment.ofArray(data), 0, engine.memory(1).orElseThrow(), 0, BYTES);
      EngineRead queue = new EngineRead(engine.controller(), buffer);
      LENGTHS.forEach(
          (name, length) -> {
            // A queue pair reads whole blocks.
            int blocks = Math.max(1, length / BLOCK);
            add("small.engine." + name, null, length, buffer, at -> queue.run(at, blocks));
            storage("sim", "small.engine.", name, length, sim, buffer);
            ByteBuffer target = buffer.segment().asSlice(0, length).asByteBuffer();
            add(
                "small.filechannel." + name,
                null,
                length,
                buffer,
                at -> channel.read(target.clear(), at));
            storage("auto", "small.filechannel.", name, length, auto, buffer);
            storage("mmap", "small.filechannel.", name, length, mmap, buffer);
            storage("pinned", "small.filechannel.", name, length, pinned, buffer);
          });
      crowded(new CrowdedReads(sim, cpu, BYTES));
      try (CloseList children = new CloseList()) {
        for (BindingsSide side : List.of(BindingsSide.C, BindingsSide.PYTHON)) {
          otherSide(side, file, children);
        }
        run();
      }
      queue.close();
    }
    return results();
  }

  private static GpuStorage open(Path file, @Nullable PathKind path, CpuAccelerator cpu) {
    StorageAddress address = StorageAddress.parse(file.toString());
    return GpuStorage.open(
        path == null ? address : address.with(path), cpu, StorageOptions.defaults());
  }

  private static void fill(CpuAccelerator cpu, GpuStorage sim, byte[] data) {
    try (DeviceBuffer whole = cpu.allocate(BYTES)) {
      whole.copyFromHost(MemorySegment.ofArray(data), 0);
      sim.write(0, whole, 0, BYTES);
    }
  }

  private void storage(
      String what, String limit, String name, int length, GpuStorage storage, DeviceBuffer buffer) {
    add(
        "small." + what + "." + name + ".java",
        limit + name,
        length,
        buffer,
        at -> storage.read(at, buffer, 0, length));
  }

  private void add(String id, @Nullable String limit, int length, DeviceBuffer buffer, Read read) {
    Row row = new Row(id, limit, length, new JavaSampler(id, length, buffer.segment(), read));
    row.conditions.put("reads_per_sample", READS);
    rows.add(row);
  }

  /** What others do to short reads of the same storage: threads that read, too, and a long read. */
  private void crowded(CrowdedReads reads) {
    String alone = "small.threads.1";
    for (int threads : CrowdedReads.THREADS) {
      String id = "small.threads." + threads;
      Row row = crowd(id, "commands/s", id.equals(alone) ? null : alone, reads.rate(id, threads));
      row.conditions.put("threads", threads);
    }
    crowd("small.beside.4k", "ns", "small.sim.4k.java", reads::besideLongRead)
        .conditions
        .put("long_read_bytes", CrowdedReads.LONG_BYTES);
  }

  private Row crowd(String id, String unit, @Nullable String limit, IntToDoubleFunction sampler) {
    Row row = new Row(id, limit, CrowdedReads.LENGTH, sampler::applyAsDouble);
    row.unit = unit;
    rows.add(row);
    return row;
  }

  /** The rows of a program, beside those of Java. */
  private void otherSide(BindingsSide side, Path file, CloseList children) {
    BindingsChild child;
    try {
      child = commands.startSmall(side, file, SSD);
    } catch (BindingsChild.MissingException e) {
      System.out.println("not measured: small.*." + side + ": " + e.getMessage());
      return;
    }
    children.add(child);
    // Signals are Python's main thread's, which costs it something.
    List<String> threads =
        side == BindingsSide.PYTHON ? List.of("main", "worker") : List.of("main");
    for (String path : PATHS) {
      LENGTHS.forEach(
          (name, length) -> {
            for (String thread : threads) {
              String id = "small." + path + "." + name;
              Row row =
                  new Row(
                      id + "." + side + (thread.equals("worker") ? "-worker" : ""),
                      id + ".java",
                      length,
                      seed -> child.ask(path + " " + length + " " + seed + " " + thread)[0]);
              row.conditions.put("reads_per_sample", side == BindingsSide.C ? READS : PYTHON_READS);
              rows.add(row);
            }
          });
    }
  }

  /** Closes what was put in. */
  private static final class CloseList implements AutoCloseable {
    private final List<BindingsChild> all = new ArrayList<>();

    void add(BindingsChild child) {
      all.add(child);
    }

    @Override
    public void close() {
      CloseAll.each(all, BindingsChild::close);
    }
  }

  private void run() throws IOException {
    for (int i = -WARMUPS; i < REPETITIONS; i++) {
      for (Row row : rows) {
        double sample = row.sampler.once(i & Integer.MAX_VALUE);
        if (i >= 0) {
          row.samples[i] = sample;
        }
      }
    }
  }

  private List<Measurement> results() {
    Map<String, Measurement> done = new LinkedHashMap<>();
    for (Row row : rows) {
      Measurement own = row.measurement();
      String limit = row.limit;
      Measurement known = limit == null ? null : done.get(limit);
      done.put(row.id, known == null ? own : own.limitedBy(known));
    }
    return List.copyOf(done.values());
  }

  /** Submit, ring and poll, with nothing above. */
  private static final class EngineRead implements AutoCloseable {
    private final NvmeController controller;
    private final QueuePair queue;
    private final BusRange target;
    private int status = -1;

    EngineRead(NvmeController controller, DeviceBuffer buffer) {
      this.controller = controller;
      queue = controller.createQueuePair(1);
      target = buffer.mapFor(controller.function());
    }

    void run(long offset, int blocks) {
      status = -1;
      queue.submitIo(
          IoOpcode.READ, 1, offset / BLOCK, blocks, 0, target, 0, (long) blocks * BLOCK, 0);
      queue.ring();
      while (status < 0) {
        queue.poll((_, _, result) -> status = result);
        Thread.onSpinWait();
      }
      if (!Status.ok(status)) {
        throw new BenchException("status %Xh of a read".formatted(status));
      }
    }

    @Override
    public void close() {
      controller.deleteQueuePair(queue);
    }
  }
}
