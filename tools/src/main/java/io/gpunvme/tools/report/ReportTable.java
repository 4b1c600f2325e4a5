package io.gpunvme.tools.report;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A table of the page. */
final class ReportTable {
  private static final int OPEN_ROWS = 14;
  private static final String CONDITIONS = "Conditions";

  private final String name;
  private final List<String> head;
  private final List<List<Html>> rows = new ArrayList<>();

  ReportTable(String name, String... head) {
    this.name = name;
    this.head = List.of(head);
  }

  ReportTable row(Html... cells) {
    rows.add(List.of(cells));
    return this;
  }

  boolean isEmpty() {
    return rows.isEmpty();
  }

  /** Each result with its spread, its ratios and its conditions. */
  static ReportTable of(List<Result> results) {
    ReportTable table =
        new ReportTable(
            "Numbers",
            "Result",
            "Median",
            "Min – max",
            "Of the limit",
            "To the best peer",
            "Samples",
            CONDITIONS);
    for (Result result : results) {
      table.row(
          id(result),
          Html.element("b", "", Html.text(Numbers.of(result.median(), result.unit()))),
          Html.element(
              "span",
              "spread",
              Html.text(
                  Numbers.of(result.min(), result.unit())
                      + " – "
                      + Numbers.of(result.max(), result.unit()))),
          share(result),
          peer(result),
          Html.text(Long.toString(result.samples())),
          conditions(result));
    }
    return table;
  }

  static Html id(Result result) {
    String meaning = Meanings.of(result.id());
    Html code = Html.code(result.id());
    Html id = meaning.isEmpty() ? code : code.plus(note(meaning));
    return result.verified()
        ? id
        : id.plus(Html.element("span", "warn", Html.text("not verified, not plotted")));
  }

  private static Html share(Result result) {
    Result.Reference limit = result.limit();
    if (limit == null) {
      return Html.EMPTY;
    }
    double ratio = limit.ratio(result.median());
    Html bar = Html.EMPTY;
    if (ratio >= 0 && ratio <= 1) {
      long width = Math.round(ratio * 100);
      bar = new Html("<span class=\"share\"><span style=\"width:" + width + "%\"></span></span>");
    }
    return Html.text(Numbers.percent(ratio))
        .plus(bar)
        .plus(note(limit.name() + ", " + Numbers.of(limit.value(), result.unit())));
  }

  private static Html peer(Result result) {
    Result.Reference peer = result.peer();
    return peer == null
        ? Html.EMPTY
        : Html.text(Numbers.times(peer.ratio(result.median())))
            .plus(note(peer.name() + ", " + Numbers.of(peer.value(), result.unit())));
  }

  private static Html note(String text) {
    return Html.element("small", "", Html.text(text));
  }

  private static Html conditions(Result result) {
    Map<String, String> conditions = result.conditions();
    if (conditions.isEmpty()) {
      return Html.EMPTY;
    }
    Html list = Html.EMPTY;
    for (Map.Entry<String, String> one : conditions.entrySet()) {
      list =
          list.plus(Html.element("dt", "", Html.text(one.getKey().replace('_', ' '))))
              .plus(Html.element("dd", "", Html.text(one.getValue())));
    }
    return Html.element(
        "details",
        "conditions",
        Html.element("summary", "", Html.text("all " + conditions.size())),
        Html.element("dl", "", list));
  }

  /** Open where it is short. */
  Html html() {
    StringBuilder out = new StringBuilder("<details class=\"table\"");
    out.append(rows.size() <= OPEN_ROWS ? " open>" : ">");
    String count = rows.size() == 1 ? "1 row" : rows.size() + " rows";
    out.append("<summary>").append(Html.text(name + ": " + count).markup());
    out.append("</summary><div class=\"scroll\"><table><thead><tr>");
    for (String title : head) {
      out.append(
              title.equals(CONDITIONS)
                  ? "<th scope=\"col\" class=\"conditions\">"
                  : "<th scope=\"col\">")
          .append(Html.text(title).markup())
          .append("</th>");
    }
    out.append("</tr></thead><tbody>\n");
    for (List<Html> row : rows) {
      out.append("<tr>");
      for (Html cell : row) {
        out.append("<td>").append(cell.markup()).append("</td>");
      }
      out.append("</tr>\n");
    }
    return new Html(out.append("</tbody></table></div></details>\n").toString());
  }
}
