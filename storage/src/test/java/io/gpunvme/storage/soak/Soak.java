package io.gpunvme.storage.soak;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.nvme.Footprint;
import io.gpunvme.storage.SetShape;
import io.gpunvme.storage.injection.InjectedClasses;
import io.gpunvme.storage.injection.Scenario;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Rounds of work. After each, everything is closed, must hold what was written, and must have left
 * nothing.
 */
public final class Soak implements Scenario {
  private static final Duration LONGEST_ROUND = Duration.ofSeconds(20);
  private static final long HANG = Duration.ofSeconds(120).toNanos();

  /** In each round of this number nothing is injected: then one copy of a replica is enough. */
  private static final int QUIET = 3;

  /** By then all is compiled that is going to be, and the heap is as large as it gets. */
  private static final int WARM = 6;

  private final InjectedClasses classes;
  private final long seed;
  private final Duration duration;
  private final SplittableRandom random;
  private final Tally tally = new Tally();
  private final Queue<Throwable> defects = new ConcurrentLinkedQueue<>();
  private final List<SoakedStorage> storages = new ArrayList<>();
  private final List<Worker> workers = new ArrayList<>();
  private final List<Actor> disturbers = new ArrayList<>();
  private final BuffersAtRest atRest;
  private final FakeDriver driver = FakeDriver.fresh();
  private final Map<Server, Footprint> servers = new HashMap<>();
  private @Nullable Accelerator cpu;
  private @Nullable Accelerator gpu;
  private volatile boolean injects;
  private @Nullable Held first;
  private @Nullable Held warm;

  /** A soak of that seed, for so long. */
  public Soak(InjectedClasses classes, long seed, Duration duration) {
    this.classes = classes;
    this.seed = seed;
    this.duration = duration;
    random = new SplittableRandom(seed);
    atRest = new BuffersAtRest(random.split(), tally);
  }

  @Override
  public void run(Path folder) throws Exception {
    try {
      add(folder, "mmap", null, false, "?path=mmap");
      add(folder, "pinned", null, false, "?path=pinned");
      add(folder, "sim", null, false, "sim:workers=1,queues=8");
      add(folder, "mapped", null, false, "sim:workers=1,media=mapped,lba=4096,latency=20us");
      add(folder, "stripe-sim", striped(), false, "sim:workers=1", "sim:workers=1,lba=4096");
      add(folder, "stripe-file", striped(), false, "?path=mmap", "?path=mmap");
      add(folder, "replica-sim", replicated(), false, "sim:workers=1", "sim:workers=1,queues=2");
      add(folder, "replica-file", replicated(), false, "?path=pinned", "?path=pinned");
      add(folder, "served", null, false, "serve:workers=1,queues=8");
      add(folder, "stripe-served", striped(), false, "serve:workers=1", "sim:workers=1");
      add(folder, "replica-served", replicated(), false, "serve:workers=1", "serve:workers=1");
      add(folder, "gpu-mmap", null, true, "?path=mmap");
      add(folder, "gpu-pinned", null, true, "?path=pinned");
      add(folder, "gpu-sim", null, true, "sim:workers=1");
      disturbers.add(new Disturbances.Injections(classes, () -> injects, random.split(), tally));
      disturbers.add(new Disturbances.Interrupts(workers, random.split(), tally));
      disturbers.add(new Disturbances.Closes(storages, this::accelerator, random.split(), tally));
      rounds(folder);
    } catch (AssertionError | RuntimeException e) {
      throw new AssertionError(
          "seed %d: %s%nbefore:%n%s".formatted(seed, e.getMessage(), tally.notes()), e);
    } finally {
      storages.forEach(SoakedStorage::endServers);
    }
  }

  private static SetShape striped() {
    return SoakedStorage.striped();
  }

  private static SetShape replicated() {
    return SetShape.replicated();
  }

  private void add(
      Path folder, String name, @Nullable SetShape shape, boolean onGpu, String... members)
      throws IOException {
    SoakedStorage storage =
        new SoakedStorage(storages.size() + 1, name, shape, onGpu, List.of(members), folder, tally);
    storages.add(storage);
    for (int w = 0; w < SoakedStorage.WORKERS; w++) {
      workers.add(
          new Worker(storage, w, () -> accelerator(storage), atRest, random.split(), tally));
    }
    if (!storage.servers().isEmpty()) {
      disturbers.add(new Disturbances.Servers(storage, random.split(), tally));
    }
  }

