package io.gpunvme.tools.topology;

import static io.gpunvme.tools.report.Svg.escaped;
import static io.gpunvme.tools.report.Svg.number;
import static io.gpunvme.tools.report.Svg.rect;
import static io.gpunvme.tools.report.Svg.text;

import io.gpunvme.nvme.pci.PciAddress;
import io.gpunvme.tools.machine.LinkAbove;
import io.gpunvme.tools.machine.MachineFunction;
import io.gpunvme.tools.report.Svg;
import io.gpunvme.tools.topology.Spot.Kind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * The picture of a topology as an SVG document. It needs no other file and no script, and suits a
 * light and a dark page.
 *
 * <p>It is read from left to right: NUMA nodes as frames, host bridges, root ports, switches, and a
 * card for each GPU and SSD. Boxes are as tall as what is below them, so all links are level.
 */
public final class TopologySvg {
  private static final int MARGIN = 24;
  private static final int TOP = 76;
  private static final int PAD = 14;
  private static final int NODE_HEAD = 30;
  private static final int NODE_GAP = 34;
  private static final int BRIDGE = 96;
  private static final int TAB = 62;
  private static final int TAB_HEIGHT = 24;
  private static final int LINK = 168;
  private static final int SWITCH = 128;
  private static final int CARD = 420;
  private static final int CARD_HEIGHT = 40;
  private static final int UUID = 92;
  private static final int GAP = 8;
  private static final int GROUP_GAP = 6;
  private static final int ARC_STEP = 34;
  private static final int SWITCHES_AWAY = 128;
  private static final int SWITCHES = 26;
  private static final int LEGEND = 58;
  private static final int LEAST_WIDTH = 860;

  /** The mean width of a character, of the font's size; of the widest common fonts. */
  private static final double CHARACTER = 0.56;

  /** Without variables of CSS, which not every viewer of pictures knows. */
  private static final String STYLE =
      """
      text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;font-size:12px;\
      fill:#1f2328}
      text.h{font-size:20px;font-weight:600}text.b{font-weight:600;font-size:13px}
      text.s{font-size:11px}text.m{text-anchor:middle}text.e{text-anchor:end}
      text.d{fill:#59636e}text.bad{fill:#cf222e;font-weight:600}text.nt{fill:#b35900}
      .page{fill:#fff}.frame{fill:#f6f8fa;stroke:#d1d9e0}.bridge{fill:#e7ebef;stroke:#6e7781}
      .tab{fill:#fff;stroke:#6e7781}.switch{fill:#efe8fb;stroke:#8250df}
      .gpu{fill:#e4f5e7;stroke:#1a7f37}.gl{fill:#1a7f37}
      .ssd{fill:#e1effc;stroke:#0969da}.sl{fill:#0969da}.nb{fill:#fff;stroke:#b35900}
      .l,.u,.x,.nv{fill:none}.l,.u{stroke:#8c959f}.u{stroke-dasharray:2 5}
      .x{stroke:#cf222e;stroke-dasharray:9 4}.nv{stroke:#d9822b}
      @media (prefers-color-scheme:dark){
      text{fill:#e6edf3}text.d{fill:#9198a1}text.bad{fill:#ff7b72}text.nt{fill:#e3a03d}
      .page{fill:#0d1117}.frame{fill:#151b23;stroke:#3d444d}.bridge{fill:#262c36;stroke:#9198a1}
      .tab{fill:#0d1117;stroke:#9198a1}.switch{fill:#271f3d;stroke:#ab7df8}
      .gpu{fill:#12261a;stroke:#3fb950}.gl{fill:#3fb950}
      .ssd{fill:#11233b;stroke:#58a6ff}.sl{fill:#58a6ff}.nb{fill:#0d1117;stroke:#e3a03d}
      .l,.u{stroke:#6e7681}.x{stroke:#ff7b72}.nv{stroke:#b3741f}}
      """;

