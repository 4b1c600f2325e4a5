package io.gpunvme.tools.topology;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.testing.FakeMachine;
import io.gpunvme.tools.machine.FakeMachines;
import io.gpunvme.tools.machine.MachineFunction;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/**
 * The pictures of the made-up machines. They are left in {@code target/topology}, where {@code
 * test.d/report.sh} opens them in a browser.
 */
final class TopologySvgTest {
  private static final Path PICTURES = Path.of("target/topology");

  @TempDir Path root;

  @ParameterizedTest
  @ValueSource(
      strings = {
        "desktop",
        "laptop",
        "chipset",
        "degraded",
        "virtual",
        "nodeless",
        "sockets",
        "switch",
        "acs",
        "drivers",
        "domains",
        "storage",
        "dgx",
        "hostile"
      })
  void everythingIsInThePicture(String name) throws Exception {
    Topology topology = TopologyTest.topology(DrawnMachine.read(name, root));
    String svg = TopologySvg.of(topology);
    keep(name, svg);
    Element picture = parse(svg);

    String texts = texts(picture);
    for (MachineFunction gpu : topology.machine().gpus()) {
      assertThat(texts).contains("GPU " + gpu.address() + "\n");
    }
    for (MachineFunction ssd : topology.machine().ssds()) {
      assertThat(texts).contains("SSD " + ssd.address() + "\n");
    }
    insideAndApart(picture);
  }

  private static void keep(String name, String svg) throws IOException {
    Files.createDirectories(PICTURES);
    Files.writeString(PICTURES.resolve(name + ".svg"), svg);
  }

  private static Element parse(String svg) throws Exception {
    Document document =
        DocumentBuilderFactory.newInstance()
            .newDocumentBuilder()
            .parse(new ByteArrayInputStream(svg.getBytes(StandardCharsets.UTF_8)));
    return document.getDocumentElement();
  }

  private static List<Element> all(Element parent, String name) {
    NodeList nodes = parent.getElementsByTagName(name);
    return IntStream.range(0, nodes.getLength()).mapToObj(i -> (Element) nodes.item(i)).toList();
  }

  private static String texts(Element picture) {
    StringBuilder texts = new StringBuilder();
    all(picture, "text").forEach(text -> texts.append(text.getTextContent()).append('\n'));
    return texts.toString();
  }

  private static double number(Element element, String name) {
    return Double.parseDouble(element.getAttribute(name));
  }

  /** Boxes lie in the picture, and no card on another. */
  private static void insideAndApart(Element picture) {
    double cardsEnd = 0;
    for (Element rect : all(picture, "rect")) {
      if (rect.getAttribute("class").equals("page")) {
        continue;
      }
      assertThat(number(rect, "x")).isNotNegative();
      assertThat(number(rect, "x") + number(rect, "width"))
          .isLessThanOrEqualTo(number(picture, "width"));
      assertThat(number(rect, "y") + number(rect, "height"))
          .isLessThanOrEqualTo(number(picture, "height"));
      assertThat(number(rect, "height")).isPositive();
      if (List.of("gpu", "ssd").contains(rect.getAttribute("class"))) {
        assertThat(number(rect, "y")).isGreaterThanOrEqualTo(cardsEnd);
        cardsEnd = number(rect, "y") + number(rect, "height");
      }
    }
  }

  private static List<String> classes(Element picture, String name) {
    return all(picture, name).stream().map(e -> e.getAttribute("class")).toList();
  }

  @Test
  void aDegradedLinkIsRedAndBroken() throws Exception {
    Element picture = parse(svg("degraded"));

    assertThat(classes(picture, "path")).filteredOn("x"::equals).hasSize(3);
    assertThat(texts(picture)).contains("could be 16GT/s x16\n", "16GT/s x8 · 15.8 GB/s\n");
  }

  @Test
  void aStrongerLinkIsThicker() throws Exception {
    List<Double> widths = new ArrayList<>();
    for (Element path : all(parse(svg("chipset")), "path")) {
      if (path.getAttribute("d").contains("H")) {
        widths.add(number(path, "stroke-width"));
      }
    }

    // 63, 15.8, the chipset's two SSDs, and its own link.
    assertThat(widths).containsExactly(10.7, 5.4, 3.8, 3.8, 3.8);
  }

  @Test
  void aNarrowUplinkIsNamed() throws Exception {
    assertThat(texts(parse(svg("chipset"))))
        .contains("narrower than its SSDs\n", "SSDs together 15.8\n", "uplink 7.9 GB/s\n");
  }

  @Test
  void nvLinksAreDrawn() throws Exception {
    assertThat(texts(parse(svg("sockets")))).contains("4 NVLinks, 100 GB/s\n");
    Element dgx = parse(svg("dgx"));
    assertThat(texts(dgx)).contains("NVSwitches\n", "18 NVLinks, 450 GB/s\n");
    // One to each GPU, and the sample of the legend.
    assertThat(classes(dgx, "path")).filteredOn("nv"::equals).hasSize(9);
  }

  @Test
  void whatOthersWroteIsTextOnly() throws Exception {
    String svg = svg("hostile");

    assertThat(svg).doesNotContain("<script", "<b>");
    assertThat(texts(parse(svg))).contains("<b>GPU & \"co\"</b>\n", "]]><script>alert(1)</script>");
  }

  @Test
  void aMachineWithNothingHasAPictureToo() throws Exception {
    Topology topology =
        Topology.of(
            FakeMachines.read(FakeMachine.laptopWithNothing(root)),
            NvLinks.unknown("not asked"),
            null,
            List.of());

    assertThat(texts(parse(TopologySvg.of(topology)))).startsWith("no GPU, no SSD\n");
  }

  @Test
  void itIsToldToThoseWhoDoNotSeeIt() throws Exception {
    Element picture = parse(svg("desktop"));

    assertThat(picture.getAttribute("role")).isEqualTo("img");
    assertThat(all(picture, "title").getFirst().getTextContent())
        .isEqualTo("Topology: 1 GPU, 1 SSD, 1 NUMA node");
    assertThat(all(picture, "desc").getFirst().getTextContent())
        .contains("└─ SSD 0000:02:00.0: 16GT/s x4, 7.9 GB/s;");
  }

  /** If this fails, and the picture is as it should be, copy it from {@code target/topology}. */
  @ParameterizedTest
  @CsvSource({"dgx, topology-server.svg", "chipset, topology-desktop.svg"})
  void theDocumentationShowsThesePictures(String name, String file) throws IOException {
    assertThat(svg(name)).isEqualTo(Files.readString(Path.of("../docs/images", file)));
  }

  private String svg(String name) {
    return TopologySvg.of(TopologyTest.topology(DrawnMachine.read(name, root)));
  }
}
