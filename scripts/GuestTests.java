import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import io.gpunvme.gpu.transfer.ImageDigest;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.EngineFilter;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.reporting.legacy.xml.LegacyXmlReportGeneratingListener;

/**
 * Runs several sets of tests in one virtual machine, and then reads every namespace. In a guest
 * each start of Java takes seconds, and JUnit's console takes more of them than many tests.
 *
 * <p>Arguments: the folder for results, then sets with {@code --} between them: {@code LABEL
 * class=CLASS method=CLASS#METHOD …} makes LABEL.xml and LABEL.code, and {@code digest DEVICE
 * [LBA]} makes digest.NSID. {@code guest.tag} says which tests of a class.
 */
final class GuestTests {
  private static final Launcher LAUNCHER = LauncherFactory.create();

  private GuestTests() {}

  public static void main(String[] arguments) throws Exception {
    Path results = Path.of(arguments[0]);
    List<String> set = new ArrayList<>();
    for (int i = 1; i <= arguments.length; i++) {
      if (i < arguments.length && !arguments[i].equals("--")) {
        set.add(arguments[i]);
      } else if (set.getFirst().equals("digest")) {
        digest(results, set);
        set.clear();
      } else {
        tests(results, set.getFirst(), set.subList(1, set.size()));
        set.clear();
      }
    }
    // Threads that a failed test has left do not keep the guest.
    System.exit(0);
  }

  private static void tests(Path results, String label, List<String> tests) throws Exception {
    DiscoverySelector[] selected =
        tests.stream()
            .map(
                test -> {
                  String name = test.substring(test.indexOf('=') + 1);
                  return test.startsWith("class=") ? selectClass(name) : selectMethod(name);
                })
            .toArray(DiscoverySelector[]::new);
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selected)
            .filters(
                EngineFilter.includeEngines("junit-jupiter"),
                TagFilter.includeTags(System.getProperty("guest.tag", "qemu")))
            .configurationParameter("junit.jupiter.execution.timeout.default", "120s")
            .build();
    Path folder = Files.createTempDirectory(label);
    Lines lines = new Lines();
    System.out.println("--- " + label);
    LAUNCHER.execute(
        request,
        new LegacyXmlReportGeneratingListener(folder, new PrintWriter(System.err, true)),
        lines);
    Files.copy(
        folder.resolve("TEST-junit-jupiter.xml"),
        results.resolve(label + ".xml"),
        StandardCopyOption.REPLACE_EXISTING);
    Files.writeString(results.resolve(label + ".code"), (lines.failed ? 1 : 0) + "\n");
  }

  private static void digest(Path results, List<String> set) throws Exception {
    List<String> arguments = new ArrayList<>(List.of("read", set.get(1), results.toString()));
    arguments.addAll(set.subList(2, set.size()));
    System.out.println("--- " + String.join(" ", set));
    try {
      ImageDigest.main(arguments.toArray(String[]::new));
    } catch (Throwable e) {
      // The host misses the digests; what comes after this is to run.
      e.printStackTrace(System.out);
    }
  }

  /** A line for each test, and why it failed. */
  private static final class Lines implements TestExecutionListener {
    private boolean failed;

    @Override
    public void executionStarted(TestIdentifier test) {
      if (test.isTest()) {
        System.out.println(test.getDisplayName());
      }
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
      failed |= result.getStatus() == TestExecutionResult.Status.FAILED;
      result
          .getThrowable()
          .ifPresent(
              e -> {
                System.out.println("  " + result.getStatus() + " " + test.getDisplayName());
                if (result.getStatus() == TestExecutionResult.Status.FAILED) {
                  e.printStackTrace(System.out);
                }
              });
    }
  }
}
