package io.gpunvme.storage.soak;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.storage.injection.InjectedClasses;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Those who disturb. */
final class Disturbances {
  /** Counts twice for each injection: before and after it. */
  static final String SWITCHED = "(injection on or off)";

  private Disturbances() {}

  /** Has the host refuse something, now and then. */
  static final class Injections extends Actor {
    private static final Duration PATIENCE = Duration.ofMillis(100);
    private final InjectedClasses classes;
    private final BooleanSupplier wanted;

    Injections(
        InjectedClasses classes, BooleanSupplier wanted, SplittableRandom random, Tally tally) {
      super("injections", random, tally);
      this.classes = classes;
      this.wanted = wanted;
    }

    @Override
    void act() throws InterruptedException {
      doing("waits");
      Thread.sleep(between(1, 100));
      if (!wanted.getAsBoolean()) {
        return;
      }
      doing("injects");
      tally.add(SWITCHED);
      String place = classes.failOne(between(1, 400), PATIENCE);
      tally.add(SWITCHED);
      if (!place.isEmpty()) {
        tally.add("injected " + place.lines().findFirst().orElseThrow());
        tally.note("injected " + place);
      }
    }
  }

  /** Interrupts a worker. */
  static final class Interrupts extends Actor {
    private final List<Worker> workers;

    Interrupts(List<Worker> workers, SplittableRandom random, Tally tally) {
      super("interrupts", random, tally);
      this.workers = workers;
    }

    @Override
    void act() throws InterruptedException {
      doing("interrupts");
      Thread.sleep(between(1, 100));
      workers.get(random.nextInt(workers.size())).interrupt();
      tally.add("interrupts");
    }
  }

  /** Closes a storage while others use it. */
  static final class Closes extends Actor {
    private final List<SoakedStorage> storages;
    private final Function<SoakedStorage, Accelerator> accelerators;

    Closes(
        List<SoakedStorage> storages,
        Function<SoakedStorage, Accelerator> accelerators,
        SplittableRandom random,
        Tally tally) {
      super("closes", random, tally);
      this.storages = storages;
      this.accelerators = accelerators;
    }

    @Override
    void act() throws InterruptedException {
      doing("waits");
      Thread.sleep(between(10, 500));
      SoakedStorage storage = storages.get(random.nextInt(storages.size()));
      Opening open = storage.current();
      if (open != null) {
        // Opening it again may fail; somebody else does it then.
        succeeds("closes", () -> storage.renew(open, accelerators.apply(storage), random));
      }
    }
  }

  /** Pauses and kills the servers of a storage, one at a time. */
  static final class Servers extends Actor {
    private final SoakedStorage storage;
    private @Nullable Server last;

    /** A server that starts, on a busy machine, takes seconds: it is to be used as well. */
    private long quietUntil;

    Servers(SoakedStorage storage, SplittableRandom random, Tally tally) {
      super("servers of " + storage.name(), random, tally);
      this.storage = storage;
    }

    @Override
    void act() throws Exception {
      doing("waits");
      Thread.sleep(between(50, 1000));
      if (System.nanoTime() < quietUntil) {
        return;
      }
      long began = System.nanoTime();
      List<Server> all = storage.servers();
      Server server = last;
      if (server == null || oneIn(3)) {
        server = all.get(random.nextInt(all.size()));
        last = server;
      }
      storage.disturbs(server);
      try {
        if (oneIn(3)) {
          doing("kills");
          tally.note("kills a server of " + storage.name());
          tally.add("servers killed");
          server.kill(between(1, 1000));
        } else {
          doing("pauses");
          tally.note("pauses a server of " + storage.name());
          tally.add("servers paused");
          server.pause(between(10, 5000));
        }
      } finally {
        server.disturbed(false);
        long end = System.nanoTime();
        quietUntil = end + 2 * (end - began);
      }
    }
  }
}
