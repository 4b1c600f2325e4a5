package io.gpunvme.bench;

import io.gpunvme.bench.BenchResults.Result;
import java.util.List;
import java.util.Locale;

/**
 * The plot of the README: how fast bytes are read for a GPU, by way. One SVG without scripts and
 * fonts of its own, on a light card, so that it reads on light and dark pages.
 */
final class BenchPlot {
  private static final String MACHINE = "nvidia-h200-16-cores";
  private static final int LABELS = 200;
  private static final int PANEL = 270;
  private static final int GAP = 52;
  private static final int TOP = 92;
  private static final int ROW = 38;
  private static final int BAR = 22;

  private record Bar(String label, String note, String way, boolean ours) {}

  private record Panel(String title, String kind, String limit, String limitName, double unit) {}

  /** {@code %s} is the panel's kind. */
  private static final List<Bar> BARS =
      List.of(
          new Bar("mmap", "file, one thread copies", "paths.mmap.%s.warm", false),
          new Bar("cuFile", "file, compatibility mode", "paths.cufile.%s.warm", false),
          new Bar("gpunvme, path=auto", "file, through pinned memory", "paths.auto.%s.warm", true),
          new Bar("gpunvme, GPU kernel", "embedded SSD on that file", "paths.direct.%s.warm", true),
          new Bar("gpunvme, GPU kernel", "embedded SSD in RAM", "paths.direct.%s.ram", true));

  private static final List<Panel> PANELS =
      List.of(
          new Panel("Start to end, GB/s", "seq", "ceiling.h2d", "PCIe", 1),
          new Panel(
              "Random 4 KiB, million reads/s", "rand4k", "ceiling.copy.4k", "CPU copies", 1e6));

  private BenchPlot() {}

  /** The plot, of the newest run that has its results. */
  static String svg(BenchResults results) {
    int width = LABELS + PANELS.size() * (PANEL + GAP) + 20;
    int bottom = TOP + BARS.size() * ROW;
    StringBuilder svg = new StringBuilder();
    Result first = results.newest(MACHINE, "paths.auto.seq.warm");
    svg.append(
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %1$d %2$d" width="%1$d" height="%2$d" \
        font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13" fill="#24292f" role="img">
        <title>Reads for a GPU, from the page cache or RAM, by way</title>
        <rect x="0.5" y="0.5" width="%3$d" height="%4$d" rx="8" fill="#ffffff" stroke="#d0d7de"/>
        <text x="20" y="30" font-size="17" font-weight="600">Reads for a GPU, from the page cache or RAM</text>
        """
            .formatted(width, bottom + 60, width - 1, bottom + 59));
    for (int row = 0; row < BARS.size(); row++) {
      Bar bar = BARS.get(row);
      int y = TOP + row * ROW + 10;
      svg.append(
          """
          <text x="20" y="%d" font-weight="600">%s</text>
          <text x="20" y="%d" font-size="11" fill="#57606a">%s</text>
          """
              .formatted(y, bar.label(), y + 14, bar.note()));
    }
    for (int i = 0; i < PANELS.size(); i++) {
      panel(svg, results, PANELS.get(i), LABELS + i * (PANEL + GAP), bottom);
    }
    svg.append(
        """
        <text x="20" y="%d" font-size="11" fill="#57606a">Random reads by kernels end in pinned host memory, \
        all others in GPU memory. Dashed: the limit in the same run.</text>
        <text x="20" y="%d" font-size="11" fill="#57606a">%s, driver %s, no real SSD in the machine. \
        Medians of bench/results, %s, commit %s</text>
        </svg>
        """
            .formatted(
                bottom + 26,
                bottom + 44,
                first.run().json().getAsJsonObject("machine").get("gpu").getAsString(),
                first.run().json().getAsJsonObject("machine").get("driver").getAsString(),
                first.run().date(),
                first.run().commit()));
    return svg.toString();
  }

  private static void panel(
      StringBuilder svg, BenchResults results, Panel panel, int left, int bottom) {
    Result base = results.newest(MACHINE, BARS.getFirst().way().formatted(panel.kind()));
    double limit = base.run().find(panel.limit()).orElseThrow().median();
    svg.append(
        """
        <text x="%1$d" y="%2$d" font-weight="600">%3$s</text>
        <text x="%4$d" y="%5$d" font-size="11" text-anchor="end" fill="#57606a">%6$s %7$s</text>
        <line x1="%4$d" x2="%4$d" y1="%8$d" y2="%9$d" stroke="#57606a" stroke-dasharray="4 3"/>
        """
            .formatted(
                left,
                TOP - 32,
                panel.title(),
                left + PANEL,
                TOP - 10,
                panel.limitName(),
                shown(limit / panel.unit()),
                TOP - 5,
                bottom));
    for (int row = 0; row < BARS.size(); row++) {
      Bar bar = BARS.get(row);
      double value = base.run().find(bar.way().formatted(panel.kind())).orElseThrow().median();
      long length = Math.max(1, Math.round(PANEL * value / limit));
      boolean inside = length > PANEL - 44;
      int y = TOP + row * ROW;
      svg.append(
          """
          <rect x="%d" y="%d" width="%d" height="%d" rx="2" fill="%s"/>
          <text x="%d" y="%d" font-weight="600" text-anchor="%s" fill="%s">%s</text>
          """
              .formatted(
                  left,
                  y,
                  length,
                  BAR,
                  bar.ours() ? "#1a7f64" : "#9aa4ae",
                  inside ? left + length - 6 : left + length + 6,
                  y + BAR / 2 + 5,
                  inside ? "end" : "start",
                  inside ? "#ffffff" : "#24292f",
                  shown(value / panel.unit())));
    }
  }

  private static String shown(double value) {
    return String.format(Locale.ROOT, value < 1 ? "%.2f" : "%.3g", value);
  }
}