  private Accelerator accelerator(SoakedStorage storage) {
    Accelerator own = storage.onGpu() ? gpu : cpu;
    if (own == null) {
      throw new IllegalStateException("between two rounds");
    }
    return own;
  }

  /** The first one, in which nobody works, says what is held. */
  private void rounds(Path folder) throws Exception {
    long end = System.nanoTime() + duration.toNanos();
    long nanos = Math.min(LONGEST_ROUND.toNanos(), duration.toNanos());
    round(0, 0, folder);
    for (int round = 1; round == 1 || System.nanoTime() < end; round++) {
      round(round, nanos, folder);
    }
  }

  private void round(int round, long nanos, Path folder) throws Exception {
    Map<String, Long> before = tally.all();
    injects = round % QUIET != 0;
    driver.reset();
    try (Accelerator host = CpuAccelerator.open();
        Accelerator device = GpuAccelerator.open(driver.load().device(0))) {
      cpu = host;
      gpu = device;
      work(nanos);
      requireNone();
      for (SoakedStorage storage : storages) {
        storage.close();
        storage.verify(accelerator(storage));
      }
    } finally {
      cpu = null;
      gpu = null;
    }
    driver.assertClean("round " + round);
    Held then = first;
    Held now = then == null ? Held.now(folder) : then.requireUnchanged(folder);
    first = then == null ? now : then;
    if (round == WARM) {
      warm = now;
    }
    if (warm != null) {
      warm.requireNoMore(now);
    }
    report(round, nanos, now, tally.since(before));
    verifyServers();
  }

  private void verifyServers() {
    for (SoakedStorage storage : storages) {
      for (Server server : storage.servers()) {
        Footprint known = servers.putIfAbsent(server, Footprint.of(server.pid()));
        if (known != null) {
          known.await("a server of " + storage.name(), server.pid());
        }
      }
    }
  }

  private void report(int round, long nanos, Held now, Map<String, Long> counts) {
    counts.remove(Disturbances.SWITCHED);
    String servers =
        storages.stream()
            .flatMap(s -> s.servers().stream())
            .map(s -> Held.residentBytes(s.pid()) >> 20)
            .map(String::valueOf)
            .collect(Collectors.joining(" "));
    System.out.printf(
        "round %d, %d s: %s; servers %s MiB; %s%n",
        round, nanos / 1_000_000_000, now, servers, new TreeMap<>(counts));
  }

  private void work(long nanos) throws InterruptedException {
    long end = System.nanoTime() + nanos;
    BooleanSupplier disturbs = () -> System.nanoTime() < end && defects.isEmpty();
    List<Thread> disturbing = disturbers.stream().map(a -> start(a, disturbs)).toList();
    // Some time of peace, in which what was disturbed works again, or not.
    long calm = end + Math.min(nanos / 10, 2_000_000_000L);
    BooleanSupplier works = () -> System.nanoTime() < calm && defects.isEmpty();
    List<Thread> working = workers.stream().map(a -> start(a, works)).toList();
    Thread watching = start(atRest, () -> working.stream().anyMatch(Thread::isAlive));
    join(disturbing);
    join(working);
    join(List.of(watching));
    requireNone();
    atRest.drain();
  }

  private Thread start(Actor actor, BooleanSupplier goesOn) {
    return Thread.ofPlatform()
        .daemon()
        .name("soak")
        .start(
            () -> {
              try {
                actor.run(goesOn);
              } catch (Throwable e) {
                defects.add(new AssertionError(actor + ": " + e, e));
              }
            });
  }

  private void join(List<Thread> threads) throws InterruptedException {
    for (Thread thread : threads) {
      while (!thread.join(Duration.ofMillis(200))) {
        requireNoHang();
      }
    }
  }

  private void requireNoHang() {
    List<Actor> all = new ArrayList<>(workers);
    all.addAll(disturbers);
    all.add(atRest);
    for (Actor actor : all) {
      if (actor.nanos() > HANG) {
        StringBuilder stacks = new StringBuilder();
        Thread.getAllStackTraces()
            .forEach(
                (thread, stack) -> {
                  stacks.append("\n").append(thread);
                  for (StackTraceElement frame : stack) {
                    stacks.append("\n    at ").append(frame);
                  }
                });
        throw new AssertionError(actor + " hangs" + stacks);
      }
    }
  }

  private void requireNone() {
    Throwable defect = defects.poll();
    if (defect != null) {
      defects.forEach(defect::addSuppressed);
      throw new AssertionError(defect.getMessage(), defect);
    }
  }
}
