package io.gpunvme.cli.output;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class OutputTest {
  private static String printed(Consumer<PrintStream> printer) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream stream = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    printer.accept(stream);
    return bytes.toString(StandardCharsets.UTF_8);
  }

  @Test
  void columnsAreAligned() {
    Table table = new Table(2).row("a", "bb", "c").row("aaa", "b", "cccc").row("only");

    assertThat(printed(table::print)).isEqualTo("  a    bb  c\n  aaa  b   cccc\n  only\n");
  }

  @Test
  void veryLongCellsDoNotPushEverythingAway() {
    String wide = "x".repeat(100);
    Table table = new Table(0).row("n", wide, "meaning").row("m", "1", "meaning");

    assertThat(printed(table::print).lines().toList().get(1)).hasSizeLessThan(70);
    assertThat(printed(table::print)).contains(wide + "  meaning");
  }

  @Test
  void emptyCellsLeaveNoSpacesAtTheEnd() {
    assertThat(printed(new Table(2).row("a", "")::print)).isEqualTo("  a\n");
  }

  @Test
  void anEmptyTableIsNothing() {
    assertThat(printed(new Table(2)::print)).isEmpty();
  }

  @Test
  void jsonTakesWhatCommandsHave() {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("text", "<a> \"b\" \u00fc");
    object.put("long", Long.MAX_VALUE);
    object.put("big", BigInteger.TWO.pow(100));
    object.put("double", 1.23456789);
    object.put("truth", true);
    object.put("nothing", null);
    object.put("list", List.of(1, "two", Map.of()));
    object.put("shape", new long[] {3, 4});

    assertThat(printed(out -> Json.print(out, object)))
        .isEqualTo(
            """
            {
              "text": "<a> \\"b\\" \u00fc",
              "long": 9223372036854775807,
              "big": 1267650600228229401496703205376,
              "double": 1.234568,
              "truth": true,
              "nothing": null,
              "list": [
                1,
                "two",
                {}
              ],
              "shape": [
                3,
                4
              ]
            }
            """);
  }

  @Test
  void withoutATerminalThereIsNoBar() {
    PrintStream stream = new PrintStream(new ByteArrayOutputStream());
    assertThat(Progress.on(new OutputStreams(stream, stream, () -> 0, () -> 0)))
        .isSameAs(Progress.NONE);
  }

  @Test
  void barsFitTheTerminalAndGo() {
    String text =
        printed(
            err -> {
              try (Progress bar = Progress.on(new OutputStreams(err, err, () -> 60, () -> 60))) {
                bar.begin("first", 1 << 20);
                bar.moved(1 << 20);
                bar.begin("second", 1 << 20);
              }
            });

    assertThat(text).contains("first").contains("second");
    assertThat(text.split("\r")).allMatch(line -> line.length() < 60);
    assertThat(text.substring(text.lastIndexOf("second"))).contains("\r" + " ".repeat(59) + "\r");
  }
}
