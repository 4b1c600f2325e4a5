package io.gpunvme.tools.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.io.InputStream;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jsoup.Jsoup;
import org.jsoup.nodes.Document;
import org.jsoup.nodes.Element;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The page, read as a browser reads it. The sample has made-up numbers for every path. */
class BenchmarkReportTest {
  private static final int LARGEST_PAGE = 1_000_000;
  private static final List<String> HOSTILE =
      List.of(
          "</code></script><script>alert(1)</script>",
          "<img src=x onerror=alert(1)>",
          "\" onmouseover=\"alert(1)",
          "' & <!-- ]]> &lt;b&gt;");

  private static BenchmarkReport report;
  private static Document page;

  @TempDir private Path folder;

  @BeforeAll
  static void readTheSample() throws IOException, URISyntaxException {
    report = BenchmarkReport.of(sample());
    page = Jsoup.parse(report.html());
  }

  private static Path sample() throws URISyntaxException {
    URL url = BenchmarkReportTest.class.getResource("sample");
    assertThat(url).isNotNull();
    return Path.of(url.toURI());
  }

  private static JsonArray charts(Document page) {
    Element data = page.selectFirst("script#charts");
    assertThat(data).isNotNull();
    return JsonParser.parseString(data.data()).getAsJsonArray();
  }

  private static JsonObject chart(String block, String title) {
    for (Element article : page.select("article")) {
      if (article.select("h4").text().equals(block)) {
        for (Element figure : article.select("figure")) {
          if (figure.select("figcaption").text().equals(title)) {
            int index = Integer.parseInt(figure.attr("data-chart"));
            return charts(page).get(index).getAsJsonObject();
          }
        }
      }
    }
    throw new AssertionError("no plot " + title + " in " + block);
  }

  private static List<String> names(JsonObject chart, String list) {
    List<String> names = new ArrayList<>();
    for (JsonElement one : chart.getAsJsonArray(list)) {
      names.add(one.getAsJsonObject().get("name").getAsString());
    }
    return names;
  }

  private static JsonObject point(JsonObject chart, int series, int place) {
    return chart
        .getAsJsonArray("series")
        .get(series)
        .getAsJsonObject()
        .getAsJsonArray("points")
        .get(place)
        .getAsJsonObject();
  }

  @Test
  void everyIdIsInATableAndInTheHistory() throws IOException, URISyntaxException {
    Set<String> ids = new LinkedHashSet<>();
    String text =
        Files.readString(sample().resolve("made-up-machine").resolve("2000-01-01-0000000.json"));
    for (JsonElement one :
        JsonParser.parseString(text).getAsJsonObject().getAsJsonArray("results")) {
      ids.add(one.getAsJsonObject().get("id").getAsString());
    }

    assertThat(report.results()).isEqualTo(ids.size()).isGreaterThan(100);
    assertThat(report.files()).isEqualTo(1);
    assertThat(page.select("article td code").eachText()).containsAll(ids);
    assertThat(page.select("section > details.table td code").eachText())
        .containsExactlyElementsOf(ids);
  }

  @Test
  void throughputHasSpreadLimitAndPeer() {
    JsonObject chart = chart("Throughput by path", "Sequential reads, cold");

    assertThat(names(chart, "places")).isEqualTo(PathResult.PATHS);
    assertThat(chart.get("kind").getAsString()).isEqualTo("BAR");
    assertThat(chart.get("unit").getAsString()).isEqualTo("GB/s");
    JsonObject pinned = point(chart, 0, 2);
    assertThat(pinned.get("value").getAsDouble()).isEqualTo(1.91);
    assertThat(pinned.get("min").getAsDouble()).isLessThan(1.91);
    assertThat(pinned.get("max").getAsDouble()).isGreaterThan(1.91);
    assertThat(pinned.get("limit").getAsDouble()).isEqualTo(1.93);
    assertThat(pinned.get("peer").getAsDouble()).isEqualTo(1.87);
  }

  /** 20 million beside 88 thousand: bars would show one path only. */
  @Test
  void farApartIsLogarithmic() {
    JsonObject chart = chart("Throughput by path", "Random reads, warm");

    assertThat(chart.get("kind").getAsString()).isEqualTo("DOTS");
    assertThat(chart.get("log").getAsBoolean()).isTrue();
  }

  @Test
  void aSweepIsALineForEachPath() {
    JsonObject chart = chart("Throughput by block size", "Sequential reads, warm");

    assertThat(names(chart, "series")).isEqualTo(PathResult.PATHS);
    assertThat(names(chart, "places"))
        .containsExactly("4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB");
  }

  @Test
  void percentilesComeFromObjectsAndLists() {
    JsonObject chart = chart("Latency", "Random reads, warm");

    assertThat(names(chart, "places")).containsExactly("p50", "p90", "p99", "p99.9", "max");
    assertThat(chart.get("log").getAsBoolean()).isTrue();
    int mmap = names(chart, "series").indexOf("mmap");
    assertThat(point(chart, mmap, 0).get("value").getAsDouble()).isEqualTo(42_000);
    assertThat(point(chart, mmap, 1).has("value")).isFalse();
    assertThat(point(chart, mmap, 4).get("value").getAsDouble()).isEqualTo(1_680_000);
  }

