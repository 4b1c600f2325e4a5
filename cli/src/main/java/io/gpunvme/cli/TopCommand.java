package io.gpunvme.cli;

import io.gpunvme.cli.output.Json;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.tools.top.MetricsServer;
import io.gpunvme.tools.top.TopLooks;
import io.gpunvme.tools.top.TopTarget;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme top [DEVICE…]}. */
@Command(
    name = "top",
    description = {
      "Show what controllers do at this moment: commands, bytes and latencies.",
      "Seen are those that a process of yours drives, from Java, C or Python, and those that"
          + " gpunvme sim serve is. A process is seen half a second after it has opened one, unless"
          + " GPUNVME_TOP=off is in its environment. A dash is what nobody counts.",
      "On a terminal the screen is drawn again and again, elsewhere each round follows the last."
          + " With --json a round is one object in one line."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme top                                      all, until Ctrl-C",
      "  gpunvme top vfio:0000:01:00.0 0000:02:00.0       these, by any transport the second",
      "  gpunvme top --interval 200ms --count 5 --json sim:",
      "  gpunvme top --metrics 9105                       for Prometheus:"
          + " http://127.0.0.1:9105/metrics"
    })
final class TopCommand extends BaseCommand {
  private static final Duration SECOND = Duration.ofSeconds(1);

  @Parameters(
      paramLabel = "DEVICE",
      arity = "0..*",
      description =
          "Only these: an address, a PCI address, or a set (stripe:…), which means its members."
              + " sim: means all embedded ones.")
  private List<String> devices = new ArrayList<>();

  @Option(
      names = "--interval",
      paramLabel = "TIME",
      converter = Converters.Time.class,
      description = "Time between two rounds (1s).")
  private @Nullable Duration interval;

  @Option(
      names = "--count",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "End after so many rounds.")
  private @Nullable Integer count;

  @Option(
      names = "--metrics",
      paramLabel = "[HOST:]PORT",
      converter = Converters.ListenAt.class,
      description =
          "Serve the counters for Prometheus over HTTP instead. Only this machine reaches them"
              + " (127.0.0.1) unless a host is given; 0 takes any free port.")
  private @Nullable InetSocketAddress metrics;

  TopCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() {
    List<TopTarget> targets =
        devices.stream().flatMap(text -> TopTarget.parse(text).stream()).toList();
    try {
      if (metrics == null) {
        show(targets);
      } else {
        serve(metrics, targets);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return ExitCode.OK;
  }

  // ---- rounds

  private void show(List<TopTarget> targets) throws InterruptedException {
    long nanos = (interval == null ? SECOND : interval).toNanos();
    TopLooks looks = new TopLooks(targets);
    TopScreen screen = new TopScreen(out(), streams().screen().getAsInt());
    looks.look();
    long next = System.nanoTime();
    // Whoever reads may have left: gpunvme top | head.
    for (int round = 0; (count == null || round < count) && !out().checkError(); round++) {
      next = Math.max(next + nanos, System.nanoTime());
      TimeUnit.NANOSECONDS.sleep(next - System.nanoTime());
      if (json()) {
        Json.printLine(out(), TopJson.of(now(), looks.look()));
      } else {
        screen.show(now(), looks.look());
      }
    }
  }

  private static Instant now() {
    return Instant.now().truncatedTo(ChronoUnit.MILLIS);
  }

  // ---- the server

  private void serve(InetSocketAddress at, List<TopTarget> targets) throws InterruptedException {
    if (interval != null || count != null) {
      throw new UsageException(
          "--interval and --count are for rounds; with --metrics whoever reads decides how often");
    }
    CountDownLatch end = new CountDownLatch(1);
    try (MetricsServer server = MetricsServer.start(at, targets);
        CancelledAtExit exit = new CancelledAtExit()) {
      exit.now(
          () -> {
            server.close();
            end.countDown();
          });
      Ending.leaves("nobody serves metrics at " + server.url() + " any more");
      print(
          () -> out().println("metrics at " + server.url() + "; Ctrl-C ends it"),
          () -> {
            Map<String, Object> object = new LinkedHashMap<>();
            object.put("url", server.url());
            object.put("port", server.address().getPort());
            object.put("pid", ProcessHandle.current().pid());
            return object;
          });
      out().flush();
      end.await();
    }
  }
}