  private final Topology topology;
  private final Map<PciAddress, Double> centres = new HashMap<>();
  private final StringBuilder frames = new StringBuilder();
  private final StringBuilder links = new StringBuilder();
  private final StringBuilder boxes = new StringBuilder();
  private final int cardX;
  private double cursor = TOP;

  private TopologySvg(Topology topology) {
    this.topology = topology;
    cardX = furthest(topology.tree(), MARGIN + PAD) + LINK;
  }

  /** The document, in UTF-8 when written. */
  public static String of(Topology topology) {
    TopologySvg svg = new TopologySvg(topology);
    List<Spot> nodes = topology.tree().children();
    for (int i = 0; i < nodes.size(); i++) {
      if (i > 0) {
        svg.between(nodes.get(i - 1), nodes.get(i));
      }
      svg.node(nodes.get(i));
    }
    int right = svg.nvLinks();
    return svg.document(Math.max(LEAST_WIDTH, right + MARGIN));
  }

  /** The right edge of what a link to the furthest card begins at. */
  private static int furthest(Spot spot, int from) {
    int own = right(spot, from);
    return spot.children().stream().mapToInt(child -> furthest(child, own)).max().orElse(from);
  }

  private static int right(Spot spot, int from) {
    return switch (spot.kind()) {
      case HOST, NODE, GPU, SSD -> from;
      case BRIDGE -> from + BRIDGE;
      case PORT -> from + TAB;
      case CONTROLLER -> from + SWITCH;
      case SWITCH -> from + LINK + SWITCH;
    };
  }

  // ---- nodes

  private int frameRight() {
    return cardX + CARD + PAD;
  }

  private void node(Spot spot) {
    double top = cursor;
    cursor += NODE_HEAD;
    text(frames, MARGIN + PAD, top + 20, "b", spot.title() + spot.details(topology.machine()));
    if (spot.children().isEmpty()) {
      text(frames, MARGIN + PAD, cursor + 14, "d s", "no GPU and no SSD");
      cursor += CARD_HEIGHT - GAP;
    }
    for (Spot child : spot.children()) {
      place(child, MARGIN + PAD);
      cursor += GROUP_GAP;
    }
    frames.insert(0, rect("frame", MARGIN, top, frameRight() - MARGIN, cursor - top, 10));
  }

  private void between(Spot a, Spot b) {
    double y = cursor;
    boolean sockets =
        a.node() != null
            && b.node() != null
            && a.node().socket() >= 0
            && b.node().socket() >= 0
            && a.node().socket() != b.node().socket();
    if (a.node() != null && b.node() != null) {
      links.append(
          "<path class=\"u\" stroke-width=\"4\" d=\"M%d %s v%d\"/>\n"
              .formatted(MARGIN + PAD + BRIDGE / 2, number(y), NODE_GAP));
      text(
          frames,
          MARGIN + PAD + BRIDGE / 2 + 12,
          y + NODE_GAP / 2.0 + 4,
          "d s",
          "between " + (sockets ? "sockets" : "nodes") + ": speed not known");
    }
    cursor += NODE_GAP;
  }

  // ---- places

  /** Draws a place and what is below it, right of {@code from}; returns its middle. */
  private double place(Spot spot, int from) {
    if (spot.kind() == Kind.GPU || spot.kind() == Kind.SSD) {
      return card(spot);
    }
    int right = right(spot, from);
    double top = cursor;
    List<Double> middles = new ArrayList<>();
    for (Spot child : spot.children()) {
      double middle = place(child, right);
      middles.add(middle);
      link(child, right, middle);
    }
    double bottom = cursor - GAP;
    double centre = (top + bottom) / 2;
    switch (spot.kind()) {
      case BRIDGE -> {
        boxes.append(rect("bridge", from, top, BRIDGE, bottom - top, 6));
        lines(from + BRIDGE / 2.0, centre, List.of("host bridge", named(spot)));
      }
      case PORT -> {
        boolean one = middles.size() == 1;
        double height = one ? TAB_HEIGHT : bottom - top;
        boxes.append(rect("tab", from, centre - height / 2, TAB, height, 4));
        text(boxes, from + TAB / 2.0, centre + 4, "s m", spot.name().replaceFirst("^.*?:", ""));
      }
      default -> {
        int left = right - SWITCH;
        boxes.append(rect("switch", left, top, SWITCH, bottom - top, 6));
        lines(left + SWITCH / 2.0, centre, inside(spot, bottom - top));
      }
    }
    cursor += spot.kind() == Kind.BRIDGE ? 0 : GROUP_GAP / 2.0;
    return centre;
  }

