package io.gpunvme.tools.fleet;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.tools.fleet.FluidSimulation.Link;
import io.gpunvme.tools.fleet.FluidSimulation.Use;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * One simulated load of a fleet. Each GPU reads its part of each file, one file after the other:
 * before the first one pinned memory (one caller of a process at a time), then of each what else a
 * first read takes, and bytes. A checkpoint's files are read at once. What others need goes on to
 * them while the next file is read.
 */
final class LoadRun {
  /** Of files, by GPUs that do not do the same; more would take minutes. */
  private static final int MOST_READS = 4096;

  private final Fleet fleet;
  private final Parameters parameters;
  private final Way way;
  private final boolean checkpoint;
  private final FluidSimulation simulation = new FluidSimulation();
  private final Link fabric;
  private final Link pool;
  private final List<Loader> loaders = new ArrayList<>();
  private final int files;

  /** Of the model or checkpoint, once. */
  private final double bytes;

  private double end;
  private @Nullable Collective collective;

  private LoadRun(Fleet fleet, Parameters parameters, Way way, boolean checkpoint) {
    this.fleet = fleet;
    this.parameters = parameters;
    this.way = way;
    this.checkpoint = checkpoint;
    bytes = checkpoint ? fleet.checkpointBytes() : fleet.modelBytes();
    files = checkpoint ? (int) get(Parameter.DCP_FILES) : files(bytes);
    fabric =
        simulation.link(
            "fabric", fleet.machines() * get(Parameter.NIC) / get(Parameter.OVERSUBSCRIPTION), 1);
    pool = simulation.link("pool", poolRate(fleet, parameters, Parameter.SSD_READ), 1);
  }

  /** Bytes a second of all targets together. */
  static double poolRate(Fleet fleet, Parameters parameters, Parameter ssd) {
    return fleet.targets()
        * Math.min(
            parameters.get(Parameter.TARGET_NIC),
            parameters.get(Parameter.TARGET_SSDS) * parameters.get(ssd));
  }

  private double get(Parameter parameter) {
    return parameters.get(parameter);
  }

  private int files(double model) {
    double count = Math.ceil(model / get(Parameter.FILE));
    long readers = fleet.oneProcess() ? fleet.gpus() : 1;
    if (count * readers > MOST_READS) {
      throw new InvalidRequestException(
          ("a model of %.0f files of %sGB, read by %d GPUs one by one: at most %d reads can be"
                  + " simulated, so raise the parameter file")
              .formatted(count, Parameter.shown(get(Parameter.FILE) / 1e9), readers, MOST_READS));
    }
    return (int) Math.max(1, count);
  }

  // ---- the runs

  /** All machines load, none fails. */
  static Traffic plain(Fleet fleet, Parameters parameters, Way way) {
    LoadRun run = new LoadRun(fleet, parameters, way, false);
    run.begin(fleet.machines(), 0);
    return run.finish();
  }

  /** All machines load the parts of a checkpoint that they have written. */
  static Traffic checkpoint(Fleet fleet, Parameters parameters, Way way) {
    // Each reads what it has written, so there is nothing to be gathered.
    Way from = way == Way.PEERS ? Way.OWN : way;
    LoadRun run = new LoadRun(fleet.withPlacement(Placement.SHARDED), parameters, from, true);
    run.begin(fleet.machines(), 0);
    return run.finish();
  }

  /**
   * Machines that do not wait for each other: some fail, and spares load what those should have.
   *
   * @param failAt seconds after the beginning
   */
  static Traffic spared(Fleet fleet, Parameters parameters, Way way, double failAt) {
    LoadRun run = new LoadRun(fleet, parameters, way, false);
    long lost = fleet.lost();
    Machines rest = run.begin(fleet.machines() - lost, 0);
    Machines failing = run.begin(lost, 0);
    run.simulation.after(failAt, failing::fail);
    run.simulation.after(failAt + run.get(Parameter.DETECT), () -> run.beginSpares(lost, rest));
    return run.finish();
  }

