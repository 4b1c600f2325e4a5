package io.gpunvme.tools.report;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/**
 * The page as HTML. It loads nothing: style, scripts and data are in it, and its own policy lets
 * only the two scripts run that it came with.
 */
final class Page {
  /** Escapes what could end a script element. */
  private static final Gson GSON = new Gson();

  private final StringBuilder body = new StringBuilder();
  private final JsonArray charts = new JsonArray();

  static String of(List<MachineReport> machines) {
    Page page = new Page();
    machines.forEach(page::machine);
    return page.document();
  }

  // ---- content

  private void machine(MachineReport machine) {
    body.append("<section class=\"machine\">\n");
    heading("h2", machine.name());
    body.append("<dl class=\"facts\">");
    for (Map.Entry<String, String> fact : machine.machine().entrySet()) {
      Html pair =
          Html.element("dt", "", Html.text(fact.getKey()))
              .plus(Html.element("dd", "", Html.text(fact.getValue())));
      append(Html.element("div", "", pair));
    }
    body.append("</dl>\n");
    tiles(machine.tiles());
    machine.sections().forEach(this::section);
    body.append("<section>\n");
    heading("h3", machine.runCount() > 1 ? "History" : "All results");
    append(machine.history().html());
    body.append("</section>\n</section>\n");
  }

  private void tiles(List<Result> results) {
    if (results.isEmpty()) {
      return;
    }
    body.append("<ul class=\"tiles\">\n");
    for (Result result : results) {
      Html tile =
          Html.element("b", "", Html.text(Numbers.of(result.median(), result.unit())))
              .plus(Html.code(result.id()));
      String compared = compared(result);
      if (!compared.isEmpty()) {
        tile = tile.plus(Html.element("small", "", Html.text(compared)));
      }
      append(Html.element("li", "", tile));
    }
    body.append("</ul>\n");
  }

  private static String compared(Result result) {
    Result.Reference limit = result.limit();
    if (limit != null) {
      return Numbers.percent(limit.ratio(result.median())) + " of " + limit.name();
    }
    // A peer stands in the table with its name: here it would be read as measured alike.
    return QueueSection.movesNoData(result) ? "commands only, no data moved" : "";
  }

  private void section(Section section) {
    body.append("<section>\n");
    heading("h3", section.title());
    append(Html.element("p", "run", Html.text("Run of " + section.run())));
    for (Block block : section.blocks()) {
      body.append("<article>\n");
      heading("h4", block.title());
      if (!block.note().isEmpty()) {
        append(Html.element("p", "note", Html.text(block.note())));
      }
      if (!block.charts().isEmpty()) {
        body.append("<div class=\"plots\">\n");
        block.charts().forEach(chart -> chart(block.title(), chart));
        body.append("</div>\n");
      }
      append(block.table().html());
      body.append("</article>\n");
    }
    body.append("</section>\n");
  }

  private void chart(String block, Chart chart) {
    body.append("<figure data-chart=\"").append(charts.size()).append("\">");
    if (!chart.title().equals(block)) {
      append(Html.element("figcaption", "", Html.text(chart.title())));
    }
    body.append("<div class=\"plot\"></div></figure>\n");
    charts.add(chart.json());
  }

  private void heading(String level, String text) {
    append(Html.element(level, "", Html.text(text)));
    body.append('\n');
  }

  private void append(Html html) {
    body.append(html.markup());
  }

  // ---- frame

  private String document() {
    String library = resource("chart.umd.min.js");
    String own = resource("report.js");
    String policy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
            + " script-src "
            + hash(library)
            + " "
            + hash(own);
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        + "<meta http-equiv=\"Content-Security-Policy\" content=\""
        + policy
        + "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        + "<meta name=\"color-scheme\" content=\"light dark\">\n"
        + "<title>gpunvme: benchmark results</title>\n<style>\n"
        + resource("report.css")
        + "</style>\n"
        + "</head>\n"
        + "<body>\n"
        + "<header><h1>gpunvme <span>benchmark results</span></h1>\n"
        + "<p>Medians with their spread. Results that were not verified are marked and not"
        + " plotted.</p></header>\n"
        + "<noscript><p class=\"note\">The plots need JavaScript. The tables have every"
        + " number.</p></noscript>\n"
        + "<main>\n"
        + body
        + "</main>\n<footer><details><summary>Plots by Chart.js, MIT licence</summary><pre>"
        + Html.text(resource("LICENSE.md")).markup()
        + "</pre></details></footer>\n<script type=\"application/json\" id=\"charts\">"
        + GSON.toJson(charts)
        + "</script>\n<script>"
        + library
        + "</script>\n<script>"
        + own
        + "</script>\n</body>\n</html>\n";
  }

  private static String hash(String script) {
    try {
      byte[] digest =
          MessageDigest.getInstance("SHA-256").digest(script.getBytes(StandardCharsets.UTF_8));
      return "'sha256-" + Base64.getEncoder().encodeToString(digest) + "'";
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java has SHA-256", e);
    }
  }

  private static String resource(String name) {
    try (InputStream in = Page.class.getResourceAsStream(name)) {
      if (in == null) {
        throw new IllegalStateException(name + " is missing next to " + Page.class.getName());
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