  private static String named(Spot spot) {
    return spot.name().isEmpty() ? "not known" : spot.name();
  }

  /** What is written into a switch: what its link upwards means, if there is room. */
  private List<String> inside(Spot spot, double height) {
    List<String> lines = new ArrayList<>(List.of(spot.kind().toString(), spot.name()));
    shared(spot)
        .filter(s -> s.ssds() > 1 && s.gigabytesPerSecond() > 0 && s.ssdGigabytesPerSecond() > 0)
        .filter(_ -> height > 2 * CARD_HEIGHT)
        .ifPresent(
            s -> {
              lines.add("SSDs together " + rate(s.ssdGigabytesPerSecond()));
              lines.add("uplink " + rate(s.gigabytesPerSecond()) + " GB/s");
            });
    return lines;
  }

  private Optional<SharedLink> shared(Spot spot) {
    return topology.shared().stream().filter(s -> s.function().equals(spot.function())).findFirst();
  }

  private void lines(double x, double centre, List<String> lines) {
    double y = centre - (lines.size() - 1) * 7.5 + 4;
    for (int i = 0; i < lines.size(); i++) {
      text(boxes, x, y + i * 15, i == 1 ? "m" : "d s m", lines.get(i));
    }
  }

  // ---- links

  private void link(Spot spot, int from, double y) {
    if (spot.kind() == Kind.PORT || spot.kind() == Kind.CONTROLLER) {
      return; // A part of the root complex: it sits at its parent.
    }
    int to = spot.kind() == Kind.GPU || spot.kind() == Kind.SSD ? cardX : from + LINK;
    LinkAbove link = spot.link();
    if (link == null || !link.known()) {
      line("u", thickness(0), from, y, to);
      text(links, to - 8, y - 5, "s e", "link not known");
      return;
    }
    boolean bad = link.state() == LinkAbove.State.DEGRADED;
    double thickness = thickness(link.gigabytesPerSecond());
    line(bad ? "x" : "l", thickness, from, y, to);
    String rate = link.rate() + " · " + rate(link.gigabytesPerSecond()) + " GB/s";
    text(links, to - 8, y - thickness / 2 - 4, bad ? "s e bad" : "s e", rate);
    double below = y + thickness / 2 + 12;
    if (bad) {
      text(links, to - 8, below, "s e bad", "could be " + link.possible());
    } else if (shared(spot).filter(SharedLink::bottleneck).isPresent()) {
      text(links, to - 8, below, "s e bad", "narrower than its SSDs");
    } else if (link.state() == LinkAbove.State.LIMITED_BY_PORT) {
      text(links, to - 8, below, "s e d", "own best " + link.best());
    }
  }

  private void line(String style, double thickness, int from, double y, int to) {
    links.append(
        "<path class=\"%s\" stroke-width=\"%s\" d=\"M%d %s H%d\"/>\n"
            .formatted(style, number(thickness), from, number(y), to));
  }

  /** So that a link of 63 GB/s looks strong and one of 1 GB/s can be seen. */
  private static double thickness(double gigabytesPerSecond) {
    return Math.clamp(1.35 * Math.sqrt(gigabytesPerSecond), 1.5, 13);
  }