  @Test
  void costsAreBarsColdBesideWarm() {
    JsonObject cpu = chart("What it costs", "CPU time, sequential reads");
    JsonObject sms = chart("What it costs", "GPU multiprocessors, sequential reads");

    assertThat(names(cpu, "series")).containsExactly("cold", "warm");
    assertThat(point(cpu, 0, 0).get("value").getAsDouble()).isZero();
    assertThat(point(cpu, 0, 1).get("value").getAsDouble()).isEqualTo(0.38);
    assertThat(point(sms, 0, 0).get("value").getAsDouble()).isEqualTo(2);
  }

  @Test
  void ratiosAreInTheTable() {
    Element row =
        page.select("article tr").stream()
            .filter(tr -> tr.select("code").text().equals("paths.cufile.seq.warm"))
            .findFirst()
            .orElseThrow();

    assertThat(row.text()).contains("13.4 GB/s", "24.2 %", "ceiling.h2d", "0.282×", "direct");
  }

  @Test
  void whatIsNotVerifiedIsMarkedAndNotPlotted() {
    assertThat(page.select("td:has(.warn) code").eachText()).contains("someday.unchecked");
    assertThat(charts(page).toString())
        .contains("someday.unknown.thing")
        .doesNotContain("someday.unchecked");
  }

  @Test
  void theMachineIsShown() {
    assertThat(page.select("h2").eachText()).containsExactly("made-up-machine");
    assertThat(page.select(".facts").text()).contains("Made-up GPU", "Made-up CPU", "0.0.1");
  }

  @Test
  void nothingIsLoadedFromElsewhere() {
    assertThat(page.select("[src], [href], [srcset], [action], link, iframe, object, embed, base"))
        .isEmpty();
    assertThat(page.select("style").stream().map(Element::data))
        .allSatisfy(css -> assertThat(css).doesNotContain("url(", "@import"));
    assertThat(page.select("meta[http-equiv=Content-Security-Policy]").attr("content"))
        .startsWith("default-src 'none';");
    assertThat(report.html().getBytes(StandardCharsets.UTF_8).length).isLessThan(LARGEST_PAGE);
  }