  /** A load that all end before it is over. */
  static Traffic ended(Fleet fleet, Parameters parameters, Way way, double seconds) {
    LoadRun run = new LoadRun(fleet, parameters, way, false);
    Machines all = run.begin(fleet.machines(), 0);
    run.simulation.after(seconds, all::fail);
    run.finish();
    return Traffic.of(run.simulation, seconds);
  }

  /**
   * Machines that gather, some of them spares that have no part: the machines with the second
   * copies read and give those, too.
   */
  static Traffic gatheredWithSpares(Fleet fleet, Parameters parameters) {
    LoadRun run = new LoadRun(fleet, parameters, Way.PEERS, false);
    long lost = fleet.lost();
    if (fleet.machines() > 2 * lost) {
      run.begin(fleet.machines() - 2 * lost, 0);
    }
    run.begin(lost, 1);
    run.begin(lost, -1);
    return run.finish();
  }

  private Traffic finish() {
    simulation.run();
    return Traffic.of(simulation, end);
  }

  // ---- machines

  private Machines machines(long count) {
    return new Machines(simulation, fleet, parameters, (double) count, get(Parameter.SSD_READ));
  }

  /**
   * Machines begin to load.
   *
   * @param more parts of others that each of them reads beside its own; -1: not even that
   */
  private Machines begin(long count, int more) {
    Machines some = machines(count);
    double each = readByGpu() * (1 + more);
    new Loader(some, each, group -> source(some, group)).begin();
    return some;
  }

  /** From all machines that are left, by way of the network; from the pool if that is the way. */
  private void beginSpares(long count, Machines givers) {
    Machines spares = machines(count);
    IntFunction<List<Use>> source = group -> source(spares, group);
    if (way != Way.POOL) {
      source =
          group -> {
            List<Use> uses = new ArrayList<>(spares.toGpu(group));
            double members = spares.width() * spares.count();
            uses.add(givers.ssds(members / givers.count()));
            uses.add(givers.out(members / givers.count()));
            uses.add(new Use(fabric, members));
            uses.add(spares.in(spares.width()));
            return uses;
          };
    }
    new Loader(spares, readByGpu(), source).begin();
  }

  /** Bytes that each GPU reads by itself. */
  private double readByGpu() {
    boolean divided = way == Way.PEERS || fleet.placement() == Placement.SHARDED;
    return switch (fleet.placement()) {
      case ALONE -> bytes;
      case MACHINE, GPU, SHARDED -> bytes / fleet.gpus() / (divided ? fleet.machines() : 1);
    };
  }

  /** Bytes that each GPU has in the end. */
  private double keptByGpu() {
    return switch (fleet.placement()) {
      case GPU, ALONE -> bytes;
      case MACHINE -> bytes / fleet.gpus();
      case SHARDED -> bytes / fleet.gpus() / fleet.machines();
    };
  }

  private List<Use> source(Machines some, int group) {
    List<Use> uses = new ArrayList<>(some.toGpu(group));
    switch (way) {
      case CACHE -> {}
      case OWN, PEERS -> uses.add(some.ssds(some.width()));
      case POOL -> {
        double all = some.width() * some.count();
        uses.add(new Use(pool, all));
        uses.add(new Use(fabric, all));
        uses.add(some.in(some.width()));
      }
    }
    return uses;
  }

  private Collective collective() {
    Collective found = collective;
    if (found == null) {
      found = new Collective();
      collective = found;
    }
    return found;
  }

  // ---- what a machine does

  /** What the processes of some machines do, all of them the same. */
  private final class Loader {
    private final Machines machines;
    private final double perFile;
    private final IntFunction<List<Use>> source;
    private final FluidSimulation.Lock driver = simulation.lock();

    /** Files that groups still read, and copies that are under way. */
    private int open;

    /** Of each file, how many groups have read it. */
    private final int[] have = new int[files];

    /**
     * @param each bytes that a GPU reads
     * @param source of a group's flows
     */
    Loader(Machines machines, double each, IntFunction<List<Use>> source) {
      this.machines = machines;
      this.source = source;
      perFile = each / files;
      loaders.add(this);
    }