  private static String rate(double gigabytesPerSecond) {
    return String.format(Locale.ROOT, "%.1f", gigabytesPerSecond);
  }

  // ---- cards

  private double card(Spot spot) {
    MachineFunction function = topology.machine().function(PciAddress.parse(spot.name()));
    boolean gpu = spot.kind() == Kind.GPU;
    double y = cursor;
    cursor += CARD_HEIGHT + GAP;
    centres.put(function.address(), y + CARD_HEIGHT / 2.0);
    boxes.append("<g><title>");
    boxes.append(escaped(spot.title() + spot.details(topology.machine()))).append("</title>\n");
    boxes.append(rect(gpu ? "gpu" : "ssd", cardX, y, CARD, CARD_HEIGHT, 6));
    boxes.append(rect(gpu ? "gl" : "sl", cardX, y, 6, CARD_HEIGHT, 3));
    text(boxes, cardX + 16, y + 17, "b", spot.title());
    text(
        boxes,
        cardX + CARD - 10,
        y + 17,
        "s e d",
        gpu ? nearestSsds(function) : nearestGpu(function));
    String driver = function.driver().isEmpty() ? "no driver" : function.driver();
    String right =
        gpu
            ? function.uuid().isEmpty() ? driver : fit(function.uuid(), 11, UUID) + " · " + driver
            : topology.machine().diskNames(function.address()).stream()
                    .map(disk -> disk + " · ")
                    .collect(Collectors.joining())
                + driver;
    String model = function.model().isEmpty() ? function.id() : function.model();
    double room = CARD - 40 - right.length() * 11 * CHARACTER;
    text(boxes, cardX + 16, y + 33, "", fit(model, 12, room));
    text(boxes, cardX + CARD - 10, y + 33, "s e d", fit(right, 11, CARD / 2.0));
    boxes.append("</g>\n");
    return y + CARD_HEIGHT / 2.0;
  }

  private String nearestGpu(MachineFunction ssd) {
    return topology.choices().ssds().stream()
        .filter(choice -> choice.ssd().equals(ssd))
        .flatMap(choice -> Optional.ofNullable(choice.gpu()).stream())
        .map(gpu -> "nearest GPU " + gpu.address())
        .findFirst()
        .orElse("");
  }

  private String nearestSsds(MachineFunction gpu) {
    return topology.choices().gpus().stream()
        .filter(choice -> choice.gpu().equals(gpu) && !choice.nearest().isEmpty())
        .map(
            choice ->
                "nearest: "
                    + TreeBuilder.count(choice.nearest().size(), "SSD")
                    + ", "
                    + topology.machine().way(gpu, choice.nearest().getFirst()).route())
        .findFirst()
        .orElse("");
  }

  private static String fit(String text, int size, double room) {
    int most = Math.max(1, (int) (room / (size * CHARACTER)));
    return text.length() <= most ? text : text.substring(0, most - 1) + "…";
  }

  // ---- NVLink

  /** Returns the right edge of everything. */
  private int nvLinks() {
    int from = cardX + CARD;
    List<NvLinks.Bundle> direct = new ArrayList<>();
    List<NvLinks.Bundle> switched = new ArrayList<>();
    for (NvLinks.Bundle bundle : topology.nvLinks().bundles()) {
      PciAddress peer = bundle.peer();
      if (centres.containsKey(bundle.gpu()) && (peer == null || centres.containsKey(peer))) {
        (peer == null ? switched : direct).add(bundle);
      }
    }
    int right = frameRight();
    for (int i = 0; i < direct.size(); i++) {
      int out = frameRight() + (i + 1) * ARC_STEP;
      right = Math.max(right, arc(direct.get(i), from, out));
    }
    return switched.isEmpty() ? right : switches(switched, from, right + SWITCHES_AWAY);
  }

