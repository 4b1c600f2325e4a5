package io.gpunvme.storage.injection;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.SplittableRandom;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.opentest4j.TestAbortedException;

/** Runs a scenario again and again, each time with another fault. */
public final class Injection {
  /** So many of a scenario's faults; all of them with {@code -Dgpunvme.injections=0}. */
  private static final int MOST = Integer.getInteger("gpunvme.injections", 12);

  private static final int LIMIT_SECONDS = 20;

  private final Class<?> scenarios;
  private final Path folder;
  private final Function<String, Throwable> mappingFailure;

  /**
   * @param scenarios has a method {@code of} from a name to a {@link Scenario}
   * @param folder for files
   */
  public Injection(Class<?> scenarios, Path folder) throws ReflectiveOperationException {
    InjectingLoader loader = new InjectingLoader();
    this.scenarios = loader.loadClass(scenarios.getName());
    this.folder = folder;
    var failure =
        loader
            .loadClass("io.gpunvme.nvme.DmaMappingException")
            .getDeclaredConstructor(String.class);
    failure.setAccessible(true);
    mappingFailure =
        message -> {
          try {
            return (Throwable) failure.newInstance(message);
          } catch (ReflectiveOperationException e) {
            return new AssertionError(e);
          }
        };
  }

  /** Runs it without a fault, then with each. */
  public void run(String name) throws Exception {
    Scenario scenario = scenario(name);
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    // What is made once and stays.
    once(scenario, name, 0);
    int reached = once(scenario, name, 0);
    assertThat(reached).as("places that may fail in %s", name).isPositive();
    int[] all = chosen(reached, new SplittableRandom(seed));
    int fired = 0;
    StringBuilder defects = new StringBuilder();
    for (int n : all) {
      OwnProcess before = OwnProcess.now(folder);
      try {
        once(scenario, name, n);
        before.assertUnchanged(folder);
      } catch (InterruptedException | AssertionError e) {
        defects.append(
            "\n%s, seed %d, fault %d of %d: %s\n  %s"
                .formatted(name, seed, n, reached, e, Injector.place()));
      }
      fired += Injector.fired() ? 1 : 0;
    }
    System.out.printf(
        "%s: %d of %d faults, %d met, seed %d%n", name, all.length, reached, fired, seed);
    assertThat(defects.toString()).isEmpty();
  }

  private Scenario scenario(String name) throws Exception {
    try {
      return (Scenario) scenarios.getMethod("of", String.class).invoke(null, name);
    } catch (InvocationTargetException e) {
      // What it needs is not on this machine.
      throw e.getCause() instanceof TestAbortedException skip ? skip : e;
    }
  }

  private static int[] chosen(int reached, SplittableRandom random) {
    int[] all = IntStream.rangeClosed(1, reached).toArray();
    if (MOST == 0 || reached <= MOST) {
      return all;
    }
    for (int i = 0; i < MOST; i++) {
      int other = random.nextInt(i, reached);
      int kept = all[i];
      all[i] = all[other];
      all[other] = kept;
    }
    return Arrays.copyOf(all, MOST);
  }

  /** How many places were reached. */
  private int once(Scenario scenario, String name, int n) throws Exception {
    Path own = Files.createDirectory(folder.resolve("run"));
    FutureTask<Boolean> task =
        new FutureTask<>(
            () -> {
              scenario.run(own);
              return true;
            });
    Thread thread = new Thread(task, "scenario " + name);
    Injector.begin(n, mappingFailure);
    try {
      thread.start();
      task.get(LIMIT_SECONDS, TimeUnit.SECONDS);
      thread.join();
    } catch (java.util.concurrent.ExecutionException e) {
      throw new AssertionError(e.getCause().toString(), e.getCause());
    } catch (TimeoutException e) {
      throw new IllegalStateException(
          "%s hangs after fault %d: %s%n  %s"
              .formatted(name, n, Injector.place(), Thread.getAllStackTraces()),
          e);
    } finally {
      Injector.end();
      delete(own);
    }
    return Injector.end();
  }

  private static void delete(Path folder) {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path p : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(p);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
