package io.gpunvme.tools.top;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Reason;
import io.gpunvme.gpu.watch.Metric;
import io.gpunvme.gpu.watch.MetricText;
import io.gpunvme.gpu.watch.Processes;
import io.gpunvme.gpu.watch.Sample;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Gives the metrics of all processes to Prometheus, over HTTP at {@code /metrics}. Each request
 * asks the processes anew. Safe for all threads.
 */
public final class MetricsServer implements AutoCloseable {
  private static final String PATH = "/metrics";
  private static final String TEXT = "text/plain; charset=utf-8";
  private static final String FORMAT = "text/plain; version=0.0.4; charset=utf-8";
  private static final int OK = 200;
  private static final int NOT_FOUND = 404;
  private static final int NOT_ALLOWED = 405;
  private static final int FAILED = 500;

  /** One that reads slowly must not keep others out. */
  private static final int THREADS = 4;

  /** Read by the JDK's server when the first one is made: seconds for a request to arrive. */
  private static final String REQUEST_TIME = "sun.net.httpserver.maxReqTime";

  static {
    if (System.getProperty(REQUEST_TIME) == null) {
      System.setProperty(REQUEST_TIME, "5");
    }
  }

  private final HttpServer server;
  private final ExecutorService threads;
  private final List<TopTarget> targets;

  private MetricsServer(HttpServer server, List<TopTarget> targets) {
    this.server = server;
    this.targets = List.copyOf(targets);
    threads = Executors.newFixedThreadPool(THREADS, Thread.ofPlatform().daemon().factory());
    server.setExecutor(threads);
    server.createContext("/", this::answer);
  }

  /**
   * Begins to serve.
   *
   * @param at a port of 0 is any that is free
   * @param targets whose metrics; everybody's if empty
   * @throws InvalidRequestException if it cannot listen there; the message says why
   */
  public static MetricsServer start(InetSocketAddress at, List<TopTarget> targets) {
    if (at.isUnresolved()) {
      throw new InvalidRequestException("there is no host " + at.getHostString());
    }
    try {
      MetricsServer server = new MetricsServer(HttpServer.create(at, 0), targets);
      server.server.start();
      return server;
    } catch (IOException e) {
      InvalidRequestException refused =
          new InvalidRequestException(
              "cannot listen at %s port %d: %s; another port may be free, and 0 takes one that is"
                  .formatted(at.getHostString(), at.getPort(), Reason.of(e)));
      refused.initCause(e);
      throw refused;
    }
  }

  /** Where it listens. */
  public InetSocketAddress address() {
    return server.getAddress();
  }

  /** Where the metrics are: {@code http://127.0.0.1:9105/metrics}. */
  public String url() {
    String host = address().getAddress().getHostAddress();
    return "http://"
        + (host.contains(":") ? "[" + host + "]" : host)
        + ":"
        + address().getPort()
        + PATH;
  }

  private void answer(HttpExchange exchange) throws IOException {
    try (exchange) {
      if (!exchange.getRequestURI().getPath().equals(PATH)) {
        send(exchange, NOT_FOUND, TEXT, "metrics are at " + PATH + "\n");
      } else if (!List.of("GET", "HEAD").contains(exchange.getRequestMethod())) {
        exchange.getResponseHeaders().set("Allow", "GET, HEAD");
        send(exchange, NOT_ALLOWED, TEXT, "metrics can only be read\n");
      } else {
        sendMetrics(exchange);
      }
    }
  }

  private void sendMetrics(HttpExchange exchange) throws IOException {
    String text;
    try {
      text = metrics(Processes.ask()).toString();
    } catch (RuntimeException e) {
      send(exchange, FAILED, TEXT, e.getMessage() + "\n");
      return;
    }
    send(exchange, OK, FORMAT, text);
  }

  MetricText metrics(Processes processes) {
    MetricText all = new MetricText();
    processes
        .answers()
        .forEach(
            answer ->
                all.addAll(
                    answer.metrics(), this::isWanted, Metric.PID, Long.toString(answer.pid())));
    return all;
  }

  private boolean isWanted(Sample sample) {
    String device = sample.label(Metric.DEVICE);
    return targets.isEmpty()
        || (device != null && targets.stream().anyMatch(target -> target.isMeantBy(device)));
  }

  private static void send(HttpExchange exchange, int status, String type, String text)
      throws IOException {
    byte[] body = text.getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("Content-Type", type);
    if (exchange.getRequestMethod().equals("HEAD")) {
      exchange.sendResponseHeaders(status, -1);
    } else {
      exchange.sendResponseHeaders(status, body.length);
      exchange.getResponseBody().write(body);
    }
  }

  /** Stops listening and ends the requests there are. */
  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
  }
}