  private int arc(NvLinks.Bundle bundle, int from, int out) {
    double a = centres.getOrDefault(bundle.gpu(), 0.0);
    PciAddress peer = bundle.peer();
    double b = peer == null ? a : centres.getOrDefault(peer, a);
    links.append(
        "<path class=\"nv\" stroke-width=\"%s\" d=\"M%d %s H%d V%s H%d\" stroke-linejoin=\"round\"/>\n"
            .formatted(
                number(thickness(bundle.gigabytesPerSecond())),
                from,
                number(a),
                out,
                number(b),
                from));
    // Along the line, so that lines side by side keep their texts apart.
    double middle = (a + b) / 2;
    boxes.append(
        "<text class=\"s m nt\" transform=\"translate(%d %s) rotate(90)\">%s</text>\n"
            .formatted(out + 12, number(middle), escaped(nvText(bundle))));
    return out + 24;
  }

  private static String nvText(NvLinks.Bundle bundle) {
    String rate =
        bundle.gigabytesPerSecond() > 0 ? ", %.0f GB/s".formatted(bundle.gigabytesPerSecond()) : "";
    return bundle.links() + " NVLink" + (bundle.links() > 1 ? "s" : "") + rate;
  }

  private int switches(List<NvLinks.Bundle> bundles, int from, int at) {
    double top = Double.MAX_VALUE;
    double bottom = 0;
    for (NvLinks.Bundle bundle : bundles) {
      double y = centres.getOrDefault(bundle.gpu(), 0.0);
      top = Math.min(top, y - CARD_HEIGHT / 2.0);
      bottom = Math.max(bottom, y + CARD_HEIGHT / 2.0);
      line("nv", thickness(bundle.gigabytesPerSecond()), from, y, at);
      text(boxes, at - 6, y - 10, "s e nt", nvText(bundle));
    }
    boxes.append(rect("nb", at, top, SWITCHES, bottom - top, 6));
    boxes.append(
        "<text class=\"m nt\" transform=\"translate(%d %s) rotate(90)\">NVSwitches</text>\n"
            .formatted(at + SWITCHES / 2 - 4, number((top + bottom) / 2)));
    return at + SWITCHES;
  }

  // ---- document

  private String document(int width) {
    double height = cursor + LEGEND;
    String name = topology.tree().title().replaceFirst("^host: ", "");
    int nodes = topology.machine().nodes().size();
    String title = name + (nodes > 0 ? ", " + TreeBuilder.count(nodes, "NUMA node") : "");
    StringBuilder out =
        Svg.document(
            width, height, "Topology: " + title, String.join("\n", topology.lines()), STYLE);
    text(out, MARGIN, 36, "h", title);
    text(
        out,
        MARGIN,
        57,
        "d",
        "Rates: what a link carries in one direction, before packet headers. Nothing is measured.");
    out.append(frames).append(links).append(boxes);
    legend(out, height - 26);
    return out.append("</svg>\n").toString();
  }

  private void legend(StringBuilder out, double y) {
    int x = MARGIN;
    for (double rate : new double[] {3.9, 15.8, 63.0}) {
      x = sample(out, x, y, "l", thickness(rate), rate(rate) + " GB/s");
    }
    x = sample(out, x, y, "x", thickness(7.9), "slower or narrower than both ends can");
    x = sample(out, x, y, "u", 2, "not known");
    if (!topology.nvLinks().bundles().isEmpty()) {
      sample(out, x, y, "nv", thickness(20), "NVLink");
    } else if (topology.machine().gpus().size() > 1 && !topology.nvLinks().known()) {
      text(out, x, y + 4, "s d", "NVLink: not known");
    }
  }

  private static int sample(
      StringBuilder out, int x, double y, String style, double thickness, String text) {
    out.append(
        "<path class=\"%s\" stroke-width=\"%s\" d=\"M%d %s h36\"/>\n"
            .formatted(style, number(thickness), x, number(y)));
    text(out, x + 44, y + 4, "s d", text);
    return x + 44 + (int) (text.length() * 11 * CHARACTER) + 22;
  }
}
