package io.gpunvme.tools.fleet;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/**
 * The plot. Those of these tests are left in {@code target/fleet}, where {@code test.d/report.sh}
 * opens them in a browser.
 */
final class FleetPlotTest {
  private static final Path PICTURES = Path.of("target/fleet");

  private static String plot(long machines) throws IOException {
    String svg =
        FleetPlot.of(FleetPlan.of(Fleet.of(machines, 8, 8, 140L << 30), Parameters.defaults()));
    Files.createDirectories(PICTURES);
    Files.writeString(PICTURES.resolve(machines + ".svg"), svg);
    return svg;
  }

  private static Element parse(String svg) throws Exception {
    return DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new ByteArrayInputStream(svg.getBytes(StandardCharsets.UTF_8)))
        .getDocumentElement();
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 3, 1000, 1_000_000})
  void eachWayHasALineInThePicture(long machines) throws Exception {
    Element picture = parse(plot(machines));
    NodeList paths = picture.getElementsByTagName("path");
    int lines = 0;
    for (int i = 0; i < paths.getLength(); i++) {
      Element path = (Element) paths.item(i);
      lines += path.getAttribute("class").startsWith("line ") ? 1 : 0;
      for (String place : path.getAttribute("d").split("[ML]")) {
        if (!place.isBlank()) {
          String[] xy = place.strip().split(" ");
          assertThat(Double.parseDouble(xy[0])).isBetween(0.0, 860.0);
          assertThat(Double.parseDouble(xy[1])).isBetween(0.0, 480.0);
        }
      }
    }
    assertThat(lines).isEqualTo(4);
    assertThat(picture.getTextContent())
        .contains(
            "Loading 140 GiB, 8 GPUs and 8 SSDs a machine", "cache ", "own ", "peers ", "pool ");
  }

  @Test
  void countsGoFromOneToAll() {
    assertThat(FleetPlot.counts(1)).containsExactly(1L);
    assertThat(FleetPlot.counts(12)).containsExactly(1L, 2L, 4L, 8L, 10L, 12L);
  }

  /** If this fails, and the plot is as it should be, copy it from {@code target/fleet}. */
  @Test
  void theDocumentationShowsThisPlot() throws IOException {
    assertThat(plot(1000)).isEqualTo(Files.readString(Path.of("../docs/images/fleet.svg")));
  }
}
