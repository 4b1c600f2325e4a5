package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import io.gpunvme.cli.output.OutputStreams;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** Runs a command in this process and keeps what it said. */
final class Cli {
  private Cli() {}

  /** What a command ended with and what it wrote. */
  record Result(int code, byte[] bytes, String err) {
    String out() {
      return new String(bytes, StandardCharsets.UTF_8);
    }

    /** The one JSON object that standard output is. */
    JsonObject json() {
      try (JsonReader reader = new JsonReader(new StringReader(out()))) {
        JsonElement element = JsonParser.parseReader(reader);
        assertThat(reader.peek())
            .as("one object only: %s", out())
            .isEqualTo(JsonToken.END_DOCUMENT);
        return element.getAsJsonObject();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    Result succeeded() {
      assertThat(code).as("out: %s%nerr: %s", out(), err).isZero();
      assertThat(err).isEmpty();
      return this;
    }

    /** Wrong usage, said in one line that contains {@code what}. */
    void refused(String what) {
      failed(ExitCode.USAGE, what);
    }

    void failed(int expected, String what) {
      assertThat(err).contains(what).startsWith("gpunvme").hasLineCount(1).doesNotContain("\tat ");
      assertThat(code).as(err).isEqualTo(expected);
    }
  }

  static Result run(Object... args) {
    return run(0, args);
  }

  /** With streams that are a terminal. */
  static Result onTerminal(Object... args) {
    return run(80, args);
  }

  private static Result run(int columns, Object... args) {
    String[] texts = new String[args.length];
    for (int i = 0; i < args.length; i++) {
      texts[i] = args[i].toString();
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    PrintStream outStream = new PrintStream(out, false, StandardCharsets.UTF_8);
    PrintStream errStream = new PrintStream(err, true, StandardCharsets.UTF_8);
    OutputStreams streams = new OutputStreams(outStream, errStream, () -> columns, () -> columns);
    int code = CommandLineTool.run(streams, texts);
    outStream.flush();
    return new Result(code, out.toByteArray(), err.toString(StandardCharsets.UTF_8));
  }
}
