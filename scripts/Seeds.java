import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectUniqueId;

import java.io.OutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestExecutionResult.Status;
import org.junit.platform.launcher.EngineFilter;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs the random tests of a class with many seeds. Which they are it finds out by itself: those
 * that ask for the property {@code gpunvme.seed} while they run once.
 *
 * <p>Arguments: class, number of seeds, first seed, seconds after which no further seed is begun.
 * Prints one line for the class, and one for each test that failed, with its seed and reason.
 */
final class Seeds {
  private static final String SEED = "gpunvme.seed";
  private static final Launcher LAUNCHER = LauncherFactory.create();
  private static final PrintStream OUT = System.out;

  /** After so many failures no further seed says anything new. */
  private static final int MOST_FAILURES = 10;

  private Seeds() {}

  public static void main(String[] arguments) {
    String name = arguments[0];
    int seeds = Integer.parseInt(arguments[1]);
    long first = Long.parseLong(arguments[2]);
    long end = System.nanoTime() + Long.parseLong(arguments[3]) * 1_000_000_000L;
    Asked properties = new Asked(System.getProperties());
    System.setProperties(properties);
    // What tests print of each seed says nothing here.
    System.setOut(new PrintStream(OutputStream.nullOutputStream()));

    properties.setProperty(SEED, Long.toString(first));
    Run run = new Run(properties);
    execute(List.of(selectClass(name)), run);
    List<DiscoverySelector> random = new ArrayList<>();
    run.random.forEach(id -> random.add(selectUniqueId(id)));
    int done = random.isEmpty() ? 0 : 1;
    int failures = report(run, first);
    while (done > 0 && done < seeds && failures < MOST_FAILURES && System.nanoTime() < end) {
      long seed = first + done;
      properties.setProperty(SEED, Long.toString(seed));
      run = new Run(properties);
      execute(random, run);
      failures += report(run, seed);
      done++;
    }
    OUT.printf(
        "%s %s: %d random tests, %d seeds from %d on%s%n",
        failures == 0 ? "PASS" : "FAIL",
        name,
        random.size(),
        done,
        first,
        failures == 0 ? "" : ", " + failures + " failures");
    // Threads that a failed test has left do not keep it.
    System.exit(failures == 0 ? 0 : 1);
  }

  private static void execute(List<DiscoverySelector> tests, Run run) {
    LAUNCHER.execute(
        LauncherDiscoveryRequestBuilder.request()
            .selectors(tests)
            .filters(
                EngineFilter.includeEngines("junit-jupiter"), TagFilter.excludeTags("gpu", "qemu"))
            .configurationParameter("junit.jupiter.execution.timeout.default", "600s")
            .build(),
        run);
  }

  private static int report(Run run, long seed) {
    run.failures.forEach(why -> OUT.printf("  -D%s=%d: %s%n", SEED, seed, why));
    return run.failures.size();
  }

  /** Knows whether it was asked for the seed. */
  private static final class Asked extends Properties {
    private static final long serialVersionUID = 1;

    private volatile boolean asked;

    Asked(Properties all) {
      putAll(all);
    }

    @Override
    public String getProperty(String key) {
      asked |= key.equals(SEED);
      return super.getProperty(key);
    }

    @Override
    public String getProperty(String key, String without) {
      asked |= key.equals(SEED);
      return super.getProperty(key, without);
    }
  }

  /** What happened in one run. */
  private static final class Run implements TestExecutionListener {
    private final Asked properties;
    private final List<String> random = new ArrayList<>();
    private final List<String> failures = new ArrayList<>();

    Run(Asked properties) {
      this.properties = properties;
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
      // Of the time since the test before: fields ask before a test is said to have started.
      boolean asked = properties.asked;
      if (test.isTest()) {
        if (asked) {
          random.add(test.getUniqueId());
        }
        properties.asked = false;
      }
      // Other tests run once only because nobody knows yet that they do not ask.
      if (asked && result.getStatus() == Status.FAILED) {
        String why = String.valueOf(result.getThrowable().orElse(null));
        failures.add(
            test.getDisplayName()
                + ": "
                + why.replace('\n', ' ').substring(0, Math.min(400, why.length())));
      }
    }
  }
}