    /** GPUs that a process has. */
    private int gpus() {
      return machines.groups();
    }

    void begin() {
      double memory = checkpoint ? 0 : keptByGpu() * gpus() / get(Parameter.ALLOCATE);
      double more = checkpoint ? get(Parameter.DCP) : 0;
      open = files * gpus();
      machines.after(
          files * get(Parameter.OPEN) + memory + more,
          () -> {
            for (int group = 0; group < gpus(); group++) {
              if (checkpoint) {
                for (int file = 0; file < files; file++) {
                  read(group, file);
                }
              } else {
                read(group, 0);
              }
            }
          });
    }

    private void read(int group, int file) {
      if (perFile == 0) {
        arrived(group, file);
        return;
      }
      Runnable transfer =
          () ->
              machines.after(
                  get(Parameter.START),
                  () -> machines.flow(perFile, source.apply(group), () -> arrived(group, file)));
      if (file == 0) {
        driver.hold(get(Parameter.PIN), transfer);
      } else if (checkpoint) {
        // All begin at once, and each waits for what its GPU pins for the first.
        driver.hold(0, transfer);
      } else {
        transfer.run();
      }
    }

    private void arrived(int group, int file) {
      if (!checkpoint && file + 1 < files) {
        read(group, file + 1);
      }
      if (gathers()) {
        have[file]++;
        if (have[file] == gpus()) {
          collective().arrived(file);
        }
      } else {
        share(group, perFile);
      }
    }

    /** Of a file, all machines have gathered what each of them reads. */
    void gathered() {
      for (int group = 0; group < gpus(); group++) {
        share(group, bytes / fleet.gpus() / files);
      }
    }

    /** Copies what a GPU has of a file to those of its machine that need it too. */
    private void share(int group, double got) {
      if (fleet.placement() == Placement.GPU && fleet.gpus() > 1 && got > 0) {
        machines.flow(got * (fleet.gpus() - 1), machines.toPeers(group), this::over);
      } else {
        over();
      }
    }

    private void over() {
      open--;
      if (open == 0) {
        end = Math.max(end, simulation.now());
      }
    }
  }

  private boolean gathers() {
    return way == Way.PEERS && fleet.machines() > 1;
  }

  /**
   * Gathers one file after the other, as soon as all machines have read their parts of it. By a
   * ring each machine gets all other parts, and passes on as many bytes; parts that only their
   * owner needs go there at once.
   */
  private final class Collective {
    private final int[] arrivals = new int[files];
    private final FluidSimulation.Lock one = simulation.lock();

    private void arrived(int file) {
      arrivals[file]++;
      if (arrivals[file] == loaders.size()) {
        one.acquire(
            () ->
                simulation.after(
                    waits(), () -> simulation.flow(perMachine(), uses(), this::gathered)));
      }
    }

    private void gathered() {
      one.release();
      loaders.forEach(Loader::gathered);
    }

    /** Seconds that the steps of all buckets of a file wait for the network. */
    private double waits() {
      double buckets = Math.ceil(bytes / files / get(Parameter.BUCKET));
      double steps = fleet.placement() == Placement.SHARDED ? 1 : fleet.machines() - 1.0;
      return buckets * steps * get(Parameter.HOP);
    }

    /** Bytes of a file that each machine gets. */
    private double perMachine() {
      double needed =
          bytes / files / (fleet.placement() == Placement.SHARDED ? fleet.machines() : 1);
      return needed * (fleet.machines() - 1) / fleet.machines();
    }

    private List<Use> uses() {
      List<Use> uses = new ArrayList<>();
      uses.add(new Use(fabric, fleet.machines()));
      for (Loader loader : loaders) {
        uses.add(loader.machines.out(1));
        // One that has read nothing gets its own part, too.
        boolean spare = loader.perFile == 0;
        uses.add(loader.machines.in(spare ? fleet.machines() / (fleet.machines() - 1.0) : 1));
        uses.addAll(loader.machines.networkToGpus());
      }
      return uses;
    }
  }
}