  /** The policy lets the two scripts run, in the form in which a browser reads them. */
  @Test
  void onlyTheScriptsOfThePageRun() throws Exception {
    String policy = page.select("meta[http-equiv=Content-Security-Policy]").attr("content");
    List<Element> scripts = page.select("script:not([type])");

    assertThat(scripts).hasSize(2);
    for (Element script : scripts) {
      byte[] bytes = script.data().getBytes(StandardCharsets.UTF_8);
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes);
      assertThat(policy).contains("'sha256-" + Base64.getEncoder().encodeToString(digest) + "'");
    }
  }

  @Test
  void theLibraryAndItsLicenceAreInThePage() throws IOException {
    assertThat(page.select("footer pre").text())
        .contains("MIT License", "Permission is hereby granted", "Chart.js Contributors");
    try (InputStream in = Page.class.getResourceAsStream("chart.umd.min.js")) {
      assertThat(in).isNotNull();
      assertThat(report.html()).contains(new String(in.readAllBytes(), StandardCharsets.UTF_8));
    }
  }

  // ---- outside input

  private void write(String name, List<String> ids, String field) throws IOException {
    JsonObject machine = new JsonObject();
    machine.addProperty("gpu " + field, field);
    JsonArray results = new JsonArray();
    for (String id : ids) {
      JsonObject reference = new JsonObject();
      reference.addProperty("id", field);
      reference.addProperty("name", field);
      reference.addProperty("value", 2);
      JsonObject conditions = new JsonObject();
      conditions.addProperty(field, field);
      JsonObject result = new JsonObject();
      result.addProperty("id", id);
      result.addProperty("unit", field);
      result.addProperty("median", 1);
      result.add("conditions", conditions);
      result.add("limit", reference);
      result.add("peer", reference);
      result.addProperty("verified", true);
      results.add(result);
    }
    JsonObject file = new JsonObject();
    file.add("machine", machine);
    file.addProperty("commit", field);
    file.addProperty("date", field);
    file.add("results", results);
    Files.writeString(folder.resolve(name), file.toString());
  }

  @Test
  void hostileTextStaysText() throws IOException {
    for (int i = 0; i < HOSTILE.size(); i++) {
      write(i + ".json", HOSTILE, HOSTILE.get(i));
    }
    Document hostile = Jsoup.parse(BenchmarkReport.of(folder).html());

    assertThat(hostile.select("script")).hasSize(3);
    assertThat(hostile.select("img, [onerror], [onmouseover]")).isEmpty();
    assertThat(hostile.select("section > details.table td code").eachText()).containsAll(HOSTILE);
    assertThat(hostile.select("dd").eachText()).containsAll(HOSTILE);
    assertThat(names(charts(hostile).get(0).getAsJsonObject(), "places")).isEqualTo(HOSTILE);
  }

  /** A responder that only answers beside somebody's SSDs is not a headline. */
  @Test
  void tilesDoNotCompareWithPeers() throws IOException {
    Files.writeString(
        folder.resolve("x.json"),
        """
        {"machine": {"gpu": "g"}, "commit": "c", "date": "d", "results": [
          {"id": "queue.host.exclusive.qp128", "unit": "commands/s", "median": 600,
           "peer": {"name": "somebody", "value": 60}, "verified": true}]}
        """);

    Document one = Jsoup.parse(BenchmarkReport.of(folder).html());

    assertThat(one.select(".tiles li").text())
        .contains("600/s", "no data moved")
        .doesNotContain("somebody");
    assertThat(one.select("article td").text()).contains("10×", "somebody");
  }

  /** Paths from one run and queues from a later one: each section shows the newest that has it. */
  @Test
  void eachSectionShowsTheNewestRunThatHasIt() throws IOException {
    String machine =
        "{\"machine\":{\"gpu\":\"g\"},\"commit\":\"%s\",\"date\":\"%s\",\"results\":[%s]}";
    String result = "{\"id\":\"%s\",\"unit\":\"%s\",\"median\":%d,\"verified\":true}";
    String path = result.formatted("paths.mmap.seq.cold", "GB/s", 1);
    Files.writeString(folder.resolve("a.json"), machine.formatted("old", "2001-01-01", path));
    String queue = result.formatted("queue.host.shared.qp4", "commands/s", 5);
    Files.writeString(folder.resolve("b.json"), machine.formatted("new", "2002-01-01", queue));

    Document both = Jsoup.parse(BenchmarkReport.of(folder).html());

    assertThat(both.select("p.run").eachText())
        .containsExactly("Run of 2001-01-01, commit old", "Run of 2002-01-01, commit new");
    assertThat(both.select("section > details.table th").eachText())
        .containsExactly("Result", "2002-01-01, commit new", "2001-01-01, commit old");
  }

  private static String run(String gpu, String date, String results) {
    return "{\"machine\":{\"gpu\":\"%s\"},\"commit\":\"c\",\"date\":\"%s\",\"results\":[%s]}"
        .formatted(gpu, date, results);
  }

  @Test
  void machinesWithAGpuComeFirst() throws IOException {
    String result = "{\"id\":\"start.help\",\"unit\":\"ms\",\"median\":9,\"verified\":true}";
    for (String name : List.of("a", "b", "c")) {
      Files.createDirectory(folder.resolve(name));
    }
    Files.writeString(folder.resolve("a/r.json"), run("none", "2003-01-01", result));
    Files.writeString(folder.resolve("b/r.json"), run("H100", "2001-01-01", result));
    Files.writeString(folder.resolve("c/r.json"), run("H200", "2002-01-01", result));

    Document all = Jsoup.parse(BenchmarkReport.of(folder).html());

    assertThat(all.select("p.run").eachText())
        .extracting(text -> text.substring(7, 11))
        .containsExactly("2002", "2001", "2003");
    assertThat(all.select("article td").text()).contains("the built command, from start to exit");
  }

  @Test
  void whatNobodyUsesIsNotPlotted() throws IOException {
    String result =
        "{\"id\":\"paths.mmap.seq.cold\",\"unit\":\"GB/s\",\"median\":1,\"verified\":true,"
            + "\"conditions\":{\"sms\":0,\"cpu_seconds_per_gb\":0.5}}";
    Files.writeString(folder.resolve("r.json"), run("H200", "2002-01-01", result));

    String titles = charts(Jsoup.parse(BenchmarkReport.of(folder).html())).toString();

    assertThat(titles).contains("CPU time").doesNotContain("multiprocessors");
  }

  /** The page's own script, run by Node: from its helpers for numbers to what uses them. */
  @Test
  void shortTimesHaveLabels() throws IOException {
    Programs.need("nodejs", "node");
    String script;
    try (InputStream in = BenchmarkReport.class.getResourceAsStream("report.js")) {
      assertThat(in).isNotNull();
      script = new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
    String helpers =
        script.substring(script.indexOf("function short("), script.indexOf("const axisUnit"));
    String calls =
        "console.log([0, 0.5, 330, 999, 1500, 2e6, 3e9].map(v => number(v, 'ns')).join('|'));"
            + "console.log([0, 12, 4500].map(v => number(v, 'B/s')).join('|'));";
    Path file = Files.writeString(folder.resolve("helpers.js"), helpers + calls);
    assertThat(new String(Programs.run("node", file), StandardCharsets.UTF_8))
        .isEqualTo("0 ns|0.5 ns|330 ns|999 ns|1.5 µs|2 ms|3 s\n0|12|4.5 k\n");
  }
}
