package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PlanCommandTest {
  @TempDir private Path folder;

  private Path file(String name, String text) throws IOException {
    return Files.writeString(folder.resolve(name), text);
  }

  @Test
  void theTableShowsTotalsAndIos() {
    Cli.Result result = Cli.run("plan", "--size", "1MiB", "--gap", "0", "1000:20000:1000");

    assertThat(result.succeeded().out())
        .isEqualTo(
            """
            1 range, 19.53KiB: 3 I/Os read 24KiB, 4.47KiB of it unneeded
              direct  1 I/Os  16KiB    to their place
              staged  2 I/Os  3.53KiB  copied in 2 pieces

            OFFSET  LENGTH  HOW     TARGET:OFFSET
            0       4096    staged  0:1000 (3096 at 1000)
            4096    16384   direct  0:4096
            20480   4096    staged  0:20480 (520 at 0)
            """);
  }

  @Test
  void theTableIsLimited() {
    assertThat(
            Cli.run("plan", "--size", "1MiB", "--max", "4096", "--limit", "2", "0:1MiB")
                .succeeded()
                .out())
        .contains("256 I/Os")
        .contains("4096    4096    direct  0:4096\n… and 254 more (--limit)\n")
        .doesNotContain("8192");
    assertThat(Cli.run("plan", "--size", "1MiB", "--limit", "0", "0:1").succeeded().out())
        .doesNotContain("OFFSET")
        .endsWith("… and 1 more (--limit)\n");
  }

  @ParameterizedTest
  @ValueSource(strings = {"\u001b[2J", "\u0000", "\u007f", "\u009b2J"})
  void errorsDoNotCommandTheTerminal(String code) throws IOException {
    Path ranges = file("ranges.csv", "1,2" + code + "\n");
    Path kinds = file("kinds.json", "{\"kinds\": {\"a\u007f\": {\"length\": 1}}}");
    Path unknown = file("unknown.json", "{\"kinds\": {}}");
    for (Cli.Result result :
        List.of(
            Cli.run("plan", "--size", "1M", "--ranges", ranges),
            Cli.run("plan", "--size", "1M", "--kinds", kinds, "--read", "a:0"),
            Cli.run("plan", "--size", "1M", "--kinds", unknown, "--read", "a" + code + ":0:x"),
            Cli.run("plan", "--size", "1M", code))) {
      assertThat(result.code()).isEqualTo(ExitCode.USAGE);
      assertThat(result.err().strip().chars().filter(Character::isISOControl)).isEmpty();
    }
    assertThat(Cli.run("plan", "--size", "1M", "--ranges", ranges).err()).contains("\\x");
  }

  @Test
  void junkIsQuotedInPart() throws IOException {
    for (String line :
        List.of("x".repeat(100_000), "1," + "y".repeat(100_000), "1,2,".repeat(30_000))) {
      Cli.Result result = Cli.run("plan", "--size", "1M", "--ranges", file("junk.csv", line));
      result.refused("line 1");
      assertThat(result.err()).hasSizeLessThan(1000).contains("…");
    }
    // What is wrong comes last, and is still said.
    assertThat(Cli.run("plan", "--size", "1M", "z".repeat(5000)).err())
        .contains("is not offset, length");
  }

  @Test
  void manyPiecesAreCounted() {
    assertThat(Cli.run("plan", "--size", "1M", "0:1", "2:1", "4:1", "6:1").succeeded().out())
        .contains("0       4096    staged  0:0 (1 at 0), 0:1 (1 at 2) and 2 more");
  }

  @Test
  void stripesShowTheirMember() {
    assertThat(
            Cli.run("plan", "--size", "1M", "--gap", "0", "--stripe", "2:64KiB", "64KiB:64KiB")
                .succeeded()
                .out())
        .contains(
            "MEMBER:OFFSET  LENGTH  HOW     TARGET:OFFSET\n1:0            65536   direct  0:0");
  }

  @Test
  void jsonHasEverything() {
    JsonObject json =
        Cli.run(
                "plan",
                "--size=64KiB",
                "--align=512",
                "--target-align=8",
                "--max=1024",
                "--gap=3",
                "--stripe=3:2KiB",
                "--order=given",
                "--limit=1",
                "--json",
                "4096:2048:16:5",
                "0:512")
            .succeeded()
            .json();

    assertThat(json.get("options"))
        .hasToString(
            "{\"source_size\":65536,\"alignment\":512,\"target_alignment\":8,\"max_bytes\":1024,"
                + "\"gap\":3,\"stripe_members\":3,\"stripe_unit\":2048,\"order\":\"given\"}");
    assertThat(json.get("bytes_asked").getAsLong()).isEqualTo(2560);
    assertThat(json.get("ios").getAsInt()).isEqualTo(3);
    assertThat(json.get("ios_left_out").getAsInt()).isEqualTo(2);
    assertThat(json.get("plan"))
        .hasToString(
            "[{\"member\":2,\"offset\":0,\"length\":1024,\"direct\":true,\"pieces\":["
                + "{\"offset\":0,\"length\":1024,\"target\":5,\"target_offset\":16}]}]");
  }

  @Test
  void theSourcesSizeComesFromAFile() throws IOException {
    Path source = file("source.bin", "x".repeat(5000));

    JsonObject json = Cli.run("plan", "--source", source, "0:5000", "--json").succeeded().json();
    assertThat(json.getAsJsonObject("options").get("source_size").getAsLong()).isEqualTo(5000);
    Cli.run("plan", "--source", source, "0:5001").refused("goes past the source's end, 5000");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "# offset, length\n\n4096,100\r\n 1MiB , 4KiB, 512 , 2\n8192,1,0,3",
        "\n [[4096, 100],\n [1048576, 4096, 512, 2], [8192, 1, 0, 3]] "
      })
  void rangesComeFromAFile(String text) throws IOException {
    Path ranges = file("ranges", text);

    String fromFile = Cli.run("plan", "--size", "2MiB", "--ranges", ranges).succeeded().out();
    assertThat(fromFile)
        .isEqualTo(
            Cli.run("plan", "--size", "2MiB", "4096:100", "1MiB:4096:512:2", "8192:1:0:3").out());
    assertThat(Cli.run("plan", "--size", "2MiB", "5:1:100", "--ranges", ranges).succeeded().out())
        .startsWith("4 ranges");
  }

  @Test
  void anEmptyFileHasNoRanges() throws IOException {
    assertThat(Cli.run("plan", "--size", "2M", "--ranges", file("r", " \n")).succeeded().out())
        .startsWith("0 ranges, 0B: 0 I/Os");
    assertThat(Cli.run("plan", "--size", "2M", "--ranges", file("r", "[]")).succeeded().out())
        .startsWith("0 ranges");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "1,2;3            | line 2, '3' is not offset",
        "1,2,3,4,5        | line 1, '1,2,3,4,5' is not offset",
        "1,x              | x' is not a size",
        "1,-2             | -2' is not a size",
        "{\"a\": 1}       | not a JSON array of ranges",
        "[[1,2]           | not a JSON array of ranges",
        "[1,2]            | not a JSON array of ranges",
        "[[1,2]] []       | not a JSON array of ranges",
        "[[1,2],[1]]      | at $[1] is not offset",
        "[[1,2,3,4,5]]    | at $[0] is not offset",
        "[[1,\"2\"]]      | at $[0] is not offset",
        "[[1,1.5]]        | 1.5' is not a size",
        "[[1,1e3]]        | 1e3' is not a size",
        "[[1,2,0,2147483648]] | no target 2147483648",
        "0,9223372036854775807 | goes past the source's end",
      })
  void filesThatMakeNoSenseAreRefused(String text, String why) throws IOException {
    Path ranges = file("ranges", text.replace(';', '\n'));

    Cli.run("plan", "--size", "1MiB", "--ranges", ranges).refused(why);
  }

  @Test
  void filesThatAreNoTextAreRefused() throws IOException {
    Path ranges = Files.write(folder.resolve("ranges"), new byte[] {'1', (byte) 0xFF});

    Cli.run("plan", "--size", "1MiB", "--ranges", ranges).refused("not text in UTF-8");
  }

  @Test
  void readsOfKindsAreRanges() throws IOException {
    Path kinds =
        file(
            "kinds.json",
            """
            {"block_size": 512,
             "kinds": {"tokens": {"start_lba": 8, "blocks": 80, "element": 4096},
                       "7": {"offset": 65536, "length": 100, "element": 10}}}
            """);

    assertThat(
            Cli.run("plan", "--size=1M", "--kinds", kinds, "--read=tokens:2:3", "--read=7:9")
                .succeeded()
                .out())
        .isEqualTo(Cli.run("plan", "--size=1M", "12288:12288", "65626:10").succeeded().out());
    Cli.run("plan", "--size=1M", "--kinds", kinds, "--read=tokens:10")
        .refused("kind 'tokens' (0): index 10, length 1: it has only 10 elements");
    Cli.run("plan", "--size=1M", "--kinds", kinds, "--read=words:1").refused("no kind 'words'");
    Cli.run("plan", "--size=1M", "--kinds", kinds, "--read=7").refused("is not KIND:INDEX");
    Cli.run("plan", "--size=1M", "--kinds", kinds, "--read=7:1:x").refused("is not KIND:INDEX");
    Cli.run("plan", "--size=1M", "--kinds", kinds, "--read=7:1:1:1").refused("is not KIND:INDEX");
    Cli.run("plan", "--size=1M", "--kinds", file("bad", "{}"), "--read=7:1")
        .refused("'kinds' is missing");
  }
}
