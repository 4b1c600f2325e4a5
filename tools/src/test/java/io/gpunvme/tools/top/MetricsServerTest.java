package io.gpunvme.tools.top;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.watch.MetricText;
import io.gpunvme.gpu.watch.Processes;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class MetricsServerTest {
  private final MetricsServer server =
      MetricsServer.start(
          new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), TopTarget.parse("sim:"));

  @AfterEach
  void close() {
    server.close();
  }

  private HttpURLConnection ask(String method, String path) throws IOException {
    HttpURLConnection request =
        (HttpURLConnection) URI.create(server.url()).resolve(path).toURL().openConnection();
    request.setRequestMethod(method);
    return request;
  }

  @Test
  void whoeverAsksGetsMetrics() throws Exception {
    assertThat(server.url()).matches("http://127\\.0\\.0\\.1:\\d+/metrics");
    HttpURLConnection request = ask("GET", "/metrics");
    assertThat(request.getResponseCode()).isEqualTo(200);
    assertThat(request.getContentType()).isEqualTo("text/plain; version=0.0.4; charset=utf-8");
    String body = new String(request.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(MetricText.parse(body)).hasToString(body);
    assertThat(ask("HEAD", "/metrics").getInputStream().readAllBytes()).isEmpty();
  }

  @Test
  void whatItHasNotItRefuses() throws Exception {
    assertThat(ask("GET", "/").getResponseCode()).isEqualTo(404);
    assertThat(ask("GET", "/metrics/more").getResponseCode()).isEqualTo(404);
    assertThat(ask("DELETE", "/metrics").getResponseCode()).isEqualTo(405);
  }

  @Test
  void processesAreToldApartAndOthersLeftOut() {
    String line = "gpunvme_commands_total{device=\"%s\"} 5\n";
    String text = line.formatted("sim:size=1GiB") + line.formatted("vfio:0000:01:00.0") + "x 1\n";
    MetricText metrics = MetricText.parse(text + "# EOF\n");
    Processes both =
        new Processes(
            List.of(new Processes.Answer(1, 0, metrics), new Processes.Answer(2, 0, metrics)),
            List.of());
    assertThat(server.metrics(both))
        .hasToString(
            """
            gpunvme_commands_total{device="sim:size=1GiB",pid="1"} 5
            gpunvme_commands_total{device="sim:size=1GiB",pid="2"} 5
            # EOF
            """);
  }

  @Test
  void aPortInUseIsNamed() {
    assertThatThrownBy(() -> MetricsServer.start(server.address(), List.of()))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("port " + server.address().getPort())
        .hasMessageContaining("in use");
  }
}
