package io.gpunvme.gpu.watch;

import io.gpunvme.base.Printable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Metrics as text in Prometheus' exposition format, version 0.0.4: written, and read from other
 * processes, which may be of another version. The last line is {@code # EOF}, so that a text that
 * was cut off shows. For one thread.
 */
public final class MetricText {
  private static final String EOF = "# EOF";
  private static final Pattern NAME = Pattern.compile("[a-zA-Z_:][a-zA-Z0-9_:]*");
  private static final Pattern LABEL =
      Pattern.compile("\\s*([a-zA-Z_][a-zA-Z0-9_]*)\\s*=\\s*\"((?:[^\"\\\\]|\\\\.)*+)\"\\s*,?\\s*");
  private static final Pattern ABOUT = Pattern.compile("# (HELP|TYPE) (\\S+) ?(.*)");
  private static final Pattern VALUE =
      Pattern.compile(
          "\\s+([+-]?(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?|[+-]?Inf|NaN)(?:\\s+-?\\d+)?\\s*");

  /** Samples that are written together, below what is said of them. */
  private static final class Family {
    private String type = "";
    private String help = "";
    private final Map<List<Object>, Sample> samples = new LinkedHashMap<>();

    void add(Sample sample) {
      samples.putIfAbsent(List.of(sample.name(), sample.labels()), sample);
    }
  }

  private final SequencedMap<String, Family> families = new LinkedHashMap<>();

  /** Without any metrics. */
  public MetricText() {}

  // ---- writing

  /** Adds a sample. */
  void add(Metric metric, Map<String, String> labels, long value) {
    add(metric, "", labels, Long.toString(value));
  }

  /**
   * Adds a sample.
   *
   * @param suffix of its name, for summaries
   */
  void add(Metric metric, String suffix, Map<String, String> labels, String value) {
    Family family = families.computeIfAbsent(metric.id(), _ -> new Family());
    family.type = metric.type();
    family.help = metric.help();
    family.add(new Sample(metric.id() + suffix, new LinkedHashMap<>(labels), value));
  }

  /**
   * Adds the samples of another text, with one more label each.
   *
   * @param which of them
   */
  public void addAll(MetricText other, Predicate<Sample> which, String label, String text) {
    other.families.forEach(
        (name, theirs) -> {
          Family own = families.computeIfAbsent(name, _ -> new Family());
          own.type = own.type.isEmpty() ? theirs.type : own.type;
          own.help = own.help.isEmpty() ? theirs.help : own.help;
          theirs.samples.values().stream()
              .filter(which)
              .forEach(sample -> own.add(sample.with(label, text)));
        });
  }

  /** The text. */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder();
    families.forEach(
        (name, family) -> {
          if (family.samples.isEmpty()) {
            return;
          }
          if (!family.help.isEmpty()) {
            text.append("# HELP ").append(name).append(' ').append(family.help).append('\n');
          }
          if (!family.type.isEmpty()) {
            text.append("# TYPE ").append(name).append(' ').append(family.type).append('\n');
          }
          family.samples.values().forEach(sample -> append(text, sample));
        });
    return text.append(EOF).append('\n').toString();
  }

  private static void append(StringBuilder text, Sample sample) {
    text.append(sample.name());
    char before = '{';
    for (Map.Entry<String, String> label : sample.labels().entrySet()) {
      text.append(before).append(label.getKey()).append("=\"");
      text.append(escape(label.getValue())).append('"');
      before = ',';
    }
    text.append(before == ',' ? "} " : " ").append(sample.value()).append('\n');
  }

  private static String escape(String value) {
    return value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
  }

  // ---- reading

  /**
   * Reads a text.
   *
   * @throws UnreadableMetricsException if it was cut off, or a line makes no sense
   */
  public static MetricText parse(String text) {
    MetricText parsed = new MetricText();
    // Only line feeds end lines: a label may have other characters that do elsewhere.
    String[] lines = text.split("\n", -1);
    for (int i = 0; i < lines.length; i++) {
      if (lines[i].equals(EOF) && i < lines.length - 1) {
        return parsed;
      }
      parsed.line(lines[i]);
    }
    throw new UnreadableMetricsException(
        "the text was cut off after " + text.length() + " characters");
  }

  private void line(String line) {
    Matcher about = ABOUT.matcher(line);
    if (about.matches() && NAME.matcher(about.group(2)).matches()) {
      Family family = families.computeIfAbsent(about.group(2), _ -> new Family());
      if (about.group(1).equals("TYPE")) {
        family.type = about.group(3);
      } else {
        family.help = about.group(3);
      }
    } else if (!line.isBlank() && !line.startsWith("#")) {
      Sample sample = sample(line);
      families.computeIfAbsent(familyOf(sample.name()), _ -> new Family()).add(sample);
    }
  }

  /** The metric that a sample belongs to: a summary's have names of their own. */
  private String familyOf(String name) {
    for (String suffix : List.of(Metric.SUM, Metric.COUNT)) {
      String stem = name.endsWith(suffix) ? name.substring(0, name.length() - suffix.length()) : "";
      if (families.containsKey(stem)) {
        return stem;
      }
    }
    return name;
  }

  private static Sample sample(String line) {
    Matcher name = NAME.matcher(line);
    if (!name.lookingAt()) {
      throw senseless(line);
    }
    int at = name.end();
    SequencedMap<String, String> labels = new LinkedHashMap<>();
    if (at < line.length() && line.charAt(at) == '{') {
      Matcher label = LABEL.matcher(line);
      at++;
      while (label.region(at, line.length()).lookingAt()) {
        labels.put(label.group(1), unescape(label.group(2)));
        at = label.end();
      }
      if (at >= line.length() || line.charAt(at) != '}') {
        throw senseless(line);
      }
      at++;
    }
    Matcher value = VALUE.matcher(line).region(at, line.length());
    if (!value.matches()) {
      throw senseless(line);
    }
    return new Sample(name.group(), labels, value.group(1));
  }

  private static UnreadableMetricsException senseless(String line) {
    return new UnreadableMetricsException("'" + Printable.quote(line) + "' is no metric");
  }

  private static String unescape(String text) {
    StringBuilder plain = new StringBuilder(text.length());
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '\\') {
        c = text.charAt(++i);
        c = c == 'n' ? '\n' : c;
      }
      plain.append(c);
    }
    return plain.toString();
  }

  /** The samples of a metric, in the order of the text. */
  public List<Sample> samples(Metric metric) {
    Family family = families.get(metric.id());
    return family == null ? List.of() : new ArrayList<>(family.samples.values());
  }
}
