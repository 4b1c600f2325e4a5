package io.gpunvme.storage.injection;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.storage.injection.Injector.Variety;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.stream.Stream;
import org.opentest4j.TestAbortedException;

/** Runs a scenario again and again, each time with another fault. */
public final class Injection {
  /**
   * So many of a scenario's faults; with {@code -Dgpunvme.injections=0} each place fails as usual,
   * and again by an error that may come from anywhere.
   */
  private static final int MOST = Integer.getInteger("gpunvme.injections", 4);

  private static final int LIMIT_SECONDS = 60;

  private static final Fault NONE = new Fault(0, Variety.USUAL);

  /** The n-th place fails. */
  private record Fault(int n, Variety how) {}

  /**
   * The same for all scenarios: to load and link them anew takes longer than most of these. Each
   * has the classes that it uses made ready by its runs without a fault.
   */
  private static final class Classes {
    static final InjectedClasses ALL = load();

    private static InjectedClasses load() {
      try {
        return new InjectedClasses();
      } catch (ReflectiveOperationException e) {
        throw new AssertionError(e);
      }
    }
  }

  private final Class<?> scenarios;
  private final Path folder;
  private final Object budget;
  private final Function<String, Throwable> mappingFailure;

  /**
   * @param scenarios has a method {@code of} from a name to a {@link Scenario}
   * @param folder for files
   */
  public Injection(Class<?> scenarios, Path folder) throws ReflectiveOperationException {
    InjectedClasses classes = Classes.ALL;
    this.scenarios = classes.load(scenarios.getName());
    this.folder = folder;
    budget = classes.load("io.gpunvme.ffi.MemoryBudget").getMethod("here").invoke(null);
    mappingFailure = classes.mappingFailure();
  }

  /** Runs it without a fault, then with some. */
  public void run(String name) throws Exception {
    run(name, MOST);
  }

  /** Runs it without a fault, then with each. */
  public void runAll(String name) throws Exception {
    run(name, 0);
  }

  private void run(String name, int most) throws Exception {
    Scenario scenario = scenario(name);
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    // What is made once and stays.
    once(scenario, name, NONE);
    int reached = once(scenario, name, NONE);
    assertThat(reached).as("places that may fail in %s", name).isPositive();
    List<Fault> all = chosen(reached, most, new SplittableRandom(seed));
    int fired = 0;
    StringBuilder defects = new StringBuilder();
    for (Fault fault : all) {
      OwnProcess before = OwnProcess.now(folder);
      long promised = promised();
      try {
        once(scenario, name, fault);
        before.assertUnchanged(folder);
        assertThat(promised()).as("bytes of memory that are promised").isEqualTo(promised);
      } catch (InterruptedException | AssertionError e) {
        defects.append(
            "\n%s, seed %d, %s of %d: %s\n  %s"
                .formatted(name, seed, fault, reached, e, Injector.place()));
      }
      fired += Injector.fired() ? 1 : 0;
    }
    System.out.printf(
        "%s: %d faults at %d places, %d met, seed %d%n", name, all.size(), reached, fired, seed);
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

  private static List<Fault> chosen(int reached, int most, SplittableRandom random) {
    List<Fault> all = new ArrayList<>();
    for (int n = 1; n <= reached; n++) {
      all.add(new Fault(n, Variety.USUAL));
      all.add(new Fault(n, random.nextBoolean() ? Variety.STACK_OVERFLOW : Variety.LINKAGE));
    }
    if (most == 0) {
      return all;
    }
    Collections.shuffle(all, new Random(random.nextLong()));
    return all.subList(0, Math.min(most, all.size()));
  }

  /** Host memory that our classes have set aside for somebody. */
  private long promised() throws ReflectiveOperationException {
    Field field = budget.getClass().getDeclaredField("promised");
    field.setAccessible(true);
    return field.getLong(budget);
  }

  /** How many places were reached. */
  private int once(Scenario scenario, String name, Fault fault) throws Exception {
    Path own = Files.createDirectory(folder.resolve("run"));
    FutureTask<Boolean> task =
        new FutureTask<>(
            () -> {
              scenario.run(own);
              return true;
            });
    Thread thread = new Thread(task, "scenario " + name);
    Injector.begin(fault.n, fault.how, mappingFailure);
    try {
      thread.start();
      task.get(LIMIT_SECONDS, TimeUnit.SECONDS);
      thread.join();
    } catch (java.util.concurrent.ExecutionException e) {
      throw new AssertionError(e.getCause().toString(), e.getCause());
    } catch (TimeoutException e) {
      throw new IllegalStateException(
          "%s hangs after %s: %s%n  %s".formatted(name, fault, Injector.place(), ourThreads()), e);
    } finally {
      Injector.end();
      delete(own);
    }
    return Injector.end();
  }

  private static String ourThreads() {
    StringBuilder all = new StringBuilder();
    Thread.getAllStackTraces()
        .forEach(
            (thread, stack) -> {
              if (Arrays.stream(stack).anyMatch(f -> f.getClassName().startsWith("io.gpunvme."))) {
                all.append("\n  ").append(thread);
                Arrays.stream(stack).limit(40).forEach(f -> all.append("\n    at ").append(f));
              }
            });
    return all.toString();
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
