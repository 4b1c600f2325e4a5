package io.gpunvme.tools.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Files that are no result files are refused by name and place. */
class ResultFilesTest {
  private static final String GOOD =
      "{'machine':{},'commit':'c','date':'d','results':[{'id':'i','unit':'u','median':1}]}";

  @TempDir private Path folder;

  private void write(String text) throws IOException {
    Files.writeString(folder.resolve("x.json"), text.replace('\'', '"'));
  }

  private void refused(String why) {
    assertThatThrownBy(() -> BenchmarkReport.of(folder))
        .isInstanceOfSatisfying(
            ResultFileException.class,
            e -> assertThat(e.file()).isEqualTo(folder.resolve("x.json").toString()))
        .hasMessageStartingWith(folder.resolve("x.json") + ": ")
        .hasMessageContaining(why);
  }

  @Test
  void theSmallestFile() throws IOException {
    write(GOOD);

    Result result = ResultFiles.read(folder).getFirst().results().getFirst();

    assertThat(result.min()).isEqualTo(1);
    assertThat(result.max()).isEqualTo(1);
    assertThat(result.verified()).isFalse();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "{                    | not JSON at line 1 column 2",
        "[]                   | the file is not an object",
        "{'results':3}        | results is not a list",
        "{'results':[]}       | the file has no machine",
        "{'machine':{}}       | the file has no results",
        "{'machine':{},'commit':'c','date':'d','results':[7]} | results[0] is not an object",
        "{'machine':{},'commit':'c','date':'d','results':[]} {} | not JSON at line 1 column 54",
        "{'machine':{},'commit':[],'date':'d','results':[]} | commit is not text",
      })
  void notAResultFile(String text, String why) throws IOException {
    write(text);
    refused(why);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "'median':1        | 'median':'1'       | results[0].median is not a finite number",
        "'median':1        | 'median':1e999     | results[0].median is not a finite number",
        "'median':1        | 'median':-1        | results[0].median is not a finite number",
        "'median':1        | 'median':NaN       | not JSON",
        "'id':'i',         | ''                 | not JSON",
        "'unit':'u',       | 'a':1,             | results[0] has no unit",
        "'id':'i'          | 'id':''            | results[0].id is empty",
        "'median':1        | 'median':1,'min':{} | results[0].min is not a finite number",
        "'median':1        | 'median':1,'limit':{'id':'x'} | results[0].limit has no value",
        "'median':1        | 'median':1,'peer':4 | results[0].peer is not an object",
      })
  void aBadResult(String what, String instead, String why) throws IOException {
    assertThat(GOOD).contains(what);
    write(GOOD.replace(what, instead));
    refused(why);
  }

  @Test
  void tooLongTooDeepTooMany() throws IOException {
    write(GOOD.replace("'id':'i'", "'id':'" + "i".repeat(301) + "'"));
    refused("longer than 300");
    write(
        GOOD.replace(
            "'median':1", "'median':1,'conditions':" + "{'a':".repeat(30) + "1" + "}".repeat(30)));
    refused("too deep");
    write("[".repeat(100_000));
    refused("not JSON");
    write(GOOD.replace("[{", "[" + "{},".repeat(5000) + "{"));
    refused("more than 5000 results");
  }

  @Test
  void tooLargeOrNotText() throws IOException {
    try (RandomAccessFile file = new RandomAccessFile(folder.resolve("x.json").toFile(), "rw")) {
      file.setLength((8 << 20) + 1);
    }
    refused("larger than 8 MiB");
    Files.write(folder.resolve("x.json"), new byte[] {'"', (byte) 0xC3, '"'});
    refused("not UTF-8");
  }

  @Test
  void linksBelowTheFolderAreNotFollowed() throws IOException {
    Files.writeString(folder.resolve("elsewhere"), GOOD.replace('\'', '"'));
    Files.createSymbolicLink(folder.resolve("x.json"), folder.resolve("elsewhere"));

    assertThatThrownBy(() -> BenchmarkReport.of(folder))
        .isInstanceOf(ResultFileException.class)
        .hasMessageContaining("no result files");
  }

  @Test
  void noFolder() throws IOException {
    assertThatThrownBy(() -> BenchmarkReport.of(folder.resolve("missing")))
        .isInstanceOf(NoSuchFileException.class);
    write(GOOD);
    assertThatThrownBy(() -> BenchmarkReport.of(folder.resolve("x.json")))
        .isInstanceOf(FileSystemException.class)
        .hasMessageContaining("not a folder");
  }
}
